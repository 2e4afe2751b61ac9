package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// partedPrefix begins the name of a generation that was taken out of sight while
// it is looked whether somebody has begun to use it: random characters follow,
// so that nobody decides about what another process has taken away, and its own
// name. Nothing is deleted under such a name.
const partedPrefix = dyingPrefix + "of-"

// moved is a generation that was taken out of sight.
type moved struct{ name, dir string }

// part takes away the names of generations. The caller holds switch.lock.
func (sl *Slot) part(names []string) (gone []moved, err error) {
	for _, name := range names {
		to := sl.path(partedPrefix + random() + "-" + name)
		if err = fault.Point("store.prune.away"); err != nil {
			return gone, err
		}
		if err = moveAway(sl.path(generationsName, name), to); err != nil {
			return gone, err
		}
		gone = append(gone, moved{name, to})
	}
	return gone, nil
}

// decideIn is how long remove waits for switch.lock to decide, also when it was
// cancelled: what is not decided by then the next run puts back.
const decideIn = 10 * time.Second

// decide puts back what somebody uses, and condemns the rest.
func (sl *Slot) decide(ctx context.Context, r *removal, p *Pruned, watch *lookout, gone []moved, dying *[]string) error {
	if r.late != nil {
		r.late()
	}
	uses, lerr := watch.again(ctx, gone)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), decideIn)
	defer cancel()
	err := sl.locked(ctx, func() (err error) {
		var free []moved
		for _, m := range gone {
			if lerr == nil && uses[sl.path(generationsName, m.name)].Free() {
				free = append(free, m)
				continue
			}
			back, e := sl.putBack(m)
			err = errors.Join(err, e)
			if lerr == nil && back {
				_, p.Kept = sl.free([]string{m.name}, p.Kept, uses)
			}
		}
		return errors.Join(err, sl.condemnParted(p, free, dying))
	})
	return errors.Join(lerr, err)
}

// condemnParted gives up generations that are out of sight, and writes down what
// is left. The caller holds switch.lock.
func (sl *Slot) condemnParted(p *Pruned, gone []moved, dying *[]string) error {
	var err error
	for _, m := range gone {
		to := sl.path(dyingPrefix + random())
		e := os.Rename(m.dir, to)
		if errors.Is(e, fs.ErrNotExist) {
			continue // another process took it for what a dead one had left, and has put it back
		}
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		*dying = append(*dying, to)
		p.Removed = append(p.Removed, m.name)
	}
	disk := sl.store.disk
	err = errors.Join(err, fault.Point("store.prune.sync"), disk.syncDir(sl.path(generationsName)), disk.syncDir(sl.path()))
	v, e := sl.look()
	if e == nil {
		e = sl.save(v)
	}
	if e != nil {
		// Perhaps the disk is full: then this is what makes room. The
		// record is brought up to date by whoever writes it next.
		sl.unsaved(e)
	}
	sl.dropProvenance()
	if e := sl.sweepSeals(); e != nil {
		sl.store.event(EventDebris, sl.Name(), sl.path(sealsName), "seals of what was removed are left: %v", e)
	}
	return err
}

// putBack gives a generation its name again, if it is there still and nobody
// else has that name by now. The caller holds switch.lock.
func (sl *Slot) putBack(m moved) (bool, error) {
	err := renameNew(m.dir, sl.path(generationsName, m.name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("put %s back: %w", m.name, err)
	}
	return true, nil
}

// heal puts back what a process has taken out of sight that died before it had
// decided. What has a name that was given away meanwhile is for the next to
// delete.
func (sl *Slot) heal(ctx context.Context) error {
	entries, err := os.ReadDir(sl.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), partedPrefix) }) {
		return err
	}
	return sl.locked(ctx, sl.healParted)
}

// healParted is heal for who holds switch.lock.
func (sl *Slot) healParted() error {
	entries, err := os.ReadDir(sl.path())
	if err != nil {
		return err
	}
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), partedPrefix)
		if !ok {
			continue
		}
		_, name, _ := strings.Cut(rest, "-")
		dir := sl.path(e.Name())
		back := false
		if checkName("generation", name) == nil && e.IsDir() {
			back, err = sl.putBack(moved{name, dir})
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		if back {
			sl.store.event(EventCleaned, sl.Name(), dir, "put %s back, which an interrupted run was about to remove", name)
			continue
		}
		if err := os.Rename(dir, sl.path(dyingPrefix+random())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// again looks once more, now that the generations have other names.
func (l *lookout) again(ctx context.Context, gone []moved) (map[string]Uses, error) {
	for _, x := range l.indexes {
		for i, g := range x.gens {
			for _, m := range gone {
				if m.name == g.Name {
					x.moved(i, m.dir)
				}
			}
		}
	}
	return l.glance(ctx)
}

// moved tells that generation i is in another directory of the same file system.
func (x *index) moved(i int, to string) {
	for _, h := range x.homes {
		if h.where[i] != "" { // SLOT/generations/NAME
			h.where[i] = filepath.Join(filepath.Dir(filepath.Dir(h.where[i])), filepath.Base(to))
		}
	}
	x.dirs[i] = realPath(to)
}
