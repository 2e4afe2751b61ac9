package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCommitNamesRevisions(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	for _, want := range []string{night(1), night(1) + "-r2", night(1) + "-r3", night(2)} {
		version, _ := versionOf(want)
		g := commit(t, sl, version, "")
		if g.Name != want || g.Version != version || g.Active || g.Installed.IsZero() {
			t.Errorf("%+v, want %s", g, want)
		}
		if err := whole(g); err != nil {
			t.Error(err)
		}
		if list := entries(t, g.Dir); !slices.Equal(list, []string{"manifest.json", "opt"}) {
			t.Errorf("a generation holds %q", list)
		}
		if size, err := g.Size(); err != nil || size != int64(filesPerTree*len(version)) {
			t.Errorf("size %d, %v", size, err)
		}
	}
	equal(t, "slot", entries(t, sl.Dir()), []string{"generations", "state.json", "switch.lock"})
}

func TestCommitRefuses(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	ctx, cancel := context.WithCancel(t.Context())
	st, err := sl.Stage(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Commit(night(1)); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty tree: %v", err)
	}
	if err := fill(st.Dir(), night(1), ""); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "../x", "a/b", night(1) + "-r2"} {
		if _, err := st.Commit(bad); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := os.WriteFile(filepath.Join(st.Dir(), "manifest.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Commit(night(1)); err == nil {
		t.Error("a broken manifest was committed")
	}
	cancel()
	if _, err := st.Commit(night(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	if err := errors.Join(st.Abort(), st.Abort()); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Commit(night(1)); err == nil {
		t.Error("committed after Abort")
	}
	if n := names(t, sl); len(n) != 0 {
		t.Errorf("generations %q", n)
	}
	equal(t, "slot", entries(t, sl.Dir()), []string{"generations", "switch.lock"})
}

func TestCommitReturnsAnEqualGeneration(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	first := commit(t, sl, night(1), "sha256:aa")
	commit(t, sl, night(1), "sha256:bb")
	st, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(st.Dir(), night(1), "sha256:aa"); err != nil {
		t.Fatal(err)
	}
	g, err := st.Commit(night(1))
	var ee *ExistsError
	if !errors.Is(err, ErrExists) || !errors.As(err, &ee) || ee.Generation != first.Name || g == nil || g.Name != first.Name {
		t.Fatalf("%v, %v", g, err)
	}
	if _, err := os.Stat(st.Dir()); err != nil {
		t.Errorf("the staging is gone: %v", err)
	}
	if err := st.Abort(); err != nil {
		t.Fatal(err)
	}
	equal(t, "generations", names(t, sl), []string{night(1), night(1) + "-r2"})
}

// What is equal is so under its version only: people go by that.
func TestEqualBytesOfAnotherVersionAreAGeneration(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	commit(t, sl, night(1), "sha256:aa")
	commit(t, sl, night(2), "sha256:aa")
	equal(t, "generations", names(t, sl), []string{night(1), night(2)})
}

func TestNothingHasItsNameBeforeItIsDurable(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	var log []string
	real := s.disk
	state := func() string {
		switch {
		case active(t, sl) != "":
			return "active"
		case len(entries(t, sl.path(generationsName))) > 0:
			return "named"
		}
		return "staged"
	}
	st, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.disk.syncFS = func(p string) error {
		if err := whole(&Generation{Dir: p, Version: night(1)}); err != nil {
			t.Errorf("synced before it was whole: %v", err)
		}
		log = append(log, "tree "+state())
		return real.syncFS(p)
	}
	s.disk.syncDir = func(p string) error {
		log = append(log, filepath.Base(p)+" "+state())
		return real.syncDir(p)
	}
	if err := fill(st.Dir(), night(1), ""); err != nil {
		t.Fatal(err)
	}
	g, err := st.Commit(night(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := sl.Activate(t.Context(), g.Name, ""); err != nil {
		t.Fatal(err)
	}
	equal(t, "order", log, []string{
		"tree staged",
		"generations named", "nightly-gfx1151 named", // the rename
		"nightly-gfx1151 named",  // state.json
		"nightly-gfx1151 active", // current
		"nightly-gfx1151 active", // state.json
	})
	s.disk = real
	install(t, sl, night(2), night(3))
	log = nil
	s.disk.syncDir = func(p string) error {
		for _, e := range entries(t, sl.path()) {
			if strings.HasPrefix(e, dyingPrefix) {
				d, err := filepath.Glob(sl.path(e, "opt/rocm/bin/*"))
				log = append(log, filepath.Base(p))
				if err != nil || len(d) != filesPerTree {
					t.Errorf("deletion began before the rename was durable: %q, %v", d, err)
				}
			}
		}
		return real.syncDir(p)
	}
	if _, err := sl.Prune(t.Context(), Keep{Last: 1}); err != nil {
		t.Fatal(err)
	}
	equal(t, "order of a removal", log, []string{"generations", "nightly-gfx1151", "nightly-gfx1151"})
}

func TestADiskErrorLeavesWhatWasActive(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	broken := errors.New("input/output error")
	s.disk.syncFS = func(string) error { return broken }
	st, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(st.Dir(), night(2), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Commit(night(2)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if err := st.Abort(); err != nil {
		t.Fatal(err)
	}
	equal(t, "generations", names(t, sl), []string{night(1)})
	s.disk = realDisk()
	commit(t, sl, night(2), "")
	s.disk.syncDir = func(string) error { return broken }
	var re *RecordError
	if err := sl.Activate(t.Context(), night(2), ""); !errors.As(err, &re) || re.Generation != night(2) {
		t.Errorf("a switch that is not durable: %v", err)
	}
	if a := active(t, sl); a != night(2) {
		t.Errorf("active: %s", a)
	}
}

func TestAFullDiskStopsNobodyFromGoingBackOrMakingRoom(t *testing.T) {
	s := open(t)
	var events []Event
	s.Event = func(e Event) { events = append(events, e) }
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2), night(3))
	full := &os.PathError{Op: "write", Err: unix.ENOSPC}
	s.disk.replace = func(string, []byte) error { return full }
	from, to, err := sl.Rollback(t.Context())
	var re *RecordError
	if !errors.As(err, &re) || !errors.Is(err, unix.ENOSPC) || from.Name != night(3) || to.Name != night(2) || active(t, sl) != night(2) {
		t.Errorf("%+v, %+v, %v", from, to, err)
	}
	if !sl.Skip(night(3)) || sl.Skip(night(4)) {
		t.Error("the rollback would be undone")
	}
	removed, err := sl.Prune(t.Context(), Keep{Last: 0})
	if err != nil {
		t.Error(err)
	}
	equal(t, "removed", removed.Removed, []string{night(1)})
	equal(t, "slot", entries(t, sl.Dir()), []string{"current", "generations", "state.json", "switch.lock"})
	commit(t, sl, night(4), "")
	if len(events) != 2 || events[0].Kind != EventState {
		t.Errorf("events %+v", events)
	}
	s.disk = realDisk()
	if err := sl.Activate(t.Context(), night(4), ""); err != nil {
		t.Error(err)
	}
	st, err := sl.readState()
	if err != nil || len(st.History) != 5 || !st.History[0].Gone || len(st.Left) != 0 || len(st.Installed) != 3 {
		t.Errorf("recorded later as %+v, %v", st, err)
	}
}

func TestAKilledRunLeavesNothingToDo(t *testing.T) {
	s := open(t)
	var events []Event
	s.Event = func(e Event) { events = append(events, e) }
	sl := s.Slot("nightly", "gfx1151")
	live, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dead, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fill(live.Dir(), night(1), ""), fill(dead.Dir(), night(2), ""),
		dead.lock.Unlock(), // as the kernel does when the process dies
		os.Mkdir(sl.path(".staging-withoutlock"), 0o700),
		os.WriteFile(sl.path(".staging-gone.lock"), nil, 0o600),
		os.MkdirAll(sl.path(".dying-half/opt"), 0o700),
		os.Symlink("generations/x", sl.path(".current-abc")),
		os.WriteFile(sl.path(".state.json123"), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	next, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Base(live.Dir()), filepath.Base(live.Dir()) + ".lock", filepath.Base(next.Dir()), filepath.Base(next.Dir()) + ".lock", "generations", "switch.lock"}
	slices.Sort(want)
	equal(t, "slot", entries(t, sl.Dir()), want)
	if len(events) != 3 || events[0].Kind != EventCleaned || events[0].Slot != sl.Name() {
		t.Errorf("events %+v", events)
	}
	if _, err := live.Commit(night(1)); err != nil {
		t.Errorf("the living were disturbed: %v", err)
	}
	if err := errors.Join(next.Abort(), dead.Abort()); err != nil {
		t.Error(err)
	}
}

func TestReadOnlyTreesAreDeletedByTheirOwner(t *testing.T) {
	root := scratch(t)
	if err := os.Chmod(root, 0o777); err != nil {
		t.Fatal(err)
	}
	asNobody(t, func() {
		s, err := Open(filepath.Join(root, "root"))
		if err != nil {
			t.Error(err)
			return
		}
		sl := s.Slot("nightly", "gfx1151")
		for n := range 3 {
			st, err := sl.Stage(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			err = errors.Join(fill(st.Dir(), night(n), ""), os.Symlink("/", filepath.Join(st.Dir(), "opt/out")), readOnly(st.Dir()))
			if n == 0 && err == nil {
				err = st.Abort()
			} else if err == nil {
				_, err = st.Commit(night(n))
			}
			if err == nil && n > 0 {
				err = errors.Join(os.Chmod(sl.path(generationsName, night(n)), 0o555), sl.Activate(t.Context(), night(n), ""))
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
		if err := sl.Remove(t.Context(), night(1)); err != nil {
			t.Error(err)
		}
		equal(t, "slot", entries(t, sl.Dir()), []string{"current", "generations", "state.json", "switch.lock"})
		if err := removeTree(sl.path(generationsName)); err != nil {
			t.Error(err)
		}
	})
}

// readOnly takes u+w from every directory below dir, the deepest first.
func readOnly(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			dirs = append(dirs, p)
		}
		return err
	})
	for _, d := range slices.Backward(dirs) {
		err = errors.Join(err, os.Chmod(d, 0o555))
	}
	return err
}
