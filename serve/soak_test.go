package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// world is a year, and more, of nights with everything that may go wrong in them.
type world struct {
	b *bench

	mu      sync.Mutex // of what follows: runs, checks and the loop take turns, the test does not
	rng     *rand.Rand
	running int
	nights  map[string]int // runs that were done, by day
	counts  map[string]int
}

// dice is a random number below n.
func (w *world) dice(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rng.IntN(n)
}

// span is a random time below most.
func (w *world) span(most time.Duration) time.Duration {
	return time.Duration(w.dice(int(most/time.Second))) * time.Second
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// alone says that a run begins (1) or ends (-1).
func (w *world) alone(by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running += by; w.running > 1 {
		w.b.t.Error("two runs at a time")
	}
}

// update is a run against an index that is flaky.
func (w *world) update(ctx context.Context, turn Turn) Result {
	w.alone(1)
	defer w.alone(-1)
	w.count(string(turn.Why))
	for i := range int64(5) {
		turn.Progress(Progress{Slot: "nightly-gfx1151", Stage: "download", Done: i, Total: 5})
		select {
		case <-ctx.Done():
			return Result{Exit: 1, Err: ctx.Err()}
		case <-time.After(w.span(8 * time.Minute)):
		}
	}
	switch n := w.dice(100); {
	case n < 25:
		return Result{Exit: 1, Err: fmt.Errorf("dial tcp: i/o timeout %d", n)}
	case n < 30:
		return Result{Exit: 3, Err: errors.New("stale")}
	case n < 35:
		return Result{Exit: 4, Err: errors.New("the audit refuses")}
	case n < 40:
		panic("a bug")
	case n < 45:
		return Result{Exit: 1, Busy: true}
	case n < 60:
		return Result{Again: w.b.o.Now().Add(w.span(4 * time.Hour))}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nights[w.b.o.Now().UTC().Format(time.DateOnly)]++
	return Result{Changed: true, After: func(context.Context, bool) { w.count("after") }}
}

func (w *world) check(context.Context, Turn) Result {
	if w.dice(10) == 0 {
		return Result{Exit: 1, Err: errors.New("no route")}
	}
	return Result{Wakes: []string{"update"}}
}

func (w *world) jobs() []Job {
	return []Job{
		{Name: "update", Kind: Update, Spec: "CRON_TZ=America/New_York 30 2 * * *", Window: 6 * time.Hour, Splay: 30 * time.Minute, Retry: 10 * time.Minute, CatchUp: true, Mains: true, Run: w.update},
		{Name: "check", Kind: Check, Spec: "12 */6 * * *", Splay: 30 * time.Minute, CatchUp: true, Run: w.check},
	}
}

// day lets one go by, with what happens to machines.
func (w *world) day(reloads chan<- struct{}) {
	switch w.dice(12) {
	case 0: // the lid is closed
		w.b.jump(w.span(48 * time.Hour))
	case 1:
		w.b.jump(-w.span(3 * time.Hour))
	case 2:
		reloads <- struct{}{}
	case 3:
		if err := w.b.d.RunNow(w.b.ctx, "update"); err != nil {
			w.count("not asked for")
		}
	case 4:
		w.b.d.Refresh()
	case 5: // the machine is started anew
		w.b.stop()
		time.Sleep(w.span(20 * time.Hour))
		w.b.start(w.jobs()...)
	}
	time.Sleep(24 * time.Hour)
}

// memoryDir is a directory in memory, where there is one: a disk syncs each run.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "rocm-nightly-soak-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Nights upon nights: the daemon neither grows nor stops, and few of them are lost.
func TestSoak(t *testing.T) {
	path := filepath.Join(memoryDir(t), "daemon.json")
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		w := &world{b: b, rng: rand.New(rand.NewPCG(1, 2)), nights: map[string]int{}, counts: map[string]int{}}
		reloads := make(chan struct{})
		b.o.Log, b.o.Notify, b.o.Memory, b.o.Tick = slog.New(slog.DiscardHandler), nil, path, 30*time.Minute
		b.o.Jitter = func(most time.Duration) time.Duration { return w.span(most + time.Second) }
		b.o.Reloads, b.o.Reload = reloads, func() ([]Job, error) {
			if w.dice(2) == 0 {
				return nil, errors.New("a bad config")
			}
			return w.jobs(), nil
		}
		b.o.Snapshot = func(context.Context, bool) (*state.State, error) { return new(state.Hub).State(), nil }
		b.start(w.jobs()...)
		var heap uint64
		var threads int
		for day := range soakNights {
			w.day(reloads)
			if day == soakNights/5 {
				heap, threads = size()
			}
		}
		synctest.Wait()
		if now, n := size(); now > heap+heap/2+1<<20 || n > threads+2 {
			t.Errorf("the heap was %d and is %d bytes, %d goroutines and %d", heap, now, threads, n)
		}
		b.stop()
		days := int(b.o.Now().Sub(midnight) / (24 * time.Hour))
		if got := len(w.nights); got < days*2/3 {
			t.Errorf("%d of %d days have a night", got, days)
		}
		for _, why := range []Why{Scheduled, CatchUp, Retry, Settled, Asked} {
			if w.counts[string(why)] == 0 {
				t.Errorf("no run was %s", why)
			}
		}
		t.Logf("%d days: %d have a night; %v", days, len(w.nights), w.counts)
	})
}

// size is what is in use, of memory and of goroutines.
func size() (heap uint64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, runtime.NumGoroutine()
}
