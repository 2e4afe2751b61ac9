package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// condemn finds what dead processes left in the slot, renames their staging
// directories to names that are deleted by whoever comes by, and returns all
// such names. The caller holds switch.lock. A live staging is told by the lock
// that its process holds, wherever and since whichever boot it runs.
func (sl *Slot) condemn() (dying []string, err error) {
	entries, err := os.ReadDir(sl.path())
	if err != nil {
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
		case strings.HasPrefix(name, currentPrefix), strings.HasPrefix(name, "."+stateName):
			// Halves of a rename that did not happen; only the holder of
			// switch.lock makes them.
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return dying, err
			}
		}
	}
	return dying, nil
}

// condemnStaging renames dir unless its owner is alive, and removes its lock
// file. It returns the new name, "" if there is nothing to delete.
func (sl *Slot) condemnStaging(dir string) (string, error) {
	fl := openLock(dir + lockSuffix)
	ok, err := fl.TryLock()
	if errors.Is(err, fs.ErrNotExist) {
		ok, err = true, nil // no lock, no owner
	}
	if err != nil {
		return "", fmt.Errorf("look whether %s is in use: %w", dir, err)
	}
	if !ok {
		return "", nil
	}
	to := sl.path(dyingPrefix + random())
	err = moveAway(dir, to)
	if errors.Is(err, fs.ErrNotExist) {
		to, err = "", nil
	}
	if err == nil {
		if err = os.Remove(dir + lockSuffix); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	return to, errors.Join(err, fl.Unlock())
}

// bury deletes what condemn found. What cannot be deleted stays for the next
// one to try, and is no reason not to go on.
func (sl *Slot) bury(dying []string) {
	for _, path := range dying {
		if err := removeTree(path); err != nil {
			sl.store.event(EventDebris, sl.Name(), path, "could not be removed: %v", err)
			continue
		}
		sl.store.event(EventCleaned, sl.Name(), path, "removed what an interrupted run had left")
	}
}
