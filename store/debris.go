package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// condemn finds what dead processes left in the slot, renames their staging
// directories to names that are deleted by whoever comes by, and returns all
// such names. The caller holds switch.lock. A live staging is told by the lock
// that its process holds, wherever and since whichever boot it runs; where locks
// end at one host, by what the lock says of its holder besides. What nobody has
// decided to delete is put back.
func (sl *Slot) condemn() (dying []string, err error) {
	if err := sl.healParted(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(sl.path())
	if err = errors.Join(err, fault.Point("store.debris.found")); err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, path := e.Name(), sl.path(e.Name())
		switch {
		case strings.HasPrefix(name, dyingPrefix):
			dying = append(dying, path)
		case strings.HasPrefix(name, stagingPrefix):
			to, err := sl.condemnStaging(strings.TrimSuffix(path, lockSuffix))
			if errors.Is(err, fs.ErrPermission) {
				// Another user's: it is in nobody's way.
				sl.store.event(EventDebris, sl.Name(), path, "could not be looked at: %v", err)
				continue
			}
			if err != nil {
				return dying, err
			}
			if to != "" {
				dying = append(dying, to)
			}
		case strings.HasPrefix(name, currentPrefix), strings.HasPrefix(name, "."+stateName), strings.HasPrefix(name, "."+checksName):
			// Halves of a rename that did not happen; only the holder of
			// switch.lock makes them.
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return dying, err
			}
		}
	}
	return dying, errors.Join(sl.sweepRuns(), sl.sweepRecords(), sl.sweepSeals())
}

// sweepHalves removes files of dir whose names begin with a prefix: those of a
// rename that did not happen. The caller holds the lock under which they are made.
func sweepHalves(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// condemnStaging renames dir unless its owner is alive, and removes its lock
// file. It returns the new name, "" if there is nothing to delete.
func (sl *Slot) condemnStaging(dir string) (string, error) {
	fl := openLock(dir + lockSuffix)
	ok, err := tryLock(fl)
	if errors.Is(err, fs.ErrNotExist) {
		ok, err = true, nil // no lock, no owner
	}
	if err != nil {
		return "", fmt.Errorf("look whether %s is in use: %w", dir, err)
	}
	if !ok {
		return "", nil
	}
	if h := readHolder(dir + lockSuffix); !sl.store.dead(h) {
		sl.store.event(EventDebris, sl.Name(), dir, "left alone: %s, pid %d, has made it at %s, and locks on this file system do not reach there (remove it when nothing runs there)",
			h.Host, h.PID, h.Since.Format(time.RFC3339))
		return "", unlock(fl)
	}
	to := sl.path(dyingPrefix + random())
	err = moveAway(dir, to)
	if errors.Is(err, fs.ErrNotExist) {
		to, err = "", nil
	}
	if err == nil {
		err = fault.Point("store.debris.moved")
	}
	if err == nil {
		if err = os.Remove(dir + lockSuffix); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return to, errors.Join(err, unlock(fl))
}

// otherHostsDebris is the age from which a staging of another host is debris on
// a file system that one host alone is said to use: the host was renamed, or is
// another container by now.
const otherHostsDebris = 24 * time.Hour

// dead reports whether the holder of a lock that could be taken is gone. Where
// every process that can reach the file system sees a lock, it is, whatever its
// record says; elsewhere that is known of this host alone.
func (s *Store) dead(h Holder) bool {
	host, err := os.Hostname()
	if h.Host == "" || err == nil && h.Host == host {
		return true
	}
	if _, r, _, err := s.lockReach(); err == nil && r != reachBlind {
		return true
	}
	return s.Alone && s.now().Sub(h.Since) > otherHostsDebris
}

// bury deletes what condemn found. What cannot be deleted stays for the next
// one to try, and is no reason not to go on.
func (sl *Slot) bury(dying []string) {
	for _, path := range dying {
		err := fault.Do("store.debris.remove", func() error { return removeTree(path) })
		if err != nil && silly(path) {
			continue // what is left goes when its last reader does
		}
		if err != nil {
			sl.store.event(EventDebris, sl.Name(), path, "could not be removed: %v", err)
			continue
		}
		sl.store.event(EventCleaned, sl.Name(), path, "removed what an interrupted run had left")
	}
}
