package store

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// kills is how often a crash test kills.
func kills(usual int) int {
	if v, err := strconv.Atoi(os.Getenv("STORE_TEST_KILLS")); err == nil {
		return v
	}
	return usual
}

// TestCurrentIsAlwaysComplete kills a process that installs, rolls back and
// prunes without a pause, at random instants, and looks at what it left.
// STORE_TEST_SEED repeats a run, STORE_TEST_KILLS makes it longer.
func TestCurrentIsAlwaysComplete(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("STORE_TEST_SEED"), 10, 64); err == nil {
		seed = v
	}
	t.Logf("STORE_TEST_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	installed := 0
	rounds := kills(40)
	for range rounds {
		killed(t, s, time.Duration(rng.Int64N(int64(60*time.Millisecond))))
		wasActive := active(t, sl)
		look(t, sl)
		st, err := sl.Stage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries(t, sl.Dir()) {
			if strings.HasPrefix(e, ".") && !strings.HasPrefix(e, filepath.Base(st.Dir())) {
				t.Errorf("after the next Stage there is %s", e)
			}
		}
		if err := st.Abort(); err != nil {
			t.Fatal(err)
		}
		if a := active(t, sl); a != wasActive {
			t.Errorf("cleaning up changed what is active from %s to %s", wasActive, a)
		}
		if n := names(t, sl); len(n) > 0 {
			if v, err := strconv.Atoi(strings.TrimPrefix(versionIn(n[len(n)-1]), "10.2.0a")); err == nil {
				installed = max(installed, v-20260100)
			}
		}
		if t.Failed() {
			return
		}
	}
	if installed < 2 {
		t.Errorf("only %d were installed: nothing was tested", installed)
	}
	t.Logf("%d installed, %d kills", installed, rounds)
}

// killed runs the installing process for d and kills it.
func killed(t *testing.T, s *Store, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, _ := other(t, ctx, "install", s.Root())
	timer := time.AfterFunc(d, cancel)
	defer timer.Stop()
	if err := cmd.Wait(); cmd.ProcessState.Exited() {
		t.Fatalf("it ended by itself: %v", err)
	}
}

// look fails unless everything under a final name is whole.
func look(t *testing.T, sl *Slot) {
	t.Helper()
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gens {
		if err := whole(&g); err != nil {
			t.Errorf("a generation is not whole: %v", err)
		}
	}
	if _, err := sl.readState(); err != nil && !os.IsNotExist(err) {
		t.Errorf("the state is not whole: %v", err)
	}
	runs, err := sl.Runs()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		var v struct{ Version string }
		if err := sl.ReadRun(r.Name, &v); err != nil || v.Version != r.Name {
			t.Errorf("run %s is not whole: %v", r.Name, err)
		}
		pins, err := sl.store.FindPins(r.Name)
		if err != nil || len(pins) > 1 {
			t.Errorf("pins of %s: %v, %v", r.Name, pins, err)
		}
	}
}

func versionIn(name string) string {
	v, _ := versionOf(name)
	return v
}

func TestReadersNeverMissCurrent(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			b, err := os.ReadFile(filepath.Join(sl.CurrentPath(), "opt/rocm/bin/f0"))
			if err != nil {
				done <- err
				return
			}
			if v := string(b); v != night(1) && v != night(2) {
				t.Errorf("read %q", v)
			}
		}
	}()
	for range 200 {
		if _, _, err := sl.Rollback(t.Context()); err != nil {
			t.Error(err)
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
