package main

import (
	"context"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// pruneTarballs removes the kept tarballs that the installs of these slots do
// not want any more. What slots want that the config does not have stays: it may
// be all that is left of a night.
func pruneTarballs(ctx context.Context, st *store.Store, cfg *config.Config, slots []*store.Slot, dry bool) (update.Spools, error) {
	gone := update.Spools{Names: []string{}}
	keep := map[string]int{}
	for _, sl := range slots {
		if in := configured(cfg, sl); in != nil {
			keep[sl.Name()] = cfg.KeepTarballsOf(*in)
		}
	}
	do := func() (store.PrunedTarballs, error) { return st.PruneTarballs(ctx, keep) }
	if dry {
		do = func() (store.PrunedTarballs, error) { return st.PlanPruneTarballs(keep) }
	}
	p, err := do()
	for _, t := range p.Removed {
		gone.Names = append(gone.Names, t.Name)
	}
	gone.Bytes = p.Bytes
	return gone, err
}
