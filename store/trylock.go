package store

import (
	"context"
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
