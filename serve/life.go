package serve

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// clock is one reading of both clocks.
type clock struct{ wall, mono time.Time }

// wall is what the wall clock shows.
func (d *Daemon) wall() time.Time { return d.o.Now().Round(0).UTC() }

func (d *Daemon) read() clock { return clock{d.wall(), time.Now()} }

// jump is by how much the wall clock must have gone otherwise than time before that
// is worth a word.
const jump = 30 * time.Second

// tick looks at the clocks, and reports whether a tick has gone by since the state
// was last told. Here is where the watchdog is told that the loop goes round.
func (d *Daemon) tick() bool {
	c := d.read()
	d.round.Store(int64(c.mono.Sub(d.began)))
	if d.o.Watchdog > 0 && c.mono.Sub(d.watched) >= d.o.Watchdog/4 {
		d.watched = c.mono
		d.o.Notify("WATCHDOG=1")
	}
	passed := c.mono.Sub(d.clock.mono)
	ahead := c.wall.Sub(d.clock.wall) - passed
	switch {
	case ahead >= jump:
		d.o.Log.Warn("the clock is ahead of what has passed: the machine slept, or it was set", "by", ahead.Round(time.Second))
		d.changed = true
	case ahead <= -jump:
		d.o.Log.Warn("the clock was set back", "by", (-ahead).Round(time.Second))
		d.back(c.wall, -ahead)
	}
	d.clock = c
	if c.mono.Sub(d.told) < d.o.Tick {
		return false
	}
	d.told = c.mono
	return true
}

// back follows a clock that was set back: what has run is not run again, and what is
// planned is not put off.
func (d *Daemon) back(now time.Time, by time.Duration) {
	for _, e := range d.entries {
		d.tell(e, e.shift(now, by), false)
		e.plan(d.o.Jitter)
	}
	d.changed = true
}

// tell logs what became of a job's time.
func (d *Daemon) tell(e *entry, text string, missed bool) {
	switch {
	case text == "":
	case missed:
		d.o.Log.Warn(text, "job", e.job.Name)
	default:
		d.o.Log.Info(text, "job", e.job.Name)
	}
}

// stalled is how many ticks may go by until the loop counts as stuck.
const stalled = 3

// Live returns an error if the schedule has not been looked at for three ticks: the
// process should be started anew.
func (d *Daemon) Live() error {
	if !d.ready.Load() {
		return nil
	}
	if still := time.Since(d.began) - time.Duration(d.round.Load()); still > stalled*d.o.Tick {
		return fmt.Errorf("the schedule has not been looked at for %s", still.Round(time.Second))
	}
	return nil
}

// Ready returns an error before Run has begun and when it is to stop.
func (d *Daemon) Ready() error {
	select {
	case <-d.done:
		return fmt.Errorf("it has ended")
	default:
	}
	if !d.ready.Load() {
		return fmt.Errorf("it has not begun, or it stops")
	}
	return nil
}

// remember takes up what the process before has left.
func (d *Daemon) remember() {
	now := d.wall()
	jobs, err := loadMemory(d.o.Memory)
	if err != nil {
		d.o.Log.Warn("begun anew", "error", err)
	}
	for _, e := range d.entries {
		r, known := jobs[e.job.Name]
		switch {
		case !known:
			d.o.Log.Info("it is new here and waits for its time; to have it now: rocm-nightly "+string(e.job.Kind), "job", e.job.Name)
		case r.Spec != e.job.Spec:
			d.o.Log.Info("it has another schedule than before and waits for its time", "job", e.job.Name)
			r.Spec, r.After, r.Next, r.Why, r.Ends, r.Unended = e.job.Spec, now, time.Time{}, "", time.Time{}, 0
			e.rec = r
		default:
			e.rec = r
			d.tell(e, e.resume(now), false)
		}
		e.plan(d.o.Jitter)
	}
	d.changed = true
}

// save sends what is remembered to the saver, if it is another.
func (d *Daemon) save() {
	if d.o.Memory == "" {
		return
	}
	m := memory{Jobs: map[string]record{}}
	for _, e := range d.entries {
		m.Jobs[e.job.Name] = e.rec
	}
	b, err := m.encode()
	if err != nil || string(b) == string(d.saved) {
		return
	}
	d.saved = b
	select {
	case <-d.saves: // older, and not begun
	default:
	}
	d.saves <- b
}

// saver writes what is remembered. A disk may take its time: the loop does not wait.
func (d *Daemon) saver() {
	failed := false
	for b := range d.saves {
		err := saveMemory(d.o.Memory, b)
		if err != nil && !failed {
			d.o.Log.Warn("what was done is not remembered: after a restart it may be done again, or missed", "error", err)
		}
		failed = err != nil
	}
}

// reload reads the config again. A bad one changes nothing but what is said.
func (d *Daemon) reload() {
	if d.o.Reload == nil {
		return
	}
	d.o.Notify("RELOADING=1\nMONOTONIC_USEC=" + monotonic())
	d.o.Log.Info("reading the config again")
	var entries []*entry
	jobs, err := d.o.Reload()
	if err == nil {
		entries, err = d.entriesOf(jobs, d.wall())
	}
	d.changed = true
	if err != nil {
		d.reason = err.Error()
		d.program.Config = d.reason
		d.o.Log.Error("the config is not taken; what held before holds", "error", err)
		d.o.Notify("READY=1\nSTATUS=" + d.status())
		return
	}
	d.reason, d.program.Config, d.program.Loaded = "", "", d.wall()
	if d.now != nil {
		d.next = entries
		d.o.Log.Info("the config is good, and is taken after the run under way", "running", d.now.e.job.Name)
	} else {
		d.replace(entries)
	}
	d.o.Notify("READY=1\nSTATUS=" + d.status())
}

// replace puts other jobs into the schedule. What was is kept of those of the same
// name and schedule; the others wait for their next time.
func (d *Daemon) replace(entries []*entry) {
	now := d.wall()
	var queue []*entry
	for _, e := range entries {
		i := slices.IndexFunc(d.entries, func(old *entry) bool { return old.job.Name == e.job.Name })
		if i >= 0 {
			old := d.entries[i]
			e.runs, e.failed, e.retries = old.runs, old.failed, old.retries
			after := e.rec.After
			e.rec = old.rec
			if old.job.Spec != e.job.Spec {
				e.rec.Spec, e.rec.After = e.job.Spec, after
			}
			if old.queued {
				e.queued, e.queuedWhy = true, old.queuedWhy
			}
		}
		e.plan(d.o.Jitter)
	}
	for _, old := range d.queue {
		i := slices.IndexFunc(entries, func(e *entry) bool { return e.job.Name == old.job.Name })
		if i >= 0 {
			queue = append(queue, entries[i])
		}
	}
	d.entries, d.queue, d.changed = entries, queue, true
	d.want.take = true
	d.o.Log.Info("the config is taken", "jobs", len(entries), "at", now.Format(time.RFC3339))
}

// monotonic is CLOCK_MONOTONIC in microseconds, as systemd wants it with RELOADING=1.
func monotonic() string {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return "0"
	}
	return strconv.FormatInt(ts.Nano()/1000, 10)
}

// extendEvery is how often it is said that stopping goes on.
const extendEvery = 5 * time.Second

// stop waits for the run under way, which has been told.
func (d *Daemon) stop() error {
	d.stopping = true
	d.ready.Store(false)
	d.program.Stops, d.changed = true, true
	d.o.Notify("STOPPING=1\nSTATUS=" + d.status())
	d.o.Log.Info("stopping")
	d.publish()
	limit := time.NewTimer(d.o.StopLimit)
	defer limit.Stop()
	again := time.NewTicker(extendEvery)
	defer again.Stop()
	for d.now != nil || d.snapping {
		select {
		case out := <-d.ended:
			d.settle(out)
		case <-d.idle:
			d.over()
		case <-d.moved:
		case <-d.snaps:
			d.snapping = false
		case <-again.C:
			d.o.Notify(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=%s", 3*extendEvery/time.Microsecond, d.status()))
			if d.o.Watchdog > 0 {
				d.o.Notify("WATCHDOG=1")
			}
		case <-limit.C:
			d.save()
			if d.now == nil {
				return nil // it only looked
			}
			return fmt.Errorf("stop: %s was told to, and has not within %s: it is left as it is, and the next start goes on from there", d.now.e.job.Name, d.o.StopLimit)
		}
	}
	d.save()
	d.publish()
	return nil
}
