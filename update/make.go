package update

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// ledgerSource names the ledger where a digest disagrees with it.
const ledgerSource = "the ledger"

// make fetches the release, makes a generation of it and activates it.
func (t *task) make(ctx context.Context) (err error) {
	rec := &Record{Schema: Schema, Install: t.slot.Name(), Version: t.rel.Version.String(), URL: t.rel.URL, Started: t.r.o.Now(), From: t.out.From}
	t.sweepSpool()
	defer func() {
		rec.Finished = t.r.o.Now()
		if err != nil {
			rec.Error, rec.Exit = err.Error(), exitOf(err)
		}
		if werr := t.slot.WriteRun(rec.Version, rec); werr != nil {
			t.r.o.Log.Warn("the run record could not be written", "error", werr)
		}
	}()
	t.say("download", "downloading "+t.rel.Name)
	dl, err := t.client.Download(ctx, t.rel, t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dl.Close()) }()
	staging, err := t.slot.Stage(ctx)
	if err != nil {
		return err
	}
	gen, err := t.repack(ctx, dl, staging, rec)
	if err != nil {
		return errors.Join(err, staging.Abort())
	}
	if gen == nil { // --no-install
		t.out.Message = fmt.Sprintf("verified and audited %s; nothing was installed", t.rel.Version)
		t.drop(dl)
		return staging.Abort()
	}
	rec.Generation = gen.Name
	if err := t.activate(ctx, gen.Name, rec); err != nil {
		return err
	}
	t.drop(dl)
	return t.link()
}

// drop removes a download that has served.
func (t *task) drop(dl *fetch.Download) {
	if err := dl.Discard(); err != nil {
		t.r.o.Log.Warn("the download could not be removed", "error", err)
		return
	}
	// Empty now, unless somebody put something there; then it stays.
	_ = os.Remove(t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name))
}

// repack turns the download into a generation, and vouches for it.
func (t *task) repack(ctx context.Context, dl *fetch.Download, staging *store.Staging, rec *Record) (*store.Generation, error) {
	expect, err := t.expectations()
	if err != nil {
		return nil, err
	}
	o := t.in.Repack
	o.FinalPrefix, o.Release, o.Expect = t.slot.CurrentPath(), t.rel, expect
	o.Baseline = t.baseline
	o.Event = func(e repack.Event) { t.r.o.Event(Event{Install: t.out.Install, Stage: e.Stage, Done: e.Done}) }
	src := &sourceReader{Reader: dl}
	res, err := repack.Into(ctx, src, staging.Dir(), o)
	if res != nil {
		rec.Repack, rec.Audit = res, res.Report
		t.out.Audit = &res.Audit
	}
	if err != nil {
		return nil, t.failed(ctx, err, dl, src)
	}
	t.verified(res, expect, dl, rec)
	if err := t.remember(ctx, dl); err != nil {
		return nil, err
	}
	if t.r.o.NoInstall {
		return nil, nil
	}
	gen, err := staging.Commit(t.rel.Version.String())
	if errors.Is(err, store.ErrExists) {
		return gen, staging.Abort()
	}
	return gen, err
}

// failed decides what stays of a download that did not become a generation.
func (t *task) failed(ctx context.Context, err error, dl *fetch.Download, src *sourceReader) error {
	var refused *repack.RefusedError
	switch {
	case errors.As(err, &refused):
		if rerr := t.slot.Refuse(ctx, t.refusalKey(), refused.Error()); rerr != nil {
			return errors.Join(err, rerr)
		}
	case exitOf(err) == ExitNewBytes:
		return t.newBytes(ctx, err, dl)
	case damage(err, src):
		return fmt.Errorf("%w; what was downloaded is thrown away, run it again", errors.Join(err, dl.Discard()))
	}
	return err
}

// expectations are the digests that the tarball is known by.
func (t *task) expectations() ([]release.Expectation, error) {
	pins, err := t.r.o.Store.FindPins(t.rel.Name)
	if err != nil {
		return nil, err
	}
	if len(pins) == 0 || t.r.o.AcceptNewBytes {
		return nil, nil
	}
	return []release.Expectation{{Digest: pins[len(pins)-1].Digest, Source: ledgerSource}}, nil
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

func (t *task) verified(res *repack.Result, expect []release.Expectation, dl *fetch.Download, rec *Record) {
	v := &Verified{Digest: res.Digest, SRI: res.SRI, Size: res.Size, Against: []string{"length", "gzip checksum", "end of archive"}}
	for _, e := range expect {
		v.Against = append(v.Against, e.Source)
	}
	switch {
	case t.r.o.AcceptNewBytes:
		v.Against = append(v.Against, "nothing else: new bytes were to be accepted")
	case len(expect) == 0:
		v.Against = append(v.Against, "trust on first use")
	}
	t.out.Verified, rec.Verified, rec.ETag = v, v, dl.ETag()
	rec.Recipe = res.Manifest.Recipe
	t.out.pin = &release.Pin{Release: t.rel, Digest: res.Digest, Size: res.Size, ETag: dl.ETag()}
}

// remember appends the pin to the ledger. What was held against the bytes is
// forgiven: they were verified, or they were to be accepted.
func (t *task) remember(ctx context.Context, dl *fetch.Download) error {
	if err := t.slot.Forgive(ctx, newBytesKey+t.refusalKey()); err != nil {
		return err
	}
	entry := store.NewLedgerEntry(*t.out.pin, dl.LastModified())
	entry.FirstSeen = t.r.o.Now().UTC()
	return t.r.o.Store.AppendPin(entry)
}

// activate makes a generation current and everything follow it.
func (t *task) activate(ctx context.Context, name string, rec *Record) error {
	t.say("activate", "activating "+name)
	if t.r.o.NoInstall {
		return nil
	}
	if err := t.current(); err != nil {
		return err
	}
	// Who went back while this ran is not overruled.
	if t.r.o.Version == "" && t.slot.Skip(t.rel.Version.String()) {
		t.out.Message = fmt.Sprintf("%s is here but not active: it was left by rollback or use meanwhile", name)
		return nil
	}
	err := t.slot.Activate(ctx, name, "update")
	if errorsAs[*store.RecordError](err) {
		t.r.o.Log.Warn("it is active, but that could not be recorded", "error", err)
	} else if err != nil {
		return err
	}
	cur, err := t.slot.Current()
	if err != nil {
		return err
	}
	t.out.To, t.out.Changed, t.out.Prefix = cur.Name, true, cur.Dir
	t.out.Message = "installed " + cur.Name
	if t.out.From != "" {
		t.out.Message += " over " + t.out.From
	}
	if rec == nil {
		t.out.Message = "activated " + cur.Name + ", which was here already"
		if t.out.pin, err = t.r.pinOf(cur); err != nil {
			return err
		}
	}
	gone, err := t.slot.Prune(ctx, t.in.Keep)
	if err != nil {
		t.r.o.Log.Warn("old generations could not be removed", "error", err)
	}
	if len(gone) > 0 {
		t.out.Message += ", removed " + strings.Join(gone, ", ")
	}
	return nil
}

// link keeps the symlink that the install asks for. A foreign one is left
// alone: the install has succeeded, only its short name is missing.
func (t *task) link() error {
	if t.in.Link == "" || t.r.o.NoInstall {
		return nil
	}
	err := t.r.o.Store.Link(t.in.Link, t.slot)
	if errorsAs[*store.LinkError](err) {
		t.r.o.Log.Warn("the link was left alone", "error", err)
		t.out.Link = err.Error()
		return nil
	}
	return err
}

func (t *task) say(stage, message string) {
	t.r.o.Event(Event{Install: t.out.Install, Stage: stage, Message: message})
}

// spoolFor is how long the download of another family is kept: its install may
// have gone from the config, or just be slow.
const spoolFor = 14 * 24 * time.Hour

// sweepSpool removes what earlier runs left of older nights: something newer is
// about to be fetched, nobody will ask for them again.
func (t *task) sweepSpool() {
	dir := filepath.Dir(t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		n, err := release.ParseName(e.Name())
		if err != nil {
			continue // not a download of ours
		}
		fi, err := e.Info()
		old := n.Family == t.rel.Family && n.Version.Compare(t.rel.Version) < 0
		if !old && (err != nil || t.r.o.Now().Sub(fi.ModTime()) < spoolFor) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			t.r.o.Log.Warn("an old download could not be removed", "error", err)
		}
	}
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
