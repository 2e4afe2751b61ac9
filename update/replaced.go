package update

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// replaced notices that AMD has uploaded the active release again. The index
// tells when, and the server's size and ETag whether that was just a touch; only
// a download tells whether the bytes are others, and then it is exit 5.
// A dry run is done with saying so.
func (t *task) replaced(ctx context.Context) (done bool, err error) {
	pins, err := t.r.o.Store.FindPins(t.rel.Name)
	if err != nil || len(pins) == 0 {
		return false, err
	}
	known := pins[len(pins)-1]
	if known.MTime.Equal(t.rel.MTime) {
		return false, nil
	}
	obj, err := t.client.Stat(ctx, t.rel)
	if err != nil {
		t.r.o.Log.Warn("the index says that the active release was uploaded again, but the server does not say what it has", "error", err)
		return false, nil
	}
	if obj.ETag != "" && obj.ETag == known.ETag && obj.Size == known.Size {
		return false, nil
	}
	if err := t.refusedBefore(); err != nil && exitOf(err) == ExitNewBytes {
		return false, err
	}
	if t.r.o.DryRun {
		t.out.To, t.out.Message = t.out.From, fmt.Sprintf("%s was uploaded again: would download %s to see whether its bytes are others", t.rel.Version, t.rel.URL)
		return true, nil
	}
	t.r.o.Log.Warn("the active release was uploaded again; downloading it to see whether its bytes are others", "release", t.rel.Name)
	return false, t.confirm(ctx, known)
}

// confirm downloads a known release and compares its digest with the ledger's.
func (t *task) confirm(ctx context.Context, known store.LedgerEntry) (err error) {
	dl, err := t.client.Download(ctx, t.rel, t.r.o.Store.SpoolDir(t.rel.Channel, t.rel.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dl.Close()) }()
	v := release.NewVerifiedReader(dl, release.Expectation{Digest: known.Digest, Source: ledgerSource})
	_, err = io.Copy(io.Discard, v)
	if errorsAs[*release.MismatchError](err) {
		return t.newBytes(ctx, err, dl)
	}
	if err != nil {
		return fmt.Errorf("compare %s with what is installed: %w", t.rel.Name, err)
	}
	pin := release.Pin{Release: t.rel, Digest: v.Digest(), Size: v.Size(), ETag: dl.ETag()}
	t.drop(dl)
	return t.r.o.Store.AppendPin(store.NewLedgerEntry(pin, dl.LastModified()))
}

// discarder is a download whose bytes can be thrown away.
type discarder interface{ Discard() error }

// newBytes remembers that a name has new bytes, so that they are not fetched
// every night, and says what to do.
func (t *task) newBytes(ctx context.Context, mismatch error, dl discarder) error {
	err := errors.Join(mismatch, t.slot.Refuse(ctx, newBytesKey+t.refusalKey(), mismatch.Error()), dl.Discard())
	return fmt.Errorf("%s has new bytes under a known name: %w; if AMD says that it was replaced: rocm-nightly update --accept-new-bytes", t.rel.Name, err)
}
