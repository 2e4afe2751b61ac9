package main

import (
	"context"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// tell sends the events of a run to those who want them.
func (a *app) tell(ctx context.Context, cfg *config.Config, rep *update.Report, final bool) error {
	return nil
}

// tellLooked sends the events of a look at the indexes.
func (a *app) tellLooked(ctx context.Context, cfg *config.Config, l *update.Looked) error {
	return nil
}
