package update

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// make fetches the release, makes a generation of it and activates it.
func (t *task) make(ctx context.Context) (err error) {
	rec := &Record{Schema: Schema, Install: t.slot.Name(), Version: t.rel.Version.String(), URL: t.rel.URL, Started: t.r.o.Now(), From: t.out.From, Tool: t.r.o.Tool, Host: hostname()}
	t.stages.start(t.r.o.Now)
	t.begin(rec)
	defer t.end(ctx)
	t.sweepSpool(ctx)
	defer func() {
		if rec == nil || rec.Generation == "" && cutShort(ctx, err) {
			return // nothing was done: the record of what is active stays
		}
		rec.Finished, rec.Stages = t.r.o.Now(), t.stages.all()
		if err != nil {
			rec.Error, rec.Exit = err.Error(), exitOf(err)
		}
		rec.Attempts = t.attemptsBefore(rec.Version)
		if werr := t.slot.WriteRun(rec.Version, rec); werr != nil {
			t.r.o.Log.Warn("the run record could not be written", "error", werr)
		}
	}()
	gen, err := t.share(ctx, rec)
	if errors.Is(err, errNothingToShare) {
		gen, err = t.unkeep(ctx, rec)
	}
	if errors.Is(err, errNothingKept) {
		gen, err = t.fetch(ctx, rec)
	}
	if t.unmade(err) {
		rec = nil
		t.out.Message = fmt.Sprintf("%s stays, made with other options: %s", t.from.Name, goneWords)
		return t.stay(ctx)
	}
	if err != nil {
		return err
	}
	t.wantKept()
	if gen == nil { // --no-install
		t.out.Message = fmt.Sprintf("verified and audited %s; nothing was installed", t.rel.Version)
		return t.withhold(ctx)
	}
	if err := fault.Point("update.committed"); err != nil {
		return err
	}
	rec.Generation = gen.Name
	if t.anew {
		t.attest(gen, rec)
	}
	if t.from != nil && gen.Name == t.from.Name { // --accept-new-bytes, and there were none
		t.out.Message = fmt.Sprintf("%s stays: the bytes of %s are the same", gen.Name, t.rel.Version)
		return t.stay(ctx)
	}
	if err := t.activate(ctx, gen.Name, rec); err != nil {
		return err
	}
	return t.link(ctx)
}

// unmade reports whether what is active cannot be made in another way, because
// AMD has deleted its tarball: that is no error, nor will it ever be.
func (t *task) unmade(err error) bool {
	var status *fetch.StatusError
	return errors.As(err, &status) && status.Gone() && t.from != nil && t.from.Version == t.rel.Version.String() &&
		!t.r.o.AcceptNewBytes && !t.r.o.NoInstall && t.r.o.Version == ""
}

// fetch makes a generation of the tarball; nil with --no-install.
func (t *task) fetch(ctx context.Context, rec *Record) (gen *store.Generation, err error) {
	dir := t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name)
	t.oneAtATime(dir)
	t.say("download", "downloading "+t.rel.Name)
	t.r.pending[dir] = true
	dl, rel, err := t.r.download(ctx, t.rel, t.allow(ctx))
	if err != nil {
		return nil, err
	}
	t.take(rel)
	if err = fault.Point("update.download"); err == nil {
		gen, err = t.repack(ctx, dl, rec)
	}
	if err = errors.Join(err, dl.Close()); err == nil {
		delete(t.r.pending, dir)
		t.keep(ctx, dl)
		t.served()
	}
	return gen, err
}

// repack turns the download into a generation, and vouches for it.
func (t *task) repack(ctx context.Context, dl *fetch.Download, rec *Record) (*store.Generation, error) {
	expect, err := t.r.expect(ctx, t.rel)
	if err != nil {
		return nil, err
	}
	beside, err := t.r.beside(ctx, t.rel)
	if err != nil {
		return nil, err
	}
	expect = append(expect, beside...)
	o := t.options()
	o.Expect, o.Checked = expect, dl.Checked
	// What was free when the download began may be gone.
	if err := t.room(ctx, "downloading and unpacking it", func() *Room { return t.ahead(diskspace.Arriving(dl.Left()), dl.Size()) }); err != nil {
		return nil, err
	}
	src := &sourceReader{Reader: t.summed(dl)}
	return t.stage(ctx, rec, func(dir string) (*repack.Result, error) {
		res, err := repack.Into(ctx, src, dir, o)
		if err != nil {
			return res, t.failed(ctx, t.onDisk(err), dl, src)
		}
		t.verified(res, expect, dl, rec)
		if err := fault.Point("update.repacked"); err != nil {
			return res, err
		}
		return res, errors.Join(t.remember(ctx, dl), fault.Point("update.remembered"))
	})
}

// options are the recipe of this install, for this release.
func (t *task) options() repack.Options {
	o := t.in.Repack
	o.FinalPrefix, o.Release, o.Baseline = t.slot.CurrentPath(), t.rel, t.baseline
	o.Event = func(e repack.Event) {
		t.stages.enter(e.Stage)
		t.r.o.Event(Event{Install: t.out.Install, Stage: e.Stage, Done: e.Done})
	}
	return o
}

// stage makes a generation of what fill puts into an empty directory; with
// --no-install it is thrown away when it has been judged.
func (t *task) stage(ctx context.Context, rec *Record, fill func(dir string) (*repack.Result, error)) (*store.Generation, error) {
	staging, err := t.slot.Stage(ctx)
	if err != nil {
		return nil, err
	}
	res, err := fill(staging.Dir())
	if res != nil {
		rec.Repack, rec.Audit = res, res.Report
		t.out.Audit = &res.Audit
	}
	if err == nil {
		err = t.label(ctx, staging)
	}
	if err == nil {
		err = t.health(ctx, staging.Dir(), "", rec)
	}
	if err != nil {
		return nil, errors.Join(err, staging.Abort())
	}
	if t.r.o.NoInstall {
		t.keepUninstalled(ctx, staging.Dir(), rec)
		return nil, staging.Abort()
	}
	if err := fault.Do("update.reuse", func() error { return t.reuse(ctx, staging, res, rec) }); err != nil {
		return nil, errors.Join(err, staging.Abort())
	}
	t.stages.enter("commit")
	gen, err := staging.Commit(t.rel.Version.String())
	exists := errors.Is(err, store.ErrExists)
	if exists {
		err = nil
	}
	if err == nil {
		t.r.made[gen.Dir] = true
	}
	if t.anew = err == nil && !exists; err == nil {
		t.keepTree(ctx, gen.Dir)
	}
	return gen, errors.Join(err, staging.Abort()) // which does nothing after a commit
}

// failed decides what stays of a download that did not become a generation.
func (t *task) failed(ctx context.Context, err error, dl *fetch.Download, src *sourceReader) error {
	switch {
	case errorsAs[*repack.RefusedError](err):
		return t.refuse(ctx, kindAudit, t.verdictKey(kindAudit), "", err)
	case errorsAs[*repack.OmitError](err):
		return t.refuse(ctx, kindOmit, t.verdictKey(kindOmit), "", err)
	case exitOf(err) == ExitNewBytes:
		return t.newBytes(ctx, t.rel, err, dl)
	case damage(err, src):
		rerr := t.damaged(ctx, err, dl.ETag())
		return fmt.Errorf("%w; what was downloaded is thrown away, run it again", errors.Join(err, rerr, dl.Discard()))
	}
	return err
}

// baseline audits the active generation: what it has too is no regression.
func (t *task) baseline(ctx context.Context) (*audit.Report, error) {
	if t.from == nil {
		return nil, nil
	}
	o := t.in.Repack
	report, err := audit.Run(ctx, t.from.Dir, audit.Options{Scope: o.Audit.Scope, Allow: o.Audit.Allow, Profile: o.Profile})
	if err != nil && ctx.Err() == nil {
		t.r.o.Log.Warn("the active generation could not be audited; the new one is judged alone", "error", err)
		return nil, nil
	}
	return report, err
}

// verified records what was checked, and against what.
func (t *task) verified(res *repack.Result, expect []release.Expectation, dl *fetch.Download, rec *Record) {
	v := &Verified{Digest: res.Digest, SRI: res.SRI, Size: res.Size, Against: t.against(res.Digest, expect, dl)}
	t.out.Verified, rec.Verified, rec.ETag = v, v, dl.ETag()
	rec.Recipe = res.Manifest.Recipe
	t.out.pin = &release.Pin{Release: t.rel, Digest: res.Digest, Size: res.Size, ETag: dl.ETag()}
	rec.pin(*t.out.pin, dl.LastModified())
}

// against is Against, where new bytes may have been accepted: then the ledger
// was no condition, but it may have these bytes all the same.
func (t *task) against(digest release.Digest, expect []release.Expectation, dl *fetch.Download) []string {
	if !t.r.o.AcceptNewBytes {
		return Against(dl, expect)
	}
	pins, err := t.r.pins(t.rel.Channel, t.rel.Name)
	if n := len(pins); err == nil && n > 0 && pins[n-1].Digest == digest {
		return Against(dl, append(expect, release.Expectation{Digest: digest, Source: ledgerKind}))
	}
	return append(Against(dl, expect), "new bytes were to be accepted")
}

// Against lists what the bytes of a download were checked against, once they
// have been read to the end. Where nobody knew them before it says so.
func Against(dl *fetch.Download, expect []release.Expectation) []string {
	against := append(dl.Checked(), "gzip checksum", "end of archive")
	for _, e := range expect {
		against = append(against, e.Source)
	}
	if len(expect) == 0 {
		against = append(against, repack.FirstUse)
	}
	return against
}

// remember appends the pin to the ledger. What was held against the bytes is
// forgiven: they were verified, or they were to be accepted.
func (t *task) remember(ctx context.Context, dl *fetch.Download) error {
	if err := t.slot.Forgive(ctx, newBytesKey+t.refusalKey(t.rel)); err != nil {
		return err
	}
	check := store.Check{At: t.r.o.Now().UTC(), Name: t.rel.Name, ETag: dl.ETag(), Size: dl.Size()}
	if err := t.slot.RecordCheck(ctx, check); err != nil {
		return err
	}
	entry := store.NewLedgerEntry(*t.out.pin, dl.LastModified())
	entry.FirstSeen = t.r.o.Now().UTC()
	return t.r.o.ledger().Append(entry)
}

// prune removes the generations that are not to stay.
func (t *task) prune(ctx context.Context) {
	pruned, err := t.slot.Prune(ctx, t.in.keep())
	if err != nil {
		t.r.o.Log.Warn("old generations could not be removed", "error", err)
	}
	t.r.stays(t.slot, pruned)
	if len(pruned.Removed) > 0 {
		t.out.Message += ", removed " + strings.Join(pruned.Removed, ", ")
	}
}

// waits says what a generation lacks before it may become active.
func (t *task) waits(ctx context.Context, name string) (string, error) {
	gens, err := t.slot.Generations()
	if err != nil {
		return "", err
	}
	for _, g := range gens {
		if g.Name != name {
			continue
		}
		m, err := g.Manifest()
		if err != nil {
			return "", err
		}
		return t.r.waits(ctx, t.in.Channel, m.Name, release.Digest(m.Digest))
	}
	return "", nil
}

// withhold takes back the pin of what was only verified, where that is not
// enough to install it.
func (t *task) withhold(ctx context.Context) error {
	waits, err := t.r.waits(ctx, t.in.Channel, t.rel.Name, t.out.pin.Digest)
	if waits != "" {
		t.out.pin = nil
		t.out.Message += ", and nothing is proposed: " + waits
	}
	return err
}

func (t *task) say(stage, message string) {
	t.stages.enter(stage)
	t.r.o.Event(Event{Install: t.out.Install, Stage: stage, Message: message})
}

// Age is how long ago a version's night was, for people: "2 days".
func Age(v release.Version, now time.Time) string {
	d, ok := v.Date()
	if !ok {
		return ""
	}
	switch days := int(now.Sub(d).Hours() / 24); {
	case days <= 0:
		return "today"
	case days == 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", days)
	}
}
