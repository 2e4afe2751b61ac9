package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

func TestStopWaitsForTheJobUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		finished := false
		b.start(b.job("a", "0 * * * *", func(ctx context.Context, _ Turn) Result {
			<-ctx.Done()
			time.Sleep(time.Minute) // tidies up
			finished = true
			return Result{Exit: 1, Err: ctx.Err()}
		}))
		time.Sleep(time.Hour + time.Minute)
		b.stop()
		if !finished || !b.said("EXTEND_TIMEOUT_USEC=15000000") {
			t.Errorf("finished: %v, told %q", finished, b.told)
		}
		s := b.o.Hub.State()
		if s.Jobs[0].Failures != 0 || !s.Program.Stops || s.Running != nil {
			t.Errorf("a stop is a failure: %+v", s)
		}
		if b.d.Ready() == nil {
			t.Error("ready after the end")
		}
	})
}

func TestStopHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.o.StopLimit = 30 * time.Second
		release := make(chan struct{})
		b.start(b.job("stubborn", "0 * * * *", func(context.Context, Turn) Result { <-release; return Result{} }))
		time.Sleep(time.Hour + time.Minute)
		b.cancel()
		if err := <-b.err; err == nil || !strings.Contains(err.Error(), "stubborn") {
			t.Error(err)
		}
		close(release)
		synctest.Wait()
	})
}

func TestTheWatchdogIsToldByALoopThatGoesRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.o.Watchdog = 20 * time.Second
		hang := make(chan struct{})
		b.o.Reload = func() ([]Job, error) { <-hang; return nil, errors.New("no") }
		reloads := make(chan struct{})
		b.o.Reloads = reloads
		b.start(b.job("a", "0 * * * *", func(context.Context, Turn) Result { time.Sleep(10 * time.Minute); return Result{} }))
		beats := func(d time.Duration) int {
			b.mu.Lock()
			b.told = nil
			b.mu.Unlock()
			time.Sleep(d)
			b.mu.Lock()
			defer b.mu.Unlock()
			return strings.Count(strings.Join(b.told, "|"), "WATCHDOG=1")
		}
		if n := beats(10 * time.Minute); n < 55 || n > 125 {
			t.Errorf("%d beats in ten minutes", n)
		}
		time.Sleep(50*time.Minute + time.Second)
		if n := beats(5 * time.Minute); n < 25 || b.d.Live() != nil { // a long run is not stuck
			t.Errorf("%d beats during a run, %v", n, b.d.Live())
		}
		reloads <- struct{}{} // and this loop is
		if n := beats(5 * time.Minute); n > 1 || b.d.Live() == nil {
			t.Errorf("%d beats of a loop that hangs", n)
		}
		close(hang)
		time.Sleep(10 * time.Minute)
		if err := b.d.Live(); err != nil {
			t.Error(err)
		}
		b.stop()
	})
}

func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		reloads := make(chan struct{})
		b.o.Reloads = reloads
		var jobs []Job
		var bad error
		b.o.Reload = func() ([]Job, error) { return jobs, bad }
		slow := func(context.Context, Turn) Result { time.Sleep(time.Hour); return Result{} }
		b.start(b.job("a", "0 6 * * *", slow), b.job("gone", "0 8 * * *", nil))
		// What cannot be read, and what cannot be run, changes nothing.
		for _, why := range []error{errors.New("line 7: unknown key"), nil} {
			bad, jobs = why, []Job{b.job("a", "0 3 31 2 *", nil)}
			reloads <- struct{}{}
			synctest.Wait()
			if s := b.o.Hub.State(); s.Program.Config == "" || len(s.Jobs) != 2 || !b.said("RELOADING=1\nMONOTONIC_USEC=") || !b.said("the config is not taken") {
				t.Errorf("%+v %q", s.Program, b.told)
			}
		}
		time.Sleep(6*time.Hour + time.Minute)
		b.want("a scheduled 01T06:00")
		// A good one is taken after the run under way.
		jobs = []Job{b.job("b", "30 * * * *", nil), b.job("a", "0 6 * * *", slow)}
		reloads <- struct{}{}
		synctest.Wait()
		if s := b.o.Hub.State(); s.Program.Config != "" || s.Jobs[0].Name != "a" {
			t.Errorf("%+v", s)
		}
		time.Sleep(70 * time.Minute)
		if s := b.o.Hub.State(); len(s.Jobs) != 2 || s.Jobs[0].Name != "b" || s.Jobs[1].Runs != 1 || s.Jobs[1].LastSuccess.IsZero() {
			t.Errorf("%+v", s.Jobs)
		}
		time.Sleep(30 * time.Minute)
		b.want("b scheduled 01T07:30")
		b.stop()
	})
}

func TestProgressIsToldOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start(b.job("update", "0 6 * * *", func(_ context.Context, turn Turn) Result {
			for i := range int64(10000) { // 100 s of them
				turn.Progress(Progress{Slot: "nightly-gfx1151", Stage: "download", Done: i << 20, Total: 10000 << 20})
				time.Sleep(10 * time.Millisecond)
			}
			turn.Progress(Progress{Slot: "nightly-gfx1151", Stage: "audit", Message: "a\x1b[31m"})
			time.Sleep(time.Minute)
			return Result{}
		}))
		time.Sleep(6*time.Hour + 50*time.Second)
		if r := b.o.Hub.State().Running; r == nil || r.Stage != "download" || r.Done < 4000<<20 || r.Why != "scheduled" {
			t.Errorf("%+v", r)
		}
		time.Sleep(52 * time.Second)
		if r := b.o.Hub.State().Running; r == nil || r.Stage != "audit" || strings.Contains(r.Message, "\x1b") {
			t.Errorf("the last word is not shown: %+v", r)
		}
		b.mu.Lock()
		n := strings.Count(strings.Join(b.told, "|"), "STATUS=running update: nightly-gfx1151 download")
		b.mu.Unlock()
		if n < 90 || n > 110 || !b.said("of 9.8 GiB (") {
			t.Errorf("told %d times", n)
		}
		time.Sleep(time.Hour)
		if r := b.o.Hub.State().Running; r != nil {
			t.Errorf("%+v", r)
		}
		b.stop()
	})
}

func TestTheStateIsReadWhenSomethingChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var mark atomic.Int32
		var took []string
		want := func(all ...string) {
			t.Helper()
			b.mu.Lock()
			defer b.mu.Unlock()
			if !slices.Equal(took, all) {
				t.Errorf("read: %v, want %v", took, all)
			}
		}
		b.o.Mark = func() string { return fmt.Sprint(mark.Load()) }
		b.o.Snapshot = func(_ context.Context, measure bool) (*state.State, error) {
			b.note(&took, map[bool]string{false: "cheap", true: "whole"}[measure])
			g := state.Generation{Name: "n", Disk: -1, Alone: -1}
			if measure {
				g.Disk, g.Alone = 7, 5
			}
			return &state.State{Schema: 1, Root: "/r", Slots: []state.Slot{{Slot: "s", Generations: []state.Generation{g}, Active: &g}}}, nil
		}
		b.start(b.job("a", "0 6 * * *", func(context.Context, Turn) Result { return Result{Changed: true} }))
		synctest.Wait()
		time.Sleep(5 * time.Minute)
		want("whole")
		mark.Add(1) // somebody else has switched
		time.Sleep(5 * time.Minute)
		b.d.Refresh()
		time.Sleep(time.Second)
		want("whole", "cheap", "cheap")
		s := b.o.Hub.State()
		if g := s.Slots[0].Generations[0]; g.Disk != 7 || g.Alone != 5 || s.Slots[0].Active.Disk != 7 || len(s.Jobs) != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(6 * time.Hour)
		want("whole", "cheap", "cheap", "whole")
		b.stop()
	})
}

func TestMemoryIsBoundedAndMendsItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "daemon.json")
	for name, text := range map[string]string{
		"empty": "", "no JSON": "{", "another schema": `{"schema": 99, "jobs": {}}`, "no schema": `{"jobs": {}}`, "wrong types": `{"schema": 1, "jobs": [1]}`,
		"large": `{"schema": 1, "jobs": {"a": {"error": "` + strings.Repeat("x", maxMemory) + `"}}}`,
		"many":  `{"schema": 1, "jobs": {` + strings.TrimSuffix(string(bytes.Join(manyJobs(maxJobs+1), []byte(","))), ",") + `}}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if jobs, err := loadMemory(path); err == nil || len(jobs) != 0 {
			t.Errorf("%s: %v", name, jobs)
		}
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), ".daemon.json123"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m := memory{Jobs: map[string]record{"a": {Spec: "@daily", Error: strings.Repeat("é", 5000)}}}
	b, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := saveMemory(path, b); err != nil {
		t.Fatal(err)
	}
	jobs, err := loadMemory(path)
	if err != nil || len(jobs["a"].Error) > maxText+10 {
		t.Errorf("%v, %v", jobs, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", path); err != nil {
		t.Fatal(err)
	}
	if _, err := loadMemory(path); err == nil {
		t.Error("a link is followed")
	}
}

func manyJobs(n int) (all [][]byte) {
	for i := range n {
		all = append(all, fmt.Appendf(nil, `"j%d": {}`, i))
	}
	return all
}

// Every field of daemon.json is described in docs/daemon.md.
func TestMemoryIsDescribed(t *testing.T) {
	doc, err := os.ReadFile("../docs/daemon.md")
	if err != nil {
		t.Fatal(err)
	}
	typ := reflect.TypeFor[record]()
	for i := range typ.NumField() {
		name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if !strings.Contains(string(doc), "| `jobs.*."+name+"` |") {
			t.Errorf("docs/daemon.md lacks jobs.*.%s", name)
		}
	}
	if _, err := json.Marshal(record{}); err != nil {
		t.Error(err)
	}
}
