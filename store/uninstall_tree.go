package store

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// finish deletes the slots that are out of sight.
func (w *uninstaller) finish() error {
	slots := filepath.Join(w.s.root, slotsName)
	entries, err := os.ReadDir(slots)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if rest, ok := strings.CutPrefix(e.Name(), dyingSlot); ok && e.IsDir() {
			name := rest[:max(0, strings.LastIndexByte(rest, '-'))]
			w.bury(filepath.Join(slots, e.Name()), filepath.Join(slots, name))
		}
	}
	return nil
}

// bury deletes what is ours in a slot that was renamed to dir. If something is
// not, the directory gets its name back, with nothing else in it.
func (w *uninstaller) bury(dir, name string) {
	w.sweep(dir, name, oursInSlot)
	gens := filepath.Join(dir, generationsName)
	if fi, err := os.Lstat(gens); err == nil && fi.IsDir() {
		w.sweep(gens, filepath.Join(name, generationsName), oursInGenerations)
		w.rmdir(gens)
	}
	err := unix.Rmdir(dir)
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST):
		if err := renameNew(dir, name); err != nil {
			w.left(dir, "it holds what is not ours, and its name is taken: %v", err)
		}
	default:
		w.left(dir, "%v", err)
	}
}

// sweep deletes the entries of dir that ours says are ours, and names the others
// by what they are called in name.
func (w *uninstaller) sweep(dir, name string, ours func(fs.DirEntry) bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		w.left(dir, "%v", err)
		return
	}
	for _, e := range entries {
		switch {
		case e.Name() == generationsName && e.IsDir() && dir != filepath.Join(name, generationsName):
			// by the caller, entry by entry
		case !ours(e):
			w.left(filepath.Join(name, e.Name()), "it is not ours")
		default:
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				w.left(filepath.Join(dir, e.Name()), "%v", err)
			}
		}
	}
}

// foreignIn names what is not ours in a slot, before anything is done.
func (w *uninstaller) foreignIn(slot string) {
	look := func(dir string, ours func(fs.DirEntry) bool) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.Name() != generationsName && !ours(e) {
				w.left(filepath.Join(dir, e.Name()), "it is not ours")
			}
		}
	}
	look(slot, oursInSlot)
	look(filepath.Join(slot, generationsName), oursInGenerations)
}

// slotDirs are the directories in a slot that are ours, beside generations;
// slotFiles the files, and patterns of what is left of writing one.
var (
	slotDirs  = []string{runsName, recordsName, sealsName}
	slotFiles = []string{
		stateName, stateName + ".broken", "." + stateName + "[0-9]*", checksName, checksName + ".broken", "." + checksName + "[0-9]*",
		switchLock, stagingPrefix + "*" + lockSuffix,
	}
)

// oursInSlot reports whether an entry of a slot is of a kind that this program
// makes there.
func oursInSlot(e fs.DirEntry) bool {
	name := e.Name()
	switch {
	case e.Type() == fs.ModeSymlink:
		return name == currentName || strings.HasPrefix(name, currentPrefix)
	case e.IsDir():
		return slices.Contains(slotDirs, name) || strings.HasPrefix(name, stagingPrefix) || strings.HasPrefix(name, dyingPrefix)
	case !e.Type().IsRegular():
		return false
	}
	return slices.ContainsFunc(slotFiles, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

// oursInGenerations is oursInSlot for the directory of generations.
func oursInGenerations(e fs.DirEntry) bool {
	return e.IsDir() && checkName("generation", e.Name()) == nil
}

// removeTree deletes a directory of ours, or says why not. What is a link is
// not ours: nothing is followed.
func (w *uninstaller) removeTree(dir string) {
	fi, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	switch {
	case err != nil:
		w.left(dir, "%v", err)
		return
	case !fi.IsDir():
		w.left(dir, "it is no directory of ours")
		return
	}
	if !w.o.DryRun {
		if err := removeTree(dir); err != nil {
			w.left(dir, "%v", err)
			return
		}
	}
	w.u.Removed = append(w.u.Removed, dir)
}

// rmdir removes a directory if nothing is in it. What is in it is said by
// whoever found it there.
func (w *uninstaller) rmdir(dir string) {
	if !w.o.DryRun {
		_ = unix.Rmdir(dir)
	}
}
