package store

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// pendingName is what waits in a slot, "" for nothing.
func pendingName(t *testing.T, sl *Slot) string {
	t.Helper()
	g, err := sl.Pending()
	if err != nil {
		t.Fatal(err)
	}
	if g == nil {
		return ""
	}
	return g.Name
}

func TestPending(t *testing.T) {
	ctx := t.Context()
	const dev = "10.3.0.dev0+"
	for name, c := range map[string]struct {
		do   func(sl *Slot) error
		want string
	}{
		"nothing newer":    {func(*Slot) error { return nil }, ""},
		"one":              {func(sl *Slot) error { commit(t, sl, night(3), "c"); return nil }, night(3)},
		"an older one":     {func(sl *Slot) error { commit(t, sl, night(1), "c"); return nil }, ""},
		"the newest":       {func(sl *Slot) error { commit(t, sl, night(4), "c"); commit(t, sl, night(3), "d"); return nil }, night(4)},
		"another recipe":   {func(sl *Slot) error { commit(t, sl, night(2), "c"); return nil }, night(2) + "-r2"},
		"a commit's build": {func(sl *Slot) error { commit(t, sl, dev+"aaa", "c"); return nil }, dev + "aaa"},
		"a refused one": {func(sl *Slot) error {
			commit(t, sl, night(3), "c")
			return sl.RefuseAs(ctx, "k", Refusal{Generation: night(3), Reason: "r"})
		}, ""},
		"before a refused one": {func(sl *Slot) error {
			commit(t, sl, night(3), "c")
			commit(t, sl, night(4), "d")
			return sl.Refuse(ctx, "d", "its recipe")
		}, night(3)},
		"what was left": {func(sl *Slot) error { return second(sl.Rollback(ctx)) }, ""},
		"newer than what was left": {func(sl *Slot) error {
			err := second(sl.Rollback(ctx))
			commit(t, sl, night(3), "c")
			return err
		}, night(3)},
		"what was left, after unhold": {func(sl *Slot) error { return errors.Join(second(sl.Rollback(ctx)), sl.Unhold(ctx)) }, night(2)},
		"what a run has replaced":     {func(sl *Slot) error { return sl.Activate(ctx, night(1), WhyUpdate) }, ""},
		"newer than what a run has replaced": {func(sl *Slot) error {
			commit(t, sl, night(3), "c")
			return sl.Activate(ctx, night(1), WhyUpdate)
		}, night(3)},
		"nothing is active": {func(sl *Slot) error { return os.Remove(sl.CurrentPath()) }, night(2)},
	} {
		t.Run(name, func(t *testing.T) {
			sl := open(t).Slot("nightly", "gfx1151")
			install(t, sl, night(1), night(2))
			if err := c.do(sl); err != nil {
				t.Fatal(err)
			}
			if got := pendingName(t, sl); got != c.want {
				t.Errorf("%q waits, want %q", got, c.want)
			}
		})
	}
}

// inShort is what a slot says about its health, in short: active, known good, unproven.
func inShort(t *testing.T, sl *Slot) [3]string {
	t.Helper()
	st, err := sl.State()
	if err != nil {
		t.Fatal(err)
	}
	open := ""
	if st.Unproven != nil {
		open = st.Unproven.Generation
	}
	return [3]string{active(t, sl), st.KnownGood(), open}
}

func TestTryProveRevert(t *testing.T) {
	ctx := t.Context()
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	check := func(what string, want ...string) {
		t.Helper()
		if got := inShort(t, sl); got != [3]string(want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	check("installed", night(1), night(1), "")
	commit(t, sl, night(2), "b")
	if err := sl.Try(ctx, night(2), "update"); err != nil {
		t.Fatal(err)
	}
	check("tried", night(2), night(1), night(2))
	if err := sl.Prove(ctx, night(2)); err != nil {
		t.Fatal(err)
	}
	check("proven", night(2), night(2), "")

	commit(t, sl, night(3), "c")
	if err := sl.Try(ctx, night(3), "update"); err != nil {
		t.Fatal(err)
	}
	to, err := sl.Revert(ctx, night(3), "key", Refusal{Generation: night(3), Kind: "health", Reason: "r"})
	if err != nil || to.Name != night(2) {
		t.Fatalf("%+v, %v", to, err)
	}
	check("reverted", night(2), night(2), "")
	st, err := sl.State()
	if err != nil || st.History[len(st.History)-1].Why != "health" || len(st.Left) != 0 || st.Refused["key"].Kind != "health" || st.Refused["key"].At.IsZero() {
		t.Errorf("%+v, %v", st, err)
	}
	// A person is not second-guessed, and may end the doubt.
	if err := second(sl.Use(ctx, night(3))); err != nil {
		t.Fatal(err)
	}
	check("used", night(3), night(3), "")
	if r, err := sl.Refused("key"); err != nil || r != nil {
		t.Errorf("%+v, %v", r, err)
	}
	if err := errors.Join(sl.Try(ctx, night(3), "again"), second(sl.Use(ctx, night(3)))); err != nil {
		t.Fatal(err)
	}
	check("used while in doubt", night(3), night(3), "")
	if err := errors.Join(sl.Try(ctx, night(3), "again"), second(sl.Rollback(ctx))); err != nil {
		t.Fatal(err)
	}
	check("rolled back while in doubt", night(2), night(2), "")
	// Who comes too late moves nothing.
	if to, err := sl.Revert(ctx, night(3), "late", Refusal{Generation: night(3)}); err != nil || to.Name != night(2) || active(t, sl) != night(2) {
		t.Errorf("%+v, %v", to, err)
	}
	if err := sl.Prove(ctx, night(3)); err != nil {
		t.Fatal(err)
	}
	check("proven too late", night(2), night(2), "")
}

func TestRevertWithNothingBefore(t *testing.T) {
	ctx := t.Context()
	sl := open(t).Slot("nightly", "gfx1151")
	commit(t, sl, night(1), "a")
	if err := sl.Try(ctx, night(1), "update"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if to, err := sl.Revert(ctx, night(1), "key", Refusal{Generation: night(1)}); err != nil || to != nil || active(t, sl) != night(1) {
			t.Errorf("%+v, %v", to, err)
		}
	}
	// Nor to one that was refused itself.
	commit(t, sl, night(2), "b")
	if err := sl.Try(ctx, night(2), "update"); err != nil {
		t.Fatal(err)
	}
	if to, err := sl.Revert(ctx, night(2), "key2", Refusal{Generation: night(2)}); err != nil || to != nil || active(t, sl) != night(2) {
		t.Errorf("%+v, %v", to, err)
	}
}

// The doubt is on the disk before the switch, and the end of it before the
// switch back: whenever a process dies, the next one knows.
func TestDoubtIsWrittenBeforeTheSwitch(t *testing.T) {
	ctx := t.Context()
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	commit(t, sl, night(2), "b")
	real := s.disk.replace
	var seen []string
	s.disk.replace = func(path string, data []byte) error {
		if strings.HasSuffix(path, stateName) {
			st, err := parseState(data)
			if err != nil {
				return err
			}
			line := active(t, sl)
			if st.Unproven != nil {
				line += " doubts " + st.Unproven.Generation + " " + st.Unproven.Failed
			}
			seen = append(seen, strings.TrimSpace(line))
		}
		return real(path, data)
	}
	if err := sl.Try(ctx, night(2), "update"); err != nil {
		t.Fatal(err)
	}
	if _, err := sl.Revert(ctx, night(2), "key", Refusal{Reason: "bad", Generation: night(2)}); err != nil {
		t.Fatal(err)
	}
	equal(t, "what was written", seen, []string{
		night(1) + " doubts " + night(2), night(2) + " doubts " + night(2),
		night(2) + " doubts " + night(2) + " bad", night(1),
	})

	// No record, no switch; but what has failed is left without one, too.
	full := errors.New("no space")
	s.disk.replace = func(string, []byte) error { return full }
	if err := sl.Try(ctx, night(2), "update"); !errors.Is(err, full) || active(t, sl) != night(1) {
		t.Errorf("%s, %v", active(t, sl), err)
	}
	s.disk.replace = real
	if err := sl.Try(ctx, night(2), "update"); err != nil {
		t.Fatal(err)
	}
	s.disk.replace = func(string, []byte) error { return full }
	var unrecorded *RecordError
	if to, err := sl.Revert(ctx, night(2), "key", Refusal{Reason: "bad"}); !errors.As(err, &unrecorded) || to == nil || active(t, sl) != night(1) {
		t.Errorf("%+v, %v", to, err)
	}
}

// A process that died between the switch back and its record: it was a check
// that failed, and nobody has left anything.
func TestAnInterruptedRevertIsNoChoice(t *testing.T) {
	ctx := t.Context()
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	commit(t, sl, night(2), "b")
	if err := sl.Try(ctx, night(2), "update"); err != nil {
		t.Fatal(err)
	}
	real, n := s.disk.replace, 0
	s.disk.replace = func(path string, data []byte) error {
		if n++; n > 1 {
			return errors.New("killed")
		}
		return real(path, data)
	}
	if _, err := sl.Revert(ctx, night(2), "key", Refusal{Reason: "bad", Generation: night(2)}); err == nil {
		t.Fatal("it was not interrupted")
	}
	s.disk.replace = real
	st, err := sl.State()
	if err != nil || len(st.Left) != 0 || st.Unproven != nil || st.KnownGood() != night(1) || st.History[len(st.History)-1].Why != "health" || sl.Skip(night(2)) {
		t.Errorf("%+v, %v", st, err)
	}
	if got := pendingName(t, sl); got != "" {
		t.Errorf("%s waits, which was refused", got)
	}
}

// Where state.json was lost, what came after the switch waits, and what was
// here before it was left.
func TestALostStateTellsWaitingFromLeft(t *testing.T) {
	for name, left := range map[string]bool{"waits": false, "was left": true} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.Now = time.Now
			sl := s.Slot("nightly", "gfx1151")
			install(t, sl, night(1))
			if left {
				install(t, sl, night(2))
				if err := second(sl.Rollback(t.Context())); err != nil {
					t.Fatal(err)
				}
			} else {
				commit(t, sl, night(2), "b")
			}
			if err := os.Remove(sl.path(stateName)); err != nil {
				t.Fatal(err)
			}
			for range 2 { // lost, and torn
				if sl.Skip(night(2)) != left || (pendingName(t, sl) == "") != left {
					t.Errorf("skip %v, %q waits", sl.Skip(night(2)), pendingName(t, sl))
				}
				if err := os.WriteFile(sl.path(stateName), []byte("{"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A hold that is prolonged is as old as it was.
func TestAHoldGoesOn(t *testing.T) {
	ctx := t.Context()
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	if err := sl.Hold(ctx, time.Time{}, "a"); err != nil {
		t.Fatal(err)
	}
	first, err := sl.Held()
	if err != nil {
		t.Fatal(err)
	}
	if err := sl.Hold(ctx, time.Time{}, "b"); err != nil {
		t.Fatal(err)
	}
	if h, err := sl.Held(); err != nil || !h.Since.Equal(first.Since) || h.Reason != "b" {
		t.Errorf("%+v, %v", h, err)
	}
}

// While the active one is unproven its way back cannot be removed.
func TestTheWayBackIsNotRemoved(t *testing.T) {
	ctx := t.Context()
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2))
	commit(t, sl, night(3), "c")
	if err := sl.Try(ctx, night(3), WhyUpdate); err != nil {
		t.Fatal(err)
	}
	if _, err := sl.RemoveWith(ctx, night(2), RemoveOptions{Force: true}); !errors.Is(err, ErrActive) || !strings.Contains(err.Error(), "still to be made") {
		t.Errorf("%v", err)
	}
	if err := sl.Remove(ctx, night(1)); err != nil {
		t.Error(err)
	}
	if err := sl.Prove(ctx, night(3)); err != nil {
		t.Fatal(err)
	}
	if err := sl.Remove(ctx, night(2)); err != nil {
		t.Error(err)
	}
}
