package serve

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestParseScheduleRefuses(t *testing.T) {
	now := time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC)
	for _, spec := range []string{"", "TZ=UTC", "CRON_TZ=UTC", "CRON_TZ=Nowhere/City 0 6 * * *", "0 3 31 2 *", "@every -1h", "@every 5s", "* * * *", "61 * * * *", "nonsense", "\x00 * * * *"} {
		if s, err := ParseSchedule(spec, now); err == nil {
			t.Errorf("%q was taken: next %v", spec, s.Next(now))
		}
	}
	s, err := ParseSchedule("CRON_TZ=UTC 30 6 * * *", now)
	if err != nil || !s.Next(now).Equal(now.Add(6*time.Hour+30*time.Minute)) {
		t.Errorf("%v, %v", s, err)
	}
	if _, err := ParseSchedule("@daily", now); err != nil {
		t.Error(err)
	}
}

func FuzzParseSchedule(f *testing.F) {
	f.Add("CRON_TZ=UTC 30 6 * * *")
	f.Add("TZ=")
	f.Fuzz(func(t *testing.T, spec string) {
		now := time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC)
		if s, err := ParseSchedule(spec, now); err == nil && !s.Next(now).After(now) {
			t.Fatalf("%q fires at %v", spec, s.Next(now))
		}
	})
}

// events collects what the daemon tells systemd.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) add(s string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, s)
}

func (e *events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.all, "|")
}

func TestJobsRunOnTimeOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var runs, running, overlaps atomic.Int32
		job := func(ctx context.Context) error {
			if running.Add(1) > 1 {
				overlaps.Add(1)
			}
			defer running.Add(-1)
			runs.Add(1)
			time.Sleep(90 * time.Minute) // longer than its own period: the tick in between is skipped
			return nil
		}
		told := &events{}
		done := make(chan error)
		go func() {
			done <- Run(ctx, []Job{{"a", "0 * * * *", job}, {"b", "0 * * * *", job}}, Options{Notify: told.add})
		}()
		time.Sleep(24 * time.Hour)
		if n := runs.Load(); n < 12 || n > 17 || overlaps.Load() > 0 {
			t.Errorf("%d runs, %d overlaps", n, overlaps.Load())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if s := told.String(); !strings.HasPrefix(s, "READY=1") || !strings.HasSuffix(s, "STOPPING=1") {
			t.Error(s)
		}
	})
}

func TestAPanicIsAFailedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var runs atomic.Int32
		done := make(chan error)
		go func() {
			done <- Run(ctx, []Job{{"a", "0 * * * *", func(context.Context) error {
				if runs.Add(1) == 1 {
					panic("boom")
				}
				return errors.New("failed")
			}}}, Options{})
		}()
		time.Sleep(3*time.Hour + time.Minute)
		if n := runs.Load(); n != 3 {
			t.Errorf("%d runs", n)
		}
		cancel()
		<-done
	})
}

func TestStopWaitsForTheJobUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var finished atomic.Bool
		done := make(chan error)
		go func() {
			done <- Run(ctx, []Job{{"a", "0 * * * *", func(ctx context.Context) error {
				<-ctx.Done()
				time.Sleep(time.Minute) // tidies up
				finished.Store(true)
				return ctx.Err()
			}}}, Options{})
		}()
		time.Sleep(2 * time.Hour)
		cancel()
		<-done
		if !finished.Load() {
			t.Error("the job was not waited for")
		}
	})
}

func TestRunRefusesABadSchedule(t *testing.T) {
	for _, jobs := range [][]Job{nil, {{"a", "0 3 31 2 *", nil}}} {
		if err := Run(t.Context(), jobs, Options{}); err == nil {
			t.Errorf("%v was run", jobs)
		}
	}
}
