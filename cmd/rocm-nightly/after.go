package main

import (
	"context"
	"errors"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// couldNotRun tells that a run could not begin, unless somebody else is at it: that is
// a run too. What was asked for wrongly is said to who asked, and to nobody else.
func (a *app) couldNotRun(ctx context.Context, cfg *config.Config, o updateOptions, err error) {
	if o.dryRun || update.ExitOf(err) == update.ExitUsage || errors.As(err, new(*usageError)) || errors.As(err, new(*store.LockedError)) {
		return
	}
	if err := a.tellError(ctx, cfg, err, true); err != nil {
		a.log(a.stderr).Warn("not everybody could be told that this run could not begin", "error", err)
	}
}

// after does what follows every run, of the daemon and of a timer alike: who wants
// to be told is told, and the numbers are written down. final says that nothing of
// the run's window is left. What fails here is logged; it does not make the run one
// that failed.
func (a *app) after(ctx context.Context, cfg *config.Config, rep *update.Report, final bool) {
	log := a.log(a.stderr)
	if err := a.tell(ctx, cfg, rep, final); err != nil {
		log.Warn("not everybody could be told what this run did", "error", err)
	}
	if err := a.writeTextfile(ctx, cfg); err != nil {
		log.Warn("the numbers of this run could not be written", "file", cfg.Metrics.Textfile, "error", err)
	}
}
