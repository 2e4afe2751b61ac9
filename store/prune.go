package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrActive is matched when the active or a held generation would be removed.
var ErrActive = errors.New("it is in use")

// Prune removes generations but for the newest keep of them, and returns the
// names of those removed, oldest first. The active one, the one that was
// active before it and a held one stay in any case; while nothing is active,
// the newest stays. What dead processes left is removed too.
func (sl *Slot) Prune(ctx context.Context, keep int) ([]string, error) {
	removed, err := sl.remove(ctx, func(v *view) ([]string, error) {
		if keep < 0 {
			return nil, fmt.Errorf("keep %d generations: not a number of generations", keep)
		}
		if v.broken != nil {
			return nil, v.broken // what must stay is not known
		}
		have := v.installed()
		old := have[:max(0, len(have)-keep)]
		return slices.DeleteFunc(slices.Clone(old), func(name string) bool {
			newest := v.current == "" && name == have[len(have)-1]
			return newest || name == v.state.Previous(v.current) || sl.pinned(v, name) != nil
		}), nil
	})
	if err != nil {
		return removed, fmt.Errorf("prune %s: %w", sl.Name(), err)
	}
	return removed, nil
}

// Remove removes one generation, named as for Use. The active one and a held
// one are refused with an error that matches ErrActive.
func (sl *Slot) Remove(ctx context.Context, version string) error {
	removed, err := sl.remove(ctx, func(v *view) ([]string, error) {
		name, err := sl.find(v, version)
		if err != nil {
			return nil, err
		}
		if v.broken != nil {
			return nil, v.broken
		}
		return []string{name}, sl.pinned(v, name)
	})
	if err == nil && len(removed) == 0 {
		err = &GenerationError{Slot: sl.Name(), Name: version}
	}
	if err != nil {
		return fmt.Errorf("remove %s from %s: %w", version, sl.Name(), err)
	}
	return nil
}

// pinned says why name must stay, nil if it may go.
func (sl *Slot) pinned(v *view, name string) error {
	if name == v.current {
		return fmt.Errorf("%w: %s is active (try: rollback, or use another)", ErrActive, name)
	}
	if h := v.state.Hold; h != nil && h.Generation == name && !h.over(sl.store.now()) {
		return fmt.Errorf("%w: %s is held (try: unhold)", ErrActive, name)
	}
	return nil
}

// remove, where the slot exists, takes the generations that choose names out of sight under
// switch.lock, makes that durable, and only then deletes: a half-deleted tree
// is never seen under a generation's name, not even after a power cut.
func (sl *Slot) remove(ctx context.Context, choose func(*view) ([]string, error)) (removed []string, err error) {
	if ok, err := sl.exists(); err != nil || !ok {
		return nil, err
	}
	var dying []string
	err = sl.locked(ctx, func() error {
		v, err := sl.look()
		if err != nil {
			return err
		}
		names, err := choose(v)
		if err != nil {
			return err
		}
		if dying, err = sl.condemn(); err != nil {
			return err
		}
		for _, name := range names {
			to := sl.path(dyingPrefix + random())
			if err = moveAway(sl.path(generationsName, name), to); err != nil {
				break
			}
			dying = append(dying, to)
			removed = append(removed, name)
		}
		v.state.Installed = slices.DeleteFunc(v.state.Installed, func(i Install) bool {
			return slices.Contains(removed, i.Generation)
		})
		disk := sl.store.disk
		err = errors.Join(err, disk.syncDir(sl.path(generationsName)), disk.syncDir(sl.path()))
		if e := sl.save(v); e != nil {
			// Perhaps the disk is full: then this is what makes room. The
			// record is brought up to date by whoever writes it next.
			sl.unsaved(e)
		}
		sl.dropProvenance()
		return err
	})
	if err != nil {
		return removed, err
	}
	for _, path := range dying {
		if e := ctx.Err(); e != nil {
			return removed, e // the rest is debris, which the next run removes
		}
		if e := removeTree(path); e != nil {
			err = errors.Join(err, fmt.Errorf("delete: %w (it is out of use; the next run tries again)", e))
		}
	}
	return removed, err
}
