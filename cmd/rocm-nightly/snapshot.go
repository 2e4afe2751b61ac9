package main

import (
	"context"
	"os"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	snap "github.com/rocm-nightly/rocm-nightly/serve/snapshot"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// snapshot is what is known of the store, without the network and without what
// only a daemon knows. measure also walks the generations for what they share.
func (a *app) snapshot(ctx context.Context, cfg *config.Config, measure bool) (*state.State, error) {
	st, err := a.store()
	if err != nil {
		return nil, err
	}
	v := version()
	return a.taker.Take(ctx, snap.Options{
		Store: st, Installs: a.slotsOf(cfg), Measure: measure,
		Program: state.Program{Version: v.Version, Commit: v.Commit, Go: v.Go},
	})
}

// slotsOf are the slots that the config asks for. auto is what this machine has: on
// one without a GPU, nothing.
func (a *app) slotsOf(cfg *config.Config) []snap.Install {
	var out []snap.Install
	for _, in := range cfg.Installs {
		known := cfg.AMD.Channels[in.Channel]
		s := snap.Install{
			Channel: in.Channel, StaleAfter: cfg.Policy.StaleAfter.Or(known.StaleAfter),
			Retention: time.Duration(known.Retention) * 24 * time.Hour,
		}
		for _, target := range targetsOf(cfg, in.Target) {
			s.Target = target
			out = append(out, s)
		}
	}
	return out
}

// targetsOf are those that a target of the config means here.
func targetsOf(cfg *config.Config, target string) []string {
	if target == gfx.Auto {
		m, err := cfg.GFX.Detect(os.DirFS("/sys"))
		if err != nil {
			return nil // update and check say it
		}
		return m.Taken
	}
	if name, ok := cfg.GFX.Canonical(target); ok {
		return []string{name}
	}
	return nil
}

// look asks the indexes and installs nothing: the verb check, and the daemon's.
func (a *app) look(ctx context.Context, cfg *config.Config) (*update.Looked, error) {
	return a.lookFor(ctx, cfg, nil)
}

// lookFor is look, for these targets in place of the config's installs if there are
// any.
func (a *app) lookFor(ctx context.Context, cfg *config.Config, arch []string) (*update.Looked, error) {
	st, err := a.store()
	if err != nil {
		return nil, err
	}
	uo := a.updateOptions(cfg, "", nil, a.log(a.stderr))
	uo.Store = st
	if len(arch) > 0 {
		uo.Installs = archInstalls(cfg, arch)
	}
	return update.Look(ctx, uo)
}
