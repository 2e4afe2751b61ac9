package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// ErrNoOther is matched when there is nothing to roll back to.
var ErrNoOther = errors.New("there is no other generation")

// RecordError says that current was moved, but that the disk refused to make
// it durable or to record it in the history.
type RecordError struct {
	Generation string // what is active now
	Err        error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("%s is active, but that could not be recorded: %v", e.Generation, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// Activate makes the generation named gen the active one, by one rename; why
// goes into the history. Versions that the user left are forgotten as far as
// they are not newer than gen. It waits for switch.lock only.
func (sl *Slot) Activate(ctx context.Context, gen, why string) error {
	_, _, err := sl.move(ctx, why, func(v *view) (string, error) {
		return gen, sl.has(v, gen)
	}, keepNewer)
	if err != nil {
		return fmt.Errorf("activate %s in %s: %w", gen, sl.Name(), err)
	}
	return nil
}

// Rollback returns to the generation that was active before, if it is still
// on disk, else to the newest other; one that was refused is passed over. Two
// rollbacks in a row come back to where they began. from is nil if nothing
// was active. Where there is no other, the error matches ErrNoOther. Nothing
// is fetched; no download is waited for.
func (sl *Slot) Rollback(ctx context.Context) (from, to *Generation, err error) {
	from, to, err = sl.move(ctx, "rollback", sl.before, leave)
	if err != nil {
		err = fmt.Errorf("roll back %s: %w", sl.Name(), err)
	}
	return from, to, err
}

// Before returns the generation that Rollback would go to as things are. The error
// matches ErrNoOther where it would fail with it. It takes no lock.
func (sl *Slot) Before() (string, error) {
	if sl.err != nil {
		return "", sl.err
	}
	v, err := sl.look()
	if err != nil {
		return "", fmt.Errorf("look for what was active before in %s: %w", sl.Name(), err)
	}
	return sl.before(v)
}

// Use activates what version names: a generation, or a version, of which the
// newest revision is taken. Otherwise the error is a *GenerationError.
func (sl *Slot) Use(ctx context.Context, version string) (from, to *Generation, err error) {
	from, to, err = sl.move(ctx, "use", func(v *view) (string, error) {
		return sl.find(v, version)
	}, leave)
	if err != nil {
		err = fmt.Errorf("use %s in %s: %w", version, sl.Name(), err)
	}
	return from, to, err
}

// move points current to what pick chooses. After the rename it can only fail
// with a *RecordError, and from and to are set.
func (sl *Slot) move(ctx context.Context, why string, pick func(*view) (string, error), left func(left []string, from, to string) []string) (from, to *Generation, err error) {
	err = sl.locked(ctx, func() error {
		v, err := sl.look()
		if err != nil {
			return err
		}
		was := v.state.Unproven
		v.state.Unproven = nil // but for Try, nobody asks again what was chosen
		name, err := pick(v)
		if err != nil {
			return err
		}
		if v.current != "" {
			g := sl.generation(v.current, v.state)
			from = &g
		}
		g := sl.generation(name, v.state)
		g.Active = true
		if from != nil {
			from.Active = from.Name == name
		}
		moved := v.current != name
		var record error
		if moved {
			if record, err = sl.point(name); err != nil {
				from = nil
				v.state.Unproven = was
				return fmt.Errorf("switch: %w", errors.Join(err, sl.save(v)))
			}
			v.state.History = append(v.state.History, Activation{Generation: name, At: sl.store.now(), Why: why})
		}
		to = &g
		fromVersion := ""
		if from != nil && moved {
			fromVersion = from.Version
		}
		v.state.Left = left(v.state.Left, fromVersion, g.Version)
		v.state.pardon(name)
		if v.state.Unproven == nil {
			v.state.settle(name)
		}
		if record = errors.Join(record, fault.Do("store.switch.save", func() error { return sl.save(v) })); record != nil {
			return &RecordError{Generation: name, Err: record}
		}
		return nil
	})
	return from, to, err
}

// point is the switch itself. Readers see the old or the new generation,
// never neither: rename(2) replaces the symlink. record is the failure of
// making that durable; err, of doing it.
func (sl *Slot) point(name string) (record, err error) {
	err = sl.store.disk.replaceLink(sl.path(), currentName, currentPrefix, generationsName+"/"+name)
	if err == nil {
		return nil, nil
	}
	if now, _ := os.Readlink(sl.path(currentName)); now == generationsName+"/"+name {
		return err, nil
	}
	return nil, err
}

// has reports whether name is a generation on disk.
func (sl *Slot) has(v *view, name string) error {
	have := v.installed()
	if slices.Contains(have, name) {
		return nil
	}
	return &GenerationError{Slot: sl.Name(), Name: name, Have: have}
}

// find returns the generation that name means.
func (sl *Slot) find(v *view, name string) (string, error) {
	have := v.installed()
	if version, revision := versionOf(name); version != name {
		// A revision, named in full; -r1 is the first, which has no suffix.
		if full := revisionName(version, revision); slices.Contains(have, full) {
			return full, nil
		}
	}
	best, newest := "", 0
	for _, g := range have {
		if version, revision := versionOf(g); version == name && revision > newest {
			best, newest = g, revision
		}
	}
	if best == "" {
		return "", &GenerationError{Slot: sl.Name(), Name: name, Have: have}
	}
	return best, nil
}

// before returns what Rollback goes to.
func (sl *Slot) before(v *view) (string, error) {
	have := v.installed()
	usable := func(name string) bool {
		return name != v.current && slices.Contains(have, name) && !sl.wasRefused(v, name)
	}
	for _, a := range slices.Backward(v.state.History) {
		if !a.Gone && usable(a.Generation) {
			return a.Generation, nil
		}
	}
	for _, name := range slices.Backward(have) {
		if usable(name) {
			return name, nil
		}
	}
	if len(have) > 1 || v.current == "" && len(have) > 0 {
		return "", fmt.Errorf("%w that was not refused (use VERSION goes there all the same)", ErrNoOther)
	}
	return "", ErrNoOther
}

// Previous returns the generation that was active before current and is still on
// disk, "" if there is none.
func (st *State) Previous(current string) string {
	for _, a := range slices.Backward(st.History) {
		if a.Generation != current && !a.Gone {
			return a.Generation
		}
	}
	return ""
}

// installed returns the names on disk, oldest first.
func (v *view) installed() []string {
	names := make([]string, len(v.state.Installed))
	for i, in := range v.state.Installed {
		names[i] = in.Generation
	}
	return names
}
