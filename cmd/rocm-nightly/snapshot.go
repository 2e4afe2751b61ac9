package main

import (
	"context"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// snapshot is what is known of the store, without the network and without what
// only a daemon knows. measure also walks the generations for what they share.
func (a *app) snapshot(ctx context.Context, cfg *config.Config, measure bool) (*state.State, error) {
	return new(state.Hub).State(), nil
}

// look asks the indexes and installs nothing: the verb check, and the daemon's.
func (a *app) look(ctx context.Context, cfg *config.Config) (*update.Looked, error) {
	return nil, nil
}
