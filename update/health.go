package update

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/audit/smoke"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// The health checks of Options.Smoke, beside those of package smoke.
const (
	SmokeAuto = "auto" // on the GPU where /dev/kfd can be used, else none
	SmokeOff  = "off"
)

// SmokeError says that something of a night, when it was started, did not do
// what it should. What was installed stays in use.
type SmokeError struct {
	Failures []smoke.Check
	Active   bool // what is active fails in the same checks
}

func (e *SmokeError) Error() string {
	var said []string
	for _, c := range e.Failures[:min(len(e.Failures), 3)] {
		said = append(said, fmt.Sprintf("%s (%s environment): %s", c.Name, c.Environment, c.Detail))
	}
	text := fmt.Sprintf("the health check refused it: %d failed: %s", len(e.Failures), strings.Join(said, "; "))
	if len(e.Failures) > len(said) {
		text += "; …"
	}
	if e.Active {
		text += "; what is active fails in the same way, so that the cause may be this machine: its driver, say"
	}
	return text + "; to install without it, set health.smoke: off"
}

// smokeMode is what the health check tries on this machine, "" for nothing.
func (r *run) smokeMode() string {
	switch r.o.Smoke {
	case "", SmokeOff:
		return ""
	case SmokeAuto:
		if smoke.Usable() == nil {
			return smoke.GPU
		}
		return ""
	}
	return r.o.Smoke
}

// health starts what a health check starts of the prefix in dir, and then the
// command. It comes before the prefix is a generation, so that what fails is never
// installed, or before a generation, gen, is activated that waits or was left
// behind by a run that died. The policy of the audit has no say in it.
func (t *task) health(ctx context.Context, dir, gen string, rec *Record) error {
	if err := t.smoke(ctx, dir, gen, rec); err != nil {
		return err
	}
	return t.before(ctx, dir, gen, rec)
}

func (t *task) smoke(ctx context.Context, dir, gen string, rec *Record) error {
	mode := t.r.smokeMode()
	if mode == "" {
		return nil
	}
	t.say("smoke", "starting what was unpacked, as a check ("+mode+")")
	machine, err := t.r.o.GFX.Detect(t.r.o.Sys)
	if err != nil {
		machine = &gfx.Machine{}
	}
	o := smoke.Options{
		Mode: mode, FinalPrefix: t.slot.CurrentPath(), Machine: machine, GFX: t.r.o.GFX, Runner: t.r.o.SmokeRunner,
		Timeout: t.r.o.SmokeTimeout,
	}
	for _, name := range slices.Sorted(maps.Keys(t.in.Repack.Env)) {
		o.GPUEnv = append(o.GPUEnv, name+"="+t.in.Repack.Env[name])
	}
	if gfx.IsTarget(t.out.target) {
		o.Targets = []string{t.out.target}
	}
	report, err := smoke.Run(ctx, dir, o)
	if err != nil {
		return err
	}
	rec.Smoke, t.out.Smoke = report, &report.Counts
	if report.Counts.Passed+report.Counts.Failed == 0 {
		level := slog.LevelWarn
		if t.r.o.Smoke == SmokeAuto { // nobody asked for this mode
			level = slog.LevelInfo
		}
		t.r.o.Log.Log(ctx, level, "the health check tried nothing", "mode", mode, "because", whyNothing(report))
	}
	failures := report.Failures()
	if len(failures) == 0 {
		return nil
	}
	serr := &SmokeError{failures, t.activeFails(ctx, o, failures)}
	return t.refuse(ctx, kindSmoke, t.smokeKey(mode), gen, serr)
}

// activeFails reports whether what is active fails in the same checks: that is
// worth knowing, and no excuse for the new one.
func (t *task) activeFails(ctx context.Context, o smoke.Options, failures []smoke.Check) bool {
	if t.from == nil {
		return false
	}
	report, err := smoke.Run(ctx, t.from.Dir, o)
	if err != nil {
		return false
	}
	failed := map[string]bool{}
	for _, c := range report.Failures() {
		failed[c.Name+" "+c.Environment] = true
	}
	return !slices.ContainsFunc(failures, func(c smoke.Check) bool { return !failed[c.Name+" "+c.Environment] })
}

// whyNothing is the first reason that a report has for what was not tried.
func whyNothing(r *smoke.Report) string {
	for _, status := range []string{smoke.NotRun, smoke.NotThere} {
		for _, c := range r.Checks {
			if c.Status == status {
				return c.Detail
			}
		}
	}
	return "there is nothing to try"
}
