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

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// LinkOptions says what link to make.
type LinkOptions struct {
	Path     string // absolute
	File     string // what it is to lead to below current; "" for current itself
	By       string // one of the LinkBy constants
	Instead  string // the path that was asked for, if this one only stands for it
	TakeOver bool   // replace a symlink that is not ours, which is put back in the end
	MakeDirs bool   // make the directories of Path; they go with the link if they are empty then
}

// MakeLink makes a path a symlink to what is active in sl, or to a file of it,
// and records that. It follows later activations by itself. Nothing is replaced
// but a link of ours and, with TakeOver, a symlink: that by an exchange of
// names, so that there is always one of the two, and what it pointed to is on
// record before. Otherwise the error is a *LinkError, and path is as it was.
func (s *Store) MakeLink(ctx context.Context, sl *Slot, o LinkOptions) (Link, error) {
	if sl.err != nil {
		return Link{}, fmt.Errorf("link %s: %w", o.Path, sl.err)
	}
	if !filepath.IsAbs(o.Path) {
		return Link{}, fmt.Errorf("link %q: not an absolute path", o.Path)
	}
	l := Link{Path: filepath.Clean(o.Path), Slot: sl.Name(), File: o.File, By: o.By, Instead: o.Instead, At: s.now().Truncate(1e9)}
	if err := l.check(); err != nil {
		return Link{}, fmt.Errorf("link %.200q: %w", o.Path, err)
	}
	if err := s.refusePlace(l.Path); err != nil {
		return Link{}, err
	}
	if err := sl.offers(l); err != nil {
		return Link{}, err
	}
	err := s.withLinks(ctx, func(b *linkBook) error {
		var err error
		l, err = b.make(l, o)
		return err
	})
	return l, err
}

// offers refuses a link to what the active generation does not have.
func (sl *Slot) offers(l Link) error {
	if _, err := os.Lstat(sl.CurrentPath()); errors.Is(err, fs.ErrNotExist) {
		return &LinkError{l.Path, "nothing is active in " + sl.Name(), "try: update, or activate"}
	} else if err != nil {
		return fmt.Errorf("link %s: %w", l.Path, err)
	}
	if l.File == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(sl.CurrentPath(), l.File)); err != nil {
		return &LinkError{l.Path, "what is active in " + sl.Name() + " has no " + l.File, "an older program made it, or the tree has nothing for it: the next night may"}
	}
	return nil
}

// target is what the link's text is to be.
func (l Link) target(s *Store) string {
	return filepath.Join(s.root, slotsName, l.Slot, currentName, l.File)
}

// make does what MakeLink promises, under the lock.
func (b *linkBook) make(l Link, o LinkOptions) (Link, error) {
	s := b.store
	known := b.find(l.Path)
	if known != nil {
		l.Path, l.Before, l.Made = known.Path, known.Before, known.Made
		if known.Slot == l.Slot && known.By == l.By {
			l.At = known.At
		}
	}
	if err := b.sweepAside(l); err != nil {
		return l, err
	}
	ls, err := s.LinkStatus(l.Path)
	if err != nil {
		return l, linkTrouble(l.Path, err)
	}
	switch {
	case ls.State == LinkForeign && o.TakeOver && ls.Target != "":
		return b.takeOver(l, ls)
	case ls.State == LinkForeign && l.By == LinkByHost:
		return l, &LinkError{l.Path, ls.foreign(), "move it away, or leave it out of the config's host"}
	case ls.State == LinkForeign:
		return l, s.refuseLink(ls)
	case ls.State == LinkAbsent:
		return b.makeNew(l, o)
	case ls.Target == l.target(s):
		if known != nil && sameLink(*known, l) {
			return l, nil
		}
		return l, b.put(l)
	}
	if err := b.put(l); err != nil {
		return l, err
	}
	dir, name := filepath.Split(l.Path)
	return l, linkTrouble(l.Path, s.disk.swapLink(dir, name, aside(s, l.Path), ls.Target, l.target(s), true))
}

func sameLink(a, b Link) bool {
	return a.Slot == b.Slot && a.File == b.File && a.By == b.By && a.Instead == b.Instead && a.Before == b.Before && a.Pending == b.Pending && slices.Equal(a.Made, b.Made)
}

// makeNew makes a link where nothing is. It is on record first: one that is on
// record and not there is made by the next run.
func (b *linkBook) makeNew(l Link, o LinkOptions) (Link, error) {
	s := b.store
	l.Before = "" // whoever removed the link has decided that
	dir := filepath.Dir(l.Path)
	if o.MakeDirs {
		l.Made = append(l.Made, missingDirs(dir)...)
		l.Made = slices.Compact(slices.Sorted(slices.Values(l.Made)))
	}
	old := slices.Clone(b.links)
	if err := b.put(l); err != nil {
		return l, err
	}
	var err error
	if o.MakeDirs {
		err = s.disk.mkdirAll(dir)
	} else if fi, serr := os.Stat(dir); serr != nil || !fi.IsDir() {
		err = &LinkError{l.Path, "its directory is not there", "try: mkdir -p " + dir}
	}
	if err == nil { // which replaces nothing
		err = fault.Do("store.link.make", func() error { return os.Symlink(l.target(s), l.Path) })
	}
	if err == nil {
		return l, s.disk.syncDir(dir)
	}
	removeDirs(l.Made)
	b.links = old
	return l, errors.Join(linkTrouble(l.Path, err), b.save())
}

// takeOver replaces a symlink that is not ours.
func (b *linkBook) takeOver(l Link, ls LinkStatus) (Link, error) {
	s := b.store
	if len(ls.Target) > maxLinkText || strings.ContainsRune(ls.Target, 0) {
		return l, &LinkError{l.Path, "what it points to cannot be written down", "choose another path"}
	}
	old := slices.Clone(b.links)
	l.Before, l.Pending = ls.Target, pendingTake
	if err := b.put(l); err != nil {
		return l, err
	}
	dir, name := filepath.Split(l.Path)
	if err := s.disk.swapLink(dir, name, aside(s, l.Path), ls.Target, l.target(s), false); err != nil {
		b.links = old
		return l, errors.Join(linkTrouble(l.Path, err), b.save())
	}
	l.Pending = ""
	if err := b.put(l); err != nil {
		s.event(EventState, l.Slot, l.Path, "it was taken over, but that could not be recorded; the next run does: %v", err)
	}
	return l, nil
}

// Unlinked is what became of one link.
type Unlinked struct {
	Path     string `json:"path"`
	Slot     string `json:"slot,omitempty"`
	File     string `json:"file,omitempty"`       // what it led to below current; "" is current itself
	Removed  bool   `json:"removed"`              // our link was there, and is not any more
	Restored string `json:"restored,omitempty"`   // text of the symlink that was put back in its place
	Instead  string `json:"instead_of,omitempty"` // the path that was asked for, if this one only stood for it
	Left     string `json:"left,omitempty"`       // what is there now, which is not ours and was left as it is
}

// DropLink removes a link of ours, puts back what it had taken over, and
// forgets it. What somebody else has put there since is left, and said. An
// unknown path that holds something else is a *LinkError; nothing there is done.
func (s *Store) DropLink(ctx context.Context, path string) (Unlinked, error) {
	if !filepath.IsAbs(path) {
		return Unlinked{}, fmt.Errorf("unlink %q: not an absolute path", path)
	}
	path = filepath.Clean(path)
	u := Unlinked{Path: path}
	if _, err := os.Stat(s.root); errors.Is(err, fs.ErrNotExist) {
		return u, s.refuseForeign(path)
	}
	err := s.withLinks(ctx, func(b *linkBook) error {
		var err error
		u, err = b.unlink(path)
		return err
	})
	return u, err
}

// refuseForeign is the error about a path that is not ours; nil if nothing is there.
func (s *Store) refuseForeign(path string) error {
	ls, err := s.LinkStatus(path)
	if err != nil {
		return linkTrouble(path, err)
	}
	if ls.State == LinkForeign {
		return &LinkError{path, ls.What + " is there, which is not ours", "remove it by the means that put it there"}
	}
	return nil
}

func (b *linkBook) unlink(path string) (Unlinked, error) {
	s := b.store
	u := Unlinked{Path: path}
	l := Link{Path: path}
	known := b.find(path)
	if known != nil {
		l = *known
		u.Path, u.Slot, u.File, u.Instead = l.Path, l.Slot, l.File, l.Instead
	}
	if err := b.sweepAside(l); err != nil {
		return u, err
	}
	ls, err := s.LinkStatus(l.Path)
	if err != nil {
		return u, linkTrouble(l.Path, err)
	}
	switch {
	case ls.State == LinkForeign && known == nil:
		return u, s.refuseForeign(l.Path)
	case ls.State == LinkForeign && l.Before != "" && ls.Target == l.Before:
		u.Restored = l.Before // by a run that was interrupted, or by whoever it belongs to
	case ls.State == LinkForeign:
		u.Left = ls.What
	case ls.State == LinkOurs:
		if u.Slot == "" {
			u.Slot = ls.Slot
		}
		old := slices.Clone(b.links)
		if known != nil {
			l.Pending = pendingDrop
			if err := b.put(l); err != nil {
				return u, err
			}
		}
		dir, name := filepath.Split(l.Path)
		if l.Before != "" {
			err = s.disk.swapLink(dir, name, aside(s, l.Path), ls.Target, l.Before, true)
		} else {
			err = s.disk.removeLink(dir, name, aside(s, l.Path), ls.Target)
		}
		if now, rerr := os.Readlink(l.Path); err != nil && known != nil && rerr == nil && now == ls.Target {
			b.links = old // what was refused is not done later, when nobody expects it
			err = errors.Join(err, b.save())
		}
		if err != nil {
			return u, linkTrouble(l.Path, err)
		}
		u.Removed, u.Restored = true, l.Before
	}
	if u.Removed || s.Believed() {
		removeDirs(l.Made)
	}
	if known == nil {
		return u, nil
	}
	b.drop(l.Path)
	return u, b.save()
}

// FinishLinks ends what was interrupted: take-overs and removals. It needs no
// other lock; what cannot be finished is reported and tried again.
func (s *Store) FinishLinks(ctx context.Context) error {
	links, err := s.readLinks()
	if err != nil || !slices.ContainsFunc(links, func(l Link) bool { return l.Pending != "" }) {
		return err
	}
	return s.withLinks(ctx, func(b *linkBook) error {
		var errs error
		for _, l := range slices.Clone(b.links) {
			var err error
			switch l.Pending {
			case pendingDrop:
				_, err = b.unlink(l.Path)
			case pendingTake:
				err = b.finishTake(l)
			}
			errs = errors.Join(errs, err)
		}
		return errs
	})
}

func (b *linkBook) finishTake(l Link) error {
	if err := b.sweepAside(l); err != nil {
		return err
	}
	ls, err := b.store.LinkStatus(l.Path)
	if err != nil {
		return linkTrouble(l.Path, err)
	}
	if ls.State == LinkForeign && ls.Target == l.Before {
		if !b.store.Believed() { // anybody's record would make root replace any link
			b.store.event(EventState, l.Slot, l.Path, "a take-over that was interrupted is forgotten: the store is not root's; to take it over: rocm-nightly link --take-over %s", l.Path)
			b.drop(l.Path)
			return b.save()
		}
		_, err := b.takeOver(l, ls)
		return err
	}
	if ls.State != LinkOurs { // somebody else was there meanwhile: it is theirs
		b.drop(l.Path)
		return b.save()
	}
	l.Pending = ""
	return b.put(l)
}

// aside is the name that a link has beside its path while the two are
// exchanged: always the same, so that one that was left is known again.
func aside(s *Store, path string) string { return ".rocm-nightly-" + nameHash(s.root, path) }

// sweepAside removes what an exchange that was interrupted has left. What turns
// out to be somebody's goes back to its place.
func (b *linkBook) sweepAside(l Link) error {
	s := b.store
	dir := filepath.Dir(l.Path)
	temp := filepath.Join(dir, aside(s, l.Path))
	fi, err := os.Lstat(temp)
	if err != nil {
		return nil // nothing there, or what is wrong shows when the link is looked at
	}
	text, err := os.Readlink(temp)
	if fi.Mode().Type() == fs.ModeSymlink && err == nil && (s.slotOfTarget(temp, text) != "" || l.Before != "" && text == l.Before) {
		return linkTrouble(l.Path, os.Remove(temp))
	}
	if ls, err := s.LinkStatus(l.Path); err == nil && ls.State == LinkOurs {
		if err := exchange(temp, l.Path); err == nil {
			return linkTrouble(l.Path, os.Remove(temp))
		}
	}
	return &LinkError{l.Path, temp + " is there, which is not ours", "look what it is, and move it away"}
}

// linkTrouble says what a user can do about an error of making a link.
func linkTrouble(path string, err error) error {
	dir := filepath.Dir(path)
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*LinkError)):
		return err
	case errors.Is(err, errNoExchange):
		return &LinkError{path, "the file system of " + dir + " cannot exchange two names", "remove the link by hand, and try again"}
	case errors.Is(err, fs.ErrExist), errors.Is(err, errChanged):
		return &LinkError{path, "something has just been put there", "look what it is, and try again"}
	case errors.Is(err, fs.ErrPermission):
		return &LinkError{path, "you may not write to " + dir, "run as root, or choose a path in your home"}
	case errors.Is(err, unix.EROFS):
		return &LinkError{path, dir + " is read-only", "remount it writable; a service of systemd wants ReadWritePaths=" + dir + " in a drop-in"}
	}
	return fmt.Errorf("link %s: %w", path, err)
}
