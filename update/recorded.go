package update

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// recorded is a night that this machine has downloaded, verified, repacked and
// audited: only such a night is proposed to others.
type recorded struct {
	target string // canonical, or the family that a repository names
	slot   *store.Slot
	rec    *Record
	pin    release.Pin
}

// bumpPin is what templates see of it. A password in an address of a mirror stays
// here.
func (p *recorded) bumpPin() bump.Pin {
	pin := p.pin
	if u, err := url.Parse(pin.URL); err == nil && u.User != nil {
		u.User = nil
		pin.URL = u.String()
	}
	return bump.FromPin(pin, p.target)
}

// maxDated is how many records are read where the newest is told by its date,
// which only the record has.
const maxDated = 20

// recorded finds the newest night of a target, or of a family, that a record
// vouches for and that the policy admits; nil if there is none. A hold of the
// machine, or a rollback, does not count: they are about the machine. An error
// says that somebody who is trusted knows other bytes.
func (r *run) recorded(ctx context.Context, channel, want string) (*recorded, error) {
	slots, err := r.o.Store.Slots()
	if err != nil {
		return nil, fmt.Errorf("find what was verified for %s: %w", want, err)
	}
	slices.SortStableFunc(slots, func(a, b *store.Slot) int {
		return cmp.Compare(btoi(b.Target() == want), btoi(a.Target() == want))
	})
	var best *recorded
	for _, sl := range slots {
		if sl.Channel() != channel || best != nil && best.slot.Target() == want {
			continue // a slot of the target itself says more than one of its family
		}
		p, err := r.newestOf(ctx, sl, want)
		if err != nil {
			return nil, err
		}
		if p != nil && (best == nil || fetch.Compare(r.o.Policy.Prefer, p.pin.Release, best.pin.Release) > 0) {
			best = p
		}
	}
	return best, nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// newestOf is recorded of one slot.
func (r *run) newestOf(ctx context.Context, sl *store.Slot, want string) (*recorded, error) {
	runs, err := sl.Runs()
	if err != nil {
		return nil, err
	}
	runs = slices.DeleteFunc(runs, func(run store.Run) bool {
		_, err := release.ParseVersion(run.Name)
		return err != nil || r.o.Version != "" && run.Name != r.o.Version
	})
	byDate := r.o.Policy.Prefer == fetch.PreferDate
	if byDate {
		runs = runs[:min(len(runs), maxDated)]
	} else {
		slices.SortFunc(runs, func(a, b store.Run) int { return versionOf(b.Name).Compare(versionOf(a.Name)) })
	}
	var best *recorded
	for _, run := range runs {
		p := r.vouched(sl, run.Name)
		if p == nil || sl.Target() != want && p.pin.Family != want {
			continue
		}
		p.target = want
		if best != nil && fetch.Compare(fetch.PreferDate, p.pin.Release, best.pin.Release) <= 0 {
			continue
		}
		ok, err := r.mayPropose(ctx, p)
		if err != nil {
			return nil, err
		}
		if ok {
			if best = p; !byDate {
				break
			}
		}
	}
	return best, nil
}

// versionOf is a version that was parsed before.
func versionOf(s string) release.Version {
	v, err := release.ParseVersion(s)
	if err != nil {
		return release.Version{}
	}
	return v
}

// vouched reads one record; nil if it vouches for nothing: the run failed, its
// audit or its checks refused, or the ledger does not have the bytes.
func (r *run) vouched(sl *store.Slot, version string) *recorded {
	rec := &Record{}
	if err := sl.ReadRun(version, rec); err != nil || rec.Exit != ExitOK || rec.Verified == nil || rec.Repack == nil || rec.Repack.Audit.Refused || rec.Version != version {
		return nil
	}
	name := path.Base(rec.URL)
	if rec.Pin != nil {
		name = rec.Pin.Name
	}
	pins, err := r.pins(sl.Channel(), name)
	if err != nil || len(pins) == 0 || pins[len(pins)-1].Digest != rec.Verified.Digest {
		return nil
	}
	pin, err := pins[len(pins)-1].Pin()
	if err != nil || pin.Version.String() != version {
		return nil
	}
	return &recorded{target: sl.Target(), slot: sl, rec: rec, pin: pin}
}

// mayPropose reports whether the policy admits a night, and whether all have
// vouched for it who must.
func (r *run) mayPropose(ctx context.Context, p *recorded) (bool, error) {
	if !r.admits(p.pin.Release) {
		return false, nil
	}
	waits, err := r.waits(ctx, p.slot.Channel(), p.pin.Name, p.pin.Digest)
	if err != nil {
		return false, fmt.Errorf("propose %s: %w", p.pin.Name, err)
	}
	if waits == "" {
		waits = r.behind(ctx, p)
	}
	if waits != "" {
		r.o.Log.Info("a night is not proposed", "release", p.pin.Name, "because", waits)
	}
	return waits == "", nil
}

// admits reports whether the policy would take a release, were it listed.
func (r *run) admits(rel release.Release) bool {
	p := r.policy()
	p.MinAge, p.Settle = 0, 0 // it has waited here
	_, err := fetch.Select(&fetch.Listing{Channel: rel.Channel, Releases: []release.Release{rel}}, rel.Family, p)
	return err == nil
}

// behind says that a lock that is trusted names a newer night for the target, ""
// if none does: where nothing else is remembered, the lock beside the pins is what
// keeps them from going backwards.
func (r *run) behind(ctx context.Context, p *recorded) string {
	if r.o.Version != "" {
		return "" // who names a version knows what they do
	}
	for _, w := range r.words(ctx) {
		if w.lock == nil {
			continue
		}
		pin, ok := w.lock.Find(p.slot.Channel(), p.target)
		if !ok {
			continue
		}
		if v, err := release.ParseVersion(pin.Version); err == nil && v.Compare(p.pin.Version) > 0 {
			return fmt.Sprintf("the lock at %s is at %s already", redacted(w.place.URL), pin.Version)
		}
	}
	return ""
}
