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
	if _, ok := within(realPath(filepath.Join(s.root, slotsName)), real); ok {
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

// Alternative is the name in update-alternatives(1) that decides what the link
// leads to, "" if none does.
func (ls LinkStatus) Alternative() string {
	to := ls.Target
	if to != "" && !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(ls.Path), to)
	}
	if name, ok := within("/etc/alternatives", filepath.Clean(to)); ok {
		return name
	}
	return ""
}

// foreign says what is there, and whose it is as far as that shows.
func (ls LinkStatus) foreign() string {
	if name := ls.Alternative(); name != "" {
		return ls.What + " is there, which update-alternatives manages (see: update-alternatives --display " + name + ")"
	}
	return ls.What + " is there, which is not ours"
}

func (s *Store) refuseLink(ls LinkStatus) error {
	path := ls.Path
	if err := s.refusePlace(path); err != nil {
		return err
	}
	switch {
	case ls.State == LinkForeign && ls.Target != "":
		return &LinkError{path, ls.foreign(), "take it over with: rocm-nightly link --take-over " + path + ", or choose another path, such as /opt/rocm-nightly"}
	case ls.State == LinkForeign:
		return &LinkError{path, ls.foreign(), "move it away, or choose another path, such as /opt/rocm-nightly"}
	}
	if fi, err := os.Stat(filepath.Dir(path)); err != nil || !fi.IsDir() {
		return &LinkError{path, "its directory is not there", "try: mkdir -p " + filepath.Dir(path)}
	}
	return nil
}

// refusePlace refuses paths in the store, however they are spelled.
func (s *Store) refusePlace(path string) error {
	for _, root := range []string{s.root, realPath(s.root)} {
		for _, p := range []string{path, canonical(path)} {
			if _, ok := within(root, p); ok || p == root {
				return &LinkError{path, "it is inside the store itself", "choose a path elsewhere, such as /opt/rocm"}
			}
		}
	}
	return nil
}
