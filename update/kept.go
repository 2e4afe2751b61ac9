package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// errNothingKept says that no kept tarball can serve.
var errNothingKept = errors.New("the tarball is not kept")

// tarballs is the store in which tarballs are kept; nil if there is none.
func (r *run) tarballs() *store.Store {
	if r.o.Tarballs != nil {
		return r.o.Tarballs
	}
	return r.o.Store
}

// kept returns the kept tarball of the release that was chosen, if its bytes are
// those that are wanted: the lock's, else those that the ledger has last, else,
// where neither knows the name, those that were verified when it was kept. With
// --accept-new-bytes only the server tells, or what this run has of it.
func (t *task) kept() *store.Tarball {
	want, told := t.want()
	if !told {
		pins, err := t.r.pins(t.rel.Channel, t.rel.Name)
		if err != nil {
			return nil // the ledger tells, when it is asked for what to expect
		}
		if n := len(pins); n > 0 {
			want = pins[n-1].Digest
		}
	}
	k, err := t.r.tarballs().KeptDigest(t.rel.Channel, t.rel.Name, want)
	if err != nil {
		t.r.o.Log.Warn("what tarballs are kept is not known", "error", err)
		return nil
	}
	if k == nil || t.r.o.AcceptNewBytes && !t.r.kept[k.Dir] {
		return nil
	}
	return k
}

// unkeep makes a generation of a kept tarball; nil with --no-install. The error
// matches errNothingKept where there is none. A damaged one is fetched again, of
// which it takes no more than the damaged parts while the server has the same
// object; where that cannot be, both are said.
func (t *task) unkeep(ctx context.Context, rec *Record) (*store.Generation, error) {
	kept := t.kept()
	if kept == nil {
		return nil, errNothingKept
	}
	gen, err := t.repackKept(ctx, kept, rec)
	var damaged *store.TarballError
	if !errors.As(err, &damaged) {
		return gen, err
	}
	t.r.o.Log.Warn("a kept tarball is damaged; fetching what is missing", "release", t.rel.Name, "error", damaged)
	t.reopen(ctx, kept, damaged)
	gen, err = t.fetch(ctx, rec)
	return gen, t.notMended(kept, damaged, err)
}

// notMended says, if err is not nil, that what was damaged still is. What is whole
// of it is kept, unless the server turned out to have other bytes.
func (t *task) notMended(kept *store.Tarball, damaged *store.TarballError, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w; and it could not be fetched again: %w", damaged, err)
	if t.out.Kept != "" {
		return err // it was, and something else failed
	}
	return errors.Join(err, t.r.o.Store.ShelveTarball(kept, t.r.o.Store.SpoolDir(kept.Channel, kept.Name)))
}

// repackKept turns a kept tarball into a generation, as repack does a download.
func (t *task) repackKept(ctx context.Context, kept *store.Tarball, rec *Record) (gen *store.Generation, err error) {
	expect, err := t.r.expect(ctx, t.rel)
	if err != nil {
		return nil, err
	}
	own := release.Expectation{Digest: kept.Digest, Source: "the kept tarball's record", Kind: "the kept tarball"}
	if err := disagree(t.rel.Name, append(slices.Clone(expect), own)); err != nil {
		return nil, err
	}
	if err := t.room(ctx, "unpacking it", func() *Room { return t.unkeptRoom(kept) }); err != nil {
		return nil, err
	}
	src, err := kept.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	t.say("unpack", fmt.Sprintf("making it of the tarball that is kept in %s", kept.Dir))
	o := t.options()
	o.Expect = append(slices.Clone(expect), own)
	return t.stage(ctx, rec, func(dir string) (*repack.Result, error) {
		read := &sourceReader{Reader: src}
		res, err := repack.Into(ctx, read, dir, o)
		if err != nil {
			return res, t.keptFailed(ctx, t.onDisk(err), kept, read)
		}
		t.unkept(res, kept, expect, rec)
		return res, t.relearn(kept)
	})
}

// unkept records what was checked, and against what.
func (t *task) unkept(res *repack.Result, kept *store.Tarball, expect []release.Expectation, rec *Record) {
	v := &Verified{Digest: res.Digest, SRI: res.SRI, Size: res.Size, Against: []string{"the tarball kept in " + kept.Dir, "gzip checksum", "end of archive"}}
	for _, e := range expect {
		v.Against = append(v.Against, e.Source)
	}
	pin := kept.Entry()
	t.out.Verified, rec.Verified, rec.ETag, rec.Recipe, rec.Pin = v, v, pin.ETag, res.Manifest.Recipe, &pin
	t.out.pin = &release.Pin{Release: t.rel, Digest: res.Digest, Size: res.Size, ETag: pin.ETag}
}

// relearn writes the pin into a ledger that does not know the name: it was lost.
func (t *task) relearn(kept *store.Tarball) error {
	pins, err := t.r.pins(t.rel.Channel, t.rel.Name)
	if err != nil || len(pins) > 0 {
		return err
	}
	return t.r.o.ledger().Append(kept.Entry())
}

// keptFailed tells damage of the kept tarball from other reasons.
func (t *task) keptFailed(ctx context.Context, err error, kept *store.Tarball, src *sourceReader) error {
	switch {
	case errorsAs[*repack.RefusedError](err):
		return t.refuse(ctx, kindAudit, t.verdictKey(kindAudit), "", err)
	case errorsAs[*repack.OmitError](err):
		return t.refuse(ctx, kindOmit, t.verdictKey(kindOmit), "", err)
	case errorsAs[*store.TarballError](err) || !damage(err, src):
		return err
	}
	return errors.Join(err, kept.Check(ctx))
}

// reopen makes a damaged tarball a download that has the rest, if the server has
// the same object still. Else it stays as it is.
func (t *task) reopen(ctx context.Context, kept *store.Tarball, damaged *store.TarballError) {
	c, err := t.r.client()
	if err != nil {
		return
	}
	obj, err := c.Stat(ctx, t.rel)
	if e := kept.Entry(); err != nil || len(damaged.Parts) == 0 || obj.Size != kept.Size || obj.ETag == "" || obj.ETag != e.ETag {
		return
	}
	spool := t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name)
	err = dropSpool(spool)
	if err == nil {
		err = t.r.o.Store.ReopenTarball(kept, damaged.Parts, spool)
	}
	if err != nil {
		t.r.o.Log.Warn("all of a damaged tarball is fetched again", "release", t.rel.Name, "because", err)
	}
}

// summed computes the digests of the parts of a download that is to be kept,
// while it is read.
func (t *task) summed(dl *fetch.Download) io.Reader {
	if t.in.KeepTarballs < 1 || dl.PartSize() == 0 {
		return dl
	}
	t.sums = store.NewPartSums(dl.PartSize())
	return io.TeeReader(dl, t.sums)
}

// keep keeps the tarball of a download that was verified, and has ended. What
// cannot be kept is no reason for a run to fail; the download stays for the next
// one to try it again.
func (t *task) keep(ctx context.Context, dl *fetch.Download) {
	switch {
	case t.in.KeepTarballs < 1:
		return
	case dl.PartSize() == 0:
		t.r.o.Log.Info("the tarball is on this machine, and no other copy of it is kept", "release", t.rel.Name, "url", redacted(t.rel.URL))
		return
	}
	d := store.Download{Dir: t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name), PartSize: dl.PartSize(), Sums: t.sums.Sums()}
	t.keepDownload(ctx, store.NewLedgerEntry(*t.out.pin, dl.LastModified()), d)
}

func (t *task) keepDownload(ctx context.Context, entry store.LedgerEntry, d store.Download) bool {
	kept, err := t.r.o.Store.KeepTarball(ctx, entry, d, t.slot.Name())
	switch {
	case errorsAs[*release.MismatchError](err):
		t.r.o.Log.Debug("a download is not what was installed", "release", entry.Name, "error", err)
		return false
	case err != nil:
		t.r.pending[d.Dir] = true
		t.r.o.Log.Warn("a tarball could not be kept; its download stays, and the next run tries it again", "release", entry.Name, "error", err)
		return true
	}
	t.r.kept[kept.Dir] = true
	t.out.Kept = kept.Dir
	return true
}

// keepLeft keeps a download that an interrupted run has left whole, if this slot
// has a generation that was made of it, and reports whether it is to stay.
func (t *task) keepLeft(ctx context.Context, name string) bool {
	if t.in.KeepTarballs < 1 || t.r.o.DryRun {
		return false
	}
	w := fetch.FindWhole(t.r.o.Store.SpoolDir(t.rel.Channel, name))
	if w == nil {
		return false
	}
	gens, err := t.slot.Generations()
	if err != nil {
		return false
	}
	for _, g := range gens {
		m, err := g.Manifest()
		if err != nil || m.Name != name || m.Channel != t.rel.Channel || m.Size != w.Size {
			continue
		}
		if pin := t.r.ledgerPin(m.Channel, name, release.Digest(m.Digest)); pin != nil {
			return t.keepDownload(ctx, store.NewLedgerEntry(*pin, w.LastModified), store.Download{Dir: w.Dir, PartSize: w.PartSize})
		}
	}
	return false
}

// leftover is served for what an earlier run has made: it may have died before
// it kept the tarball.
func (t *task) leftover(ctx context.Context) {
	t.keepLeft(ctx, t.rel.Name)
	t.served()
}

// wantKept notes that the kept tarball of what was just installed is this slot's
// last one.
func (t *task) wantKept() {
	if t.in.KeepTarballs < 1 || t.out.pin == nil {
		return
	}
	kept, err := t.r.o.Store.KeptDigest(t.rel.Channel, t.rel.Name, t.out.pin.Digest)
	if err == nil && kept != nil {
		t.out.Kept = kept.Dir
		err = t.r.o.Store.WantTarball(kept, t.slot.Name())
	}
	if err != nil {
		t.r.o.Log.Warn("it could not be noted that a tarball is to stay", "release", t.rel.Name, "error", err)
	}
}

// rebuildTarballs makes tarballs usable again whose records were lost.
func (r *run) rebuildTarballs(ctx context.Context) {
	if r.o.DryRun {
		return
	}
	if err := r.o.Store.RebuildTarballs(ctx); err != nil {
		r.o.Log.Warn("what tarballs are kept is not known", "error", err)
	}
}

// pruneTarballs removes the tarballs that no install wants to keep any more.
func (r *run) pruneTarballs(ctx context.Context) {
	if r.o.DryRun {
		return
	}
	gone, err := r.o.Store.PruneTarballs(ctx, r.keeps)
	if err != nil {
		r.o.Log.Warn("old tarballs could not be removed", "error", err)
	}
	for _, t := range gone.Removed {
		r.o.Log.Info("a tarball is not kept any more", "release", t.Name, "bytes", t.Size)
	}
}

// withKept adds to a listing what it does not have of the version that was asked
// for by name, and is kept. Where no index answered, that is all there is.
func (r *run) withKept(l *fetch.Listing, err error, channel string) (*fetch.Listing, error) {
	if r.o.Version == "" || r.o.AcceptNewBytes || r.tarballs() == nil {
		return l, err
	}
	all, kerr := r.tarballs().Tarballs()
	if kerr != nil {
		r.o.Log.Warn("what tarballs are kept is not known", "error", kerr)
	}
	asked, verr := release.ParseVersion(r.o.Version)
	with := &fetch.Listing{Channel: channel}
	if l != nil {
		*with = *l
		with.Releases = slices.Clone(l.Releases)
	}
	added := 0
	for _, k := range all {
		pin, perr := k.Pin()
		listed := slices.ContainsFunc(with.Releases, func(rel release.Release) bool { return rel.Name == k.Name })
		if perr == nil && verr == nil && !listed && k.Channel == channel && pin.Version == asked {
			with.Releases = append(with.Releases, pin.Release)
			added++
		}
	}
	if added == 0 {
		return l, err
	}
	if err != nil {
		r.o.Log.Warn("the index could not be read; going by what is kept", "channel", channel, "error", err)
	}
	slices.SortStableFunc(with.Releases, func(a, b release.Release) int { return release.Compare(b, a) })
	return with, nil
}

// keptHere is the kept tarball of a release, if it is what everybody expects,
// and the index does not say that it was uploaded again since.
func (r *run) keptHere(rel release.Release, expect []release.Expectation) *store.Tarball {
	if r.o.AcceptNewBytes || r.tarballs() == nil {
		return nil
	}
	var want release.Digest
	if len(expect) > 0 {
		want = expect[0].Digest
	}
	k, err := r.tarballs().KeptDigest(rel.Channel, rel.Name, want)
	if err != nil {
		r.o.Log.Warn("what tarballs are kept is not known", "error", err)
	}
	if k == nil || want == "" && !k.Entry().MTime.Equal(rel.MTime) {
		return nil
	}
	return k
}

// unkeptRoom judges what a kept tarball becomes.
func (t *task) unkeptRoom(kept *store.Tarball) *Room {
	e := t.estimate(kept.Size)
	return t.judge(e.basis, place{t.slot.Dir(), e.need})
}

// keptElsewhere is what a tarball takes where it is kept, if that is on another
// file system than the download, which is renamed there otherwise.
func (t *task) keptElsewhere(size int64) []place {
	if t.in.KeepTarballs < 1 {
		return nil
	}
	statfs := t.r.o.Space
	if statfs == nil {
		statfs = diskspace.Statfs
	}
	dir := t.r.o.Store.TarballsDir()
	there, err := statfs(dir)
	here, herr := statfs(t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name))
	if err != nil || herr != nil || there.Dev == here.Dev {
		return nil
	}
	return []place{{dir, diskspace.Incompressible(size)}}
}

// keptRoom says, for people, what the kept tarballs would make room for.
func (t *task) keptRoom() string {
	all, err := t.r.o.Store.Tarballs()
	if err != nil || len(all) == 0 {
		return ""
	}
	var bytes int64
	for _, k := range all {
		bytes += k.Size
	}
	return fmt.Sprintf(" or keep_tarballs: %d kept tarballs take %s", len(all), diskspace.Text(bytes))
}
