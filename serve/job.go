package serve

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Why a run begins.
type Why string

// The reasons, as state.Running and state.Job have them.
const (
	Scheduled Why = "scheduled" // its time has come
	CatchUp   Why = "catch-up"  // its time was missed: the machine slept, or was off
	Retry     Why = "retry"     // the run before it failed
	Settled   Why = "settled"   // a night that was not ready is now
	Asked     Why = "asked"     // somebody wants it
)

// The kinds of jobs.
const (
	Update = "update" // it installs
	Check  = "check"  // it only looks
)

// Exit codes of a run that decide what follows it.
const (
	exitOK     = 0
	exitFailed = 1
	exitStale  = 3
)

// Job is work to be done on a schedule.
type Job struct {
	Name  string   // its own
	Kind  string   // Update or Check
	Slots []string // what it is about, for people
	Spec  string   // as ParseSchedule reads it

	Window  time.Duration // for how long after its time a run may still begin; 0: not later
	Splay   time.Duration // this host begins later by a part of it that is always the same; never more than half of the pause between two times
	Retry   time.Duration // how long after a failure it is tried again, doubled each time; 0: it is not
	CatchUp bool          // run once for the times that were missed
	Mains   bool          // wait for mains power, while the window lasts

	// Run does the work. It returns soon after ctx ends, and what it has done so far
	// is not lost.
	Run func(ctx context.Context, t Turn) Result

	// Broke, if any, is called in the place of Result.After when Run has panicked.
	Broke func(ctx context.Context, err error, final bool)
}

// Turn is one run of a job.
type Turn struct {
	Why Why
	// Progress says how far the run is. It may be called by any goroutine, and as
	// often as one likes: what is shown changes once a second. It does nothing after
	// the run.
	Progress func(Progress)
}

// Progress is how far a run is, as update.Event has it.
type Progress struct {
	Slot, Stage string
	Done, Total int64
	Message     string
}

// Result is what a run came to.
type Result struct {
	Exit int   // as the verb would exit
	Err  error // of Exit; may be nil
	// Busy says that another process was at work: this run has done nothing, and is
	// tried again each minute, while the window lasts.
	Busy bool
	// Again is when something is ready that was not: within the window it is run
	// again then. The zero Time: nothing is known of that.
	Again time.Time
	// Retry says that another try may mend some of it, though Exit is graver than a
	// mere failure: of several installs one was refused, and another not reached.
	Retry bool
	// Wakes names jobs that have something to do now, as a check has found: those of
	// which the window is open are run.
	Wakes []string
	// Changed says that what is on disk takes other room than before.
	Changed bool
	// After, if any, is called when it is settled whether the run is the last one of
	// its window (final): nothing of it is planned after it.
	After func(ctx context.Context, final bool)
}

func (j Job) check() error {
	switch {
	case j.Name == "":
		return errors.New("a job has no name")
	case j.Run == nil:
		return fmt.Errorf("job %s: nothing is to be run", j.Name)
	case j.Kind != Update && j.Kind != Check:
		return fmt.Errorf("job %s: %q is neither %s nor %s", j.Name, j.Kind, Update, Check)
	case j.Window < 0 || j.Splay < 0 || j.Retry < 0:
		return fmt.Errorf("job %s: a time is less than nothing", j.Name)
	}
	return nil
}
