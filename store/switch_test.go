package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestActivateRollbackUse(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	if _, err := sl.Before(); !errors.Is(err, ErrNoOther) {
		t.Errorf("nothing was before: %v", err)
	}
	if _, _, err := sl.Rollback(t.Context()); !errors.Is(err, ErrNoOther) {
		t.Errorf("rolled back with one generation: %v", err)
	}
	install(t, sl, night(2), night(3))
	equal(t, "generations", names(t, sl), []string{night(1), night(2), night(3)})

	if before, err := sl.Before(); before != night(2) || err != nil {
		t.Errorf("before: %q, %v", before, err)
	}
	from, to, err := sl.Rollback(t.Context())
	if err != nil || from.Name != night(3) || to.Name != night(2) || from.Active || !to.Active || active(t, sl) != night(2) {
		t.Fatalf("rollback: %+v to %+v, %v", from, to, err)
	}
	if _, to, err = sl.Rollback(t.Context()); err != nil || to.Name != night(3) {
		t.Errorf("rollback of a rollback: %+v, %v", to, err)
	}
	if from, to, err = sl.Use(t.Context(), night(1)); err != nil || from.Name != night(3) || to.Name != night(1) || active(t, sl) != night(1) {
		t.Errorf("use: %+v to %+v, %v", from, to, err)
	}
	if from, to, err = sl.Use(t.Context(), night(1)); err != nil || from.Name != to.Name {
		t.Errorf("use of what is active: %+v to %+v, %v", from, to, err)
	}
	st, err := sl.State()
	if err != nil {
		t.Fatal(err)
	}
	var why []string
	for _, a := range st.History {
		why = append(why, a.Generation[len(a.Generation)-2:]+" "+a.Why)
	}
	equal(t, "history", why, []string{"01 update", "02 update", "03 update", "02 rollback", "03 rollback", "01 use"})

	var ge *GenerationError
	if _, _, err := sl.Use(t.Context(), night(9)); !errors.As(err, &ge) || len(ge.Have) != 3 {
		t.Errorf("use of what is not there: %v", err)
	}
	if err := sl.Activate(t.Context(), "../..", ""); !errors.As(err, &ge) {
		t.Errorf("activate of what is not there: %v", err)
	}
	if err := s.Slot("rc", "gfx1151").Activate(t.Context(), night(1), ""); !errors.As(err, &ge) || !strings.Contains(err.Error(), "nothing is installed") {
		t.Errorf("activate in a slot that is not there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Root(), "slots/rc-gfx1151")); err == nil {
		t.Error("the slot was made")
	}
	if target, err := os.Readlink(sl.CurrentPath()); err != nil || target != "generations/"+night(1) {
		t.Errorf("current -> %s, %v", target, err)
	}
}

func TestUsePrefersTheNewestRevision(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(1), night(2))
	for name, want := range map[string]string{night(1): night(1) + "-r2", night(1) + "-r2": night(1) + "-r2", night(1) + "-r1": night(1)} {
		if _, to, err := sl.Use(t.Context(), name); err != nil || to.Name != want {
			t.Errorf("use %s: %+v, %v", name, to, err)
		}
	}
}

func TestRollbackWaitsForNoRun(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2))
	lock, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	st, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, to, err := sl.Rollback(t.Context()); err != nil || to.Name != night(1) {
		t.Errorf("%+v, %v", to, err)
	}
	if err := errors.Join(st.Abort(), lock.Release()); err != nil {
		t.Error(err)
	}
	// Of switch.lock itself, the wait ends with the context.
	fl, err := sl.store.waitLock(t.Context(), sl.path(switchLock), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer fl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := sl.Rollback(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestRollbackIsNotUndone(t *testing.T) {
	const dev = "10.3.0.dev0+"
	for name, c := range map[string]struct {
		do         func(sl *Slot, ctx context.Context) error
		skip, take []string
	}{
		"nothing left": {func(*Slot, context.Context) error { return nil }, nil, []string{night(3), night(4), night(1)}},
		"rollback": {func(sl *Slot, ctx context.Context) error { return second(sl.Rollback(ctx)) },
			[]string{night(3), night(2), night(1)}, []string{night(4), dev + "aaa"}},
		"use": {func(sl *Slot, ctx context.Context) error { return second(sl.Use(ctx, night(1))) },
			[]string{night(3), night(2)}, []string{night(4)}},
		"there and back": {func(sl *Slot, ctx context.Context) error {
			return errors.Join(second(sl.Rollback(ctx)), second(sl.Rollback(ctx)))
		}, nil, []string{night(3), night(4)}},
		"use of two": {func(sl *Slot, ctx context.Context) error {
			return errors.Join(second(sl.Rollback(ctx)), second(sl.Use(ctx, night(1))))
		}, []string{night(2), night(3)}, []string{night(4)}},
		"an older one activated": {func(sl *Slot, ctx context.Context) error {
			return errors.Join(second(sl.Rollback(ctx)), sl.Activate(ctx, night(1), "activate"))
		}, []string{night(3)}, []string{night(4)}},
		"the left one activated": {func(sl *Slot, ctx context.Context) error {
			return errors.Join(second(sl.Rollback(ctx)), sl.Activate(ctx, night(3), "activate"))
		}, nil, []string{night(3), night(4)}},
		"a newer one activated": {func(sl *Slot, ctx context.Context) error {
			return errors.Join(second(sl.Rollback(ctx)), installOne(ctx, sl, night(4)))
		}, nil, []string{night(3), night(5)}},
		"unhold": {func(sl *Slot, ctx context.Context) error {
			return errors.Join(second(sl.Rollback(ctx)), sl.Unhold(ctx))
		}, nil, []string{night(3), night(4)}},
		"another recipe of the same version": {func(sl *Slot, ctx context.Context) error {
			return errors.Join(installOne(ctx, sl, night(3)), second(sl.Rollback(ctx)))
		}, []string{night(3)}, []string{night(4)}},
		"builds of commits": {func(sl *Slot, ctx context.Context) error {
			return errors.Join(installOne(ctx, sl, dev+"aaa"), installOne(ctx, sl, dev+"bbb"), second(sl.Rollback(ctx)))
		}, []string{dev + "bbb", night(3)}, []string{dev + "ccc"}},
		"killed before the record": {func(sl *Slot, ctx context.Context) error {
			return sl.store.disk.replaceLink(sl.path(), currentName, currentPrefix, "generations/"+night(2))
		}, []string{night(3)}, []string{night(4)}},
	} {
		t.Run(name, func(t *testing.T) {
			sl := open(t).Slot("nightly", "gfx1151")
			install(t, sl, night(1), night(2), night(3))
			if err := c.do(sl, t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, v := range c.skip {
				if !sl.Skip(v) {
					t.Errorf("%s is not skipped", v)
				}
			}
			for _, v := range c.take {
				if sl.Skip(v) {
					t.Errorf("%s is skipped", v)
				}
			}
		})
	}
}

func second(_, _ *Generation, err error) error { return err }

func TestRollbackPassesOverWhatWasRefused(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2), night(3))
	bad := commit(t, sl, night(4), "sha256:dd")
	ctx := t.Context()
	if err := errors.Join(sl.Activate(ctx, bad.Name, "update"), sl.Refuse(ctx, "sha256:dd", "rocminfo did not start")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{night(3), night(2)} {
		// The second goes on, where it would otherwise come back to what failed.
		if want == night(2) {
			if err := sl.Remove(ctx, night(1)); err != nil {
				t.Fatal(err)
			}
		}
		if _, to, err := sl.Rollback(ctx); err != nil || to.Name != want {
			t.Errorf("%+v, %v, want %s", to, err, want)
		}
	}
	if r, err := sl.Refused("sha256:dd"); err != nil || r == nil || r.Reason != "rocminfo did not start" {
		t.Errorf("%+v, %v", r, err)
	}
	if err := errors.Join(sl.Remove(ctx, night(3)), sl.Refuse(ctx, "x", "")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := sl.Rollback(ctx); !errors.Is(err, ErrNoOther) {
		t.Errorf("went back to what failed: %v", err)
	}
	if err := sl.Forgive(ctx, "sha256:dd"); err != nil {
		t.Fatal(err)
	}
	if _, to, err := sl.Rollback(ctx); err != nil || to.Name != bad.Name {
		t.Errorf("%+v, %v", to, err)
	}
}

func TestABrokenCurrentIsMendedByUse(t *testing.T) {
	for _, target := range []string{"/etc", "generations/" + night(9), "generations/../..", "generations/x/y", ""} {
		sl := open(t).Slot("nightly", "gfx1151")
		install(t, sl, night(1), night(2))
		if err := os.Remove(sl.CurrentPath()); err != nil {
			t.Fatal(err)
		}
		if target != "" {
			if err := os.Symlink(target, sl.CurrentPath()); err != nil {
				t.Fatal(err)
			}
			if g, err := sl.Current(); err == nil {
				t.Errorf("%q: current is %+v", target, g)
			}
			if _, err := sl.Prune(t.Context(), Keep{Last: 0}); err == nil {
				t.Errorf("%q: pruned without knowing what is in use", target)
			}
		}
		if from, to, err := sl.Rollback(t.Context()); err != nil || from != nil || to.Name != night(2) {
			t.Errorf("%q: rollback to %+v, %v", target, to, err)
		}
		if _, _, err := sl.Use(t.Context(), night(1)); err != nil || active(t, sl) != night(1) {
			t.Errorf("%q: %v", target, err)
		}
	}
}

func TestPruneKeepsWhatMatters(t *testing.T) {
	all := []string{night(1), night(2), night(3), night(4), night(5)}
	nothing := func(context.Context, *Slot) error { return nil }
	for name, c := range map[string]struct {
		do   func(context.Context, *Slot) error
		keep int
		want []string
	}{
		"three":      {nothing, 3, all[2:]},
		"all":        {nothing, 5, all},
		"more":       {nothing, 50, all},
		"none":       {nothing, 0, all[3:]},
		"rolledback": {func(ctx context.Context, sl *Slot) error { return second(sl.Use(ctx, night(1))) }, 2, []string{night(1), night(4), night(5)}},
		"held": {func(ctx context.Context, sl *Slot) error {
			return errors.Join(second(sl.Use(ctx, night(2))), sl.Hold(ctx, time.Time{}, "a deadline"), sl.Activate(ctx, night(4), ""), sl.Activate(ctx, night(5), ""))
		}, 1, []string{night(2), night(4), night(5)}},
		"hold over": {func(ctx context.Context, sl *Slot) error {
			return errors.Join(second(sl.Use(ctx, night(2))), sl.Hold(ctx, time.Unix(0, 0), ""), sl.Activate(ctx, night(4), ""), sl.Activate(ctx, night(5), ""))
		}, 1, []string{night(4), night(5)}},
		"nothing active": {func(_ context.Context, sl *Slot) error {
			return errors.Join(os.Remove(sl.CurrentPath()), os.Remove(sl.path(stateName)))
		}, 0, []string{night(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			sl := open(t).Slot("nightly", "gfx1151")
			install(t, sl, all...)
			if err := c.do(t.Context(), sl); err != nil {
				t.Fatal(err)
			}
			removed, err := sl.Prune(t.Context(), Keep{Last: c.keep})
			if err != nil || len(removed.Removed)+len(c.want) != len(all) {
				t.Errorf("removed %+v, %v", removed, err)
			}
			equal(t, "left", names(t, sl), c.want)
			for _, e := range entries(t, sl.Dir()) {
				if strings.HasPrefix(e, ".") {
					t.Errorf("debris: %s", e)
				}
			}
		})
	}
}

func TestRemove(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2), night(3))
	ctx := t.Context()
	if err := sl.Remove(ctx, night(3)); !errors.Is(err, ErrActive) {
		t.Errorf("the active one: %v", err)
	}
	if err := errors.Join(second(sl.Use(ctx, night(2))), sl.Hold(ctx, time.Time{}, ""), sl.Activate(ctx, night(3), "")); err != nil {
		t.Fatal(err)
	}
	if err := sl.Remove(ctx, night(2)); !errors.Is(err, ErrActive) {
		t.Errorf("a held one: %v", err)
	}
	if h, err := sl.Held(); err != nil || h == nil || h.Generation != night(2) {
		t.Errorf("held: %+v, %v", h, err)
	}
	if err := errors.Join(sl.Unhold(ctx), sl.Remove(ctx, night(2)), sl.Remove(ctx, night(1))); err != nil {
		t.Error(err)
	}
	if h, err := sl.Held(); h != nil || err != nil {
		t.Errorf("held: %+v, %v", h, err)
	}
	var ge *GenerationError
	if err := sl.Remove(ctx, night(1)); !errors.As(err, &ge) {
		t.Errorf("what is gone: %v", err)
	}
	if _, err := sl.Prune(ctx, Keep{Last: -1}); err == nil {
		t.Error("kept -1")
	}
	equal(t, "left", names(t, sl), []string{night(3)})
	none := sl.store.Slot("rc", "gfx1151")
	if removed, err := none.Prune(ctx, Keep{Last: 1}); len(removed.Removed) != 0 || err != nil {
		t.Errorf("prune of nothing: %+v, %v", removed, err)
	}
	if err := none.Remove(ctx, night(1)); !errors.As(err, &ge) {
		t.Errorf("remove from nothing: %v", err)
	}
}
