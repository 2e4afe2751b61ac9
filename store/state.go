package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
)

// stateSchema is the version of state.json that this package writes: that of
// stateFormat. Fields that are added do not raise it.
const stateSchema = 1

// Bounds of state.json, so that a slot that is never looked after stays small.
const (
	maxHistory  = 200
	maxLeft     = 100
	maxRefused  = 200
	maxStateLen = 8 << 20 // bytes
)

// State is the content of a slot's state.json: what happened, which the disk
// does not show. What is active is not in it: that is current's to say.
type State struct {
	Schema    int                `json:"schema"`
	Installed []Install          `json:"installed,omitempty"` // what is on disk, oldest first
	History   []Activation       `json:"history,omitempty"`   // oldest first
	Left      []string           `json:"left,omitempty"`      // versions that the user went back from
	Hold      *Hold              `json:"hold,omitempty"`
	Refused   map[string]Refusal `json:"refused,omitempty"` // by recipe or name

	Proven   string    `json:"proven,omitempty"`   // see KnownGood
	Unproven *Unproven `json:"unproven,omitempty"` // nil: nothing is open
}

// Install is when a generation was committed.
type Install struct {
	Generation string    `json:"generation"`
	At         time.Time `json:"at"`
}

// Activation is one move of current.
type Activation struct {
	Generation string    `json:"generation"`
	At         time.Time `json:"at"`
	Why        string    `json:"why,omitempty"`  // update, rollback, use, …
	Gone       bool      `json:"gone,omitempty"` // removed since; a later one may have its name
}

// parseState decodes a state.json. An error that matches ErrNewer means that
// it must be left alone; any other, that it is damaged.
func parseState(b []byte) (*State, error) {
	b, err := stateFormat.Read(b)
	if err != nil {
		return nil, err
	}
	var st State
	if err := json.Unmarshal(b, &st); err != nil {
		return nil, err
	}
	st.History = slices.DeleteFunc(st.History, func(a Activation) bool { return checkName("", a.Generation) != nil })
	st.Installed = slices.DeleteFunc(st.Installed, func(i Install) bool { return checkName("", i.Generation) != nil })
	st.trim()
	return &st, nil
}

// trim keeps the newest of everything that grows.
func (st *State) trim() {
	st.History = last(st.History, maxHistory)
	st.Left = last(st.Left, maxLeft)
	if len(st.Refused) <= maxRefused {
		return
	}
	keys := slices.SortedFunc(maps.Keys(st.Refused), func(a, b string) int {
		return cmp.Or(st.Refused[a].At.Compare(st.Refused[b].At), cmp.Compare(a, b))
	})
	for _, key := range keys[:len(keys)-maxRefused] {
		delete(st.Refused, key)
	}
}

func last[T any](s []T, n int) []T { return s[max(0, len(s)-n):] }

// errDamaged is matched by errors about a state.json that cannot be read.
var errDamaged = errors.New("damaged")

// readState reads state.json; the error matches fs.ErrNotExist, ErrNewer or
// errDamaged, or is that of the disk.
func (sl *Slot) readState() (*State, error) {
	path := sl.path(stateName)
	b, err := readFile(path, maxStateLen)
	if err != nil {
		return nil, err
	}
	st, err := parseState(b)
	if errors.Is(err, ErrNewer) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", path, errDamaged, err)
	}
	return st, nil
}

// view is a slot as it is on disk: the state brought up to date with what is
// really there.
type view struct {
	state   *State
	current string // name of the active generation, "" if none or broken
	broken  error  // why current cannot be followed, if so
	damaged bool   // state.json is there but cannot be read
	read    []byte // the state as it was read, encoded; nil if it was not
}

// look reads the slot. A lost or damaged state is rebuilt from current and
// the generations; nothing is written.
func (sl *Slot) look() (*view, error) {
	v := &view{}
	st, err := sl.readState()
	switch {
	case err == nil:
		if v.read, err = st.encode(); err != nil {
			return nil, err
		}
	case errors.Is(err, fs.ErrNotExist):
		st = &State{Schema: stateSchema}
	case errors.Is(err, errDamaged):
		st, v.damaged = &State{Schema: stateSchema}, true
		sl.store.event(EventState, sl.Name(), sl.path(stateName), "%v: rebuilt from what is installed", err)
	default:
		return nil, err
	}
	names, err := sl.generationNames()
	if err != nil {
		return nil, err
	}
	v.state = st
	v.current, v.broken = sl.currentName()
	sl.reconcile(v, names)
	return v, nil
}

// reconcile brings the state up to date with the disk: a process may have
// been killed after any rename and before the record of it.
func (sl *Slot) reconcile(v *view, names []string) {
	st := v.state
	seen := make(map[string]bool, len(names))
	st.Installed = slices.DeleteFunc(st.Installed, func(i Install) bool {
		drop := seen[i.Generation] || !slices.Contains(names, i.Generation)
		seen[i.Generation] = true
		return drop
	})
	slices.SortFunc(names, compareNames)
	for i, a := range st.History {
		st.History[i].Gone = a.Gone || !slices.Contains(names, a.Generation)
	}
	for _, name := range names {
		if !seen[name] {
			g := sl.generation(name, &State{}) // its time is that of its commit
			at := len(st.Installed)
			for v.read != nil && at > 0 && st.Installed[at-1].At.After(g.Installed) {
				at--
			}
			st.Installed = slices.Insert(st.Installed, at, Install{name, g.Installed})
		}
	}
	reverted := st.reconcileProof(v.current, names)
	if v.current == "" {
		return
	}
	before := ""
	if n := len(st.History); n > 0 {
		before = st.History[n-1].Generation
		if before == v.current && !st.History[n-1].Gone {
			return
		}
	}
	at := sl.store.now()
	if fi, err := os.Lstat(sl.path(currentName)); err == nil {
		at = fi.ModTime().UTC()
		if v.read == nil {
			st.Left = sl.leftBehind(v.current, names, at)
		}
	}
	if reverted {
		st.History = append(st.History, Activation{Generation: v.current, At: at, Why: whyHealth})
		return
	}
	st.History = append(st.History, Activation{Generation: v.current, At: at, Why: "found"})
	if before != "" {
		// Only a user goes back; an update goes on.
		from, _ := versionOf(before)
		to, _ := versionOf(v.current)
		if c, ok := compareVersions(from, to); ok && c > 0 {
			st.Left = leave(st.Left, from, to)
		}
	}
}

func (st *State) encode() ([]byte, error) {
	b, err := json.MarshalIndent(st, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", stateName, err)
	}
	return append(b, '\n'), nil
}

// save writes v's state if it differs from what was read. A damaged file is
// kept beside it. The caller holds switch.lock.
func (sl *Slot) save(v *view) error {
	v.state.Schema = stateSchema
	v.state.trim()
	b, err := v.state.encode()
	if err != nil || bytes.Equal(b, v.read) {
		return err
	}
	path := sl.path(stateName)
	if v.damaged {
		if err := os.Rename(path, path+".broken"); err != nil {
			return err
		}
		v.damaged = false
	}
	if err := sl.store.disk.writeFile(path, b); err != nil {
		return err
	}
	v.read = b
	return nil
}

// unsaved reports that the state could not be written where that is no reason
// to fail: it follows from what is on disk.
func (sl *Slot) unsaved(err error) {
	sl.store.event(EventState, sl.Name(), sl.path(stateName), "could not be written: %v", err)
}

// State returns what state.json says, brought up to date with the disk.
// Nothing is written, no lock is taken.
func (sl *Slot) State() (*State, error) {
	if sl.err != nil {
		return nil, sl.err
	}
	v, err := sl.look()
	if err != nil {
		return nil, fmt.Errorf("read state of %s: %w", sl.Name(), err)
	}
	return v.state, nil
}

// change runs do on the slot's state under switch.lock, and saves it.
func (sl *Slot) change(ctx context.Context, do func(v *view) error) error {
	return sl.locked(ctx, func() error {
		v, err := sl.look()
		if err != nil {
			return err
		}
		if err := do(v); err != nil {
			return err
		}
		return sl.save(v)
	})
}
