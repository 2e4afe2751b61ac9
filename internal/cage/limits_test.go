package cage

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bomb runs one of the planted program's ways to take everything.
func (m mode) bomb(t *testing.T, c Command, args ...string) *Result {
	t.Helper()
	w := newWorld(t)
	c.Path, c.Args, c.ReadOnly = w.tree+"/bin/rocminfo", args, []string{w.tree}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	began := time.Now()
	r := m.run(t, c, hooks{})
	if took := time.Since(began); took > c.Timeout+5*time.Second {
		t.Errorf("%v of %v: it took %v", args, c.Timeout, took)
	}
	w.left(t)
	w.check(t)
	return r
}

// left looks for processes of the tree that are still there.
func (w *world) left(t *testing.T) {
	t.Helper()
	names, err := processNames()
	must(t, err)
	for _, name := range names {
		exe, _ := os.Readlink("/proc/" + name + "/exe")
		p, ok := readProcess(name)
		if strings.HasPrefix(exe, w.tree) && ok && p.pid != w.victim.Process.Pid {
			t.Errorf("process %s of %s was left behind", name, exe)
		}
	}
}

// Everything that a program can take is bounded, and what it leaves running
// ends with it.
func TestBounds(t *testing.T) {
	for name, test := range map[string]struct {
		command Command
		args    []string
		want    func(*Result) bool
	}{
		"fork bomb":      {Command{Timeout: time.Second, Processes: 40}, []string{"fork"}, func(r *Result) bool { return r.Exceeded == "processes" || r.TimedOut }},
		"memory of one":  {Command{Memory: 64 << 20}, []string{"memory"}, func(r *Result) bool { return r.ExitCode == 3 || r.Exceeded == "memory" }},
		"sparse memory":  {Command{Memory: 64 << 20, SparseMemory: true}, []string{"memory"}, func(r *Result) bool { return r.Exceeded == "memory" }},
		"memory of many": {Command{Memory: 64 << 20}, []string{"memories"}, func(r *Result) bool { return r.Exceeded == "memory" }},
		"output": {Command{MaxOutput: 1000, Timeout: 300 * time.Millisecond}, []string{"flood"}, func(r *Result) bool {
			return r.TimedOut && len(r.Stdout) == 1000 && len(r.Stderr) == 1000 && r.Dropped > 1<<20
		}},
		"time": {Command{Timeout: 300 * time.Millisecond}, []string{"stay"}, func(r *Result) bool {
			return r.TimedOut && r.ExitCode == -1 && r.Signal == "SIGKILL" && string(r.Stdout) == "staying\n"
		}},
		"a daemon":  {Command{}, []string{"leave"}, func(r *Result) bool { return r.ExitCode == 0 && !r.TimedOut }},
		"a file":    {Command{FileSize: 8 << 20}, []string{"file", "."}, func(r *Result) bool { return r.ExitCode == 0 && string(r.Stdout) == "8 MiB: File too large\n" }},
		"a crash":   {Command{}, []string{"crash"}, func(r *Result) bool { return r.Signal == "SIGSEGV" && r.ExitCode == -1 && !r.TimedOut }},
		"the guard": {Command{}, []string{"killer"}, func(r *Result) bool { return r.ExitCode == 0 && string(r.Stdout) == "alive\n" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			each(t, func(t *testing.T, m mode) {
				if r := m.bomb(t, test.command, test.args...); !test.want(r) {
					t.Errorf("%+v\n%.300s%.300s", r, r.Stdout, r.Stderr)
				}
			})
		})
	}
}

// Signals stay inside with a Landlock that does not know of them, too.
func TestKillerWithOlderLandlocks(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		if m.kind != Landlock {
			return
		}
		for m.abi = minABI; m.abi < 7; m.abi++ {
			if r := m.bomb(t, Command{}, "killer"); string(r.Stdout) != "alive\n" {
				t.Errorf("abi %d: %+v", m.abi, r)
			}
		}
	})
}

// The scratch directory, /tmp and /dev/shm are bounded as a whole.
func TestScratchIsBounded(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t)
		r := m.run(t, Command{
			Path: w.tree + "/bin/rocminfo", Args: []string{"fill", "."}, ReadOnly: []string{w.tree}, Scratch: w.scratch,
			ScratchSize: 24 << 20, Timeout: 20 * time.Second,
		}, hooks{})
		if r.Exceeded != "scratch" {
			t.Errorf("a scratch directory of the host's: %+v %s", r, r.Stdout)
		}
		if m.kind != Namespaces {
			return
		}
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			r := m.run(t, Command{
				Path: w.tree + "/bin/rocminfo", Args: []string{"fill", dir}, ReadOnly: []string{w.tree}, ScratchSize: 20 << 20,
			}, hooks{})
			if got := string(r.Stdout); r.ExitCode != 0 || got != "20 MiB: No space left on device\n" {
				t.Errorf("%s: %+v %s", dir, r, got)
			}
		}
		r = m.run(t, Command{Path: w.tree + "/bin/rocminfo", Args: []string{"shm"}, ReadOnly: []string{w.tree}, Memory: 32 << 20, Timeout: 10 * time.Second}, hooks{})
		if r.Exceeded != "memory" {
			t.Errorf("files in memory: %+v %s", r, r.Stdout)
		}
	})
}

// What a run left in a private scratch directory is gone, directories that
// are closed and links to others too; what it is linked to is not.
func TestPrivateScratchIsGone(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t)
		before, err := filepath.Glob(filepath.Join(os.TempDir(), "rocm-nightly-cage-*"))
		must(t, err)
		r := m.run(t, Command{Path: "/bin/sh", Args: []string{"-c", "umask 0777; mkdir a; umask 0; mkdir -p b/c; >b/c/d; ln -s " + w.home + " home; ln -s / root; echo $HOME; cd $TMPDIR"}}, hooks{})
		if r.ExitCode != 0 {
			t.Errorf("%+v %s", r, r.Stderr)
		}
		after, err := filepath.Glob(filepath.Join(os.TempDir(), "rocm-nightly-cage-*"))
		must(t, err)
		if len(after) > len(before) {
			t.Errorf("left: %v", after)
		}
		w.check(t)
	})
}

// A bound that is less than what we need ourselves is the program's alone.
func TestLittleMemory(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		for range 5 {
			if r := m.run(t, Command{Path: "/bin/true", Memory: 8 << 20}, hooks{}); r.ExitCode != 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// The caller's end ends everything.
func TestContextEndsIt(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		if m.user && os.Geteuid() == 0 {
			return // Run is called here
		}
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := Run(ctx, Command{Path: w.tree + "/bin/rocminfo", Args: []string{"stay"}, ReadOnly: []string{w.tree}, Only: m.kind})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		w.left(t)
	})
}
