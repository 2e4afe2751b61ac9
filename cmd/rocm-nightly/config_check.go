package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/serve"
)

func (a *app) configCheck() error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if err := config.Together(slices.Concat(wrongKeys(cfg), a.wrongFiles(cfg))); err != nil {
		return usage(err)
	}
	if a.json {
		a.printJSON(configReport{Schema: 1, Files: append([]string{}, a.read...), Environment: cfg.Overrides()})
		return nil
	}
	fmt.Fprintf(a.stdout, "ok: %s\n", a.readFrom())
	return nil
}

// wrongKeys is what is wrong with a config, beyond what its own package knows of.
func wrongKeys(cfg *config.Config) []error {
	return slices.Concat(wrongTimes(cfg), wrongBumps(cfg), wrongReceivers(cfg))
}

// wrongTimes reads every schedule, and says which line has one that never fires.
func wrongTimes(cfg *config.Config) []error {
	specs := map[string]string{"schedule": cfg.Schedule, "daemon.check": cfg.Daemon.Check}
	for i, in := range cfg.Installs {
		specs[fmt.Sprintf("installs[%d].schedule", i)] = in.Schedule
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(specs)) {
		if specs[key] == "" && key != "schedule" {
			continue
		}
		if _, err := serve.ParseSchedule(specs[key], time.Now()); err != nil {
			errs = append(errs, cfg.Locate(key, err))
		}
	}
	return errs
}

// wrongBumps says the same of addresses, templates and formats.
func wrongBumps(cfg *config.Config) []error {
	var errs []error
	for i, b := range cfg.Bump {
		for _, p := range bumpProblems(b) {
			errs = append(errs, cfg.Locate(fmt.Sprintf("bump[%d]%s", i, p.at()), fmt.Errorf("%w (of the bump %s)", p.err, b.Name)))
		}
	}
	return errs
}

// wrongFiles looks whether what the config names can be used. What only another user
// may look at, such as the service's, is left to that one, with a warning.
func (a *app) wrongFiles(cfg *config.Config) []error {
	var errs []error
	for _, f := range cfg.Files() {
		err := cfg.Locate(f.Key, f.Unusable())
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0, errors.Is(err, config.ErrShown):
			a.log(a.stderr).Warn(err.Error())
		default:
			errs = append(errs, err)
		}
	}
	return errs
}
