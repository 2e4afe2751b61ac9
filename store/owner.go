package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// owner is who owns a store that root works on: a service's own user, say.
type owner struct{ uid, gid int }

// foreign returns the owner of ROOT, if root runs this on the store of somebody
// else.
func (s *Store) foreign() (owner, bool) {
	if os.Geteuid() != 0 {
		return owner{}, false
	}
	var st unix.Stat_t
	if err := uninterrupted(func() error { return unix.Stat(s.root, &st) }); err != nil || st.Uid == 0 {
		return owner{}, false
	}
	return owner{int(st.Uid), int(st.Gid)}, true
}

// Believed reports whether this process may do outside the store what the store's
// records alone ask for. Root may not in the store of somebody else, who could
// have written anything there: then it does what the config or a person asks for.
func (s *Store) Believed() bool {
	_, foreign := s.foreign()
	return !foreign
}

// asOwner runs do with the rights of the store's owner on files (fsuid), where
// root works on the store of somebody else. What do makes is then the owner's, who
// can replace it later; and do can do nothing that the owner could not do himself,
// whatever links he has laid in root's way. do must stay on its goroutine.
func (s *Store) asOwner(do func() error) error {
	o, ok := s.foreign()
	if !ok {
		return do()
	}
	runtime.LockOSThread()
	gid, err := unix.SetfsgidRetGid(o.gid)
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	uid, err := unix.SetfsuidRetUid(o.uid)
	if err == nil {
		err = do()
	}
	// The thread had these rights, and gets them back; one that does not ends
	// with its goroutine.
	_, err1 := unix.SetfsuidRetUid(uid)
	_, err2 := unix.SetfsgidRetGid(gid)
	if now, err3 := unix.SetfsuidRetUid(-1); errors.Join(err1, err2, err3) == nil && now == uid {
		runtime.UnlockOSThread()
	}
	return err
}

// inForeign runs do in dir where root works on the store of somebody else; elsewhere
// there is nothing to do. do reaches nothing outside dir.
func (s *Store) inForeign(dir string, do func(o owner, root *os.Root) error) error {
	o, ok := s.foreign()
	if !ok {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(o, root)
}

// giveBack makes the owner of the store the owner of what root has left in it
// under the given names, relative to ROOT, where it is root's. Nothing outside
// ROOT is reached, and no file that has another name somewhere.
func (s *Store) giveBack(names ...string) error {
	return s.inForeign(s.root, func(o owner, root *os.Root) error {
		for _, name := range names {
			if err := o.give(root, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// give is giveBack of one name.
func (o owner) give(root *os.Root, name string) error {
	fi, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Uid != 0 || !fi.IsDir() && st.Nlink > 1 {
		return nil
	}
	return root.Lchown(name, o.uid, o.gid)
}

// makeDir makes a directory below ROOT, and what is missing above it.
func (s *Store) makeDir(path string) error {
	if err := s.disk.mkdirAll(s.root); err != nil {
		return err
	}
	rel, err := filepath.Rel(s.root, path)
	if err != nil {
		return err
	}
	var above []string
	for dir := rel; dir != "."; dir = filepath.Dir(dir) {
		above = append([]string{dir}, above...)
	}
	if err := s.giveBack(above...); err != nil {
		return err
	}
	return s.asOwner(func() error { return s.disk.mkdirAll(path) })
}

// giveBackAll is giveBack of everything in ROOT but what is in generations,
// which are given when they are committed, and root's own leases: a lease counts
// for who owns its record.
func (s *Store) giveBackAll() error {
	return s.inForeign(s.root, func(o owner, root *os.Root) error {
		return fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return err
			}
			if filepath.Dir(p) == leasesName {
				return nil
			}
			if err := o.give(root, p); err != nil {
				return err
			}
			if e.IsDir() && (filepath.Base(filepath.Dir(p)) == generationsName || strings.HasPrefix(e.Name(), dyingPrefix)) {
				return fs.SkipDir
			}
			return nil
		})
	})
}

// noLinks refuses directories that the owner of a store has replaced by links
// before root downloads and unpacks by way of them.
func (s *Store) noLinks() error {
	return s.inForeign(s.root, func(o owner, root *os.Root) error {
		tops := []string{spoolDirName, slotsName, tarballsName, leasesName}
		return fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
			first, rest, _ := strings.Cut(p, "/")
			switch {
			case err != nil || p == ".":
				return err
			case !slices.Contains(tops, first):
				if e.IsDir() {
					return fs.SkipDir
				}
				return nil
			case e.Type() != fs.ModeSymlink:
			case first == slotsName && strings.Contains(rest, "/") && e.Name() != generationsName && e.Name() != runsName && e.Name() != recordsName && e.Name() != sealsName:
				return nil // current, or nothing of ours
			default:
				return fmt.Errorf("%s is a symlink in the store of uid %d, which root does not follow (remove it, or run this as that user)", filepath.Join(s.root, p), o.uid)
			}
			if e.IsDir() && strings.Contains(rest, "/") {
				return fs.SkipDir
			}
			return nil
		})
	})
}

// openSpools gives what downloads have left in the spool the modes of everything
// else in a store: who downloads goes by the umask. What is elsewhere, by a link,
// is left.
func (s *Store) openSpools() error {
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), spoolDirName, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // there is none, or it is elsewhere
		}
		mode := fs.FileMode(fileMode)
		switch {
		case e.IsDir():
			mode = dirMode
		case !e.Type().IsRegular():
			return nil
		}
		if fi, err := e.Info(); err != nil || fi.Mode().Perm() == mode {
			return nil // as it should be, or gone
		}
		return root.Chmod(p, mode)
	})
}

// giveTree makes the owner of the store the owner of a staged tree. Files are
// given whatever names they have: those that they share with other generations
// are the owner's already.
func (s *Store) giveTree(dir string) error {
	return s.inForeign(dir, func(o owner, root *os.Root) error {
		return fs.WalkDir(root.FS(), ".", func(p string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return root.Lchown(p, o.uid, o.gid)
		})
	})
}
