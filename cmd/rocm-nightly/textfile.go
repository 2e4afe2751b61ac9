package main

import (
	"context"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/serve/metrics"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// textfileWait is how long the generations may be measured for the textfile: a run
// of a timer ends only after it.
const textfileWait = time.Minute

// writeTextfile writes the numbers of what is on disk for node_exporter, if the
// config asks for that. A run that was told to stop is written down too.
func (a *app) writeTextfile(ctx context.Context, cfg *config.Config) error {
	if cfg.Metrics.Textfile == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), textfileWait)
	defer cancel()
	s, err := a.snapshot(ctx, cfg, true)
	if err != nil {
		return err
	}
	now := time.Now()
	told := *s // one that was published is not changed
	told.Alarms = state.Alarms(s, now)
	if told.Time.IsZero() {
		told.Time = now.UTC()
	}
	return metrics.WriteTextfile(cfg.Metrics.Textfile, &told)
}
