package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// Holder says who holds a lock. It is a courtesy: whether the lock is held is
// decided by flock(2), which a dead process cannot hold.
type Holder struct {
	Schema int       `json:"schema"` // holderSchema; 0 in those of older programs
	PID    int       `json:"pid"`
	What   string    `json:"what"` // the verb: update, prune, …
	Host   string    `json:"host"`
	Since  time.Time `json:"since"` // UTC
	BootID string    `json:"boot_id,omitempty"`
}

// holderSchema is the version of Holder that this package writes. One that is
// newer is read as far as it goes: nothing is decided by it but what an error
// says, and, where locks end at one host, what is left alone.
const holderSchema = 1

// maxHolderLen bounds the record in a lock, in bytes.
const maxHolderLen = 64 << 10

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
	store *Store
	flock *flock.Flock
}

// LockRun takes run.lock for what, a verb: one update or prune at a time. It
// does not wait: when another holds it, the error is a *LockedError. Rollback,
// Use and Activate do not need it. A store of a newer program is refused with an
// error that matches ErrNewer, and a file system on which a lock does not keep
// others out with a *LocksError or one that matches ErrNoLocks.
func (s *Store) LockRun(ctx context.Context, what string) (*Lock, error) {
	err := s.disk.mkdirAll(s.root)
	if err == nil {
		_, err = s.checkRoot()
	}
	if err == nil {
		err = s.checkLocks()
	}
	if err == nil {
		err = s.giveBackAll() // what a run that died has left
	}
	if err == nil {
		err = s.noLinks()
	}
	var lock *Lock
	if err == nil {
		err = s.asOwner(func() (err error) {
			if lock, err = s.lockRun(ctx, what); err != nil {
				return err
			}
			if err = errors.Join(testLock(lock.flock.Path()), s.mark()); err != nil {
				err = errors.Join(err, lock.release())
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", s.ownerHint(lockHint(err)))
	}
	return lock, nil
}

func (s *Store) lockRun(ctx context.Context, what string) (*Lock, error) {
	path := filepath.Join(s.root, runLock)
	if err := ensureFile(path); err != nil {
		return nil, err
	}
	fl := openLock(path)
	// A holder that was just taken over from, or is just starting, has not
	// written its record yet: look a few times before giving a dead one's.
	const looks = 10
	for i := range looks {
		ok, err := tryLock(fl)
		if err != nil {
			return nil, err
		}
		if ok && inPlace(fl) {
			writeHolder(path, s.holder(what))
			return &Lock{s, fl}, nil
		}
		if ok {
			// Its holder was an uninstall of everything, which took it along.
			if fl, err = s.reopenLock(fl); err != nil {
				return nil, err
			}
			continue
		}
		h := readHolder(path)
		if i == looks-1 || (h.PID != 0 && !h.gone()) {
			return nil, &LockedError{Path: path, Holder: h}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil, &LockedError{Path: path}
}

// Release gives the lock up, and what root has made in the store of somebody else
// to its owner. A second call does nothing.
func (l *Lock) Release() error {
	if !l.flock.Locked() {
		return nil
	}
	err := l.store.giveBackAll()
	err = errors.Join(err, l.store.asOwner(func() error { return errors.Join(l.store.openSpools(), l.release()) }))
	if err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

func (l *Lock) release() error {
	err := fault.Do("store.lock.release", func() error {
		if !inPlace(l.flock) {
			return nil // what has its name now may be another's
		}
		return eraseHolder(l.flock.Path())
	})
	return errors.Join(err, unlock(l.flock))
}

func (s *Store) holder(what string) Holder {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return Holder{Schema: holderSchema, PID: os.Getpid(), What: what, Host: host, Since: s.now(), BootID: bootID()}
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
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := fault.Write("store.lock.record", f, append(b, '\n')); err != nil {
		_ = f.Truncate(0)
	}
}

// eraseHolder empties the record of a lock that is held.
func eraseHolder(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(0), f.Close())
}

// readHolder returns the record in path, or the zero Holder.
func readHolder(path string) Holder {
	var h Holder
	b, err := readFile(path, maxHolderLen)
	if err != nil || json.Unmarshal(b, &h) != nil {
		return Holder{}
	}
	h.What, h.Host = plain.Cut(h.What, 200), plain.Cut(h.Host, 200)
	return h
}

// openLock prepares a lock on a file that exists. It is opened for writing
// because NFS emulates flock by byte-range locks, which want that.
func openLock(path string) *flock.Flock {
	return flock.New(path, flock.SetFlag(os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK))
}

// waitNotice is how long a lock is waited for before that is said.
const waitNotice = 2 * time.Second

// waitLock takes the lock at path, which is created, as soon as it is free, and
// leaves in it who holds it and for what. Who waits for long is told. Where its
// directory is taken away meanwhile the error matches fs.ErrNotExist.
func (s *Store) waitLock(ctx context.Context, path, what string) (*flock.Flock, error) {
	for {
		if err := ensureFile(path); err != nil {
			return nil, lockHint(err)
		}
		fl, err := s.awaitLock(ctx, path)
		if err != nil {
			return nil, err
		}
		if inPlace(fl) {
			writeHolder(path, s.holder(what))
			return fl, nil
		}
		if err := fl.Close(); err != nil {
			return nil, err
		}
	}
}

// awaitLock takes the lock on whatever has this path now.
func (s *Store) awaitLock(ctx context.Context, path string) (*flock.Flock, error) {
	fl := openLock(path)
	notice, cancel := context.WithTimeout(ctx, waitNotice)
	ok, err := tryLockContext(notice, fl)
	cancel()
	if !ok && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		s.event(EventWaiting, "", path, "waiting: %v", &LockedError{path, readHolder(path)})
		ok, err = tryLockContext(ctx, fl)
	}
	if ctx.Err() != nil && !ok {
		return nil, fmt.Errorf("wait for a lock: %w: %w", ctx.Err(), &LockedError{path, readHolder(path)})
	}
	if err != nil {
		return nil, fmt.Errorf("wait for %s: %w", path, lockHint(err))
	}
	if !ok {
		return nil, fmt.Errorf("wait for %s: not locked", path)
	}
	return fl, nil
}

// ownerHint adds to an error about permissions whose store it is.
func (s *Store) ownerHint(err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	var st unix.Stat_t
	if uninterrupted(func() error { return unix.Stat(s.root, &st) }) != nil {
		return err
	}
	uid := strconv.FormatUint(uint64(st.Uid), 10)
	name := "uid " + uid
	if u, uerr := user.LookupId(uid); uerr == nil {
		name = u.Username
	}
	if os.Geteuid() == 0 {
		return fmt.Errorf("%w (%s belongs to %s, and its server does not take root for root: run it as %s)", err, s.root, name, name)
	}
	if os.Geteuid() == int(st.Uid) {
		return err
	}
	return fmt.Errorf("%w (%s belongs to %s: run it as %s, with sudo -u %s; or keep a store of your own with --root)", err, s.root, name, name, name)
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
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("%w (a lock is a file, not a link: remove it)", err)
	}
	return err
}
