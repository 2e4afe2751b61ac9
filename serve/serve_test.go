package serve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

func TestJobsRunOnTimeInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		slow := func(context.Context, Turn) Result { time.Sleep(20 * time.Minute); return Result{} }
		b.start(b.job("a", "0 6 * * *", slow), b.job("b", "0 6 * * *", slow), b.job("c", "10 6 * * *", slow))
		b.want()
		time.Sleep(29 * time.Hour)
		b.want("a scheduled 01T06:00", "b scheduled 01T06:20", "c scheduled 01T06:40")
		b.stop()
		if !b.said("READY=1") || !b.said("STOPPING=1") {
			t.Error(b.told)
		}
	})
}

func TestOneThatRunsIsNotStartedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start(b.job("a", "0 * * * *", func(context.Context, Turn) Result { time.Sleep(90 * time.Minute); return Result{} }))
		time.Sleep(5*time.Hour + time.Minute)
		b.want("a scheduled 01T01:00", "a scheduled 01T03:00", "a scheduled 01T05:00")
		b.logged("not started twice")
		time.Sleep(100 * time.Minute)
		b.stop()
	})
}

func TestAFailureIsTriedAgainWithinTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var finals []bool
		j := b.job("a", "0 6 * * *", func(context.Context, Turn) Result {
			return Result{Exit: 1, Err: errors.New("no"), After: func(_ context.Context, final bool) { finals = append(finals, final) }}
		})
		j.Window, j.Retry = 3*time.Hour+time.Minute, 10*time.Minute
		b.start(j)
		time.Sleep(12 * time.Hour)
		// 10, 20, 40 minutes, then an hour.
		b.want("a scheduled 01T06:00", "a retry 01T06:10", "a retry 01T06:30", "a retry 01T07:10", "a retry 01T08:10")
		if fmt.Sprint(finals) != "[false false false false true]" {
			t.Error(finals)
		}
		if s := b.o.Hub.State().Jobs[0]; s.Failures != 5 || s.Failed != 5 || s.Retries != 4 || s.Error != "no" || s.Exit != 1 {
			t.Errorf("%+v", s)
		}
		b.stop()
	})
}

func TestWhatIsNotTriedAgain(t *testing.T) {
	for exit, want := range map[int]string{0: "", 2: "", 3: "", 4: "", 5: "", 1: "a retry 01T06:10"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			first := true
			j := b.job("a", "0 6 * * *", func(context.Context, Turn) Result {
				defer func() { first = false }()
				if first {
					return Result{Exit: exit}
				}
				return Result{}
			})
			j.Window, j.Retry = 6*time.Hour, 10*time.Minute
			b.start(j)
			time.Sleep(20 * time.Hour)
			runs := []string{"a scheduled 01T06:00"}
			if want != "" {
				runs = append(runs, want)
			}
			b.want(runs...)
			b.stop()
		})
	}
}

func TestANightThatSettlesIsTakenInTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		n := 0
		j := b.job("update", "0 6 * * *", func(context.Context, Turn) Result {
			if n++; n == 1 {
				return Result{Again: b.o.Now().Add(95 * time.Minute)}
			}
			return Result{}
		})
		j.Window = 6 * time.Hour
		b.start(j)
		time.Sleep(20 * time.Hour)
		b.want("update scheduled 01T06:00", "update settled 01T07:35")
		b.stop()
	})
}

// A run is of several installs: that the night of one is refused keeps that of
// another from nothing.
func TestARefusalHoldsNothingElseBack(t *testing.T) {
	for name, c := range map[string]struct {
		first Result
		wakes bool
		want  string
	}{
		"another settles":             {Result{Exit: 4}, false, "a settled 01T07:35"},
		"another failed":              {Result{Exit: 4, Retry: true}, false, "a retry 01T06:10"},
		"a check finds something":     {Result{Exit: 4}, true, "a settled 01T07:12"},
		"another settles, no retries": {Result{Exit: 1}, false, "a settled 01T07:35"},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			first := true
			j := b.job("a", "0 6 * * *", func(context.Context, Turn) Result {
				if !first {
					return Result{}
				}
				first = false
				if strings.HasPrefix(name, "another settles") {
					c.first.Again = b.o.Now().Add(95 * time.Minute)
				}
				return c.first
			})
			j.Window, j.Retry = 6*time.Hour, 10*time.Minute
			if c.first.Exit == 1 {
				j.Retry = 0
			}
			check := Job{Name: "check", Kind: Check, Spec: "12 7 * * *", Run: func(context.Context, Turn) Result {
				if c.wakes {
					return Result{Wakes: []string{"a"}}
				}
				return Result{}
			}}
			b.start(j, check)
			time.Sleep(20 * time.Hour)
			b.want("a scheduled 01T06:00", c.want)
			b.stop()
		})
	}
}

func TestACheckWakesItsJobInTheWindowAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.job("update", "0 6 * * *", nil)
		j.Window = 3 * time.Hour
		check := Job{Name: "check", Kind: Check, Spec: "12 * * * *", Run: func(context.Context, Turn) Result {
			if h := b.o.Now().UTC().Hour(); h == 5 || h == 8 || h == 9 {
				return Result{Wakes: []string{"update"}}
			}
			return Result{}
		}}
		b.start(j, check)
		time.Sleep(20 * time.Hour)
		b.want("update scheduled 01T06:00", "update settled 01T08:12")
		b.stop()
	})
}

func TestAnotherProcessAtWorkIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		n := 0
		j := b.job("a", "0 6 * * *", func(context.Context, Turn) Result {
			if n++; n < 3 {
				return Result{Exit: 1, Err: errors.New("held by pid 7"), Busy: true}
			}
			return Result{}
		})
		j.Window = time.Hour
		b.start(j)
		time.Sleep(20 * time.Hour)
		b.want("a scheduled 01T06:00", "a scheduled 01T06:01", "a scheduled 01T06:02")
		if s := b.o.Hub.State().Jobs[0]; s.Failed != 0 || s.Failures != 0 {
			t.Errorf("%+v", s)
		}
		b.stop()
	})
}

func TestAPanicIsAFailedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var told []string
		j := b.job("a", "0 * * * *", func(context.Context, Turn) Result { panic("boom") })
		j.Broke = func(_ context.Context, err error, final bool) {
			told = append(told, fmt.Sprint(err, " ", final))
			panic("again")
		}
		b.start(j)
		time.Sleep(3*time.Hour + time.Minute)
		b.want("a scheduled 01T01:00", "a scheduled 01T02:00", "a scheduled 01T03:00")
		if s := b.o.Hub.State().Jobs[0]; s.Failures != 3 || s.Error != "panic: boom" {
			t.Errorf("%+v", s)
		}
		b.logged("serve_test.go") // the stack
		b.stop()
		if got := strings.Join(told, "; "); got != "panic: boom true; panic: boom true; panic: boom true" {
			t.Errorf("told: %s", got)
		}
	})
}

func TestSleepIsMadeUpForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.job("a", "0 6 * * *", nil)
		j.CatchUp, j.Window = true, time.Hour
		b.start(j)
		time.Sleep(time.Hour + 30*time.Second)
		b.jump(3*24*time.Hour + 8*time.Hour) // the lid was closed for days
		time.Sleep(2 * time.Minute)
		b.want("a catch-up 04T09:01")
		b.logged("the machine slept")
		b.logged("4 times of its schedule were missed")
		time.Sleep(24 * time.Hour)
		b.want("a scheduled 05T06:00")
		b.stop()
	})
}

func TestSleepOverAWindowWithoutCatchUpIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.job("a", "0 6 * * *", nil)
		j.Window = 2 * time.Hour
		b.start(j)
		b.jump(7 * time.Hour) // within the window
		time.Sleep(2 * time.Minute)
		b.want("a scheduled 01T07:01")
		b.jump(30 * time.Hour)
		time.Sleep(2 * time.Minute)
		b.want()
		if s := b.o.Hub.State().Jobs[0]; !s.Missed.Equal(midnight.Add(30 * time.Hour)) {
			t.Errorf("%+v", s)
		}
		time.Sleep(24 * time.Hour)
		b.want("a scheduled 03T06:00")
		if s := b.o.Hub.State().Jobs[0]; !s.Missed.IsZero() {
			t.Errorf("%+v", s)
		}
		b.stop()
	})
}

func TestAClockThatIsSetBackRunsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		j := b.job("a", "0 6 * * *", failing(1))
		j.CatchUp, j.Window, j.Retry = true, 3*time.Hour, 30*time.Minute
		b.start(j)
		time.Sleep(6*time.Hour + 10*time.Minute)
		b.jump(-2 * time.Hour) // 04:10 again
		time.Sleep(10 * time.Hour)
		b.want("a scheduled 01T06:00", "a retry 01T04:30") // twenty minutes later, as was planned
		b.logged("set back")
		time.Sleep(24 * time.Hour)
		b.want("a scheduled 02T06:00")
		// A clock that was years ahead, and is right again.
		time.Sleep(30 * time.Second)
		b.jump(1000 * 24 * time.Hour)
		time.Sleep(2 * time.Minute)
		b.jump(-1000 * 24 * time.Hour)
		time.Sleep(24 * time.Hour)
		b.want("a catch-up 28T14:11", "a scheduled 03T06:00")
		b.stop()
	})
}

func TestSplayIsOfTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := map[time.Duration]bool{}
		for _, host := range []string{"a", "b", "c"} {
			b := newBench(t)
			b.o.Host = host
			j := b.job("a", "0 6 * * *", nil)
			j.Splay = time.Hour
			s, err := ParseSchedule(j.Spec, midnight)
			if err != nil {
				t.Fatal(err)
			}
			d := splayOf(host, "a", time.Hour, s, midnight)
			if seen[d] || d < 0 || d >= time.Hour {
				t.Errorf("%s", d)
			}
			seen[d] = true
			b.start(j)
			day := b.o.Now().UTC().Truncate(24 * time.Hour)
			if got := b.o.Hub.State().Jobs[0].Next; !got.Equal(day.Add(6*time.Hour + d)) {
				t.Errorf("%s, want %s", got, d)
			}
			b.stop()
		}
		hourly, err := ParseSchedule("0 * * * *", midnight)
		if d := splayOf("a", "a", 24*time.Hour, hourly, midnight); err != nil || d >= 30*time.Minute {
			t.Errorf("%s, %v", d, err)
		}
	})
}

func TestItWaitsForMainsPower(t *testing.T) {
	supply := func(online string) fstest.MapFS {
		const dir = "class/power_supply/"
		return fstest.MapFS{
			dir + "AC/type": {Data: []byte("Mains\n")}, dir + "AC/online": {Data: []byte(online + "\n")},
			dir + "BAT0/type": {Data: []byte("Battery\n")}, dir + "BAT0/status": {Data: []byte("Discharging\n")},
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		sys := &plug{}
		sys.put(supply("0"))
		b.o.Sys = sys
		j := b.job("a", "0 6 * * *", nil)
		j.Window, j.Mains, j.CatchUp = 2*time.Hour, true, true
		b.start(j)
		time.Sleep(6*time.Hour + 30*time.Minute)
		b.want()
		if s := b.o.Hub.State().Jobs[0]; s.Waits == "" {
			t.Errorf("%+v", s)
		}
		if err := b.d.RunNow(b.ctx, "a"); err != nil { // somebody wants it all the same
			t.Error(err)
		}
		b.want("a asked 01T06:30")
		time.Sleep(24*time.Hour + 30*time.Second) // 06:30:30 of the second day
		synctest.Wait()
		sys.put(supply("1"))
		time.Sleep(time.Minute)
		b.want("a scheduled 02T06:31")
		sys.put(supply("0"))
		time.Sleep(26 * time.Hour)
		b.want()
		b.logged("there was no mains power")
		if s := b.o.Hub.State().Jobs[0]; !s.Missed.Equal(midnight.Add(54 * time.Hour)) {
			t.Errorf("%+v", s)
		}
		b.stop()
	})
	for name, tt := range map[string]struct {
		sys  fstest.MapFS
		want bool
	}{
		"nothing": {fstest.MapFS{}, true}, "plugged in": {supply("1"), true}, "on battery": {supply("0"), false},
		"a mouse":                    {fstest.MapFS{"class/power_supply/m/type": {Data: []byte("Battery")}, "class/power_supply/m/scope": {Data: []byte("Device")}, "class/power_supply/m/status": {Data: []byte("Discharging")}}, true},
		"an empty port of a desktop": {fstest.MapFS{"class/power_supply/u/type": {Data: []byte("USB")}, "class/power_supply/u/online": {Data: []byte("0")}}, true},
	} {
		if onMains(tt.sys) != tt.want {
			t.Error(name)
		}
	}
}

func TestRunNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.start(b.job("a", "0 6 * * *", func(context.Context, Turn) Result { time.Sleep(time.Minute); return Result{} }), b.job("b", "0 7 * * *", nil))
		for _, job := range []string{"a", "b"} {
			if err := b.d.RunNow(b.ctx, job); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		for _, job := range []string{"a", "b", "c", strings.Repeat("x", 1000)} {
			if err := b.d.RunNow(b.ctx, job); err == nil || len(err.Error()) > 300 {
				t.Errorf("%s: %v", job, err)
			}
		}
		time.Sleep(2 * time.Minute)
		b.want("a asked 01T00:00", "b asked 01T00:01")
		b.stop()
		if err := b.d.RunNow(context.Background(), "a"); err == nil {
			t.Error("run by a daemon that has ended")
		}
	})
}

func TestNewRefuses(t *testing.T) {
	run := func(context.Context, Turn) Result { return Result{} }
	for name, jobs := range map[string][]Job{
		"nothing":    nil,
		"never":      {{Name: "a", Kind: Update, Spec: "0 3 31 2 *", Run: run}},
		"no name":    {{Kind: Update, Spec: "@daily", Run: run}},
		"no kind":    {{Name: "a", Spec: "@daily", Run: run}},
		"no work":    {{Name: "a", Kind: Check, Spec: "@daily"}},
		"no time":    {{Name: "a", Kind: Check, Spec: "@daily", Run: run, Window: -1}},
		"same names": {{Name: "a", Kind: Check, Spec: "@daily", Run: run}, {Name: "a", Kind: Update, Spec: "@daily", Run: run}},
	} {
		if _, err := New(jobs, Options{}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// What a process leaves behind is taken up by the next.
func TestMemoryOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "root", "daemon.json")
		process := func(do func(context.Context, Turn) Result, life func(b *bench)) {
			b := newBench(t)
			b.o.Memory = path
			j := b.job("a", "0 6 * * *", do)
			j.CatchUp, j.Window, j.Retry = true, 2*time.Hour, 30*time.Minute
			b.start(j)
			life(b)
			b.stop()
		}
		process(nil, func(b *bench) { // 00:00
			b.logged("waits for its time")
			time.Sleep(time.Hour)
			b.want()
		})
		time.Sleep(7 * time.Hour)
		process(failing(1), func(b *bench) { // 08:00: off at six
			time.Sleep(10 * time.Minute)
			b.want("a catch-up 01T08:00")
		})
		process(nil, func(b *bench) { // 08:10: the retry is still planned, and made once
			time.Sleep(time.Hour)
			b.want("a retry 01T08:30")
			if s := b.o.Hub.State().Jobs[0]; s.Runs != 1 || s.LastSuccess.IsZero() {
				t.Errorf("%+v", s)
			}
		})
		process(func(ctx context.Context, _ Turn) Result { // 09:10
			<-ctx.Done()
			return Result{Exit: 1, Err: ctx.Err()}
		}, func(b *bench) {
			time.Sleep(21 * time.Hour)
			b.want("a scheduled 02T06:00") // and it is interrupted
		})
		process(nil, func(b *bench) {
			time.Sleep(time.Minute)
			b.want("a catch-up 02T06:10")
			b.logged("interrupted")
		})
	})
}
