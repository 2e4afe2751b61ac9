package serve

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/robfig/cron/v3"
)

// Job is work to be done on a schedule.
type Job struct {
	Name string
	Spec string // as ParseSchedule reads it
	Run  func(context.Context) error
}

// Options says how jobs are run. The zero Options works.
type Options struct {
	Log    *slog.Logger
	Now    func() time.Time
	Notify func(state string) // told READY=1, STATUS=… and STOPPING=1, as sd_notify(3) has them
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	return o
}

// Run runs jobs until ctx ends, then waits for the one under way. It returns
// an error only for a schedule that cannot be run.
func Run(ctx context.Context, jobs []Job, o Options) error {
	o = o.withDefaults()
	if len(jobs) == 0 {
		return fmt.Errorf("run the schedule: there is nothing to run")
	}
	d := &daemon{ctx: ctx, o: o, turn: make(chan struct{}, 1)}
	d.cron = cron.New(cron.WithLocation(time.UTC), cron.WithLogger(cronLog{o.Log}), cron.WithChain(cron.SkipIfStillRunning(cronLog{o.Log})))
	for _, j := range jobs {
		s, err := ParseSchedule(j.Spec, o.Now())
		if err != nil {
			return fmt.Errorf("run the schedule of %s: %w", j.Name, err)
		}
		d.cron.Schedule(s, cron.FuncJob(func() { d.run(j) }))
	}
	d.cron.Start()
	o.Notify("READY=1\nSTATUS=" + d.next())
	o.Log.Info("waiting", "next", d.next())
	<-ctx.Done()
	o.Notify("STOPPING=1")
	o.Log.Info("stopping")
	<-d.cron.Stop().Done()
	return nil
}

// daemon is the state of one Run.
type daemon struct {
	ctx  context.Context
	o    Options
	cron *cron.Cron
	turn chan struct{} // holds one token: jobs take turns
}

// run runs one job when its turn comes; a job that waits for its turn counts
// as running.
func (d *daemon) run(j Job) {
	select {
	case d.turn <- struct{}{}:
	case <-d.ctx.Done():
		return
	}
	defer func() { <-d.turn }()
	if d.ctx.Err() != nil {
		return
	}
	log := d.o.Log.With("job", j.Name)
	d.o.Notify("STATUS=running " + j.Name)
	log.Info("starting")
	begun := d.o.Now()
	err := protect(d.ctx, j.Run)
	log = log.With("took", d.o.Now().Sub(begun).Round(time.Second))
	if err != nil {
		log.Error("failed", "error", err)
	} else {
		log.Info("done")
	}
	if d.ctx.Err() == nil {
		d.o.Notify("STATUS=" + d.next())
		log.Info("waiting", "next", d.next())
	}
}

// protect turns a panic into an error.
func protect(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return run(ctx)
}

// next says when the next job is due.
func (d *daemon) next() string {
	var first time.Time
	for _, e := range d.cron.Entries() {
		at := e.Next
		if at.IsZero() {
			at = e.Schedule.Next(d.o.Now())
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return "next run " + first.Format(time.RFC3339)
}

// cronLog passes on what the cron library says; its chatter is for debugging.
type cronLog struct{ log *slog.Logger }

func (l cronLog) Info(msg string, kv ...any) { l.log.Debug("schedule: "+msg, kv...) }

func (l cronLog) Error(err error, msg string, kv ...any) {
	l.log.Error("schedule: "+msg, append(kv, "error", err)...)
}
