package repack

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A staging is a directory beside the one to make:
//
//	.rocm-nightly-repack-RANDOM/
//	    lock     held by its owner for as long as that lives; the marker is in it
//	    prefix/  what is renamed in the end
//
// Its name tells nothing of the prefix's, which may be as long as names can be.
const (
	stagingName = ".rocm-nightly-repack-"
	lockName    = "lock"
	newLockName = "lock.new"
	prefixName  = "prefix"
)

// marker is what lock holds: that the directory is ours, of which form it is,
// and for which name in the same directory.
func marker(base string) string { return "rocm-nightly repack staging 1\n" + base + "\n" }

// staging is one that this process owns.
type staging struct {
	dir    string // the prefix to be
	path   string
	lock   *os.File
	made   []string // parents that were not there before, outermost first
	parent string
}

// stageBeside makes a staging on the file system of dir, after removing those
// that dead runs for the same dir left.
func stageBeside(dir string) (*staging, error) {
	if err := Vacant(dir); err != nil {
		return nil, err
	}
	s := &staging{parent: filepath.Dir(dir)}
	sweep(s.parent, filepath.Base(dir))
	for try := 0; ; try++ {
		err := s.create(filepath.Base(dir))
		if err == nil {
			return s, nil
		}
		err = errors.Join(err, s.abort())
		// Another run that failed may have taken back a parent it had made.
		if !errors.Is(err, fs.ErrNotExist) || try == 99 {
			return nil, err
		}
	}
}

// create makes the parents and the staging. The lock gets its name when it is
// held and filled, not before: a sweep never sees it free while we live, and
// leaves alone what has no lock.
func (s *staging) create(base string) (err error) {
	missing := missingDirs(s.parent)
	if err := os.MkdirAll(s.parent, 0o755); err != nil {
		s.made = missing
		return err
	}
	s.made = missing
	path := filepath.Join(s.parent, stagingName+rand.Text())
	if err := os.Mkdir(path, 0o700); err != nil {
		return err
	}
	s.path, s.dir = path, filepath.Join(path, prefixName)
	early := filepath.Join(path, newLockName)
	if s.lock, err = os.OpenFile(early, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := flock(s.lock); err != nil {
		return err
	}
	if _, err := s.lock.WriteString(marker(base)); err != nil {
		return err
	}
	if err := os.Mkdir(s.dir, 0o755); err != nil {
		return err
	}
	return os.Rename(early, filepath.Join(path, lockName))
}

// missingDirs lists the ancestors of path, and path, that do not exist, the
// outermost first.
func missingDirs(path string) []string {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
		return nil
	}
	return append(missingDirs(filepath.Dir(path)), path)
}

// flock takes the lock of an open file, or fails at once.
func flock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// abort removes everything that create made.
func (s *staging) abort() error {
	err := s.remove()
	for i := len(s.made) - 1; i >= 0; i-- {
		if err := os.Remove(s.made[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			break // somebody else uses it by now
		}
	}
	s.made = nil
	return err
}

// remove removes the staging, the marker last: what is left half removed is
// still known as ours.
func (s *staging) remove() error {
	if s.path == "" {
		return nil
	}
	err := os.RemoveAll(s.dir)
	if s.lock != nil { // an open file cannot go from a directory on NFS
		err = errors.Join(err, s.lock.Close())
	}
	if err == nil {
		err = os.RemoveAll(s.path)
	}
	s.path, s.lock = "", nil
	return err
}

// commit makes the staged bytes durable and then visible as dir.
func (s *staging) commit(dir string) error {
	if err := unix.Syncfs(int(s.lock.Fd())); err != nil {
		return fmt.Errorf("flush to disk: %w", err)
	}
	// rename(2) takes the place of an empty directory; os.Rename would not.
	err := unix.Rename(s.dir, dir)
	switch {
	case errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTDIR):
		return occupied("somebody else made it meanwhile")
	case errors.Is(err, unix.EBUSY):
		return mountPoint(dir)
	case err != nil:
		return &os.LinkError{Op: "rename", Old: s.dir, New: dir, Err: err}
	}
	s.made = nil
	parent, err := os.Open(s.parent)
	if err != nil {
		return err
	}
	err = errors.Join(parent.Sync(), parent.Close())
	// The prefix is there, whatever becomes of the empty staging.
	_ = s.remove()
	return err
}
