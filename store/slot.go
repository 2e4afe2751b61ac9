package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The names in a slot.
const (
	currentName     = "current"
	generationsName = "generations"
	runsName        = "runs"
	stateName       = "state.json"
	switchLock      = "switch.lock"
	stagingPrefix   = ".staging-"
	dyingPrefix     = ".dying-"
	currentPrefix   = ".current-" // the symlink about to become current
	lockSuffix      = ".lock"     // beside a staging directory, never in it
)

// SlotError says that a name does not tell which slot is meant.
type SlotError struct {
	Name string   // as given, perhaps empty
	Have []string // names of the slots that there are
}

func (e *SlotError) Error() string {
	have := strings.Join(e.Have, ", ")
	switch {
	case len(e.Have) == 0:
		return fmt.Sprintf("find slot %q: nothing is installed (try: update)", e.Name)
	case e.Name == "":
		return "find slot: several are installed, name one of: " + have
	}
	return fmt.Sprintf("find slot %q: name one of: %s", e.Name, have)
}

// Slot is one channel and target on this machine: a handle that holds no
// files. It need not exist yet.
type Slot struct {
	store   *Store
	channel string
	target  string
	err     error // what is wrong with the names; every method returns it
}

// Slot returns the slot of channel and target. When one of them is not a name
// (see ErrName), every method of the slot that can fail says so.
func (s *Store) Slot(channel, target string) *Slot {
	err := checkChannel(channel)
	if err == nil {
		err = checkName("target", target)
	}
	return &Slot{store: s, channel: channel, target: target, err: err}
}

// Slots returns the slots that are on disk, in the order of their names.
func (s *Store) Slots() ([]*Slot, error) {
	entries, err := os.ReadDir(filepath.Join(s.root, slotsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list slots: %w", err)
	}
	var slots []*Slot
	for _, e := range entries {
		channel, target, ok := strings.Cut(e.Name(), "-")
		if sl := s.Slot(channel, target); ok && e.IsDir() && sl.err == nil {
			slots = append(slots, sl)
		}
	}
	return slots, nil
}

// FindSlot returns the slot that name means: a slot's full name
// (nightly-gfx1151), a target (gfx1151) that one channel has, or nothing where
// one slot has something installed. Otherwise the error is a *SlotError.
func (s *Store) FindSlot(name string) (*Slot, error) {
	slots, err := s.Slots()
	if err != nil {
		return nil, err
	}
	var found []*Slot
	have := make([]string, 0, len(slots))
	for _, sl := range slots {
		have = append(have, sl.Name())
		switch name {
		case sl.Name():
			return sl, nil
		case sl.target:
			found = append(found, sl)
		case "":
			if names, err := sl.generationNames(); err == nil && len(names) > 0 {
				found = append(found, sl)
			}
		}
	}
	if name == "" && len(found) == 0 {
		found = slots // nothing finished yet, but perhaps there is one to speak of
	}
	if len(found) != 1 {
		return nil, &SlotError{Name: name, Have: have}
	}
	return found[0], nil
}

// Store returns the store that the slot is of.
func (sl *Slot) Store() *Store { return sl.store }

// Name returns CHANNEL-TARGET.
func (sl *Slot) Name() string { return sl.channel + "-" + sl.target }

// Channel returns the channel.
func (sl *Slot) Channel() string { return sl.channel }

// Target returns the target.
func (sl *Slot) Target() string { return sl.target }

// Dir returns the absolute path of the slot, or "" if its names are none.
func (sl *Slot) Dir() string {
	if sl.err != nil {
		return ""
	}
	return filepath.Join(sl.store.root, slotsName, sl.Name())
}

// CurrentPath returns the path of the symlink that names the active
// generation. It outlives every generation: it is the final prefix to build
// with.
func (sl *Slot) CurrentPath() string {
	if sl.err != nil {
		return ""
	}
	return sl.path(currentName)
}

// path returns a path in the slot, whose names were checked.
func (sl *Slot) path(elem ...string) string {
	return filepath.Join(append([]string{sl.store.root, slotsName, sl.Name()}, elem...)...)
}

// locked runs do while it holds switch.lock: for milliseconds, so that a
// rollback never waits for a download. The slot must exist.
func (sl *Slot) locked(ctx context.Context, do func() error) error {
	if sl.err != nil {
		return sl.err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if ok, err := sl.exists(); err != nil {
		return err
	} else if !ok {
		return &GenerationError{Slot: sl.Name()}
	}
	dir := filepath.Join(slotsName, sl.Name())
	err := sl.store.giveBack(slotsName, dir, filepath.Join(dir, generationsName), filepath.Join(dir, runsName), filepath.Join(dir, recordsName), filepath.Join(dir, switchLock))
	if err != nil {
		return err
	}
	return sl.store.asOwner(func() error {
		path := sl.path(switchLock)
		fl, err := sl.store.waitLock(ctx, path, "switch")
		if errors.Is(err, fs.ErrNotExist) {
			return &GenerationError{Slot: sl.Name()} // uninstalled meanwhile
		}
		if err != nil {
			return sl.store.ownerHint(err)
		}
		err = do()
		_ = eraseHolder(path) // a courtesy; whether the lock is held is flock's to say
		return errors.Join(err, unlock(fl))
	})
}

// exists reports whether the slot's directory is there.
func (sl *Slot) exists() (bool, error) {
	if sl.err != nil {
		return false, sl.err
	}
	fi, err := os.Stat(sl.path())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && !fi.IsDir() {
		err = fmt.Errorf("%s is not a directory", sl.path())
	}
	return err == nil, err
}
