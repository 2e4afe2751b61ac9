package serve

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// Bounds of what is planned.
const (
	onTime     = 5 * time.Minute      // a run that begins no later is no made up one
	busyPause  = time.Minute          // until another process is asked for again
	maxForget  = 400 * 24 * time.Hour // times before that are not looked through
	maxAstray  = 24 * time.Hour       // what lies further ahead than that was written by a clock that was wrong
	maxUnended = 3                    // runs in a row that never ended, after which its time is waited for
)

// entry is a job in the schedule. Only the loop touches it.
type entry struct {
	job   Job
	times cron.Schedule
	splay time.Duration
	body  func()   // the run that begins
	chain cron.Job // body, recovered, and never twice at a time

	rec  record
	occ  time.Time // the next time of the schedule; zero: none
	due  time.Time // when this host begins it
	wait string    // why what is planned does not begin: said once

	queued, running bool
	queuedWhy       Why

	runs, failed, retries uint64 // since the process began
}

// plan finds the next time of the schedule.
func (e *entry) plan(jitter func(time.Duration) time.Duration) {
	e.occ, e.due = e.times.Next(e.rec.After), time.Time{}
	if e.occ.IsZero() {
		return
	}
	e.due = e.occ.Add(e.splay)
	if e.splay > 0 {
		e.due = e.due.Add(jitter(maxJitter))
	}
}

// open reports whether a run may begin at now, beside those that are due.
func (e *entry) open(now time.Time) bool { return now.Before(e.rec.Ends) }

// planned is a run within the window.
func (e *entry) planned(at time.Time, why Why) { e.rec.Next, e.rec.Why = at, why }

// begin opens a window in which a run is planned for now.
func (e *entry) begin(now time.Time, why Why, ends time.Time) {
	e.rec.Tries, e.rec.Ends, e.wait = 0, ends, ""
	e.planned(now, why)
}

// latest is the last time of the schedule of which this host's moment has passed,
// and how many there are since the last that was taken.
func (e *entry) latest(now time.Time) (at time.Time, n int) {
	at, n = e.occ, 1
	for {
		next := e.times.Next(at)
		if next.IsZero() || next.Add(e.splay).After(now) {
			return at, n
		}
		at, n = next, n+1
	}
}

// take takes the time that is due at now, with all that were missed before it. What
// is returned is for the log; missed says that no run follows.
func (e *entry) take(now time.Time) (text string, missed bool) {
	if e.occ.Before(now.Add(-maxForget)) {
		e.rec.After = now.Add(-maxForget)
		e.occ = e.times.Next(e.rec.After)
	}
	at, n := e.latest(now)
	e.rec.After = at
	if e.running || e.queued {
		return "it is its time again, and the run before has not ended: not started twice", false
	}
	begins := at.Add(e.splay)
	late := now.Sub(begins)
	switch {
	case late <= onTime:
		e.begin(now, Scheduled, begins.Add(e.job.Window))
		return "", false
	case e.job.CatchUp:
		e.begin(now, CatchUp, now.Add(e.job.Window))
		return fmt.Sprintf("%d times of its schedule were missed, the last %s ago: one run makes up for them", n, late.Round(time.Second)), false
	case now.Before(begins.Add(e.job.Window)):
		e.begin(now, Scheduled, begins.Add(e.job.Window))
		return fmt.Sprintf("it begins %s late, within its window", late.Round(time.Second)), false
	}
	e.rec.Missed = at
	return fmt.Sprintf("%d times of its schedule were missed, the last %s ago: it waits for the next", n, late.Round(time.Second)), true
}

// settle takes what a run came to, and plans what follows. final says that nothing
// does, but what a check may find.
func (e *entry) settle(res Result, now time.Time, jitter func(time.Duration) time.Duration) (final bool) {
	e.rec.Tries++
	e.rec.Exit, e.rec.Error, e.rec.Unended = res.Exit, "", 0
	if res.Err != nil {
		e.rec.Error = res.Err.Error()
	}
	e.planned(time.Time{}, "")
	if res.Busy {
		return e.another(now)
	}
	good := res.Exit == exitOK || res.Exit == exitStale
	if good {
		e.rec.Success, e.rec.Failures = now, 0
	} else {
		e.rec.Failures++
		e.failed++
	}
	if e.job.Retry > 0 && (res.Exit == exitFailed || !good && res.Retry) { // else it would only be the same again
		if at := now.Add(backoff(e.job.Retry, e.rec.Tries, jitter)); at.Before(e.rec.Ends) {
			e.planned(at, Retry)
		}
	}
	again := later(res.Again, now.Add(busyPause))
	if !res.Again.IsZero() && again.Before(e.rec.Ends) && (e.rec.Next.IsZero() || again.Before(e.rec.Next)) {
		e.planned(again, Settled)
	}
	return e.rec.Next.IsZero()
}

// another says what follows when another process was at work: it is asked for again,
// which is no failure; a whole window of it is.
func (e *entry) another(now time.Time) (final bool) {
	e.rec.Tries--
	if at := now.Add(busyPause); at.Before(e.rec.Ends) {
		e.planned(at, e.queuedWhy)
		return false
	}
	e.rec.Failures++
	e.failed++
	return true
}

// resume takes up what the process before has left, or was doing when it ended.
func (e *entry) resume(now time.Time) (text string) {
	r := &e.rec
	switch {
	case r.After.After(now.Add(maxAstray)):
		*r = record{Spec: e.job.Spec, After: now}
		return "what is remembered of it is of the future: the clock was wrong, and it waits for its next time"
	case r.Unended >= maxUnended:
		e.planned(time.Time{}, "")
		return fmt.Sprintf("the last %d runs ended with the program: it waits for its next time", r.Unended)
	case r.Unended > 0 && e.job.CatchUp:
		e.begin(now, CatchUp, now.Add(e.job.Window))
		return "its last run was interrupted, and goes on"
	case r.Unended > 0 && e.open(now):
		e.planned(now, CatchUp)
		return "its last run was interrupted, and goes on within its window"
	case r.Next.After(r.Ends):
		e.planned(time.Time{}, "")
	}
	return ""
}

// lapse looks whether the window is over of what was planned in it: the machine
// slept, most likely. It reports whether a run is to begin all the same.
func (e *entry) lapse(now time.Time) (runs bool, text string) {
	first := e.wait == "" && (e.rec.Why == Scheduled || e.rec.Why == CatchUp || e.rec.Why == Asked)
	switch {
	case e.open(now), first && e.rec.Tries == 0:
		return true, ""
	case e.job.CatchUp && e.wait == "":
		e.begin(now, e.rec.Why, now.Add(e.job.Window))
		return true, "its window is over, and a run of it was still planned: it is made up for"
	}
	return false, e.giveUp()
}

// giveUp forgets what is planned.
func (e *entry) giveUp() string {
	if e.rec.Tries == 0 {
		e.rec.Missed = e.rec.After
	}
	e.wait = ""
	e.planned(time.Time{}, "")
	return "its window is over: it waits for its next time"
}

// shift moves what is planned when the clock was set back.
func (e *entry) shift(now time.Time, back time.Duration) (text string) {
	if !e.rec.Next.IsZero() {
		e.rec.Next = e.rec.Next.Add(-back)
	}
	if !e.rec.Ends.IsZero() {
		e.rec.Ends = e.rec.Ends.Add(-back)
	}
	if e.rec.After.After(now.Add(maxAstray)) {
		e.rec.After = now
		return "what it has done is of the future now: it waits for its next time"
	}
	return ""
}
