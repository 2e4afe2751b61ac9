package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// UsedError says who uses a generation that was to be removed. It matches
// ErrActive.
type UsedError struct {
	Generation string
	Uses       Uses
}

func (e *UsedError) Error() string {
	if len(e.Uses.By) == 0 {
		return fmt.Sprintf("%s may be in use: of %d processes or leases that cannot be seen (run it as root, or with --force)", e.Generation, e.Uses.Unseen)
	}
	return fmt.Sprintf("%v: %s by %s (end it, or try --force)", ErrActive, e.Generation, e.Uses.Text())
}

// Unwrap lets errors.Is find ErrActive.
func (e *UsedError) Unwrap() error { return ErrActive }

// Text names the users of a generation for people.
func (u Uses) Text() string {
	const most = 3
	var names []string
	for _, by := range u.By[:min(most, len(u.By))] {
		switch {
		case by.PID == 0 && by.How == UseMount:
			names = append(names, "a mount")
		case by.PID == 0:
			names = append(names, "a process of another user")
		case by.Program == "":
			names = append(names, fmt.Sprintf("process %d (%s)", by.PID, by.How))
		default:
			names = append(names, fmt.Sprintf("%s %d (%s)", by.Program, by.PID, by.How))
		}
	}
	if n := len(u.By) - most; n > 0 {
		names = append(names, fmt.Sprintf("%d more", n))
	}
	return strings.Join(names, ", ")
}

// RemoveOptions change what Remove refuses.
type RemoveOptions struct {
	Force bool // also what is in use, or may be; not what is active or held
}

// Remove removes one generation, named as for Use. The active one, a held one,
// the only one, the one to go back to while the active one is Unproven, and one
// that is or may be in use are refused with an error that matches ErrActive.
func (sl *Slot) Remove(ctx context.Context, version string) error {
	_, err := sl.RemoveWith(ctx, version, RemoveOptions{})
	return err
}

// RemoveWith is Remove with options, and tells what was freed.
func (sl *Slot) RemoveWith(ctx context.Context, version string, o RemoveOptions) (Pruned, error) {
	p, err := sl.removeOne(ctx, version, o)
	if err != nil {
		err = fmt.Errorf("remove %s from %s: %w", version, sl.Name(), err)
	}
	return p, err
}

func (sl *Slot) removeOne(ctx context.Context, version string, o RemoveOptions) (Pruned, error) {
	if err := sl.heal(ctx); err != nil {
		return Pruned{}, err
	}
	g, err := sl.Generation(version)
	if err != nil {
		return Pruned{}, err
	}
	p, err := sl.remove(ctx, &removal{
		choose: func(v *view) ([]string, []Kept, error) {
			if v.broken != nil {
				return nil, nil, v.broken
			}
			if err := sl.has(v, g.Name); err != nil {
				return nil, nil, err
			}
			return []string{g.Name}, nil, sl.pinned(v, g.Name)
		},
		names: []string{g.Name}, force: o.Force,
	})
	if err == nil && len(p.Kept) > 0 {
		err = &UsedError{p.Kept[0].Generation, p.Kept[0].Uses}
	} else if err == nil && len(p.Removed) == 0 {
		err = errors.New("another process was at it, and it is there still (try again)")
	}
	return p, err
}

// pinned says why name must stay, nil if it may go.
func (sl *Slot) pinned(v *view, name string) error {
	switch {
	case name == v.current:
		return fmt.Errorf("%w: %s is active (try: rollback, or use another)", ErrActive, name)
	case sl.held(v, name):
		return fmt.Errorf("%w: %s is held (try: unhold)", ErrActive, name)
	case v.state.Unproven != nil && v.state.Unproven.Generation == v.current && name == sl.goodBefore(v, v.current):
		return fmt.Errorf("%w: %s is what a failed check of %s goes back to, and that check is still to be made (try: update)", ErrActive, name, v.current)
	case len(v.installed()) == 1:
		return fmt.Errorf("%w: %s is all that is installed (try: use %s)", ErrActive, name, name)
	}
	return nil
}

// removal is what is to be removed.
type removal struct {
	choose func(*view) ([]string, []Kept, error) // under the lock: what goes, and what stays
	names  []string                              // what choose may let go
	force  bool                                  // also what is in use

	late func() // called when that is out of sight and nothing is decided; nil: nothing
}

// remove, where the slot exists, takes generations out of sight under
// switch.lock, makes that durable, and only then deletes: a half-deleted tree
// is never seen under a generation's name, not even after a power cut.
//
// Who uses what is looked at before, and once more when the names are gone: who
// has begun to use one in between, or to lease it, is seen by then, and gets it
// back; or sees for himself that the name is gone. Neither look holds the lock, for
// which a rollback would wait. Who dies before all is decided leaves word in the
// names (partedPrefix), and the next run puts back.
func (sl *Slot) remove(ctx context.Context, r *removal) (p Pruned, err error) {
	if ok, err := sl.exists(); err != nil || !ok {
		return p, err
	}
	watch, uses, err := sl.watch(ctx, r)
	if err != nil {
		return p, fmt.Errorf("find what is in use: %w", err)
	}
	if err := sl.store.makeLeases(); err != nil {
		sl.store.event(EventDebris, sl.Name(), filepath.Join(sl.store.root, leasesName), "could not be made: %v", err)
	}
	var dying []string
	var gone []moved
	err = sl.locked(ctx, func() error {
		v, err := sl.look()
		if err != nil {
			return err
		}
		names, kept, err := r.choose(v)
		p.Kept = kept
		if err != nil {
			return err
		}
		if dying, err = sl.condemn(); err != nil {
			return err
		}
		p.Debris = len(dying)
		if watch != nil {
			names, p.Kept = sl.free(names, p.Kept, uses)
		}
		gone, err = sl.part(names)
		if watch != nil && len(gone) > 0 {
			return err // to be decided
		}
		return errors.Join(err, sl.condemnParted(&p, gone, &dying))
	})
	if watch != nil && len(gone) > 0 {
		err = errors.Join(err, sl.decide(ctx, r, &p, watch, gone, &dying))
	}
	if err != nil {
		return p, err
	}
	p.Debris += sl.store.sweepLeases()
	p.Freed, err = sl.delete(ctx, dying)
	return p, err
}

// watch looks who uses what may go; nil where that does not matter.
func (sl *Slot) watch(ctx context.Context, r *removal) (*lookout, map[string]Uses, error) {
	if r.force || len(r.names) == 0 {
		return nil, nil, nil
	}
	l, err := sl.store.lookout(ctx, sl.named(r.names))
	if err != nil {
		return nil, nil, err
	}
	uses, err := l.look(ctx)
	return l, uses, err
}

// delete removes trees, and counts the bytes that this frees.
func (sl *Slot) delete(ctx context.Context, dying []string) (freed int64, err error) {
	freed = freedBy(ctx, dying)
	for _, path := range dying {
		if e := ctx.Err(); e != nil {
			return freed, e // the rest is debris, which the next run removes
		}
		if e := fault.Do("store.prune.delete", func() error { return removeTree(path) }); e != nil {
			err = errors.Join(err, fmt.Errorf("delete: %w (it is out of use; the next run tries again)", e))
		}
	}
	return freed, err
}
