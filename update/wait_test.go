package update

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// mode sets when a staged night becomes active.
func mode(when string) func(*Options) {
	return func(o *Options) {
		o.Installs = slices.Clone(o.Installs)
		o.Installs[0].Activate = when
	}
}

// Idle waits for everybody, also for those that cannot be seen; each run tries
// again, and none downloads again.
func TestIdleWaitsForEverybody(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run(mode(ActivateIdle)) // nobody uses what is not there
	if w.active() != "10.2.0a20260929" {
		t.Fatal(w.active())
	}
	w.publish("10.2.0a20260930", 1)
	var uses store.Uses
	var fails error
	idle := func(o *Options) {
		mode(ActivateIdle)(o)
		o.InUse = func(_ context.Context, gens []store.Generation) (map[string]store.Uses, error) {
			if len(gens) != 1 || gens[0].Name != "10.2.0a20260929" {
				t.Errorf("asked about %v", gens)
			}
			return map[string]store.Uses{gens[0].Dir: uses}, fails
		}
	}
	var bodies int64
	for i, tt := range []struct {
		uses store.Uses
		err  error
		want string
	}{
		{store.Uses{By: []store.Use{{PID: 7, Program: "pyth\x1b[2Jon", How: store.UseMaps}, {PID: 8, How: store.UseLease}}}, nil, `is in use by pyth\x1b[2Jon 7 (maps), process 8 (lease)`},
		{store.Uses{By: []store.Use{{How: store.UseFD}}}, nil, "is in use by a process of another user;"},
		{store.Uses{Unseen: 3}, nil, "cannot be seen by this user (3"},
		{store.Uses{}, errors.New("no /proc"), "is not known (no /proc)"},
	} {
		uses, fails = tt.uses, tt.err
		out := w.run(idle)
		if out.Exit != 0 || out.Changed || out.Waits == nil || out.Waits.For != ActivateIdle || !strings.Contains(out.Message, tt.want) || w.active() != "10.2.0a20260929" || out.pin != nil {
			t.Errorf("%+v", out)
		}
		if i == 0 {
			bodies = w.bodies.Load()
		}
	}
	uses, fails = store.Uses{}, nil
	if out := w.run(idle); out.Exit != 0 || w.active() != "10.2.0a20260930" || w.bodies.Load() != bodies {
		t.Errorf("%d downloads, %+v", w.bodies.Load()-bodies, out)
	}
}

// What waits must still be admissible when its time comes.
func TestWhatWaitsIsJudgedAgain(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run()
	newest := w.publish("10.2.0a20260930", 1)
	w.run(mode(ActivateManual))
	if err := os.Remove(newest); err != nil {
		t.Fatal(err)
	}
	for name, not := range map[string]func(*Options){
		"denied":                          func(o *Options) { o.Policy.Deny = []string{"*20260930"} },
		"other series":                    func(o *Options) { o.Policy.Series = "10.3" },
		"other options":                   func(o *Options) { mode("")(o); o.Installs[0].Repack.RunPath = "runpath" },
		"gone, and the index is followed": func(o *Options) { o.Policy.AllowDowngrade = true },
	} {
		if out := w.run(not, func(o *Options) { o.DryRun = true }); strings.Contains(out.Message, "10.2.0a20260930") {
			t.Errorf("%s: %+v", name, out)
		}
	}
	if out := w.run(); out.Exit != 0 || w.active() != "10.2.0a20260930" {
		t.Errorf("%+v", out)
	}
	// A downgrade is not undone by what it has left on the disk.
	for range 2 {
		if out := w.run(func(o *Options) { o.Policy.AllowDowngrade = true }); out.Exit != 0 || w.active() != "10.2.0a20260929" {
			t.Errorf("%+v", out)
		}
	}
}

// Where the command cannot be run nothing is known: nothing is activated, and
// nothing refused.
func TestAHealthCommandThatIsNotRun(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run()
	w.publish("10.2.0a20260930", 1)
	none := &sayings{err: &cage.NotRunError{Reason: "no namespaces here"}}
	w.o.SmokeRunner = none
	out := w.run(healthy("true", SandboxOn))
	if out.Exit != ExitFailed || w.active() != "10.2.0a20260929" || !strings.Contains(out.Error, "no namespaces here") || !strings.Contains(out.Error, "health.sandbox: off") {
		t.Fatalf("%+v", out)
	}
	if st, err := w.slot().State(); err != nil || len(st.Refused) != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	// A program that is not there is no matter of the cage.
	none.err = nil
	for _, sandbox := range []string{SandboxOn, SandboxOff} {
		out = w.run(func(o *Options) { o.Health = Health{Command: []string{"/nowhere/check"}, Sandbox: sandbox} })
		if out.Exit != ExitFailed || !strings.Contains(out.Error, "/nowhere/check") || strings.Contains(out.Error, "without a cage") || strings.Contains(out.Error, "not run: not run") {
			t.Errorf("%+v", out)
		}
	}
	// After the switch: it stays in doubt, and the next run asks again.
	before := w.bodies.Load()
	bad := &turning{}
	out = w.run(healthy("true", SandboxOn), func(o *Options) { o.SmokeRunner = bad })
	st, err := w.slot().State()
	if err != nil || out.Exit != ExitFailed || w.active() != "10.2.0a20260930" || st.Unproven == nil || w.bodies.Load() != before {
		t.Fatalf("%d downloads, %+v, %+v, %v", w.bodies.Load()-before, out, st, err)
	}
	bad.n = -9
	out = w.run(healthy("true", SandboxOn), func(o *Options) { o.SmokeRunner = bad })
	if st, err = w.slot().State(); err != nil || out.Exit != 0 || st.Unproven != nil {
		t.Errorf("%+v, %+v, %v", out, st, err)
	}
}

// turning is a Runner that has no cage any more the second time.
type turning struct{ n int }

func (r *turning) Run(context.Context, cage.Command) (*cage.Result, error) {
	if r.n++; r.n == 2 {
		return nil, &cage.NotRunError{Reason: "gone"}
	}
	return &cage.Result{Kind: "test"}, nil
}

// What a command writes is bounded and cannot move a cursor; what it starts ends
// with it.
func TestAloneIsBounded(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left")
	for name, tt := range map[string]struct {
		script string
		limit  time.Duration
		want   string
	}{
		"escapes": {`printf 'a\033[2Jb\nsecond \377\tline\n'; exit 2`, time.Minute, "exit status 2: " + `second \xff    line`},
		"much":    {`i=0; while [ $i -lt 3000 ]; do echo "line $i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; i=$((i+1)); done; exit 1`, time.Minute, "exit status 1: line 2999"},
		"signal":  {`kill -SEGV $$`, time.Minute, "it was ended by segmentation fault"},
		"limit":   {`sleep 60`, 100 * time.Millisecond, "it was not done after 100ms and was killed"},
		"left":    {`(sleep 0.2; touch ` + left + `) & exit 3`, time.Minute, "exit status 3"},
		"missing": {"", time.Minute, "start /nonexistent"},
	} {
		program, args := "/bin/sh", []string{"-c", tt.script}
		if tt.script == "" {
			program = "/nonexistent"
		}
		res, err := alone(context.Background(), program, args, nil, t.TempDir(), tt.limit)
		c := &Checkup{}
		c.judge(res, err, tt.limit)
		if c.Status != checkFailed || !strings.HasPrefix(c.said(), tt.want) || len(c.Output) > 2*maxSaid {
			t.Errorf("%s: %s, %s", name, c.Status, c.said())
		}
		for line := range strings.SplitSeq(c.Output, "\n") {
			if !plain.Is(line) {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what was left running went on")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := alone(ctx, "/bin/sleep", []string{"60"}, nil, t.TempDir(), time.Minute); err == nil && ctx.Err() == nil {
		t.Error("it ran")
	}
}

// Activate does not wait for a run, asks no index, and checks as a run does.
func TestActivateDuringARun(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run()
	w.publish("10.2.0a20260930", 1)
	w.run(mode(ActivateManual))
	lock, err := w.o.Store.LockRun(context.Background(), "update")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	requests := w.tarballs.Load()
	o := w.o
	o.Channels = nil
	healthy("test $ROCM_NIGHTLY_PHASE = before", SandboxOff)(&o)
	out, err := Activate(context.Background(), o, o.Installs[0], w.slot(), "")
	if err != nil || out.Exit != ExitRefused || w.active() != "10.2.0a20260929" || len(out.Health) != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	// It was refused: it does not wait any more. By name it is tried again.
	if out, err = Activate(context.Background(), o, o.Installs[0], w.slot(), ""); err != nil || out.Exit != 0 || !strings.Contains(out.Message, "nothing waits") {
		t.Errorf("%+v, %v", out, err)
	}
	healthy("true", SandboxOff)(&o)
	if out, err = Activate(context.Background(), o, o.Installs[0], w.slot(), "10.2.0a20260930"); err != nil || out.Exit != 0 || w.active() != "10.2.0a20260930" || w.tarballs.Load() != requests {
		t.Errorf("%+v, %v", out, err)
	}
	var rec Record
	if err := w.slot().ReadRun("10.2.0a20260930", &rec); err != nil || rec.Repack == nil || len(rec.Health) != 5 || rec.Exit != 0 {
		t.Errorf("%+v, %v", rec, err)
	}
}

func TestHoldText(t *testing.T) {
	now := time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC)
	for want, h := range map[string]store.Hold{
		"held for less than a minute": {Since: now.Add(time.Hour)}, // a clock that was set back
		"held for 1 minute":           {Since: now.Add(-time.Minute)},
		"held for 23 hours (a\\nb)":   {Since: now.Add(-24*time.Hour + 1), Reason: "a\nb"},
		"held for 3 days":             {Since: now.Add(-80 * time.Hour)},
	} {
		if got := HoldText(&h, now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
