package store

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"
)

// Hold says that the user wants the slot to stay as it is.
type Hold struct {
	Generation string    `json:"generation,omitempty"` // active when the hold began; it is not pruned
	Since      time.Time `json:"since"`
	Until      time.Time `json:"until,omitzero"` // zero: until Unhold
	Reason     string    `json:"reason,omitempty"`
}

func (h *Hold) over(now time.Time) bool { return !h.Until.IsZero() && !now.Before(h.Until) }

// Refusal is why something is not tried again. What a key does not tell people
// is beside it, where it is known.
type Refusal struct {
	Reason     string    `json:"reason"`
	At         time.Time `json:"at"`
	Kind       string    `json:"kind,omitempty"`       // what found it: audit, omit, smoke, health, damage, …
	Version    string    `json:"version,omitempty"`    // of the release
	Generation string    `json:"generation,omitempty"` // the one that was refused, if it is on disk
}

// Hold records that the slot is held, until a time or, if that is zero, until
// Unhold. It moves nothing and prevents nothing but the removal of the active
// generation: what a hold means for a run is the run's to decide, by Held.
func (sl *Slot) Hold(ctx context.Context, until time.Time, reason string) error {
	err := sl.change(ctx, func(v *view) error {
		if !until.IsZero() {
			until = until.UTC()
		}
		hold := &Hold{Generation: v.current, Since: sl.store.now(), Until: until, Reason: reason}
		if was := v.state.Hold; was != nil && !was.over(hold.Since) { // it goes on, with other words
			hold.Since, hold.Generation = was.Since, was.Generation
		}
		v.state.Hold = hold
		return nil
	})
	if err != nil {
		return fmt.Errorf("hold %s: %w", sl.Name(), err)
	}
	return nil
}

// Unhold ends a hold, and forgets which versions the user left: the next run
// moves on.
func (sl *Slot) Unhold(ctx context.Context) error {
	err := sl.change(ctx, func(v *view) error {
		v.state.Hold, v.state.Left = nil, nil
		return nil
	})
	if err != nil {
		return fmt.Errorf("unhold %s: %w", sl.Name(), err)
	}
	return nil
}

// Held returns the hold on the slot, nil if there is none or its time is over.
func (sl *Slot) Held() (*Hold, error) {
	st, err := sl.State()
	if err != nil || st.Hold == nil || st.Hold.over(sl.store.now()) {
		return nil, err
	}
	return st.Hold, nil
}

// Refuse records that what key names, a recipe or a generation, failed, so
// that it is not tried again. The newest 200 are kept.
func (sl *Slot) Refuse(ctx context.Context, key, reason string) error {
	return sl.RefuseAs(ctx, key, Refusal{Reason: reason})
}

// RefuseAs is Refuse, with all that is known of it. The time is set.
func (sl *Slot) RefuseAs(ctx context.Context, key string, r Refusal) error {
	if sl.err == nil {
		// A first install may fail before anything else is written.
		if err := sl.store.makeDir(sl.path()); err != nil {
			return fmt.Errorf("refuse %s in %s: %w", key, sl.Name(), err)
		}
	}
	err := sl.change(ctx, func(v *view) error {
		sl.refuse(v, key, r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("refuse %s in %s: %w", key, sl.Name(), err)
	}
	return nil
}

func (sl *Slot) refuse(v *view, key string, r Refusal) {
	if v.state.Refused == nil {
		v.state.Refused = map[string]Refusal{}
	}
	r.Reason, r.At = cut(r.Reason), sl.store.now()
	v.state.Refused[cut(key)] = r
}

// cut bounds a text of the state.
func cut(s string) string {
	const maxText = 4 << 10
	return strings.ToValidUTF8(s[:min(len(s), maxText)], "")
}

// Refused returns why key was refused, nil if it was not.
func (sl *Slot) Refused(key string) (*Refusal, error) {
	st, err := sl.State()
	if err != nil {
		return nil, err
	}
	if r, ok := st.Refused[cut(key)]; ok {
		return &r, nil
	}
	return nil, nil
}

// Forgive forgets that keys were refused.
func (sl *Slot) Forgive(ctx context.Context, keys ...string) error {
	err := sl.change(ctx, func(v *view) error {
		for _, key := range keys {
			delete(v.state.Refused, cut(key))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget that nights of %s were refused: %w", sl.Name(), err)
	}
	return nil
}

// ForgiveVersion forgets what of a version was refused, in whatever form.
func (sl *Slot) ForgiveVersion(ctx context.Context, version string) error {
	err := sl.change(ctx, func(v *view) error {
		maps.DeleteFunc(v.state.Refused, func(_ string, r Refusal) bool { return r.Version == version })
		return nil
	})
	if err != nil {
		return fmt.Errorf("forget that %s of %s was refused: %w", version, sl.Name(), err)
	}
	return nil
}

// pardon forgets what was held against a generation that is activated: who
// does that by name has looked, and who tries it again finds out again.
func (st *State) pardon(name string) {
	maps.DeleteFunc(st.Refused, func(key string, r Refusal) bool { return key == name || r.Generation == name })
}

// wasRefused reports whether the generation, or its recipe, was refused.
func (sl *Slot) wasRefused(v *view, name string) bool {
	if len(v.state.Refused) == 0 {
		return false
	}
	if _, ok := v.state.Refused[name]; ok {
		return true
	}
	for _, r := range v.state.Refused {
		if r.Generation == name {
			return true
		}
	}
	recipe, err := recipeOf(sl.path(generationsName, name))
	if err != nil || recipe == "" {
		return false
	}
	_, ok := v.state.Refused[recipe]
	return ok
}
