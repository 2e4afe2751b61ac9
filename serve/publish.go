package serve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// showEvery is how often progress is shown.
const showEvery = time.Second

// show tells how far the run under way is, if there is something new of it.
func (d *Daemon) show() {
	t := d.now
	if t == nil || !t.dirty || time.Since(t.shown) < showEvery {
		return
	}
	t.shown, t.dirty = time.Now(), false
	t.hear()
	d.o.Notify("STATUS=" + d.status())
	running := d.running()
	d.o.Hub.Update(func(s *state.State) { s.Time, s.Running = d.wall(), running })
}

// running is the run under way, as it is told.
func (d *Daemon) running() *state.Running {
	if d.now == nil {
		return nil
	}
	p := d.now.progress()
	return &state.Running{
		Job: d.now.e.job.Name, Why: string(d.now.why), Started: d.now.began,
		Slot: p.Slot, Stage: p.Stage, Done: p.Done, Total: p.Total, Message: plain.Cut(p.Message, maxText),
	}
}

// maxStatus bounds a line of status, in bytes.
const maxStatus = 300

// status is one line for systemctl status.
func (d *Daemon) status() string {
	text := d.nextText()
	if r := d.running(); r != nil {
		text = "running " + r.Job
		if r.Slot != "" {
			text += ": " + r.Slot
		}
		if r.Stage != "" {
			text += " " + r.Stage
		}
		switch {
		case r.Stage != "download" && r.Stage != "unpack" && r.Stage != "clone" && r.Stage != "reuse":
		case r.Total > 0:
			text += fmt.Sprintf(" %s of %s (%d%%)", diskspace.Text(r.Done), diskspace.Text(r.Total), min(100, int64(float64(r.Done)/float64(r.Total)*100)))
		case r.Done > 0:
			text += " " + diskspace.Text(r.Done)
		}
	}
	switch {
	case d.stopping:
		text = "stopping; " + text
	case d.reason != "":
		text += "; the config is not taken: " + d.reason
	}
	return plain.Cut(text, maxStatus)
}

// nextText says what is due next.
func (d *Daemon) nextText() string {
	var first *entry
	var at time.Time
	for _, e := range d.entries {
		if next, _ := e.upcoming(); !next.IsZero() && (first == nil || next.Before(at)) {
			first, at = e, next
		}
	}
	if first == nil {
		return "no run is due"
	}
	return fmt.Sprintf("next run %s: %s", at.Format(time.RFC3339), first.job.Name)
}

// upcoming is when the next run of e is to begin, and why.
func (e *entry) upcoming() (time.Time, Why) {
	if next := e.rec.Next; !next.IsZero() && (e.due.IsZero() || next.Before(e.due)) {
		return next, e.rec.Why
	}
	return e.due, Scheduled
}

// publish makes the state that the schedule knows of.
func (d *Daemon) publish() {
	now := d.wall()
	jobs, running, program := d.jobs(now), d.running(), d.program
	d.o.Hub.Update(func(s *state.State) {
		s.Time, s.Jobs, s.Running, s.Program = now, jobs, running, program
		s.Alarms = state.Alarms(s, now)
	})
}

// jobs are the entries of the schedule, as they are told.
func (d *Daemon) jobs(now time.Time) []state.Job {
	all := make([]state.Job, 0, len(d.entries))
	for _, e := range d.entries {
		r := e.rec
		j := state.Job{
			Name: e.job.Name, Kind: e.job.Kind, Schedule: e.job.Spec, Slots: append([]string{}, e.job.Slots...),
			Last: r.Began, LastSeconds: r.Seconds, LastSuccess: r.Success, Failures: r.Failures, Error: plain.Cut(r.Error, maxText), Exit: r.Exit,
			Runs: e.runs, Failed: e.failed, Retries: e.retries, Missed: r.Missed, Waits: e.wait,
		}
		next, why := e.upcoming()
		j.Next = next
		if !next.IsZero() {
			j.NextWhy = string(why)
		}
		if e.open(now) {
			j.WindowEnds = r.Ends
		}
		all = append(all, j)
	}
	return all
}

// wish is what is to be read from disk.
type wish struct{ take, measure bool }

// snap is what was read.
type snap struct {
	s    *state.State
	mark string
	err  error
}

// snapshot reads what the schedule does not know, in a goroutine of its own: when
// something was done, and each tick, if something on disk is another.
func (d *Daemon) snapshot(ctx context.Context, tick bool) {
	if d.o.Snapshot == nil {
		d.want = wish{}
		return
	}
	if d.snapping || !d.want.take && !tick || ctx.Err() != nil {
		return
	}
	want, mark := d.want, d.mark
	d.want, d.snapping = wish{}, true
	go func() { d.snaps <- d.takeSnap(ctx, want, mark) }()
}

func (d *Daemon) takeSnap(ctx context.Context, want wish, mark string) (out snap) {
	res := protect(func() Result {
		if d.o.Mark != nil {
			out.mark = d.o.Mark()
		}
		if !want.take && out.mark == mark {
			return Result{}
		}
		s, err := d.o.Snapshot(ctx, want.measure)
		out.s = s
		return Result{Err: err}
	})
	out.err = res.Err
	return out
}

// merge publishes what was read from disk.
func (d *Daemon) merge(s snap) {
	d.snapping = false
	if s.err != nil {
		d.o.Log.Warn("what is on disk could not be read", "error", s.err)
		return
	}
	d.mark = s.mark
	if s.s == nil {
		return
	}
	d.o.Hub.Update(func(now *state.State) {
		next := *s.s
		next.Jobs, next.Running, next.Program, next.Alarms = now.Jobs, now.Running, now.Program, now.Alarms
		keepMeasured(&next, now)
		*now = next
	})
	d.changed = true
}

// keepMeasured takes over what was measured before, where this time it was not.
func keepMeasured(next, was *state.State) {
	if next.Disk.Used < 0 && was.Disk.Used >= 0 && !was.Disk.Measured.IsZero() {
		next.Disk.Used, next.Disk.Measured = was.Disk.Used, was.Disk.Measured
	}
	measured := map[[2]string]state.Generation{}
	for _, sl := range was.Slots {
		for _, g := range sl.Generations {
			measured[[2]string{sl.Slot, g.Name}] = g
		}
	}
	next.Slots = slices.Clone(next.Slots)
	for i := range next.Slots {
		sl := &next.Slots[i]
		sl.Generations = slices.Clone(sl.Generations)
		if sl.Generations == nil {
			sl.Generations = []state.Generation{}
		}
		for k := range sl.Generations {
			keepSize(&sl.Generations[k], measured[[2]string{sl.Slot, sl.Generations[k].Name}])
		}
		if a := sl.Active; a != nil {
			active := *a
			keepSize(&active, measured[[2]string{sl.Slot, a.Name}])
			sl.Active = &active
		}
	}
}

func keepSize(g *state.Generation, was state.Generation) {
	if was.Name == "" {
		return
	}
	if g.Disk < 0 {
		g.Disk = was.Disk
	}
	if g.Alone < 0 {
		g.Alone = was.Alone
	}
}
