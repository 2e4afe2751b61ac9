package cage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// scratchName begins the names of all scratch directories: by its name alone a
// directory was made for a cage, so that no mistake of a caller's gives away
// another.
const scratchName = "rocm-nightly-cage-"

// MakeScratch makes a directory for Command.Scratch in parent; "" is the
// directory for temporary files. RemoveScratch removes it.
func MakeScratch(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, scratchName)
	if err != nil {
		return "", fmt.Errorf("cage: make a scratch directory: %w", err)
	}
	// What is let in is named by a path without links.
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		os.Remove(dir)
		return "", fmt.Errorf("cage: make a scratch directory: %w", err)
	}
	return real, nil
}

// scratch gives the real name of a directory of MakeScratch's.
func scratch(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return "", fmt.Errorf("cage: scratch directory: %w", err)
	}
	if !strings.HasPrefix(filepath.Base(real), scratchName) {
		return "", fmt.Errorf("cage: %s is not a scratch directory: MakeScratch makes one", real)
	}
	return real, nil
}

// give makes a scratch directory the user's. It is opened first, without
// following links, so that it is what was looked at that is given.
func give(dir string, u *User) error {
	fd, err := walk("/", dir)
	if err != nil {
		return fmt.Errorf("cage: open scratch directory %s: %w", dir, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("cage: look at scratch directory %s: %w", dir, err)
	}
	switch {
	case int(st.Uid) == u.UID:
		return nil
	case st.Uid != 0 || st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("cage: scratch directory %s is uid %d's, and not root's or that of uid %d: MakeScratch makes one", dir, st.Uid, u.UID)
	}
	if err := unix.Fchownat(fd, "", u.UID, u.GID, unix.AT_EMPTY_PATH); err != nil {
		return fmt.Errorf("cage: give scratch directory %s to uid %d: %w", dir, u.UID, err)
	}
	return nil
}

// RemoveScratch removes a directory of MakeScratch's after the last run,
// whatever a program left in it: directories that are closed, or nested deeper
// than a path or a stack can be long, and links, which nothing follows. One that
// is gone already is no error.
func RemoveScratch(dir string) error {
	real, err := scratch(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	fd, err := walk("/", real)
	if err != nil {
		return fmt.Errorf("cage: remove scratch directory %s: %w", real, err)
	}
	defer unix.Close(fd)
	root, err := os.OpenRoot(descriptor(fd))
	if err != nil {
		return fmt.Errorf("cage: remove scratch directory %s: %w", real, err)
	}
	defer root.Close()
	r := remover{top: root}
	for {
		n, err := r.level()
		if err != nil {
			return fmt.Errorf("cage: remove scratch directory %s: %w", real, err)
		}
		if n == 0 {
			return os.Remove(real)
		}
	}
}

// remover takes a tree apart from the top: what is in a directory is moved up,
// which needs no more memory or descriptors for a deep one.
type remover struct {
	top   *os.Root
	moved int
}

// level removes what is in the top directory, or some of it, and says how many
// names it came upon.
func (r *remover) level() (int, error) {
	names, err := some(r.top)
	for _, name := range names {
		if err := r.remove(name); err != nil {
			return 0, err
		}
	}
	return len(names), err
}

func (r *remover) remove(name string) error {
	info, err := r.top.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return r.top.Remove(name)
	}
	if err := r.top.Chmod(name, 0o700); err != nil {
		return err
	}
	sub, err := r.top.OpenRoot(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	for {
		names, err := some(sub)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return r.top.Remove(name)
		}
		for _, inner := range names {
			info, err := sub.Lstat(inner)
			if err != nil {
				return err
			}
			if !info.IsDir() {
				err = sub.Remove(inner)
			} else if err = sub.Chmod(inner, 0o700); err == nil {
				err = r.moveUp(name + "/" + inner)
			}
			if err != nil {
				return err
			}
		}
	}
}

// moveUp gives a directory a name in the top directory that nothing there has.
func (r *remover) moveUp(path string) error {
	for {
		name := "moved-" + strconv.Itoa(r.moved)
		r.moved++
		if _, err := r.top.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return r.top.Rename(path, name)
		}
	}
}

// some lists a few of the names in a directory; none: it is empty.
func some(dir *os.Root) ([]string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(4096)
	if len(names) > 0 || errors.Is(err, io.EOF) {
		return names, nil
	}
	return nil, err
}

// allocated is what a file occupies, in bytes.
func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}
