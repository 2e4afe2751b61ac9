package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/serve"
	"github.com/rocm-nightly/rocm-nightly/update"
)

func (a *app) daemonCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "daemon",
		Short: "Update on the config's schedule until told to stop",
		Long: `Update on the config's schedule until SIGTERM or SIGINT, one run at a time. A run
under way is told to stop and waited for; a download goes on where it was at
the next run. On laptops the systemd timer is the better choice.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.daemon(cmd.Context()) },
	}
}

func (a *app) daemon(ctx context.Context) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	jobs := a.jobs(cfg)
	if err := checkSchedules(cfg); err != nil {
		return usage(err)
	}
	if _, err := a.store(); err != nil {
		return err
	}
	return serve.Run(ctx, jobs, serve.Options{
		Log: a.log(a.stderr),
		Notify: func(state string) {
			// Outside systemd there is nobody to tell.
			_, _ = daemon.SdNotify(false, state)
		},
	})
}

// checkSchedules reads every schedule, also of installs that share none.
func checkSchedules(cfg *config.Config) error {
	specs := []string{cfg.Schedule}
	for _, in := range cfg.Installs {
		specs = append(specs, cfg.ScheduleOf(in))
	}
	for _, spec := range specs {
		if _, err := serve.ParseSchedule(spec, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// jobs makes one job of all installs that share a schedule.
func (a *app) jobs(cfg *config.Config) []serve.Job {
	var jobs []serve.Job
	bySpec := map[string]*config.Config{}
	for _, in := range cfg.Installs {
		spec := cfg.ScheduleOf(in)
		if part := bySpec[spec]; part != nil {
			part.Installs = append(part.Installs, in)
			continue
		}
		part := *cfg
		part.Installs = []config.Install{in}
		bySpec[spec] = &part
		jobs = append(jobs, serve.Job{Name: "update", Spec: spec, Run: func(ctx context.Context) error { return a.nightly(ctx, &part) }})
	}
	return jobs
}

// nightly is one scheduled run: what it did goes to the log.
func (a *app) nightly(ctx context.Context, cfg *config.Config) error {
	log := a.log(a.stderr)
	rep, err := a.updateOnce(ctx, cfg, updateOptions{}, &progress{}, log)
	if err != nil {
		return err
	}
	for _, out := range rep.Installs {
		if errors.Is(out.Err, context.Canceled) {
			log.Info("interrupted; the next run continues", "install", out.Install)
			continue
		}
		if out.Err != nil {
			log.Error("update failed", "install", out.Install, "error", out.Err, "exit", out.Exit)
			continue
		}
		log.Info(out.Message, "install", out.Install, "exit", out.Exit)
	}
	for _, b := range rep.Bumps {
		if b.Err != nil {
			log.Error("bump failed", "repository", b.Name, "error", b.Err)
			continue
		}
		log.Info("bump: "+b.Message, "repository", b.Name, "pushed", b.Pushed)
	}
	if ctx.Err() != nil {
		return nil
	}
	if rep.Exit != update.ExitOK && rep.Exit != update.ExitStale {
		return fmt.Errorf("the run ended with exit code %d", rep.Exit)
	}
	return nil
}
