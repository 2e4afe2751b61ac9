package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// heavier gives every generation a file of its own of about so many KiB.
func heavier(t *testing.T, sl *Slot, kib int) {
	t.Helper()
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gens {
		if err := os.WriteFile(filepath.Join(g.Dir, "big"), make([]byte, kib<<10), 0o444); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPruneByAgeAndSize(t *testing.T) {
	all := []string{night(1), night(2), night(3), night(4), night(5)}
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		keep Keep
		want []string // what is left
		kept string   // what was to go and stays, and why
	}{
		"all are young":        {Keep{Last: 5, Days: 6}, all, ""},
		"two are too old":      {Keep{Last: 5, Days: 3}, all[2:], ""},
		"age before number":    {Keep{Last: 4, Days: 3}, all[2:], ""},
		"number before age":    {Keep{Last: 3, Days: 6}, all[2:], ""},
		"too old, but needed":  {Keep{Last: 5, Days: 1}, all[3:], night(4) + " previous"},
		"all fit":              {Keep{Last: 5, Bytes: 6 << 20}, all, ""},
		"three fit":            {Keep{Last: 5, Bytes: 7 << 19}, all[2:], ""},
		"one does not fit":     {Keep{Last: 4, Bytes: 7 << 19}, all[2:], ""},
		"nothing fits":         {Keep{Last: 5, Bytes: 1}, all[3:], night(4) + " previous," + night(5) + " active"},
		"everything is beyond": {Keep{Last: 0, Days: 1, Bytes: 1}, all[3:], night(4) + " previous," + night(5) + " active"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			clock := time.Date(2026, 9, 30, 6, 30, 0, 0, time.UTC)
			s.Now = func() time.Time { return clock }
			sl := s.Slot("nightly", "gfx1151")
			for _, v := range all {
				clock = clock.Add(day)
				install(t, sl, v)
			}
			heavier(t, sl, 1024)
			clock = clock.Add(time.Hour)
			plan, err := sl.PlanPrune(t.Context(), c.keep, "")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "planned and left", names(t, sl), all)
			p, err := sl.Prune(t.Context(), c.keep)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "left", names(t, sl), c.want)
			equal(t, "removed as planned", p.Removed, plan.Removed)
			var kept []string
			for _, k := range p.Kept {
				kept = append(kept, k.Generation+" "+k.Why)
			}
			if got := strings.Join(kept, ","); got != c.kept {
				t.Errorf("kept %q, want %q", got, c.kept)
			}
			if n := int64(len(p.Removed)); p.Freed < n<<20 || p.Freed > n<<20+n<<18 {
				t.Errorf("freed %d bytes with %d generations", p.Freed, n)
			}
		})
	}
}

// TestPruneCountsWhatIsSharedOnce: files of one inode are one file, of what is
// there and of what is freed.
func TestPruneCountsWhatIsSharedOnce(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2), night(3), night(4))
	heavier(t, sl, 1024)
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gens[1:] {
		to := filepath.Join(g.Dir, "shared")
		if err := os.WriteFile(filepath.Join(gens[0].Dir, "shared"), make([]byte, 4<<20), 0o444); g.Name == night(2) && err != nil {
			t.Fatal(err)
		}
		if err := os.Link(filepath.Join(gens[0].Dir, "shared"), to); err != nil {
			t.Fatal(err)
		}
	}
	// Of 8 MiB and a little, one is to go.
	p, err := sl.Prune(t.Context(), Keep{Last: 9, Bytes: 7<<20 + 1<<19})
	if err != nil || p.Freed < 1<<20 || p.Freed > 1<<20+1<<18 {
		t.Errorf("%+v, %v", p, err)
	}
	equal(t, "left", names(t, sl), []string{night(2), night(3), night(4)})
}

func TestPruneLeavesWhatIsInUse(t *testing.T) {
	sl := reachable(t)
	install(t, sl, night(1), night(2), night(3), night(4))
	gens, err := sl.Generations()
	if err != nil {
		t.Fatal(err)
	}
	shell := program(t, &gens[0], "sh", "sh")
	_, stop := start(t, shell, "-c", "echo ready; read x")
	p, err := sl.Prune(t.Context(), Keep{Last: 2})
	if err != nil || len(p.Kept) != 1 || p.Kept[0].Why != KeptInUse || p.Kept[0].Uses.By[0].How != UseExe {
		t.Errorf("%+v, %v", p, err)
	}
	equal(t, "removed", p.Removed, []string{night(2)})
	equal(t, "left", names(t, sl), []string{night(1), night(3), night(4)})
	var used *UsedError
	if err := sl.Remove(t.Context(), night(1)); !errors.As(err, &used) || !errors.Is(err, ErrActive) || !strings.Contains(err.Error(), "sh ") {
		t.Errorf("remove: %v", err)
	}
	stop()
	if p, err = sl.Prune(t.Context(), Keep{Last: 2}); err != nil || len(p.Removed) != 1 {
		t.Errorf("after its end: %+v, %v", p, err)
	}
	// By force, whoever uses it.
	program(t, &gens[2], "sh", "sh")
	start(t, gens[2].Dir+"/opt/rocm/bin/sh", "-c", "echo ready; read x")
	if p, err := sl.RemoveWith(t.Context(), night(3), RemoveOptions{Force: true}); err != nil || len(p.Removed) != 1 {
		t.Errorf("by force: %+v, %v", p, err)
	}
}

// TestPruneSeesWhoComesLate: who leases or opens a generation after it was looked
// at gets it back.
func TestPruneSeesWhoComesLate(t *testing.T) {
	for name, late := range map[string]func(*testing.T, *Slot){
		"a lease": func(t *testing.T, sl *Slot) {
			if _, _, err := sl.store.writeLease(sl.Name(), night(1), os.Getpid()); err != nil {
				t.Error(err)
			}
		},
		"a process": func(t *testing.T, sl *Slot) {
			dir := filepath.Join(sl.Dir(), generationsName, night(1))
			start(t, "sh", "-c", `cd "$1" && echo ready && read x`, "sh", dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			sl := reachable(t)
			install(t, sl, night(1), night(2), night(3))
			r := &removal{names: []string{night(1)}, choose: func(*view) ([]string, []Kept, error) {
				late(t, sl)
				return []string{night(1)}, nil, nil
			}}
			p, err := sl.remove(t.Context(), r)
			if err != nil || len(p.Removed) != 0 || len(p.Kept) != 1 || p.Kept[0].Why != KeptInUse {
				t.Errorf("%+v, %v", p, err)
			}
			equal(t, "left", names(t, sl), []string{night(1), night(2), night(3)})
			gens, err := sl.Generations()
			if err != nil {
				t.Fatal(err)
			}
			if err := whole(&gens[0]); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPruneKeepsWhatWaits: of what was staged beside night 4, Prune keeps what
// Pending chooses, and nothing else.
func TestPruneKeepsWhatWaits(t *testing.T) {
	left := func(names ...string) []string { return append([]string{night(2), night(3)}, names...) }
	for name, c := range map[string]struct {
		do   func(context.Context, *Slot) error
		want []string
	}{
		"newest":          {func(context.Context, *Slot) error { return nil }, left(night(4))},
		"refused":         {func(ctx context.Context, sl *Slot) error { return sl.Refuse(ctx, night(4), "it failed") }, left()},
		"newer is active": {func(ctx context.Context, sl *Slot) error { return installOne(ctx, sl, night(5)) }, []string{night(3), night(5)}},
		"newer is staged": {func(ctx context.Context, sl *Slot) error { return commitOnly(ctx, sl, night(5)) }, left(night(5))},
		"newer is refused": {func(ctx context.Context, sl *Slot) error {
			return errors.Join(commitOnly(ctx, sl, night(5)), sl.Refuse(ctx, night(5), "it failed"))
		}, left(night(4))},
		"was active":      {wasActive, left()},
		"older is staged": {func(ctx context.Context, sl *Slot) error { return commitOnly(ctx, sl, "10.1.0a20260101") }, left(night(4))},
	} {
		t.Run(name, func(t *testing.T) {
			sl := open(t).Slot("nightly", "gfx1151")
			install(t, sl, night(1), night(2), night(3))
			commit(t, sl, night(4), "")
			if err := c.do(t.Context(), sl); err != nil {
				t.Fatal(err)
			}
			if _, err := sl.Prune(t.Context(), Keep{}); err != nil {
				t.Fatal(err)
			}
			equal(t, "left", names(t, sl), c.want)
		})
	}
}

// wasActive makes night 4 active and leaves it for 3, with 2 before that.
func wasActive(ctx context.Context, sl *Slot) error {
	return errors.Join(sl.Activate(ctx, night(4), ""), second(sl.Use(ctx, night(2))), second(sl.Use(ctx, night(3))))
}

func commitOnly(ctx context.Context, sl *Slot, version string) error {
	st, err := sl.Stage(ctx)
	if err != nil {
		return err
	}
	if err := fill(st.Dir(), version, "recipe of "+version); err != nil {
		return err
	}
	_, err = st.Commit(version)
	return err
}

// TestPruneFinishesWhatWasInterrupted: a deletion that was cut short is ended by
// the next run, and is never seen under a generation's name.
func TestPruneFinishesWhatWasInterrupted(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2), night(3))
	ctx, cancel := context.WithCancel(t.Context())
	r := &removal{names: []string{night(1)}, force: true, choose: func(*view) ([]string, []Kept, error) {
		cancel() // the rest of the work under the lock is done; what can wait is not
		return []string{night(1)}, nil, nil
	}}
	if p, err := sl.remove(ctx, r); !errors.Is(err, context.Canceled) || len(p.Removed) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	equal(t, "left", names(t, sl), []string{night(2), night(3)})
	p, err := sl.Prune(t.Context(), Keep{Last: 3})
	if err != nil || p.Debris != 1 || p.Freed == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, e := range entries(t, sl.Dir()) {
		if strings.HasPrefix(e, ".") {
			t.Errorf("debris: %s", e)
		}
	}
}

func TestPlanPruneOfWhatComes(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2), night(3))
	for next, want := range map[string]string{"": "[]", sl.NextName(night(4)): "[" + night(1) + "]", night(2): "[]", sl.NextName(night(3)): "[" + night(1) + "]"} {
		p, err := sl.PlanPrune(t.Context(), Keep{Last: 3}, next)
		if got := fmt.Sprint(p.Removed); err != nil || got != want {
			t.Errorf("with %q: %s, %v, want %s", next, got, err, want)
		}
	}
	if name := sl.NextName(night(3)); name != night(3)+"-r2" {
		t.Errorf("the next of one that is there: %s", name)
	}
	if _, err := sl.PlanPrune(t.Context(), Keep{Days: -1}, ""); err == nil {
		t.Error("kept -1 days")
	}
}
