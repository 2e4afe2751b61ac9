package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
)

// Unproven is a generation that was activated and whose health check after
// the switch has not been answered yet. It is written down before the switch:
// whoever finds it beside a current that names the same generation makes the
// check. One that current does not name means nothing.
type Unproven struct {
	Generation string    `json:"generation"`
	From       string    `json:"from,omitempty"` // active before; "" if nothing was
	Since      time.Time `json:"since"`
	Failed     string    `json:"failed,omitempty"` // why it is being left again: written before the switch back
}

// KnownGood returns the generation that an automatic rollback goes to: the last
// one that was active and passed its check after the switch, that had none to
// pass, or that a person has chosen. While what is active is unproven that is
// the one before it; otherwise it is the active one. "" if none is known.
func (st *State) KnownGood() string { return st.Proven }

// Pending returns the newest generation that was staged and waits for its
// activation: newer than the active one (than nothing, if nothing is active),
// not refused, not left by Rollback or Use, and not one that a run has replaced
// since. It is nil if there is none. It takes no lock.
func (sl *Slot) Pending() (*Generation, error) {
	if sl.err != nil {
		return nil, sl.err
	}
	v, err := sl.look()
	if err != nil {
		return nil, fmt.Errorf("look for what waits in %s: %w", sl.Name(), err)
	}
	name := sl.pending(v)
	if name == "" {
		return nil, nil
	}
	g := sl.generation(name, v.state)
	return &g, nil
}

// pending is Pending's choice: by version and revision, or where versions have
// no order by when they were installed.
func (sl *Slot) pending(v *view) string {
	best := v.current
	have := v.installed()
	newer := func(a, b string) bool {
		va, ra := versionOf(a)
		vb, rb := versionOf(b)
		if c, ok := compareVersions(va, vb); ok && (c != 0 || ra != rb) {
			return c > 0 || c == 0 && ra > rb
		}
		return slices.Index(have, a) > slices.Index(have, b)
	}
	for _, name := range have {
		version, _ := versionOf(name)
		if name == v.current || best != "" && !newer(name, best) || v.state.replaced(name) || sl.wasRefused(v, name) || v.state.skips(version) {
			continue
		}
		best = name
	}
	if best == v.current {
		return ""
	}
	return best
}

// WhyUpdate is the reason in the history of what a run has activated by itself.
const WhyUpdate = "update"

// replaced reports whether a generation was active, and a run has put the active
// one in its place although this one was newer: other options or another policy
// were asked for, and it does not wait for anything.
func (st *State) replaced(name string) bool {
	n := len(st.History)
	return n > 0 && st.History[n-1].Why == WhyUpdate &&
		slices.ContainsFunc(st.History[:n-1], func(a Activation) bool { return a.Generation == name && !a.Gone })
}

// Try is Activate for a generation whose health is still to be checked after
// the switch: it is written down first that it is unproven. Prove or Revert
// ends that; so does whoever switches to another generation.
func (sl *Slot) Try(ctx context.Context, gen, why string) error {
	return sl.try(ctx, gen, why, keepNewer)
}

// Choose is Use for a generation by its full name, or with check as Try is to
// Activate: what a person asked for by name, to be checked all the same.
func (sl *Slot) Choose(ctx context.Context, gen, why string, check bool) error {
	if check {
		return sl.try(ctx, gen, why, leave)
	}
	_, _, err := sl.move(ctx, why, func(v *view) (string, error) { return gen, sl.has(v, gen) }, leave)
	if err != nil {
		return fmt.Errorf("activate %s in %s: %w", gen, sl.Name(), err)
	}
	return nil
}

func (sl *Slot) try(ctx context.Context, gen, why string, left func([]string, string, string) []string) error {
	_, _, err := sl.move(ctx, why, func(v *view) (string, error) {
		if err := sl.has(v, gen); err != nil {
			return gen, err
		}
		v.state.Unproven = &Unproven{Generation: gen, From: v.current, Since: sl.store.now()}
		if gen == v.current { // to be checked again; what was before it is still before it
			v.state.Unproven.From = v.state.Previous(gen)
		}
		// Not after the switch: a process that dies in between must leave word.
		return gen, errors.Join(sl.save(v), fault.Point("store.try.saved"))
	}, left)
	if err != nil {
		return fmt.Errorf("activate %s in %s: %w", gen, sl.Name(), err)
	}
	return nil
}

// Prove records that gen, if it is still active, has passed its check.
func (sl *Slot) Prove(ctx context.Context, gen string) error {
	err := sl.change(ctx, func(v *view) error {
		if v.current == gen {
			v.state.settle(gen)
		}
		return fault.Point("store.prove")
	})
	if err != nil {
		return fmt.Errorf("record that %s is in order: %w", gen, err)
	}
	return nil
}

// Revert goes back from gen, which has failed its check after the switch: to
// the known good one, else to the one that was active before. key is refused
// at the same time (see Refuse), before anything is moved. to is nil if there
// is nothing to go back to, and then gen stays, no longer unproven. Where
// somebody has switched to another generation meanwhile, nothing is moved, and
// to is that one.
func (sl *Slot) Revert(ctx context.Context, gen, key string, r Refusal) (to *Generation, err error) {
	err = sl.locked(ctx, func() error {
		v, err := sl.look()
		if err != nil {
			return err
		}
		sl.refuse(v, key, r)
		goal := v.current
		if v.current == gen {
			goal = sl.goodBefore(v, gen)
		}
		if goal != "" {
			g := sl.generation(goal, v.state)
			g.Active = true
			to = &g
		}
		if v.current != gen || goal == "" {
			if v.current == gen {
				v.state.Unproven = nil
			}
			return sl.save(v)
		}
		v.state.Unproven = &Unproven{Generation: gen, From: goal, Since: sl.store.now(), Failed: cut(r.Reason)}
		if err := sl.save(v); err != nil {
			sl.unsaved(err) // what fails must not stay active for that
		}
		record, err := sl.point(goal)
		if err != nil {
			to = nil
			return fmt.Errorf("switch: %w", err)
		}
		v.state.History = append(v.state.History, Activation{Generation: goal, At: sl.store.now(), Why: whyHealth})
		v.state.settle(goal)
		if err := errors.Join(record, sl.save(v)); err != nil {
			return &RecordError{Generation: goal, Err: err}
		}
		return nil
	})
	if err != nil {
		return to, fmt.Errorf("go back from %s in %s: %w", gen, sl.Name(), err)
	}
	return to, nil
}

// whyHealth is Activation.Why of a rollback that a failed check has caused.
const whyHealth = "health"

// goodBefore is where Revert goes from gen, "" if there is nothing.
func (sl *Slot) goodBefore(v *view, gen string) string {
	have := v.installed()
	before := []string{v.state.Proven}
	if u := v.state.Unproven; u != nil && u.Generation == gen {
		before = append(before, u.From)
	}
	for _, name := range append(before, v.state.Previous(gen)) {
		if name != "" && name != gen && slices.Contains(have, name) && !sl.wasRefused(v, name) {
			return name
		}
	}
	return ""
}

// settle records that name is active and nothing about it is open.
func (st *State) settle(name string) { st.Proven, st.Unproven = name, nil }

// reconcileProof drops what the disk contradicts, and ends a switch back that
// was interrupted after its rename; moved reports that it was one.
func (st *State) reconcileProof(current string, names []string) (moved bool) {
	if st.Proven != "" && !slices.Contains(names, st.Proven) {
		st.Proven = ""
	}
	u := st.Unproven
	if u == nil || u.Generation == current {
		return false
	}
	st.Unproven = nil
	if u.Failed == "" || u.From != current || current == "" {
		return false // the switch never was, or somebody has made another
	}
	st.Proven = current
	return true
}
