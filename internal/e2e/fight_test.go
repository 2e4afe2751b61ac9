package e2e

import (
	"bytes"
	"fmt"
	"regexp"
	"testing"
	"time"
)

// fights are pairs of verbs that run at once, the other with the next night. A
// pair more is a line more.
var fights = []struct{ one, other string }{
	{"update --no-bump --version {1}", "update --no-bump --version {1}"},
	{"update --no-bump --version {1}", "rollback"},
	{"update --no-bump --version {1}", "use {1}"},
	{"use {1}", "rollback"},
	{"update --no-bump --version {1}", "prune --last 1"},
	{"update --no-bump --version {1}", "verify"},
	{"update --no-bump --version {1}", "tarball --verify"},
	{"prune --last 1", "use {1}"},
	{"prune --last 1", "verify --repair"},
	{"remove {1}", "use {1}"},
	{"hold", "use {1}"},
	{"unhold", "activate gfx1151 {1}"},
	{"link {link}", "unlink {link}"},
}

const fightRounds = 5

// whoHolds is how the second of two runs says who is first.
var whoHolds = regexp.MustCompile(`held by "([^"]+)", pid (\d+) on \S+, since \d{4}-`)

// refused is what a verb says that the other has left nothing to do for, or forbids.
var refused = regexp.MustCompile(`not installed|no other generation|name one of|it is in use: \S+ is active`)

// TestPromiseTheSecondRunIsToldWhoIsFirst: two processes at once, again and
// again. One works, and the other does too, or says who is first and is named
// rightly; current is whole at every instant; switches wait for no update.
func TestPromiseTheSecondRunIsToldWhoIsFirst(t *testing.T) {
	a := newAxe(t, 3)
	for _, n := range []int{0, 1, 2} {
		a.install(t, n)
	}
	a.duringADownload(t)
	a.configure(t, "keep_tarballs: 1\n")
	told := 0
	for round := range fightRounds {
		for _, f := range fights {
			told += a.fight(t, a.line(f.one, axeNight(round%3)), a.line(f.other, axeNight((round+1)%3)))
		}
	}
	t.Logf("%d of %d were told who is first", told, fightRounds*len(fights))
	a.do(t, nil, "unhold").want(t, 0, "", "")
	a.install(t, 1)
	if left := a.debris(t); len(left) > 0 || a.active() != axeNight(1) {
		t.Errorf("%s is active, left %v", a.active(), left)
	}
}

// duringADownload: while a run waits for the server, another is refused and told,
// and a rollback is not kept waiting.
func (a *axe) duringADownload(t *testing.T) {
	t.Helper()
	g := a.shut()
	first := a.command(t.Context(), nil, "update", "--no-bump", "--version", axeNight(0))
	var out bytes.Buffer
	first.Stdout, first.Stderr = &out, &out
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	<-g.came
	r := a.do(t, nil, "update", "--no-bump", "--version", axeNight(1)).want(t, 1, "", "held by")
	if m := whoHolds.FindStringSubmatch(r.stderr); m == nil || m[1] != "update" || m[2] != fmt.Sprint(first.Process.Pid) {
		t.Errorf("the second is told %s", r.stderr)
	}
	began := time.Now()
	a.do(t, nil, "rollback").want(t, 0, axeNight(1)+" is active now", "")
	if took := time.Since(began); took > time.Second {
		t.Errorf("the rollback took %v", took)
	}
	a.gate.Store(nil)
	close(g.open)
	if err := first.Wait(); err != nil || a.active() != axeNight(0) {
		t.Errorf("%v, %s is active\n%s", err, a.active(), out.String())
	}
	a.look(t, "after a download with a rollback in it")
}

// fight runs two commands at once, and returns how many were told who is first.
func (a *axe) fight(t *testing.T, argv ...[]string) (told int) {
	t.Helper()
	at := fmt.Sprint(argv)
	type fighter struct {
		out  bytes.Buffer
		wait func() error
		pid  int
		code func() int
	}
	var both []*fighter
	for _, args := range argv {
		f := &fighter{}
		cmd := a.command(t.Context(), nil, args...)
		cmd.Stdout, cmd.Stderr = &f.out, &f.out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		f.wait, f.pid, f.code = cmd.Wait, cmd.Process.Pid, func() int { return cmd.ProcessState.ExitCode() }
		both = append(both, f)
	}
	done := make(chan struct{})
	watched := make(chan error, 1)
	go func() {
		defer close(watched)
		for {
			if err := a.oneVersion(); err != nil {
				watched <- err
				return
			}
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond): // leaves the processor to the fighters
			}
		}
	}()
	for i, f := range both {
		_ = f.wait() // the exit code tells
		if f.code() == 0 {
			continue
		}
		m := whoHolds.FindStringSubmatch(f.out.String())
		if m == nil || m[2] != fmt.Sprint(both[1-i].pid) || f.code() != 1 {
			if !refused.MatchString(f.out.String()) {
				t.Errorf("%s: %s: exit %d\n%s", at, argv[i], f.code(), f.out.String())
			}
			continue
		}
		told++
	}
	close(done)
	if err := <-watched; err != nil {
		t.Errorf("%s: current: %v", at, err)
	}
	if told == len(both) {
		t.Errorf("%s: neither did anything", at)
	}
	a.look(t, at)
	return told
}
