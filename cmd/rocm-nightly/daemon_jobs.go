package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/serve"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// jobs makes one job of all installs that share a schedule, and the one that only
// looks.
func (s *service) jobs(a *app, cfg *config.Config) []serve.Job {
	var specs []string
	parts := map[string]*config.Config{}
	for _, in := range cfg.Installs {
		spec := cfg.ScheduleOf(in)
		if part := parts[spec]; part != nil {
			part.Installs = append(part.Installs, in)
			continue
		}
		part := *cfg
		part.Installs = []config.Install{in}
		parts[spec], specs = &part, append(specs, spec)
	}
	var jobs []serve.Job
	for _, spec := range specs {
		jobs = append(jobs, s.updateJob(a, parts[spec], spec, len(specs) == 1 || spec == cfg.Schedule))
	}
	if cfg.Daemon.Check == "" {
		return jobs
	}
	check := serve.Job{
		Name: "check", Kind: serve.Check, Spec: cfg.Daemon.Check, Slots: slotsOf(cfg),
		Splay: time.Duration(cfg.Daemon.Splay), CatchUp: cfg.Daemon.CatchUp,
	}
	updates := slices.Clone(jobs)
	check.Run = func(ctx context.Context, t serve.Turn) serve.Result { return s.check(ctx, a, cfg, updates, t) }
	return append(jobs, check)
}

// updateJob is the job of the installs of part. The one of the top level's schedule is
// named update, others after their first install.
func (s *service) updateJob(a *app, part *config.Config, spec string, first bool) serve.Job {
	d := part.Daemon
	j := serve.Job{
		Name: "update", Kind: serve.Update, Spec: spec, Slots: slotsOf(part),
		Window: time.Duration(d.Window), Splay: time.Duration(d.Splay), Retry: time.Duration(d.Retry), CatchUp: d.CatchUp, Mains: !d.OnBattery,
	}
	if !first {
		in := part.Installs[0]
		target, known := part.GFX.Canonical(in.Target)
		if !known {
			target = in.Target // auto
		}
		j.Name += "-" + in.Channel + "-" + target
	}
	j.Run = func(ctx context.Context, t serve.Turn) serve.Result { return s.nightly(ctx, a, part, t) }
	j.Broke = func(ctx context.Context, err error, final bool) { s.tellError(ctx, a, part, err, final) }
	return j
}

// slotsOf names the slots of the installs of cfg; of auto those of the GPUs that are
// here now, if any.
func slotsOf(cfg *config.Config) []string {
	var names []string
	add := func(channel, target string) {
		if name := channel + "-" + target; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, in := range cfg.Installs {
		if in.Target != gfx.Auto {
			target, _ := cfg.GFX.Canonical(in.Target)
			add(in.Channel, target)
			continue
		}
		m, err := cfg.GFX.Detect(os.DirFS("/sys"))
		if err != nil {
			add(in.Channel, gfx.Auto)
			continue
		}
		for _, target := range m.Taken {
			add(in.Channel, target)
		}
	}
	return names
}

// nightly is one run of an update: what it did goes to the log.
func (s *service) nightly(ctx context.Context, a *app, cfg *config.Config, t serve.Turn) serve.Result {
	p := &progress{also: func(e update.Event) {
		t.Progress(serve.Progress{Slot: e.Install, Stage: e.Stage, Done: e.Done, Total: e.Total, Message: e.Message})
	}}
	rep, err := a.updateOnce(ctx, cfg, updateOptions{}, p, s.log)
	var locked *store.LockedError
	if errors.As(err, &locked) {
		return serve.Result{Exit: exitCode(err), Err: err, Busy: true}
	}
	if err != nil {
		return serve.Result{Exit: exitCode(err), Err: err, After: func(ctx context.Context, final bool) { s.tellError(ctx, a, cfg, err, final) }}
	}
	s.logReport(rep)
	res := serve.Result{
		Exit: rep.Exit, Err: reportError(rep), Again: again(rep), Retry: someFailed(rep),
		Changed: slices.ContainsFunc(rep.Installs, func(o *update.Outcome) bool { return o.Changed }),
		// The numbers are those of all installs, also of those that other jobs run.
		After: func(ctx context.Context, final bool) { a.after(ctx, a.cfg, rep, final) },
	}
	// What had ended when the program was told to has ended as it did.
	if ctx.Err() != nil && interrupted(rep) {
		res.Exit, res.Err = update.ExitFailed, context.Cause(ctx)
	}
	return res
}

// tellError tells of a run that has no report.
func (s *service) tellError(ctx context.Context, a *app, cfg *config.Config, err error, final bool) {
	if err := a.tellError(ctx, cfg, err, final); err != nil {
		s.log.Warn("not everybody could be told that this run could not begin", "error", err)
	}
}

// interrupted reports whether an install was told to end before it had.
func interrupted(rep *update.Report) bool {
	return slices.ContainsFunc(rep.Installs, func(o *update.Outcome) bool { return errors.Is(o.Err, context.Canceled) }) ||
		slices.ContainsFunc(rep.Bumps, func(b *update.Bumped) bool { return errors.Is(b.Err, context.Canceled) })
}

// again is when a night is ready, at the latest, that an install has left alone for now.
func again(rep *update.Report) (first time.Time) {
	for _, out := range rep.Installs {
		if !out.Again.IsZero() && (first.IsZero() || out.Again.Before(first)) {
			first = out.Again
		}
	}
	return first
}

// someFailed reports whether something of a run came to a failure that another try
// may mend, whatever became of the rest.
func someFailed(rep *update.Report) bool {
	return slices.ContainsFunc(rep.Installs, func(out *update.Outcome) bool { return out.Err != nil && update.ExitOf(out.Err) == update.ExitFailed }) ||
		slices.ContainsFunc(rep.Bumps, func(b *update.Bumped) bool { return b.Err != nil && update.ExitOf(b.Err) == update.ExitFailed })
}

// logReport tells the log what a run did.
func (s *service) logReport(rep *update.Report) {
	for _, out := range rep.Installs {
		switch {
		case errors.Is(out.Err, context.Canceled):
			s.log.Info("interrupted; the next run continues", "install", out.Install)
		case out.Err != nil:
			s.log.Error("update failed", "install", out.Install, "error", out.Err, "exit", out.Exit)
		default:
			s.log.Info(out.Message, "install", out.Install, "exit", out.Exit)
		}
	}
	for _, b := range rep.Bumps {
		if b.Err != nil {
			s.log.Error("bump failed", "repository", b.Name, "error", b.Err)
			continue
		}
		s.log.Info("bump: "+b.Message, "repository", b.Name, "pushed", b.Pushed)
	}
}

// reportError is what a run came to, in one error for the page; nil if all is well.
func reportError(rep *update.Report) error {
	if rep.Exit == update.ExitOK {
		return nil
	}
	var texts []string
	for _, out := range rep.Installs {
		if out.Err != nil {
			texts = append(texts, out.Install+": "+out.Err.Error())
		}
	}
	for _, b := range rep.Bumps {
		if b.Err != nil {
			texts = append(texts, b.Name+": "+b.Err.Error())
		}
	}
	if len(texts) == 0 {
		texts = append(texts, fmt.Sprintf("the run ended with exit code %d", rep.Exit))
	}
	return errors.New(strings.Join(texts, "; "))
}

// check looks at the indexes, and names the updates that would install something.
func (s *service) check(ctx context.Context, a *app, cfg *config.Config, updates []serve.Job, t serve.Turn) serve.Result {
	t.Progress(serve.Progress{Stage: "list"})
	l, err := a.look(ctx, cfg)
	if err != nil {
		return serve.Result{Exit: exitCode(err), Err: err}
	}
	if l == nil {
		return serve.Result{}
	}
	res := serve.Result{Exit: l.Exit, After: func(ctx context.Context, _ bool) {
		if err := a.tellLooked(ctx, cfg, l); err != nil {
			s.log.Warn("not everybody could be told what is new", "error", err)
		}
	}}
	var failed []string
	for _, in := range l.Installs {
		if in.Error != "" {
			failed = append(failed, in.Install+": "+in.Error)
		}
		if in.Admits {
			res.Wakes = append(res.Wakes, jobsOf(updates, in.Install)...)
		}
		s.log.Debug("looked: "+in.Message, "install", in.Install, "state", in.State)
	}
	if len(failed) > 0 {
		res.Err = errors.New(strings.Join(failed, "; "))
	}
	return res
}

// jobsOf names the updates of a slot. One of GPUs that could not be told may be any.
func jobsOf(updates []serve.Job, slot string) (names []string) {
	for _, j := range updates {
		auto := slices.ContainsFunc(j.Slots, func(name string) bool { return strings.HasSuffix(name, "-"+gfx.Auto) })
		if auto || slices.Contains(j.Slots, slot) {
			names = append(names, j.Name)
		}
	}
	return names
}
