package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// tryLock takes a lock if it is free, however often a signal cuts that short:
// over the network it is a question that has to be waited for.
func tryLock(fl *flock.Flock) (ok bool, err error) {
	err = uninterrupted(func() error {
		ok, err = fl.TryLock()
		return err
	})
	return ok, err
}

// tryLockContext takes a lock as soon as it is free.
func tryLockContext(ctx context.Context, fl *flock.Flock) (ok bool, err error) {
	err = uninterrupted(func() error {
		ok, err = fl.TryLockContext(ctx, 2*time.Millisecond)
		return err
	})
	return ok, err
}

// unlock gives a lock up.
func unlock(fl *flock.Flock) error { return uninterrupted(fl.Unlock) }

// inPlace reports whether a lock that was taken is on the file that has its path
// now: a lock on one that was removed keeps nobody out.
func inPlace(fl *flock.Flock) bool {
	have, err := fl.Stat()
	if err != nil {
		return false
	}
	now, err := os.Lstat(fl.Path())
	return err == nil && os.SameFile(have, now)
}

// reopenLock gives up a lock on a file that was removed, and opens the one that
// is in its place now, which is created.
func (s *Store) reopenLock(fl *flock.Flock) (*flock.Flock, error) {
	path := fl.Path()
	err := errors.Join(fl.Close(), s.disk.mkdirAll(filepath.Dir(path)), ensureFile(path))
	return openLock(path), err
}
