package update

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// version is what may be proposed for the one target, "" if nothing may be.
func (w *world) version(change ...func(*Options)) string {
	w.t.Helper()
	o := w.o
	for _, c := range change {
		c(&o)
	}
	pins, err := Pins(context.Background(), o, "nightly", []string{"gfx1151"})
	var none *UnverifiedError
	if errors.As(err, &none) {
		return ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return pins["gfx1151"].Version
}

func noInstall(o *Options) { o.NoInstall = true }

// Only a run that has verified, repacked and audited a night makes it one to propose:
// the newest of them, or the one that is named.
func TestWhatIsProposedRestsOnARecord(t *testing.T) {
	w := newWorld(t)
	if got := w.version(); got != "" {
		t.Errorf("%q of nothing", got)
	}
	w.publish("10.2.0a20260928", 3)
	w.run(noInstall)
	w.publish("10.2.0a20260929", 2)
	w.run()
	if got := w.version(); got != "10.2.0a20260929" {
		t.Error(got)
	}
	named := func(v string) func(*Options) { return func(o *Options) { o.Version = v } }
	if got := w.version(named("10.2.0a20260928")); got != "10.2.0a20260928" {
		t.Error(got)
	}
	if got := w.version(named("10.2.0a20260101")); got != "" {
		t.Error(got)
	}
	for name, policy := range map[string]func(*Options){
		"deny":   func(o *Options) { o.Policy.Deny = []string{"10.2.0a20260929"} },
		"signed": func(o *Options) { o.Verify = VerifySigned },
		"series": func(o *Options) { o.Policy.Series = "9.9" },
	} {
		if got := w.version(policy); got == "10.2.0a20260929" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := w.version(func(o *Options) { o.Policy.Prefer = "date" }); got != "10.2.0a20260929" {
		t.Error(got)
	}
}

// A record that vouches for nothing is passed over, whoever wrote it.
func TestRecordsThatVouchForNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(rec *Record){
		"refused":       func(rec *Record) { rec.Exit = ExitRefused },
		"audit":         func(rec *Record) { rec.Repack.Audit.Refused = true },
		"not verified":  func(rec *Record) { rec.Verified = nil },
		"not repacked":  func(rec *Record) { rec.Repack = nil },
		"other bytes":   func(rec *Record) { rec.Verified.Digest = unknownDigest },
		"other name":    func(rec *Record) { rec.Pin.Name = "therock-dist-linux-gfx1151-10.2.0a20260101.tar.gz" },
		"other version": func(rec *Record) { rec.Version = "10.2.0a20260101" },
	} {
		w := newWorld(t)
		w.publish("10.2.0a20260929", 2)
		w.run(noInstall)
		rec := &Record{}
		if err := w.slot().ReadRun("10.2.0a20260929", rec); err != nil {
			t.Fatal(err)
		}
		change(rec)
		if err := w.slot().WriteRun("10.2.0a20260929", rec); err != nil {
			t.Fatal(err)
		}
		if got := w.version(); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run(noInstall)
	if err := os.Remove(filepath.Join(w.root, "ledger.jsonl")); err != nil {
		t.Fatal(err)
	}
	if got := w.version(); got != "" {
		t.Errorf("without a ledger: %s", got)
	}
}

// proof is the proof of the newest night, from the version that stands there.
func (w *world) proof(old string) *body.Proof {
	w.t.Helper()
	r := newRun(w.o.withDefaults())
	p, err := r.recorded(context.Background(), "nightly", "gfx1151")
	if err != nil || p == nil {
		w.t.Fatal(p, err)
	}
	out, err := r.proofFrom(context.Background(), p, old)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// Two nights of which neither was ever installed are compared by what stays of
// them; so are one that is installed and one that is not.
func TestProofsTellWhatChanges(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260928", 3)
	w.run(noInstall)
	w.publish("10.2.0a20260929", 2)
	w.run(noInstall)
	if gens := w.generations(); len(gens) != 0 {
		t.Fatal(gens)
	}
	check := func(p *body.Proof, old string) {
		t.Helper()
		if p.Diff == nil || p.NoDiff != "" || p.Diff.A.Version != old || p.Diff.B.Version != p.Pin.Version {
			t.Fatalf("%+v", p)
		}
		if p.Old == nil || p.Old.Version != old || p.Old.Size == 0 || len(p.Old.Hex) != 64 || p.Old.Date == "" {
			t.Errorf("%+v", p.Old)
		}
		if p.Audit == nil || p.Audit.Scope == "" || p.Tree == "" || p.Recipe == "" || p.Entries == 0 || p.Bytes == 0 || p.Ran.IsZero() || !slices.Contains(p.Against, "gzip checksum") {
			t.Errorf("%+v", p)
		}
	}
	check(w.proof("10.2.0a20260928"), "10.2.0a20260928")
	w.publish("10.2.0a20260930", 1)
	w.run()
	check(w.proof("10.2.0a20260929"), "10.2.0a20260929")
	if _, err := w.slot().Record("10.2.0a20260930"); err != nil {
		t.Error("nothing stays of what is installed:", err)
	}
	for old, want := range map[string]string{"10.1.0a20260101": "nothing is kept here of the tree of 10.1.0a20260101", "": "not known"} {
		if p := w.proof(old); p.Diff != nil || !strings.Contains(p.NoDiff, want) {
			t.Errorf("%q: %+v", old, p)
		}
	}
}

// A record of a tree that is not the one of the run is not believed.
func TestAForgedTreeIsNotCompared(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260928", 3)
	w.run(noInstall)
	w.publish("10.2.0a20260929", 2)
	w.run(noInstall)
	old, err := w.slot().Record("10.2.0a20260928")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, name := range []string{"manifest.json", "files.jsonl.zst", "texts.jsonl.zst"} {
		if files[name], err = os.ReadFile(filepath.Join(old.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.slot().KeepRecord(context.Background(), "10.2.0a20260929", files); err != nil {
		t.Fatal(err)
	}
	if p := w.proof("10.2.0a20260928"); p.Diff != nil || p.NoDiff == "" {
		t.Errorf("%+v", p)
	}
}

// A proof is told to others: no place of this machine is in it, and no password.
func TestProofsKeepWhatIsOurs(t *testing.T) {
	digest := release.Digest("sha256:" + strings.Repeat("0", 64))
	lock := &word{place: Place{URL: "/home/me/rocm-nightly.lock"}, what: "the lock"}
	for _, source := range []string{lock.expects(digest).Source, lockKind + " /home/me/x.lock", lockKind + " https://intern.example/x"} {
		if got := outside(source); strings.Contains(got, "me") || strings.Contains(got, "intern") || got == "" {
			t.Errorf("%q", got)
		}
	}
	if got := outside("gzip checksum"); got != "gzip checksum" {
		t.Error(got)
	}
	w := newWorld(t)
	w.publish("10.2.0a20260928", 3)
	w.run(noInstall)
	text, err := json.Marshal(w.proof(""))
	if err != nil || strings.Contains(string(text), w.root) {
		t.Errorf("%s, %v", text, err)
	}
	p := recorded{target: "gfx1151", pin: release.Pin{Release: release.Release{URL: "https://me:secret@mirror.example/x.tar.gz"}}}
	if got := p.bumpPin().URL; got != "https://mirror.example/x.tar.gz" {
		t.Error(got)
	}
}

// Propose says which command makes what is missing, and what is wrong with names.
func TestProposeWithoutARecord(t *testing.T) {
	w := newWorld(t)
	w.o.Bumps = []Bump{{Channel: "nightly", Repo: bump.Repo{Name: "a", URL: "/nowhere", Files: []bump.File{
		{Path: "f.nix", Target: "gfx1151", Set: map[string]string{"v": "{{.Version}}"}}, {Path: "f.nix", Target: "Strix Halo", Set: map[string]string{"w": "{{.Version}}"}},
		{Path: "f.nix", Target: "gfx1100", Set: map[string]string{"x": "{{.Version}}"}}}}}}
	o := w.o
	o.Version = "10.2.0a20260930"
	rep, err := Propose(context.Background(), o, Proposal{})
	if err != nil || rep.Exit != ExitFailed || len(rep.Bumps) != 1 || rep.Bumps[0].Event != EventNoResult {
		t.Fatalf("%+v, %v", rep, err)
	}
	var none *UnverifiedError
	if !errors.As(rep.Bumps[0].Err, &none) || none.Command() != "rocm-nightly update --no-install --arch gfx1151 --arch gfx1100 --version 10.2.0a20260930" {
		t.Errorf("%v", rep.Bumps[0].Err)
	}
	for _, p := range []Proposal{{Names: []string{"b"}}, {Targets: []string{"gforce"}}, {Targets: []string{"gfx942"}}} {
		if _, err := Propose(context.Background(), w.o, p); !errorsAs[*UsageError](err) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	rep, err = Propose(context.Background(), w.o, Proposal{Targets: []string{"gfx1100"}})
	if err != nil || !errors.As(rep.Bumps[0].Err, &none) || !slices.Equal(none.Targets, []string{"gfx1100"}) {
		t.Errorf("%+v, %v", rep, err)
	}
}

// A slot of another channel, and one of the family, are told apart.
func TestRecordsOfAFamily(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx103X-all")
	w.o.Installs = []Install{{Target: "gfx1030", Channel: "nightly", Keep: 3}}
	w.run(noInstall)
	r := newRun(w.o.withDefaults())
	for want, found := range map[string]bool{"gfx1030": true, "gfx103X-all": true, "gfx1151": false} {
		p, err := r.recorded(context.Background(), "nightly", want)
		if err != nil || (p != nil) != found {
			t.Errorf("%s: %v, %v", want, p, err)
		}
	}
	if p, err := r.recorded(context.Background(), "stable", "gfx1030"); p != nil || err != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// Which GPUs a machine has does not matter for what it proposes: it may have none.
func TestProposingNeedsNoGPU(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run(noInstall)
	auto := func(o *Options) {
		o.Installs, o.Sys = []Install{{Target: "auto", Channel: "nightly"}}, fstest.MapFS{}
	}
	if got := w.version(auto); got != "10.2.0a20260929" {
		t.Error(got)
	}
}

// Whether an index still lists a name is only said where all of it was read.
func TestPublished(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	r := newRun(w.o.withDefaults())
	if r.published("nightly") != nil {
		t.Error("said before an index was read")
	}
	if _, err := r.list(context.Background(), "nightly"); err != nil {
		t.Fatal(err)
	}
	lists := r.published("nightly")
	if lists == nil || !lists("therock-dist-linux-gfx1151-10.2.0a20260929.tar.gz") || lists("therock-dist-linux-gfx1151-10.2.0a20260101.tar.gz") {
		t.Error("the index is not told right")
	}
	if r.o.Version = "10.2.0a20260929"; r.published("nightly") != nil {
		t.Error("said of an index that was asked for one version")
	}
}
