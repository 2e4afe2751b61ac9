package bump

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// scratchName begins the names of scratch directories.
const scratchName = "rocm-nightly-bump-"

// scratch is the directory of one run: a repository, checkouts, and copies of the
// keys that ssh takes from files alone. It is locked for as long as it is used, so
// that the next run can remove what a killed one has left.
type scratch struct {
	path string
	lock *os.File
}

// newScratch makes a scratch directory below dir, or where the system has its
// temporary files, and removes those that killed runs of this user have left there.
func newScratch(dir string) (*scratch, error) {
	if dir == "" {
		dir = os.TempDir()
	}
	sweepScratch(dir)
	for range 10 {
		path, err := os.MkdirTemp(dir, scratchName+"*")
		if err != nil {
			return nil, err
		}
		lock, err := lockScratch(path)
		if err == nil {
			return &scratch{path, lock}, nil
		}
		if !errors.Is(err, os.ErrNotExist) { // or a sweep was faster than our lock
			return nil, errors.Join(err, os.RemoveAll(path))
		}
	}
	return nil, fmt.Errorf("make a directory below %s: others remove it at once", dir)
}

// lockScratch locks a directory that is at path, and still is once it is locked.
func lockScratch(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = os.ErrNotExist // whoever has it removes it
		}
		return nil, errors.Join(&os.PathError{Op: "lock", Path: path, Err: err}, f.Close())
	}
	is, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if at, err := os.Lstat(path); err != nil || !os.SameFile(is, at) {
		return nil, errors.Join(os.ErrNotExist, f.Close())
	}
	return f, nil
}

// sweepScratch removes what killed runs have left. What cannot be removed stays: it
// is in nobody's way.
func sweepScratch(dir string) {
	left, err := filepath.Glob(filepath.Join(globQuote(dir), scratchName+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		fi, err := os.Lstat(path)
		if err != nil || !fi.IsDir() {
			continue
		}
		if st, ok := fi.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
			continue
		}
		if lock, err := lockScratch(path); err == nil {
			_ = (&scratch{path, lock}).remove()
		}
	}
}

// globQuote keeps a directory's name from being a pattern.
func globQuote(dir string) string {
	quoted := make([]byte, 0, len(dir))
	for i := range len(dir) {
		switch dir[i] {
		case '*', '?', '[', '\\':
			quoted = append(quoted, '\\')
		}
		quoted = append(quoted, dir[i])
	}
	return string(quoted)
}

// remove removes the directory, and then gives up the lock.
func (s *scratch) remove() error { return errors.Join(removeAll(s.path), s.lock.Close()) }
