package serve

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// turn is the run under way.
type turn struct {
	e      *entry
	why    Why
	began  time.Time // on the wall
	cancel context.CancelFunc

	shown time.Time // when progress was last shown, by the monotonic clock
	dirty bool      // there is more of it

	mu   sync.Mutex
	at   Progress
	said bool // the loop was told that there is more, and has not looked yet
	over bool
}

// report takes progress from the run.
func (t *turn) report(p Progress, moved chan<- struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	t.at = p
	if t.said {
		return
	}
	t.said = true
	select {
	case moved <- struct{}{}:
	default: // of a run before
	}
}

// progress is what the run said last.
func (t *turn) progress() Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at
}

// hear has the next word of the run reach the loop again.
func (t *turn) hear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = false
}

func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// outcome is how a run ended.
type outcome struct {
	res   Result
	took  time.Duration
	final chan bool // what the run asks the loop
}

// turn begins the next run, if none is under way.
func (d *Daemon) turn(ctx context.Context) {
	if d.now != nil || len(d.queue) == 0 || ctx.Err() != nil {
		return
	}
	e := d.queue[0]
	d.queue = slices.Delete(d.queue, 0, 1)
	e.queued, e.running = false, true
	e.planned(time.Time{}, "")
	now := d.wall()
	ctx, cancel := context.WithCancel(ctx)
	t := &turn{e: e, why: e.queuedWhy, began: now, cancel: cancel}
	d.now = t
	e.rec.Began, e.rec.Missed = now, time.Time{}
	e.rec.Unended++
	e.runs++
	if t.why == Retry {
		e.retries++
	}
	d.changed = true
	d.o.Log.Info("starting", "job", e.job.Name, "why", string(t.why))
	d.o.Notify("STATUS=" + d.status())
	job := e.job
	e.body = func() { d.work(ctx, job, t) }
	go e.chain.Run()
}

// work is one run, in its own goroutine: the job, what the loop makes of it, and what
// follows that. It tells the loop when it is over, whatever happens.
func (d *Daemon) work(ctx context.Context, job Job, t *turn) {
	defer func() { d.idle <- struct{}{} }()
	begun := time.Now()
	turn := Turn{Why: t.why, Progress: func(p Progress) { t.report(p, d.moved) }}
	res := protect(func() Result { return job.Run(ctx, turn) })
	t.end()
	out := outcome{res, time.Since(begun), make(chan bool, 1)}
	d.ended <- out
	var final bool
	select {
	case final = <-out.final:
	case <-d.done: // nobody has waited
		return
	}
	if p := (*panicError)(nil); errors.As(res.Err, &p) && job.Broke != nil {
		res.After = func(ctx context.Context, final bool) { job.Broke(ctx, res.Err, final) }
	}
	if res.After == nil {
		return
	}
	after := protect(func() Result {
		res.After(ctx, final)
		return Result{}
	})
	if after.Err != nil {
		d.o.Log.Error("what follows a run failed", "job", job.Name, "error", after.Err)
	}
}

// protect turns a panic into a run that failed.
func protect(run func() Result) (res Result) {
	defer func() {
		if r := recover(); r != nil {
			res = Result{Exit: exitFailed, Err: &panicError{fmt.Sprint(r), string(debug.Stack())}}
		}
	}()
	return run()
}

// panicError is what a run panicked with. Where is for the log, not for the page.
type panicError struct{ what, stack string }

func (e *panicError) Error() string { return "panic: " + e.what }

// settle takes the end of a run: whether another follows is decided here.
func (d *Daemon) settle(out outcome) {
	t := d.now
	e := t.e
	now := d.wall()
	e.rec.Seconds = out.took.Seconds()
	d.changed = true
	log := d.o.Log.With("job", e.job.Name, "took", out.took.Round(time.Second))
	if stopped := d.stopped(out.res); stopped {
		e.rec.Unended = 1 // it was asked to, and is no run that takes the program with it
		log.Info("interrupted; the next start goes on")
		out.final <- false
		return
	}
	final := e.settle(out.res, now, d.o.Jitter)
	out.final <- final
	d.want.take, d.want.measure = true, d.want.measure || out.res.Changed
	switch {
	case out.res.Busy && !final:
		log.Info("another process is at work: asked again in a minute", "error", out.res.Err)
	case out.res.Exit == exitOK:
		log.Info("done")
	case out.res.Exit == exitStale:
		log.Warn("done, but the index is stale", "exit", out.res.Exit)
	default:
		var p *panicError
		if errors.As(out.res.Err, &p) {
			log = log.With("stack", p.stack)
		}
		log.Error("failed", "error", out.res.Err, "exit", out.res.Exit, "in a row", e.rec.Failures)
	}
	if !e.rec.Next.IsZero() {
		log.Info("planned", "why", string(e.rec.Why), "at", e.rec.Next.Format(time.RFC3339), "window ends", e.rec.Ends.Format(time.RFC3339))
	}
	d.wake(out.res.Wakes, now)
}

// stopped reports whether a run ended because it was told to. One that was done all
// the same is done.
func (d *Daemon) stopped(res Result) bool {
	return d.stopping && (res.Exit != exitOK || errors.Is(res.Err, context.Canceled))
}

// wake runs those jobs that a check has found something for, while their window is
// open.
func (d *Daemon) wake(names []string, now time.Time) {
	for _, e := range d.entries {
		if !slices.Contains(names, e.job.Name) || !e.open(now) || e.queued || e.running {
			continue
		}
		if e.rec.Next.IsZero() || now.Before(e.rec.Next) {
			e.planned(now, Settled)
			d.o.Log.Info("a check has found something to do", "job", e.job.Name)
		}
	}
}

// over takes leave of the run under way.
func (d *Daemon) over() {
	t := d.now
	t.cancel()
	t.e.running = false
	d.now = nil
	d.changed = true
	if d.next != nil {
		d.replace(d.next)
		d.next = nil
	}
	d.o.Notify("STATUS=" + d.status())
	if !d.stopping {
		d.o.Log.Info("waiting", "next", d.status())
	}
}
