package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// errNothingToShare says that no generation can serve.
var errNothingToShare = errors.New("no other install has this tarball")

// share makes the generation of another one that came of the same tarball:
// gfx1030 and gfx1036 have one, and it need not be downloaded and unpacked
// twice. The error matches errNothingToShare where there is none that serves.
func (t *task) share(ctx context.Context, rec *Record) (*store.Generation, error) {
	from, pin := t.twin()
	if from == nil || t.r.o.NoInstall {
		return nil, errNothingToShare
	}
	expect, err := t.r.expect(ctx, t.rel)
	if err != nil {
		return nil, err
	}
	if err := disagree(t.rel.Name, append(expect, release.Expectation{Digest: pin.Digest, Source: ledgerKind})); err != nil {
		return nil, err
	}
	if err := t.room(ctx, "sharing the files of "+from.Dir, func() *Room { return t.cloned(from) }); err != nil {
		return nil, err
	}
	t.say("share", fmt.Sprintf("making it of the files of %s, which came of the same tarball", from.Dir))
	gen, err := t.stage(ctx, rec, func(dir string) (*repack.Result, error) {
		o := t.options()
		o.Expect = expect
		res, err := repack.Clone(ctx, from.Dir, dir, o)
		if errorsAs[*repack.RefusedError](err) {
			return res, t.refuse(ctx, kindAudit, t.verdictKey(kindAudit), "", err)
		}
		if errorsAs[*repack.OmitError](err) {
			return res, t.refuse(ctx, kindOmit, t.verdictKey(kindOmit), "", err)
		}
		if err != nil {
			return res, t.onDisk(err)
		}
		v := &Verified{Digest: res.Digest, SRI: res.SRI, Size: res.Size, Against: []string{"the files of " + from.Dir}}
		t.out.Verified, rec.Verified, rec.ETag, rec.Recipe = v, v, pin.ETag, res.Manifest.Recipe
		if t.out.pin = pin; pin != nil {
			rec.pin(*pin, time.Time{})
		}
		return res, nil
	})
	if errors.Is(err, repack.ErrNotClonable) {
		t.r.o.Log.Info("the tarball is unpacked again", "release", t.rel.Name, "because", err)
		return nil, errNothingToShare
	}
	return gen, err
}

// twin finds a generation of this tarball in another slot, or in this one where
// nothing but the variables has changed. Its bytes must be those that the ledger
// has last, and that the server has now if this run is to take new ones.
func (t *task) twin() (*store.Generation, *release.Pin) {
	if t.in.Repack.PerTarget() {
		return nil, nil // what one target leaves out is what the other is made of
	}
	pins, err := t.r.pins(t.in.Channel, t.rel.Name)
	if err != nil || len(pins) == 0 {
		return nil, nil
	}
	digest := pins[len(pins)-1].Digest
	slots, err := t.r.o.Store.Slots()
	if err != nil {
		return nil, nil
	}
	for _, sl := range slots {
		own := sl.Name() == t.slot.Name()
		gens, err := sl.Generations()
		if err != nil {
			continue
		}
		for _, g := range gens {
			m, err := g.Manifest()
			if err == nil && m.Name == t.rel.Name && m.Digest == string(digest) && t.may(g.Dir) && (!own || t.alike(m)) {
				return &g, t.r.ledgerPin(t.in.Channel, t.rel.Name, digest)
			}
		}
	}
	return nil, nil
}

// may reports whether the generation in dir may stand for the tarball: with
// --accept-new-bytes only one that this run has made of it.
func (t *task) may(dir string) bool { return !t.r.o.AcceptNewBytes || t.r.made[dir] }
