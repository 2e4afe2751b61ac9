package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// LinkState says whose a path is.
type LinkState string

// The states of a path that should be a link to a slot.
const (
	LinkAbsent  LinkState = "absent"
	LinkOurs    LinkState = "ours"    // a symlink into ROOT/slots, textually and in fact
	LinkForeign LinkState = "foreign" // anything else; never touched
)

// LinkStatus describes what is at a path such as /opt/rocm.
type LinkStatus struct {
	Path     string
	State    LinkState
	Slot     string // name of the slot, if ours
	Target   string // text of the symlink, "" if it is none
	Dangling bool   // ours, but leads to nothing
	What     string // what is there, for people: "a directory", "a link to /x"
}

// LinkError says why a path cannot be linked.
type LinkError struct {
	Path string
	What string // what is there
	Hint string // what to try
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("link %s: %s (%s)", e.Path, e.What, e.Hint)
}

// LinkStatus looks at path, which must be absolute, and changes nothing.
func (s *Store) LinkStatus(path string) (LinkStatus, error) {
	ls := LinkStatus{Path: filepath.Clean(path)} // with a slash at the end, Lstat would follow it
	if !filepath.IsAbs(path) {
		return ls, fmt.Errorf("look at link %q: not an absolute path", path)
	}
	path = ls.Path
	fi, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		ls.State, ls.What = LinkAbsent, "nothing"
		return ls, nil
	case err != nil:
		return ls, fmt.Errorf("look at link: %w", err)
	}
	ls.State = LinkForeign
	switch {
	case fi.IsDir():
		ls.What = "a directory"
		return ls, nil
	case fi.Mode().IsRegular():
		ls.What = "a file"
		return ls, nil
	case fi.Mode().Type() != fs.ModeSymlink:
		ls.What = "a special file"
		return ls, nil
	}
	if ls.Target, err = os.Readlink(path); err != nil {
		return ls, fmt.Errorf("look at link: %w", err)
	}
	ls.What = "a link to " + ls.Target
	slot := s.slotOfTarget(path, ls.Target)
	if slot == "" {
		return ls, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		// It says that it is ours, and nothing contradicts.
		ls.State, ls.Slot, ls.Dangling = LinkOurs, slot, true
		return ls, nil
	}
	if _, ok := within(filepath.Join(realPath(s.root), slotsName), real); ok {
		ls.State, ls.Slot = LinkOurs, slot
	}
	return ls, nil
}

// slotOfTarget returns the name of the slot that a symlink at path with this
// text names, "" if it leads elsewhere. ROOT may be named by way of symlinks.
func (s *Store) slotOfTarget(path, target string) string {
	if !filepath.IsAbs(target) {
		target = filepath.Join(realPath(filepath.Dir(path)), target)
	}
	for _, root := range []string{s.root, realPath(s.root)} {
		if rel, ok := within(filepath.Join(root, slotsName), filepath.Clean(target)); ok {
			slot, _, _ := strings.Cut(rel, "/")
			return slot
		}
	}
	return ""
}

// within returns path relative to dir, and whether it is strictly inside.
func within(dir, path string) (rel string, ok bool) {
	rel, ok = strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/")
	return rel, ok && rel != ""
}

func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// CheckLink returns nil if Link could set path, else a *LinkError that says
// what is there and what to try. It changes nothing.
func (s *Store) CheckLink(path string) error {
	ls, err := s.LinkStatus(path)
	if err != nil {
		return err
	}
	return s.refuseLink(ls)
}

func (s *Store) refuseLink(ls LinkStatus) error {
	path := ls.Path
	if _, ok := within(s.root, filepath.Clean(path)); ok || filepath.Clean(path) == s.root {
		return &LinkError{path, "it is inside the store itself", "choose a path elsewhere, such as /opt/rocm"}
	}
	if ls.State == LinkForeign {
		return &LinkError{path, ls.What + " is there, which is not ours", "move it away, or choose another path, such as /opt/rocm-nightly"}
	}
	if fi, err := os.Stat(filepath.Dir(path)); err != nil || !fi.IsDir() {
		return &LinkError{path, "its directory is not there", "try: mkdir -p " + filepath.Dir(path)}
	}
	return nil
}

// Link makes path a symlink to the current generation of sl, by one rename, if
// nothing is there or a link of ours. It follows later activations by itself.
// Otherwise the error is a *LinkError, and path is as it was.
func (s *Store) Link(path string, sl *Slot) error {
	if sl.err != nil {
		return fmt.Errorf("link %s: %w", path, sl.err)
	}
	ls, err := s.LinkStatus(path)
	if err != nil {
		return err
	}
	if err := s.refuseLink(ls); err != nil {
		return err
	}
	target := sl.CurrentPath()
	if ls.Target == target {
		return nil
	}
	if _, err := os.Lstat(target); err != nil {
		return &LinkError{path, "nothing is active in " + sl.Name(), "try: update, or activate"}
	}
	dir, name := filepath.Split(filepath.Clean(path))
	// Where nothing was, something may have come since: that is not replaced.
	err = s.disk.replaceLink(dir, name, ".rocm-nightly-", target, ls.State == LinkAbsent)
	if errors.Is(err, fs.ErrExist) {
		return &LinkError{path, "something has just been put there", "look what it is, and try again"}
	}
	if errors.Is(err, fs.ErrPermission) {
		return &LinkError{path, "you may not write to " + dir, "run as root, or choose a path in your home"}
	}
	if err != nil {
		return fmt.Errorf("link %s: %w", path, err)
	}
	return nil
}

// Unlink removes path if it is a link of ours; if nothing is there, that is
// done. Otherwise the error is a *LinkError.
func (s *Store) Unlink(path string) error {
	ls, err := s.LinkStatus(path)
	if err != nil {
		return err
	}
	switch ls.State {
	case LinkAbsent:
		return nil
	case LinkForeign:
		return &LinkError{path, ls.What + " is there, which is not ours", "remove it by the means that put it there"}
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("unlink: %w", err)
	}
	return s.disk.syncDir(filepath.Dir(path))
}
