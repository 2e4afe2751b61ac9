package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// Defaults of Options.
const (
	defaultTick      = time.Minute
	defaultStopLimit = 90 * time.Second
)

// Options says how jobs are run. The zero Options works.
type Options struct {
	Log *slog.Logger
	// Now is the wall clock. It is compared with a monotonic one, to tell that the
	// machine slept or that the clock was set.
	Now    func() time.Time
	Notify func(state string) // told what sd_notify(3) has: READY=1, STATUS=…, WATCHDOG=1, …
	// Watchdog is WATCHDOG_USEC of systemd: it is told twice as often that the
	// schedule is looked at. 0: nobody watches.
	Watchdog time.Duration
	// StopLimit is how long a run may take to end after it was told so; 0: 90 s.
	StopLimit time.Duration
	Tick      time.Duration // how long it may take until a clock that jumped is noticed; 0: a minute

	Host   string                            // what the splay is made of: the machine id
	Jitter func(time.Duration) time.Duration // a random time below; nil: math/rand
	Memory string                            // the file that outlives the process, ROOT/daemon.json; "": none
	Sys    fs.FS                             // /sys; nil: the machine's

	// Reloads tells to read the config again: Reload, whose error keeps what there is.
	Reloads <-chan struct{}
	Reload  func() ([]Job, error)

	Hub     *state.Hub // is kept current; nil: nobody looks
	Program state.Program
	// Snapshot makes what the schedule does not know of the state; measure asks for
	// what takes a walk, too. Mark is something that is another when what is on disk
	// is, and cheap. nil: there is nothing but the schedule.
	Snapshot func(ctx context.Context, measure bool) (*state.State, error)
	Mark     func() string
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
	if o.StopLimit <= 0 {
		o.StopLimit = defaultStopLimit
	}
	if o.Tick <= 0 {
		o.Tick = defaultTick
	}
	if o.Jitter == nil {
		o.Jitter = chance
	}
	if o.Sys == nil {
		o.Sys = os.DirFS("/sys")
	}
	if o.Hub == nil {
		o.Hub = new(state.Hub)
	}
	return o
}

// Daemon runs jobs. Its methods may be called by any goroutine.
type Daemon struct {
	o       Options
	entries []*entry
	program state.Program

	// Only the loop touches what follows.
	queue    []*entry
	now      *turn     // what runs
	next     []*entry  // of a config that was read while something ran
	reason   string    // why the config that was last read was not taken
	clock    clock     // when the loop last went round
	changed  bool      // the state is another
	saved    []byte    // what was last sent to saves
	watched  time.Time // when the watchdog was last told
	told     time.Time // when the state was last told for being old, by the monotonic clock
	stopping bool
	mark     string
	snapping bool
	want     wish

	asks    chan ask
	ended   chan outcome
	idle    chan struct{}
	moved   chan struct{} // progress was made
	snaps   chan snap
	refresh chan struct{}
	saves   chan []byte
	done    chan struct{}
	once    sync.Once

	round atomic.Int64 // when the loop last went round, by the monotonic clock since began
	began time.Time
	ready atomic.Bool
}

// ask is a run that somebody wants.
type ask struct {
	job   string
	reply chan error
}

// New checks the jobs. Nothing runs yet.
func New(jobs []Job, o Options) (*Daemon, error) {
	d := &Daemon{
		o: o.withDefaults(), began: time.Now(), asks: make(chan ask), ended: make(chan outcome, 1), idle: make(chan struct{}, 1),
		moved: make(chan struct{}, 1), snaps: make(chan snap, 1), refresh: make(chan struct{}, 1), saves: make(chan []byte, 1), done: make(chan struct{}),
	}
	d.program = d.o.Program
	entries, err := d.entriesOf(jobs, d.wall())
	if err != nil {
		return nil, fmt.Errorf("run the schedule: %w", err)
	}
	d.entries = entries
	return d, nil
}

// entriesOf makes the entries of jobs.
func (d *Daemon) entriesOf(jobs []Job, now time.Time) ([]*entry, error) {
	if len(jobs) == 0 {
		return nil, errors.New("there is nothing to run")
	}
	if len(jobs) > maxJobs {
		return nil, fmt.Errorf("%d jobs are more than %d", len(jobs), maxJobs)
	}
	var all []*entry
	for _, j := range jobs {
		if err := j.check(); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(e *entry) bool { return e.job.Name == j.Name }) {
			return nil, fmt.Errorf("two jobs have the name %s", j.Name)
		}
		times, err := ParseSchedule(j.Spec, now)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", j.Name, err)
		}
		log := cronLog{d.o.Log.With("job", j.Name)}
		e := &entry{job: j, times: times, splay: splayOf(d.o.Host, j.Name, j.Splay, times, now), rec: record{Spec: j.Spec, After: now}}
		e.chain = cron.NewChain(cron.Recover(log), cron.SkipIfStillRunning(log)).Then(cron.FuncJob(func() { e.body() }))
		all = append(all, e)
	}
	return all, nil
}

// Run runs the jobs until ctx ends, then waits for the one under way, as long as
// Options.StopLimit: its error names what did not stop. A Daemon runs once.
func (d *Daemon) Run(ctx context.Context) error {
	err := errors.New("run the schedule: it has run already")
	d.once.Do(func() { err = d.run(ctx) })
	return err
}

func (d *Daemon) run(ctx context.Context) error {
	defer close(d.done)
	var saver sync.WaitGroup
	saver.Go(d.saver)
	defer func() {
		close(d.saves)
		saver.Wait()
	}()
	d.remember()
	d.clock = d.read()
	d.want = wish{take: true, measure: true}
	d.ready.Store(true)
	d.look(ctx)
	d.o.Notify("READY=1\nSTATUS=" + d.status())
	d.o.Log.Info("waiting", "next", d.status())
	for ctx.Err() == nil {
		d.rest(ctx)
		d.look(ctx)
	}
	return d.stop()
}

// rest waits until something happens, or something is due.
func (d *Daemon) rest(ctx context.Context) {
	timer := time.NewTimer(d.pause())
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case a := <-d.asks:
		a.reply <- d.take(a.job)
	case out := <-d.ended:
		d.settle(out)
	case <-d.idle:
		d.over()
	case <-d.moved:
		if d.now != nil {
			d.now.dirty = true
		}
	case s := <-d.snaps:
		d.merge(s)
	case <-d.refresh:
		d.want.take = true
	case <-d.o.Reloads:
		d.reload()
	}
}

// minPause keeps a clock that is odd from being looked at all the time.
const minPause = 10 * time.Millisecond

// pause is how long nothing is due, at most a tick.
func (d *Daemon) pause() time.Duration {
	most := d.o.Tick
	if d.o.Watchdog > 0 {
		most = min(most, d.o.Watchdog/2)
	}
	now := d.wall()
	for _, e := range d.entries {
		if !e.due.IsZero() {
			most = min(most, e.due.Sub(now))
		}
		if e.wait == "" && !e.rec.Next.IsZero() && !e.queued && !e.running {
			most = min(most, e.rec.Next.Sub(now))
		}
	}
	if d.now != nil && d.now.dirty {
		most = min(most, time.Until(d.now.shown.Add(showEvery)))
	}
	return max(most, minPause)
}

// look goes round once: what is due is begun, what is another is told.
func (d *Daemon) look(ctx context.Context) {
	tick := d.tick()
	now := d.wall()
	var ready []*entry
	for _, e := range d.entries {
		if d.due(e, now) {
			ready = append(ready, e)
		}
	}
	slices.SortStableFunc(ready, func(a, b *entry) int { return a.rec.Next.Compare(b.rec.Next) })
	for _, e := range ready {
		d.enqueue(e, e.rec.Why)
	}
	d.turn(ctx)
	d.show()
	d.snapshot(ctx, tick)
	if d.changed || tick {
		d.publish()
	}
	if d.changed {
		d.save()
	}
	d.changed = false
}

// due takes what is due of e, and reports whether a run of it is to begin.
func (d *Daemon) due(e *entry, now time.Time) bool {
	if !e.due.IsZero() && !now.Before(e.due) {
		text, missed := e.take(now)
		d.tell(e, text, missed)
		e.plan(d.o.Jitter)
		d.changed = true
	}
	if e.rec.Next.IsZero() || now.Before(e.rec.Next) || e.queued || e.running {
		return false
	}
	if e.job.Mains && e.rec.Why != Asked && !onMains(d.o.Sys) && d.awaitMains(e, now) {
		return false
	}
	runs, text := e.lapse(now)
	d.tell(e, text, !runs)
	d.changed = d.changed || text != ""
	return runs
}

// awaitMains reports whether what is planned of e waits for mains power.
func (d *Daemon) awaitMains(e *entry, now time.Time) bool {
	if !e.open(now) && e.wait == "" && e.job.Window > 0 {
		return false // its window is over, for another reason
	}
	if e.open(now) && e.wait == "" {
		e.wait = "without mains power it waits, until " + e.rec.Ends.Format(time.RFC3339)
		d.tell(e, e.wait, false)
		d.changed = true
	}
	if !e.open(now) {
		d.tell(e, "there was no mains power: "+e.giveUp(), true)
		d.changed = true
	}
	return true
}

// enqueue puts e behind those that wait for their turn.
func (d *Daemon) enqueue(e *entry, why Why) {
	e.queued, e.queuedWhy, e.wait = true, why, ""
	d.queue = append(d.queue, e)
	d.changed = true
}

// take plans a run that somebody asked for.
func (d *Daemon) take(name string) error {
	i := slices.IndexFunc(d.entries, func(e *entry) bool { return e.job.Name == name })
	if i < 0 {
		return fmt.Errorf("run %.100q: there is no such job", name)
	}
	e := d.entries[i]
	switch {
	case e.running:
		return fmt.Errorf("run %s: it is running", name)
	case e.queued:
		return fmt.Errorf("run %s: it waits for its turn already", name)
	}
	now := d.wall()
	e.begin(now, Asked, now.Add(e.job.Window))
	d.changed = true
	return nil
}

// RunNow has a job run as soon as no other does. Its window is opened: what fails, or
// is not ready, is tried again. It is an error if there is no such job, or if it runs
// or waits for its turn already.
func (d *Daemon) RunNow(ctx context.Context, job string) error {
	a := ask{job, make(chan error, 1)}
	select {
	case d.asks <- a:
		return <-a.reply
	case <-d.done:
		return fmt.Errorf("run %.100q: the daemon has ended", job)
	case <-ctx.Done():
		return fmt.Errorf("run %.100q: %w", job, ctx.Err())
	}
}

// Refresh has the state read again from disk, as somebody has changed that.
func (d *Daemon) Refresh() {
	select {
	case d.refresh <- struct{}{}:
	default: // it is to be already
	}
}

// cronLog passes on what the cron library says; its chatter is for debugging.
type cronLog struct{ log *slog.Logger }

func (l cronLog) Info(msg string, kv ...any) { l.log.Debug("schedule: "+msg, kv...) }

func (l cronLog) Error(err error, msg string, kv ...any) {
	l.log.Error("schedule: "+msg, append(kv, "error", err)...)
}
