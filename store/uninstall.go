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
)

// UninstallOptions says what goes.
type UninstallOptions struct {
	Slots  []*Slot  // with everything that is theirs
	All    bool     // every slot, and whatever else of ROOT is ours, but for the ledger
	Ledger bool     // with All: the ledger too, the record of what was ever verified
	Links  []string // further paths that may be links of ours: the config's, of before links were recorded
	DryRun bool     // only say what would go
	Force  bool     // also what is in use

	// InUse says who uses generations, by their Dir; nil is the store's own.
	InUse func(ctx context.Context, gens []Generation) (map[string]Uses, error)
}

// Uninstalled is what went, or would go.
type Uninstalled struct {
	Slots    []string    `json:"slots"`    // by name
	Links    []Unlinked  `json:"links"`    // host files too
	Removed  []string    `json:"removed"`  // what else: directories with all that was in them, and files
	Left     []LeftThere `json:"left"`     // what is not ours, or could not be removed
	Unseen   int         `json:"unseen"`   // processes that this user could not look into
	LDConfig bool        `json:"ldconfig"` // ldconfig should be run
}

// LeftThere is something that an uninstall did not remove.
type LeftThere struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// InUseError says that a slot's generations are in use.
type InUseError struct {
	Slot string
	By   []Use
}

func (e *InUseError) Error() string {
	var who []string
	for _, u := range e.By[:min(len(e.By), 5)] {
		who = append(who, fmt.Sprintf("%s (pid %d, %s)", u.Program, u.PID, u.How))
	}
	if more := len(e.By) - len(who); more > 0 {
		who = append(who, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s is in use by %s (end them, or use --force)", e.Slot, strings.Join(who, ", "))
}

// dyingSlot begins the name of a slot that is being removed: it is followed by
// its name, a dash and a random word.
const dyingSlot = dyingPrefix

// Uninstall removes slots with their links, which give back what they had taken
// over, their host files, downloads and kept tarballs, and nothing else. What
// is not ours is left and named; no link is followed out. It is refused while a
// run is going on (*LockedError) and where a generation is in use (*InUseError).
//
// The order is: links, downloads and tarballs, then the slot goes out of sight
// by one rename, then it is deleted. Whatever interrupts it, a slot that has its
// name is whole, and FinishUninstall, or the same call again, does the rest.
// With an error the result says what was done before it.
func (s *Store) Uninstall(ctx context.Context, o UninstallOptions) (u *Uninstalled, err error) {
	w := &uninstaller{s: s, o: o, u: &Uninstalled{Slots: []string{}, Links: []Unlinked{}, Removed: []string{}, Left: []LeftThere{}}}
	if _, err := os.Stat(s.root); errors.Is(err, fs.ErrNotExist) {
		return w.u, nil
	}
	if !o.DryRun {
		lock, err := s.LockRun(ctx, "uninstall")
		if err != nil {
			return w.u, err
		}
		defer func() {
			// With everything the lock's own file goes too.
			if rerr := lock.Release(); !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		}()
	}
	if err := w.run(ctx); err != nil {
		return w.u, fmt.Errorf("uninstall: %w", err)
	}
	return w.u, nil
}

// uninstaller is one Uninstall.
type uninstaller struct {
	s *Store
	o UninstallOptions
	u *Uninstalled
}

func (w *uninstaller) run(ctx context.Context) error {
	if w.o.All {
		slots, err := w.s.Slots()
		if err != nil {
			return err
		}
		w.o.Slots = slots
	}
	if err := w.check(ctx); err != nil {
		return err
	}
	for _, sl := range w.o.Slots {
		w.u.Slots = append(w.u.Slots, sl.Name())
	}
	if err := w.links(ctx); err != nil {
		return err
	}
	if err := w.s.asOwner(func() error { return w.below(ctx) }); err != nil {
		return err
	}
	if w.o.All && !w.o.DryRun {
		w.rmroot()
	}
	return nil
}

// below removes what is in ROOT, with the rights of its owner.
func (w *uninstaller) below(ctx context.Context) error {
	downloads := w.downloads()
	tarballs, err := w.tarballs()
	if err != nil {
		return err
	}
	for _, dir := range downloads {
		w.dropSpool(dir)
	}
	for _, dir := range tarballs {
		w.removeTree(dir)
	}
	for _, sl := range w.o.Slots {
		if err := w.slot(ctx, sl); err != nil {
			return err
		}
	}
	if !w.o.DryRun {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if w.o.All {
		w.root()
	}
	return nil
}

// check refuses what must not be removed now.
func (w *uninstaller) check(ctx context.Context) error {
	find := w.o.InUse
	if find == nil {
		find = w.s.InUse
	}
	all, err := mountsOf("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("find out what is mounted in the slots: %w", err)
	}
	for _, sl := range w.o.Slots {
		if sl.err != nil {
			return sl.err
		}
		if m := all.firstBelow(realPath(sl.path())); m != nil {
			return fmt.Errorf("%s is a mount point in %s (umount it first)", m.point, sl.Name())
		}
		gens, err := sl.Generations()
		if errors.Is(err, ErrNewer) {
			return err
		}
		if err != nil || len(gens) == 0 {
			continue // what cannot be listed is nobody's ROCm
		}
		uses, err := find(ctx, gens)
		if err != nil {
			return err
		}
		var by []Use
		for _, g := range gens {
			w.u.Unseen = max(w.u.Unseen, uses[g.Dir].Unseen)
			for _, use := range uses[g.Dir].By {
				if !slices.ContainsFunc(by, func(b Use) bool { return b.PID == use.PID }) {
					by = append(by, use)
				}
			}
		}
		if len(by) > 0 && !w.o.Force {
			return &InUseError{sl.Name(), by}
		}
	}
	return nil
}

// going reports whether the slot of this name goes.
func (w *uninstaller) going(slot string) bool {
	return slices.ContainsFunc(w.o.Slots, func(sl *Slot) bool { return sl.Name() == slot })
}

// links removes what leads into the slots. A link that cannot be removed stops
// it all, before anything is gone.
func (w *uninstaller) links(ctx context.Context) error {
	known, err := w.s.Links()
	if err != nil {
		return err
	}
	var paths []string
	for _, l := range known {
		if w.o.All || w.going(l.Slot) {
			paths = append(paths, l.Path)
			w.u.LDConfig = w.u.LDConfig || strings.HasPrefix(l.File, "etc/ld.so.conf.d/")
		}
	}
	for _, path := range w.o.Links {
		ls, err := w.s.LinkStatus(path)
		if err == nil && ls.State == LinkOurs && w.going(ls.Slot) && !slices.ContainsFunc(paths, func(p string) bool { return canonical(p) == canonical(ls.Path) }) {
			paths = append(paths, ls.Path)
		}
	}
	for _, path := range paths {
		u, err := w.unlink(ctx, path, known)
		if err != nil {
			return err
		}
		w.u.Links = append(w.u.Links, u)
		if u.Left != "" {
			w.left(u.Path, "%s is there now, which is not ours", u.Left)
		}
	}
	return nil
}

func (w *uninstaller) unlink(ctx context.Context, path string, known []Link) (Unlinked, error) {
	if !w.o.DryRun {
		return w.s.DropLink(ctx, path)
	}
	ls, err := w.s.LinkStatus(path)
	if err != nil {
		return Unlinked{}, err
	}
	u := Unlinked{Path: path, Slot: ls.Slot}
	for _, l := range known {
		if l.Path == path {
			u.Slot, u.File, u.Instead, u.Restored = l.Slot, l.File, l.Instead, l.Before
		}
	}
	switch ls.State {
	case LinkOurs:
		u.Removed = true
	case LinkForeign:
		if ls.Target != u.Restored || u.Restored == "" {
			u.Left, u.Restored = ls.What, ""
		}
	default:
		u.Restored = ""
	}
	return u, nil
}

// slot takes one slot out of sight.
func (w *uninstaller) slot(ctx context.Context, sl *Slot) error {
	w.u.Removed = append(w.u.Removed, sl.path())
	if w.o.DryRun {
		w.foreignIn(sl.path())
		return nil
	}
	slots := filepath.Dir(sl.path())
	return sl.locked(ctx, func() error {
		if err := moveAway(sl.path(), filepath.Join(slots, dyingSlot+sl.Name()+"-"+random())); err != nil {
			return err
		}
		return w.s.disk.syncDir(slots)
	})
}

func (w *uninstaller) left(path, format string, args ...any) {
	if why := fmt.Sprintf(format, args...); !slices.Contains(w.u.Left, LeftThere{path, why}) {
		w.u.Left = append(w.u.Left, LeftThere{path, why})
	}
}

// FinishUninstall removes what an interrupted Uninstall has left out of sight.
// The caller holds run.lock. What cannot be removed is reported, and tried again.
func (s *Store) FinishUninstall() error {
	w := &uninstaller{s: s, u: &Uninstalled{}}
	if err := s.asOwner(w.finish); err != nil {
		return fmt.Errorf("finish an uninstall: %w", err)
	}
	for _, l := range w.u.Left {
		s.event(EventDebris, "", l.Path, "was left by an uninstall: %s", l.Why)
	}
	return nil
}
