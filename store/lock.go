package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// Holder says who holds a lock. It is a courtesy: whether the lock is held is
// decided by flock(2), which a dead process cannot hold.
type Holder struct {
	PID    int       `json:"pid"`
	What   string    `json:"what"` // the verb: update, prune, …
	Host   string    `json:"host"`
	Since  time.Time `json:"since"` // UTC
	BootID string    `json:"boot_id,omitempty"`
}

// LockedError says that another process is at work, and which.
type LockedError struct {
	Path   string // of the lock
	Holder Holder // zero if the holder has left no record
}

func (e *LockedError) Error() string {
	h := e.Holder
	if h.PID == 0 {
		return fmt.Sprintf("lock %s: another process holds it (find it with: fuser %s)", e.Path, e.Path)
	}
	return fmt.Sprintf("lock %s: held by %q, pid %d on %s, since %s (wait for it, or end it)",
		e.Path, h.What, h.PID, h.Host, h.Since.Format(time.RFC3339))
}

// Lock is ROOT's run.lock, held until Release or the end of the process.
type Lock struct {
	flock *flock.Flock
}

// LockRun takes run.lock for what, a verb: one update or prune at a time. It
// does not wait: when another holds it, the error is a *LockedError. Rollback,
// Use and Activate do not need it.
func (s *Store) LockRun(ctx context.Context, what string) (*Lock, error) {
	if err := s.disk.mkdirAll(s.root); err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	path := filepath.Join(s.root, runLock)
	if err := ensureFile(path); err != nil {
		return nil, fmt.Errorf("lock store: %w", lockHint(err))
	}
	fl := openLock(path)
	// A holder that was just taken over from, or is just starting, has not
	// written its record yet: look a few times before giving a dead one's.
	const looks = 10
	for i := range looks {
		ok, err := fl.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock store: %w", lockHint(err))
		}
		if ok {
			writeHolder(path, s.holder(what))
			return &Lock{fl}, nil
		}
		h := readHolder(path)
		if i == looks-1 || (h.PID != 0 && !h.gone()) {
			return nil, &LockedError{Path: path, Holder: h}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock store: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil, &LockedError{Path: path}
}

// Release gives the lock up. A second call does nothing.
func (l *Lock) Release() error {
	if l.flock.Locked() {
		if err := os.Truncate(l.flock.Path(), 0); err != nil {
			return errors.Join(fmt.Errorf("release lock: %w", err), l.flock.Unlock())
		}
	}
	if err := l.flock.Unlock(); err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

func (s *Store) holder(what string) Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return Holder{PID: os.Getpid(), What: what, Host: host, Since: s.now(), BootID: bootID()}
}

// gone reports that h cannot be the holder any more: its process is dead, or
// it was of this host before a reboot. Of other hosts nothing is known.
func (h Holder) gone() bool {
	host, err := os.Hostname()
	if err != nil || h.Host != host {
		return false
	}
	if h.BootID != bootID() {
		return true
	}
	return h.PID <= 0 || errors.Is(unix.Kill(h.PID, 0), unix.ESRCH)
}

func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// writeHolder writes h into the lock's own file, in place: a rename would
// leave the lock on an inode that nobody finds. The record is a courtesy that
// a full disk may refuse; the truncation before it never fails for want of
// space, so that no older record is believed.
func writeHolder(path string, h Holder) {
	b, err := json.Marshal(h)
	if err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		_ = f.Truncate(0)
	}
}

// readHolder returns the record in path, or the zero Holder.
func readHolder(path string) Holder {
	f, err := os.Open(path)
	if err != nil {
		return Holder{}
	}
	defer f.Close()
	var h Holder
	if err := json.NewDecoder(io.LimitReader(f, 64<<10)).Decode(&h); err != nil {
		return Holder{}
	}
	return h
}

// openLock prepares a lock on a file that exists. It is opened for writing
// because NFS emulates flock by byte-range locks, which want that.
func openLock(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_RDWR))
}

// waitLock takes the lock at path, which is created, as soon as it is free.
func waitLock(ctx context.Context, path string) (*flock.Flock, error) {
	if err := ensureFile(path); err != nil {
		return nil, lockHint(err)
	}
	fl := openLock(path)
	ok, err := fl.TryLockContext(ctx, 2*time.Millisecond)
	if err != nil {
		return nil, fmt.Errorf("wait for %s: %w", path, lockHint(err))
	}
	if !ok {
		return nil, fmt.Errorf("wait for %s: not locked", path)
	}
	return fl, nil
}

// lockHint adds to err what a user can do about it.
func lockHint(err error) error {
	switch {
	case errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w (this file system has no locks: put the root on a local disk with --root)", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w (run as the owner of the store, or choose another with --root)", err)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w (remount it writable)", err)
	}
	return err
}
