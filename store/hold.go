package store

import (
	"context"
	"fmt"
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

// Refusal is why something is not tried again.
type Refusal struct {
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Hold records that the slot is held, until a time or, if that is zero, until
// Unhold. It moves nothing and prevents nothing but the removal of the active
// generation: what a hold means for a run is the run's to decide, by Held.
func (sl *Slot) Hold(ctx context.Context, until time.Time, reason string) error {
	err := sl.change(ctx, func(v *view) error {
		if !until.IsZero() {
			until = until.UTC()
		}
		v.state.Hold = &Hold{Generation: v.current, Since: sl.store.now(), Until: until, Reason: reason}
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
	if sl.err == nil {
		// A first install may fail before anything else is written.
		if err := sl.store.makeDir(sl.path()); err != nil {
			return fmt.Errorf("refuse %s in %s: %w", key, sl.Name(), err)
		}
	}
	const maxText = 4 << 10
	err := sl.change(ctx, func(v *view) error {
		if v.state.Refused == nil {
			v.state.Refused = map[string]Refusal{}
		}
		v.state.Refused[key[:min(len(key), maxText)]] = Refusal{Reason: reason[:min(len(reason), maxText)], At: sl.store.now()}
		return nil
	})
	if err != nil {
		return fmt.Errorf("refuse %s in %s: %w", key, sl.Name(), err)
	}
	return nil
}

// Refused returns why key was refused, nil if it was not.
func (sl *Slot) Refused(key string) (*Refusal, error) {
	st, err := sl.State()
	if err != nil {
		return nil, err
	}
	if r, ok := st.Refused[key]; ok {
		return &r, nil
	}
	return nil, nil
}

// Forgive forgets that key was refused.
func (sl *Slot) Forgive(ctx context.Context, key string) error {
	err := sl.change(ctx, func(v *view) error {
		delete(v.state.Refused, key)
		return nil
	})
	if err != nil {
		return fmt.Errorf("forgive %s in %s: %w", key, sl.Name(), err)
	}
	return nil
}

// wasRefused reports whether the generation, or its recipe, was refused.
func (sl *Slot) wasRefused(v *view, name string) bool {
	if len(v.state.Refused) == 0 {
		return false
	}
	if _, ok := v.state.Refused[name]; ok {
		return true
	}
	recipe, err := recipeOf(sl.path(generationsName, name))
	if err != nil || recipe == "" {
		return false
	}
	_, ok := v.state.Refused[recipe]
	return ok
}
