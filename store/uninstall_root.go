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

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// downloads lists the spools that only slots that go have a use for, by the
// family in the file name.
func (w *uninstaller) downloads() []string {
	var dirs []string
	for _, sl := range w.o.Slots {
		families := sl.families()
		channel := filepath.Dir(w.s.SpoolDir(sl.channel, "x"))
		for _, e := range listDir(channel) {
			n, err := release.ParseName(e.Name())
			if err == nil && e.IsDir() && slices.Contains(families, n.Family) && !w.wanted(sl.channel, n.Family) {
				dirs = append(dirs, filepath.Join(channel, e.Name()))
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// wanted reports whether a slot that stays is made of tarballs of this family.
func (w *uninstaller) wanted(channel, family string) bool {
	slots, err := w.s.Slots()
	if err != nil {
		return true
	}
	for _, sl := range slots {
		if sl.channel == channel && !w.going(sl.Name()) && slices.Contains(sl.families(), family) {
			return true
		}
	}
	return false
}

// families are those of the tarballs that a slot was, or was to be, made of.
func (sl *Slot) families() []string {
	families := []string{sl.target}
	add := func(name string) {
		if n, err := release.ParseName(name); err == nil && !slices.Contains(families, n.Family) {
			families = append(families, n.Family)
		}
	}
	gens, err := sl.Generations()
	for i := range gens {
		if m, merr := gens[i].Manifest(); err == nil && merr == nil {
			add(m.Name)
		}
	}
	var rec struct {
		URL string `json:"url"`
	}
	if sl.ReadBegun(&rec) == nil { // it was killed: its download is all that there may be
		add(path.Base(rec.URL))
	}
	runs, err := sl.Runs()
	for _, r := range runs {
		if err == nil && sl.ReadRun(r.Name, &rec) == nil {
			add(path.Base(rec.URL))
		}
	}
	return families
}

// tarballs lists the kept tarballs that only slots that go have a use for.
func (w *uninstaller) tarballs() ([]string, error) {
	all, err := w.s.Tarballs()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, t := range all {
		if w.keptFor(t) {
			dirs = append(dirs, t.Dir)
		}
	}
	return dirs, nil
}

// keptFor reports whether a tarball is kept for slots that go, and no other.
func (w *uninstaller) keptFor(t Tarball) bool {
	if len(t.Slots) > 0 {
		return !slices.ContainsFunc(t.Slots, func(slot string) bool { return !w.going(slot) && w.there(slot) })
	}
	n, err := release.ParseName(t.Name)
	if err != nil || w.wanted(t.Channel, n.Family) {
		return false
	}
	return slices.ContainsFunc(w.o.Slots, func(sl *Slot) bool {
		return sl.channel == t.Channel && slices.Contains(sl.families(), n.Family)
	})
}

// there reports whether a slot of this name is on disk.
func (w *uninstaller) there(slot string) bool {
	_, err := os.Stat(filepath.Join(w.s.root, slotsName, slot))
	return !errors.Is(err, fs.ErrNotExist)
}

// dropSpool removes a download, unless somebody is at it.
func (w *uninstaller) dropSpool(dir string) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		w.left(dir, "it is no directory of ours")
		return
	}
	defer f.Close() // opened for reading
	if err := uninterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }); err != nil {
		w.left(dir, "another process downloads into it")
		return
	}
	w.removeTree(dir)
	w.rmdir(filepath.Dir(dir))
}

// rootFiles are those in ROOT that are ours, beside the ledger; rootOwn are made
// by every run, an uninstall's own too, and go last: what is interrupted is still
// a store, of this form, and locked.
var (
	rootFiles = slices.Concat([]string{linksName, linksName + ".broken", linksLock, rootName + ".broken"}, serviceFiles)
	rootOwn   = []string{rootName, runLock}
)

// root removes what is ours of ROOT once no slot is left.
func (w *uninstaller) root() {
	for _, e := range listDir(w.s.root) {
		name, at := e.Name(), filepath.Join(w.s.root, e.Name())
		switch {
		case name == slotsName:
			w.slotsDir(at)
		case name == spoolDirName || name == tarballsName:
			w.downloadsDir(at, e)
		case name == leasesName:
			w.removeTree(at)
		case name == ledgerName && !w.o.Ledger:
			w.left(at, "it is the record of what was ever verified (--ledger removes it)")
		case slices.Contains(rootOwn, name) && e.Type().IsRegular():
		case name == ledgerName || slices.Contains(rootFiles, name) || ourTemp(name):
			w.removeFile(at, e)
		default:
			w.left(at, "it is not ours")
		}
	}
	if w.o.DryRun {
		return
	}
	for _, name := range rootOwn {
		at := filepath.Join(w.s.root, name)
		if fi, err := os.Lstat(at); err != nil || !fi.Mode().IsRegular() {
			continue
		}
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.left(at, "%v", err)
		}
	}
}

// rmroot removes ROOT itself, if nothing is left in it.
func (w *uninstaller) rmroot() {
	if len(w.u.Left) > 0 {
		return
	}
	if err := unix.Rmdir(w.s.root); err != nil {
		w.left(w.s.root, "%v", err) // a link, a mount point, or in a directory that is not ours
		return
	}
	w.u.Removed = append(w.u.Removed, w.s.root)
}

// ourTemp reports whether a name is half of a file of ours: renameio puts a dot
// before the name and a number behind it.
func ourTemp(name string) bool {
	bare := strings.TrimRight(name, "0123456789")
	return len(bare) < len(name) && slices.ContainsFunc(slices.Concat([]string{linksName, ledgerName, rootName}, serviceFiles), func(name string) bool { return bare == "."+name })
}

func (w *uninstaller) removeFile(at string, e fs.DirEntry) {
	if !e.Type().IsRegular() {
		w.left(at, "it is no file of ours")
		return
	}
	if !w.o.DryRun {
		if err := os.Remove(at); err != nil {
			w.left(at, "%v", err)
			return
		}
	}
	w.u.Removed = append(w.u.Removed, at)
}

// slotsDir removes the directory of slots, once it is empty.
func (w *uninstaller) slotsDir(dir string) {
	for _, e := range listDir(dir) {
		gone := w.going(e.Name()) || strings.HasPrefix(e.Name(), dyingSlot)
		if !gone || !w.o.DryRun && !w.namedBelow(filepath.Join(dir, e.Name())) {
			w.left(filepath.Join(dir, e.Name()), "it is no slot of ours")
		}
	}
	if err := unix.Rmdir(dir); !w.o.DryRun && err != nil && len(w.u.Left) == 0 {
		w.left(dir, "%v", err) // a link, or a mount point
	}
}

// namedBelow reports whether something in dir was named already.
func (w *uninstaller) namedBelow(dir string) bool {
	return slices.ContainsFunc(w.u.Left, func(l LeftThere) bool { return l.Path == dir || strings.HasPrefix(l.Path, dir+"/") })
}

// downloadsDir removes what is in spool or tarballs: directories of channels
// with directories of tarballs in them.
func (w *uninstaller) downloadsDir(dir string, e fs.DirEntry) {
	if !e.IsDir() {
		w.left(dir, "it is no directory of ours")
		return
	}
	for _, channel := range listDir(dir) {
		at := filepath.Join(dir, channel.Name())
		if !channel.IsDir() {
			w.left(at, "it is not ours")
			continue
		}
		for _, t := range listDir(at) {
			if t.IsDir() {
				w.dropSpool(filepath.Join(at, t.Name()))
			} else {
				w.left(filepath.Join(at, t.Name()), "it is not ours")
			}
		}
		w.rmdir(at)
	}
	w.rmdir(dir)
}

// listDir lists a directory; what cannot be read is empty, and shows when it is
// to be removed.
func listDir(dir string) []fs.DirEntry {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	return entries
}
