package update

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/provenance"
)

// The record and the statement of a run say what was made of what, and agree with
// what is on disk.
func TestRecordsSayHowItWasMade(t *testing.T) {
	w := newWorld(t)
	w.o.Tool = provenance.Tool{Version: "v1.2.3", Commit: "abc", Go: "go1.26"}
	w.publish("10.2.0a20260929", 2)
	if out := w.run(); out.Exit != 0 {
		t.Fatalf("%+v", out)
	}
	w.publish("10.2.0a20260930", 1)
	if out := w.run(); out.Exit != 0 || !out.Changed {
		t.Fatalf("%+v", out)
	}
	sl := w.o.Store.Slot("nightly", "gfx1151")
	var rec Record
	if err := sl.ReadRun("10.2.0a20260930", &rec); err != nil {
		t.Fatal(err)
	}
	host, _ := os.Hostname()
	if rec.Tool != w.o.Tool || rec.Host != host || rec.Ruleset == 0 || rec.Repack.Decompressor != "pgunzip" {
		t.Errorf("%+v", rec)
	}
	if p := rec.Pin; p == nil || p.URL != rec.URL || p.Digest != rec.Verified.Digest || p.Size != rec.Verified.Size || p.ETag == "" || p.MTime.IsZero() || p.LastModified.IsZero() || p.FirstSeen.IsZero() {
		t.Errorf("pin %+v", rec.Pin)
	}
	var names []string
	sum := 0.0
	for _, s := range rec.Stages {
		names, sum = append(names, s.Stage), sum+s.Seconds
	}
	if want := []string{"download", "unpack", "patch", "wrap", "audit", "reuse", "commit", "activate"}; !slices.Equal(names, want) {
		t.Errorf("stages %v, want %v", names, want)
	}
	if all := rec.Finished.Sub(rec.Started).Seconds(); sum <= 0 || sum > all+0.001 {
		t.Errorf("the stages took %v s of %v", sum, all)
	}
	dir := filepath.Join(w.root, "slots/nightly-gfx1151/generations/10.2.0a20260930")
	for _, name := range []string{"manifest.json", "files.jsonl"} {
		if d, err := digestOf(filepath.Join(dir, name)); err != nil || rec.Digests[name] != d {
			t.Errorf("%s is %s, the record says %s, %v", name, d, rec.Digests[name], err)
		}
	}
	text, err := sl.ReadProvenance("10.2.0a20260930")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		rec.Digests["manifest.json"].Encoded(), rec.Digests["files.jsonl"].Encoded(), rec.Verified.Digest.Encoded(), rec.Recipe, rec.URL,
		`"name": "10.2.0a20260930/files.jsonl"`, `"target": "gfx1151"`, `"channel": "nightly"`, `"rocm-nightly": "v1.2.3"`, `"startedOn": "20`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the statement does not say %s:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), w.root) || host != "" && strings.Contains(string(text), `"`+host+`"`) {
		t.Errorf("it tells of this machine:\n%s", text)
	}
}

// A generation of a kept tarball, and one of another's files, are stated as those
// of the tarball that they are made of, with nothing of the machine.
func TestWhatWasNotDownloadedIsStatedToo(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx103X-all")
	w.o.Installs = nil
	keep := func(o *Options) {
		for i := range o.Installs {
			o.Installs[i].KeepTarballs = 1
		}
	}
	if rep, n := w.twins(keep); rep.Exit != 0 || n != 1 {
		t.Fatalf("%d downloads, %+v", n, rep)
	}
	if rep, n := w.twins(keep, func(o *Options) { o.Installs[0].Repack.RunPath = "runpath" }); rep.Exit != 0 || n != 0 {
		t.Fatalf("%d downloads, %+v", n, rep)
	}
	for _, made := range []struct{ slot, gen, against string }{
		{"gfx1036", "10.2.0a20260929", "the files of "}, {"gfx1030", "10.2.0a20260929-r2", "the tarball kept in "},
	} {
		sl := w.o.Store.Slot("nightly", made.slot)
		g, err := sl.Current()
		if err != nil || g == nil || g.Name != made.gen {
			t.Fatalf("%+v, %v", g, err)
		}
		var rec Record
		if err := sl.ReadRun("10.2.0a20260929", &rec); err != nil || !strings.HasPrefix(rec.Verified.Against[0], made.against) {
			t.Errorf("%s: %+v, %v", made.slot, rec.Verified, err)
		}
		if p := rec.Pin; p == nil || p.URL != rec.URL || p.Digest != rec.Verified.Digest || p.ETag == "" || p.MTime.IsZero() {
			t.Errorf("%s: pin %+v", made.slot, rec.Pin)
		}
		text, err := sl.ReadProvenance(made.gen)
		if err != nil || strings.Contains(string(text), w.root) {
			t.Errorf("%s: %v, it tells of this machine:\n%s", made.slot, err, text)
		}
		for _, want := range []string{rec.Verified.Digest.Encoded(), rec.URL, rec.Digests["files.jsonl"].Encoded(), `"mtime"`, `"etag"`, "verified_against"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: the statement does not say %s:\n%s", made.slot, want, text)
			}
		}
	}
}

// Another recipe of a version is another generation, with a statement of its own.
func TestEachGenerationHasItsStatement(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	w.run()
	w.run(func(o *Options) { o.Installs[0].Repack.RunPath = "runpath" })
	sl := w.o.Store.Slot("nightly", "gfx1151")
	one, err1 := sl.ReadProvenance("10.2.0a20260929")
	two, err2 := sl.ReadProvenance("10.2.0a20260929-r2")
	if err1 != nil || err2 != nil || string(one) == string(two) {
		t.Errorf("%v, %v", err1, err2)
	}
	// An install that has nothing to do writes none, and does not miss one.
	if err := os.Remove(filepath.Join(sl.Dir(), "runs/10.2.0a20260929-r2.intoto.json")); err != nil {
		t.Fatal(err)
	}
	if out := w.run(func(o *Options) { o.Installs[0].Repack.RunPath = "runpath" }); out.Exit != 0 || out.Changed {
		t.Errorf("%+v", out)
	}
	if _, err := sl.ReadProvenance("10.2.0a20260929-r2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// Records of each schema that there ever was are read.
func TestStoredRunsAreRead(t *testing.T) {
	b, err := os.ReadFile("testdata/schema1/run.json")
	if err != nil {
		t.Fatal(err)
	}
	sl := newWorld(t).o.Store.Slot("nightly", "gfx1151")
	if err := sl.WriteRun("10.2.0a20261121", json.RawMessage(b)); err != nil {
		t.Fatal(err)
	}
	var rec Record
	if err := sl.ReadRun("10.2.0a20261121", &rec); err != nil || rec.Generation != "10.2.0a20261121" || rec.Repack == nil || rec.Audit == nil || rec.Reused == nil || rec.Verified.Size != 1383845 {
		t.Errorf("%+v, %v", rec, err)
	}
	if Schema != 1 {
		t.Error("store a record of the schema before this, and read it here")
	}
}

func TestStages(t *testing.T) {
	var s stages
	s.enter("nothing was started")
	if s.all() != nil {
		t.Error("it has measured all the same")
	}
	now := time.Unix(0, 0)
	s.start(func() time.Time { now = now.Add(time.Second); return now })
	for _, name := range []string{"a", "a", "b", "a"} {
		s.enter(name)
	}
	want := []StageTime{{"a", 1}, {"b", 1}, {"a", 1}}
	if got := s.all(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	s.start(func() time.Time { now = now.Add(-time.Second); return now }) // a clock that is set back
	s.enter("a")
	if got := s.all(); got[0].Seconds != 0 {
		t.Errorf("%v", got)
	}
	for range 3 * maxStages {
		s.enter("x")
		s.enter("y")
	}
	if got := s.all(); len(got) != maxStages {
		t.Errorf("%d stages", len(got))
	}
}
