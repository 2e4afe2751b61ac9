package store

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// parting removes night 1, and has something happen while that is out of sight.
func parting(t *testing.T, sl *Slot, late func()) (Pruned, error) {
	t.Helper()
	return partingIn(t.Context(), sl, late)
}

func partingIn(ctx context.Context, sl *Slot, late func()) (Pruned, error) {
	return sl.remove(ctx, &removal{names: []string{night(1)}, late: late, choose: func(*view) ([]string, []Kept, error) {
		return []string{night(1)}, nil, nil
	}})
}

// TestRollbackWaitsForNoLook: who uses what is found out without the lock, on a
// busy machine that takes longer than a rollback may.
func TestRollbackWaitsForNoLook(t *testing.T) {
	sl := reachable(t)
	install(t, sl, night(1), night(2), night(3))
	p, err := parting(t, sl, func() {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, to, err := sl.Rollback(ctx); err != nil || to.Name != night(2) {
			t.Errorf("%+v, %v", to, err)
		}
	})
	if err != nil || len(p.Removed) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	equal(t, "left", names(t, sl), []string{night(2), night(3)})
	equal(t, "active", []string{active(t, sl)}, []string{night(2)})
}

// TestPartedComesBack: what is out of sight and not decided about is there again,
// whole, whatever ends the run that took it away.
func TestPartedComesBack(t *testing.T) {
	all := []string{night(1), night(2), night(3)}
	for name, c := range map[string]struct {
		late    func(*testing.T, *Slot, context.CancelFunc)
		err     error
		removed int
	}{
		"leased":              {late: func(t *testing.T, sl *Slot, _ context.CancelFunc) { writeLateLease(t, sl) }},
		"cancelled":           {late: func(_ *testing.T, _ *Slot, cancel context.CancelFunc) { cancel() }, err: context.Canceled},
		"taken for abandoned": {late: func(t *testing.T, sl *Slot, _ context.CancelFunc) { healNow(t, sl) }},
	} {
		t.Run(name, func(t *testing.T) {
			sl := reachable(t)
			install(t, sl, all...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, err := partingIn(ctx, sl, func() { c.late(t, sl, cancel) })
			if !errors.Is(err, c.err) || len(p.Removed) != 0 {
				t.Errorf("%+v, %v", p, err)
			}
			st, err := sl.State()
			if err != nil || len(st.Installed) != 3 || st.Installed[0].Generation != night(1) {
				t.Errorf("%+v, %v", st, err)
			}
			equal(t, "left", names(t, sl), all)
		})
	}
}

func writeLateLease(t *testing.T, sl *Slot) {
	if _, _, err := sl.store.writeLease(sl.Name(), night(1), os.Getpid()); err != nil {
		t.Error(err)
	}
}

func healNow(t *testing.T, sl *Slot) {
	if err := sl.heal(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestKilledBeforeItDecided: of a run that was killed with a generation out of
// sight, the next one makes what it would have made without that.
func TestKilledBeforeItDecided(t *testing.T) {
	for name, c := range map[string]struct {
		next func(context.Context, *Slot) error
		want []string
	}{
		"prune that keeps it": {func(ctx context.Context, sl *Slot) error { return only(sl.Prune(ctx, Keep{Last: 3})) }, []string{night(1), night(2), night(3)}},
		"prune":               {func(ctx context.Context, sl *Slot) error { return only(sl.Prune(ctx, Keep{Last: 2})) }, []string{night(2), night(3)}},
		"remove":              {func(ctx context.Context, sl *Slot) error { return sl.Remove(ctx, night(1)) }, []string{night(2), night(3)}},
		"stage":               {func(ctx context.Context, sl *Slot) error { return commitOnly(ctx, sl, night(4)) }, []string{night(1), night(2), night(3), night(4)}},
		"its name is taken": {func(ctx context.Context, sl *Slot) error {
			if err := os.Mkdir(sl.path(generationsName, night(1)), 0o755); err != nil {
				return err
			}
			return only(sl.Prune(ctx, Keep{Last: 3}))
		}, []string{night(1), night(2), night(3)}},
	} {
		t.Run(name, func(t *testing.T) {
			sl := open(t).Slot("nightly", "gfx1151")
			install(t, sl, night(1), night(2), night(3))
			if err := os.Rename(sl.path(generationsName, night(1)), sl.path(partedPrefix+random()+"-"+night(1))); err != nil {
				t.Fatal(err)
			}
			if err := c.next(t.Context(), sl); err != nil {
				t.Fatal(err)
			}
			equal(t, "left", names(t, sl), c.want)
			if gens, err := sl.Generations(); err != nil || name == "stage" && whole(&gens[0]) != nil {
				t.Error(err)
			}
			for _, e := range entries(t, sl.Dir()) {
				if e[0] == '.' {
					t.Errorf("debris: %s", e)
				}
			}
		})
	}
}

// only is the error of what returns something besides.
func only[T any](_ T, err error) error { return err }
