package update

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// KeepTarball downloads a tarball that is known by its digest, and that the slot
// has installed, so that it is kept as if it had been from the beginning. What is
// kept already is read, and not fetched. keep is how many the slot keeps.
func KeepTarball(ctx context.Context, o Options, sl *store.Slot, name string, digest release.Digest, keep int) (kept *store.Tarball, err error) {
	o = o.withDefaults()
	if keep < 1 {
		return nil, &UsageError{errors.New("keep_tarballs is 0: the next update would remove it (set it in the config, or download a file of your own with: rocm-nightly fetch)")}
	}
	lock, err := o.Store.LockRun(ctx, "tarball")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	r := newRun(o)
	r.rebuildTarballs(ctx)
	if kept, err = o.Store.KeptDigest(sl.Channel(), name, digest); err != nil {
		return nil, err
	}
	pin := r.ledgerPin(sl.Channel(), name, digest)
	var damaged *store.TarballError
	if kept != nil {
		err := kept.Check(ctx)
		if err == nil {
			return kept, o.Store.WantTarball(kept, sl.Name())
		}
		if !errors.As(err, &damaged) {
			return nil, err
		}
		if known, err := kept.Pin(); err == nil && pin == nil {
			pin = &known
		}
	}
	if pin == nil {
		return nil, fmt.Errorf("keep the tarball %s: the ledger does not say where it was found (try: rocm-nightly fetch)", name)
	}
	t := &task{r: r, in: Install{Channel: sl.Channel(), Target: sl.Target(), KeepTarballs: keep}, out: &Outcome{Install: sl.Name()}, slot: sl, rel: pin.Release}
	if damaged != nil {
		t.reopen(ctx, kept, damaged)
	}
	again, err := t.download(ctx, digest)
	if damaged != nil {
		err = t.notMended(kept, damaged, err)
	}
	return again, err
}

// download fetches a tarball that is known, and keeps it.
func (t *task) download(ctx context.Context, digest release.Digest) (*store.Tarball, error) {
	dir := t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name)
	t.say("download", "downloading "+t.rel.Name)
	dl, rel, err := t.r.download(ctx, t.rel, t.allowSpool(ctx, dir))
	if err != nil {
		return nil, err
	}
	v := release.NewVerifiedReader(t.summed(dl), release.Expectation{Digest: digest, Source: ledgerKind})
	_, err = io.Copy(io.Discard, v)
	if errorsAs[*release.MismatchError](err) {
		return nil, errors.Join(err, dl.Discard())
	}
	if err = errors.Join(err, dl.Close()); err != nil {
		return nil, err
	}
	if dl.PartSize() == 0 {
		return nil, fmt.Errorf("keep the tarball %s: it is on this machine already: %s", t.rel.Name, redacted(t.rel.URL))
	}
	pin := release.Pin{Release: rel, Digest: v.Digest(), Size: v.Size(), ETag: dl.ETag()}
	return t.r.o.Store.KeepTarball(ctx, store.NewLedgerEntry(pin, dl.LastModified()), spooled(dir, dl, t.sums), t.slot.Name())
}

func spooled(dir string, dl *fetch.Download, sums *store.PartSums) store.Download {
	return store.Download{Dir: dir, PartSize: dl.PartSize(), Sums: sums.Sums()}
}
