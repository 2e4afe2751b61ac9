package update

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/audit/diff"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// maxFindings is how many findings of the audit, and failures of the health check,
// a proof names: a body is for people.
const maxFindings = 20

// proof says what a pin rests on, as the record of its run has it. What it rests
// on is told to others, so places of this machine are left out.
func (p *recorded) proof() body.Proof {
	rec := p.rec
	out := body.Proof{
		Target: p.target, Pin: p.bumpPin(), Ran: rec.Finished.UTC(), Tool: toolText(rec), Recipe: rec.Recipe,
		NoDiff: "the version that stands there is not known here",
	}
	for _, source := range rec.Verified.Against {
		out.Against = append(out.Against, outside(source))
	}
	if d, ok := rec.Digests[manifest.FilesName]; ok {
		out.Tree = d.String()
	}
	if res := rec.Repack; res != nil {
		out.Entries, out.Bytes = res.Files+res.Links, res.Bytes
		out.Audit = auditProof(rec)
	}
	if s := rec.Smoke; s != nil {
		out.Smoke = &body.Smoke{Mode: s.Mode, Passed: s.Counts.Passed, Failed: s.Counts.Failed, Skipped: s.Counts.NotThere + s.Counts.NotRun}
		for _, c := range s.Failures() {
			if len(out.Smoke.Failures) < maxFindings {
				out.Smoke.Failures = append(out.Smoke.Failures, oneLine(c.Name+": "+c.Detail))
			}
		}
	}
	return out
}

// auditProof sums up the audit: what it found, the gravest first.
func auditProof(rec *Record) *body.Audit {
	v := rec.Repack.Audit
	out := &body.Audit{Fatal: v.Fatal, Required: v.Required, Warnings: v.Warnings, Refused: v.Refused}
	r := rec.Audit
	if r == nil {
		return out
	}
	out.Scope, out.Allowed = r.Scope, r.Allowed
	for _, f := range r.Findings { // which are sorted so
		if f.Severity == audit.Warning || len(out.Findings) == maxFindings {
			break
		}
		line := f.Severity + " " + f.Rule + ": " + f.Path
		if f.Subject != "" {
			line += " (" + f.Subject + ")"
		}
		out.Findings = append(out.Findings, oneLine(line))
	}
	return out
}

// oneLine is text without the ends of lines, and not longer than a line should be.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const most = 300
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// outside is a source of digests without where it lies.
func outside(source string) string {
	if strings.HasPrefix(source, lockKind+" ") {
		return lockKind
	}
	if strings.HasPrefix(source, trustedKind) {
		what, _, _ := strings.Cut(source, " at ")
		return what
	}
	return source
}

func toolText(rec *Record) string {
	if rec.Tool.Version == "" {
		return "rocm-nightly"
	}
	return "rocm-nightly " + rec.Tool.Version
}

// proofFrom is proof with what changes from the version that stands there: what is
// known of that one, and how the two trees differ.
func (r *run) proofFrom(ctx context.Context, p *recorded, old string) (*body.Proof, error) {
	out := p.proof()
	if old == "" || old == p.pin.Version.String() {
		return &out, nil
	}
	out.Old = r.oldOf(ctx, p, old)
	was := treesOf(p.slot, old)
	if len(was) == 0 {
		out.NoDiff = fmt.Sprintf("nothing is kept here of the tree of %s", old)
		return &out, nil
	}
	is := slices.DeleteFunc(treesOf(p.slot, p.pin.Version.String()), func(tree diff.Source) bool { return !p.listed(tree) })
	if len(is) == 0 {
		out.NoDiff = "nothing is kept here of the new tree"
		return &out, nil
	}
	d, err := diff.Compare(ctx, was[0], is[0], diff.Options{Listed: maxListed})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		r.o.Log.Warn("two nights could not be compared", "install", p.slot.Name(), "from", old, "to", p.pin.Version, "error", err)
		out.NoDiff = "the two trees could not be compared"
		return &out, nil
	}
	out.Diff, out.NoDiff = d, ""
	return &out, nil
}

// maxListed bounds the lists of files of a comparison that goes into a body.
const maxListed = 500

// oldOf is what is known of the tarball of the version that stands there: by the
// ledger, which has those of other families and channels too.
func (r *run) oldOf(ctx context.Context, p *recorded, version string) *body.Old {
	old := &body.Old{Version: version}
	l := r.o.ledger()
	if l == nil {
		return old
	}
	for e, err := range l.All(ctx) {
		if err != nil || e.Channel != p.slot.Channel() || e.Family != p.pin.Family || e.Version != version {
			continue
		}
		if pin, err := e.Pin(); err != nil || pin.Tests != p.pin.Tests || pin.Variant != p.pin.Variant {
			continue
		}
		_, old.Hex, _ = strings.Cut(e.Digest.String(), ":")
		if old.Size = e.Size; !e.MTime.IsZero() {
			old.Date = e.MTime.UTC().Format(time.DateOnly)
		}
	}
	return old
}

// treesOf finds what there is of the tree of a version: generations, the newest
// first, and what was kept of it.
func treesOf(sl *store.Slot, version string) []diff.Source {
	var all []diff.Source
	gens, err := sl.Generations()
	if err == nil {
		for _, g := range slices.Backward(gens) {
			if g.Version == version {
				all = append(all, diff.Source{Name: version, Dir: g.Dir, List: manifest.FilesName})
			}
		}
	}
	if rec, err := sl.Record(version); err == nil {
		all = append(all, diff.Source{Name: version, Dir: rec.Dir})
	}
	return all
}

// listed reports whether a tree is the one that the record of the run is about.
func (p *recorded) listed(tree diff.Source) bool {
	want, ok := p.rec.Digests[manifest.FilesName]
	if !ok {
		return true // of a run that made nothing new
	}
	got, err := diff.ListDigest(tree.Dir)
	return err == nil && want.String() == "sha256:"+got
}

// keepTree keeps of a tree what a later night is compared with. What cannot be kept
// is said: the night is as good without.
func (t *task) keepTree(ctx context.Context, dir string) {
	files, err := diff.Record(ctx, dir)
	if err == nil {
		err = t.slot.KeepRecord(ctx, t.rel.Version.String(), files)
	}
	if err != nil && ctx.Err() == nil {
		t.r.o.Log.Warn("this night will not be comparable with others once its tree is gone", "release", t.rel.Name, "error", err)
	}
}

// keepUninstalled records the tree of a run that installs nothing, before it goes.
func (t *task) keepUninstalled(ctx context.Context, dir string, rec *Record) {
	t.stages.enter("record")
	if err := rec.describe(dir); err != nil {
		t.r.o.Log.Warn("what was verified could not be described", "release", t.rel.Name, "error", err)
	}
	t.keepTree(ctx, dir)
}

// readManifest reads the manifest.json of a prefix.
func readManifest(dir string) (*manifest.Manifest, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(manifest.Name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return manifest.Read(f)
}
