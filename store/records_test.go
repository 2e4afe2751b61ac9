package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

func TestStateCanBeLost(t *testing.T) {
	for name, content := range map[string]string{"lost": "-", "empty": "", "torn": `{"schema": 1, "history": [{`, "other": `[]`, "no schema": `{}`, "long": strings.Repeat(" ", maxStateLen+1)} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			sl := s.Slot("nightly", "gfx1151")
			install(t, sl, night(3), night(1), night(2))
			path := sl.path(stateName)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if content != "-" {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			equal(t, "generations", names(t, sl), []string{night(1), night(2), night(3)}) // now by version
			if active(t, sl) != night(2) {
				t.Error("current has changed")
			}
			if _, to, err := sl.Rollback(t.Context()); err != nil || to.Name != night(3) {
				t.Errorf("rollback to %+v, %v", to, err)
			}
			st, err := sl.readState()
			if err != nil || len(st.Installed) != 3 || len(st.History) != 2 || st.History[0].Why != "found" {
				t.Errorf("rebuilt as %+v, %v", st, err)
			}
			kept, err := os.ReadFile(path + ".broken")
			if content == "-" && !errors.Is(err, fs.ErrNotExist) || content != "-" && string(kept) != content {
				t.Errorf("kept %.40q, %v", kept, err)
			}
		})
	}
}

func TestANewerStateIsLeftAlone(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2))
	const newer = `{"schema": 2, "history": "a song"}`
	if err := os.WriteFile(sl.path(stateName), []byte(`{"schema": 2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := sl.Generations()
	for _, err := range []error{err, second(sl.Rollback(t.Context())), sl.Activate(t.Context(), night(1), "")} {
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "upgrade") {
			t.Errorf("%v", err)
		}
	}
	if active(t, sl) != night(2) {
		t.Error("current has changed")
	}
	if _, err := parseState([]byte(newer)); err == nil {
		t.Error("read")
	}
}

func TestAnUnrecordedGenerationIsSeen(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	install(t, sl, night(2))
	if err := fill(sl.path(generationsName, night(1)), night(1), ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sl.path(generationsName, "a file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	equal(t, "generations", names(t, sl), []string{night(2), night(1)})
	if err := sl.Activate(t.Context(), night(1), "resumed"); err != nil {
		t.Error(err)
	}
	gens, err := sl.Generations()
	if err != nil || !gens[1].Active || gens[0].Active || gens[1].Installed.IsZero() {
		t.Errorf("%+v, %v", gens, err)
	}
}

func TestStateIsBounded(t *testing.T) {
	st := &State{Schema: 1, Refused: map[string]Refusal{}}
	for i := range 1000 {
		st.History = append(st.History, Activation{Generation: night(i)})
		st.Left = append(st.Left, night(i))
		st.Refused[night(i)] = Refusal{At: time.Unix(int64(i), 0)}
	}
	st.trim()
	_, newest := st.Refused[night(999)]
	if len(st.History) != 200 || st.History[199].Generation != night(999) || len(st.Left) != maxLeft || len(st.Refused) != maxRefused || !newest {
		t.Errorf("%d activations, %d left, %d refused", len(st.History), len(st.Left), len(st.Refused))
	}
}

func TestRuns(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	if runs, err := sl.Runs(); len(runs) != 0 || err != nil {
		t.Errorf("%v, %v", runs, err)
	}
	var got struct{ N int }
	if err := sl.ReadRun("none", &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for n := range maxRuns + 5 {
		if err := sl.WriteRun(night(n), struct{ N int }{n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := sl.WriteRun(night(50), struct{ N int }{5000}); err != nil {
		t.Fatal(err)
	}
	old := sl.path(runsName, ".x.json12")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chtimes(old, time.Unix(0, 0), time.Unix(0, 0)), sl.WriteRun(night(60), 1)); err != nil {
		t.Fatal(err)
	}
	runs, err := sl.Runs()
	if err != nil || len(runs) != maxRuns || runs[0].Name != night(60) || runs[1].Name != night(50) || runs[2].Name != night(104) || runs[99].Name != night(5) {
		t.Errorf("%d runs: %v, %v", len(runs), runs, err)
	}
	if err := sl.ReadRun(night(50), &got); err != nil || got.N != 5000 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a record is left: %v", err)
	}
	if err := sl.WriteRun("x", func() {}); err == nil {
		t.Error("wrote a function")
	}
}

// pinOf returns a pin whose digest is made of n.
func pinOf(name string, n int) LedgerEntry {
	return NewLedgerEntry(release.Pin{
		Release: release.Release{Channel: "nightly", Name: name, Family: "gfx1151", URL: "https://example.com/" + name},
		Digest:  release.Digest(fmt.Sprintf("sha256:%064x", n)), Size: int64(n),
	}, time.Time{})
}

func TestTheLedgerOnlyGrows(t *testing.T) {
	s := open(t)
	path := filepath.Join(s.Root(), ledgerName)
	if pins, err := s.FindPins("a"); len(pins) != 0 || err != nil {
		t.Errorf("%v, %v", pins, err)
	}
	add := func(name string, n int) {
		t.Helper()
		before, _ := os.ReadFile(path)
		if err := s.AppendPin(pinOf(name, n)); err != nil {
			t.Fatal(err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(after, before) {
			t.Fatalf("the ledger was changed: %v", err)
		}
	}
	find := func(name string, want ...int64) {
		t.Helper()
		pins, err := s.FindPins(name)
		var got []int64
		for _, p := range pins {
			got = append(got, p.Size)
			if p.FirstSeen.IsZero() || p.Schema != ledgerSchema || p.Name != name {
				t.Errorf("%+v", p)
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
	add("a", 1)
	add("b", 1)
	add("a", 1)
	add("a", 2) // other bytes under the same name
	find("a", 1, 2)
	find("b", 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range bytes.LastIndexByte(whole[:len(whole)-1], '\n') { // torn anywhere
		if cut%37 == 0 {
			if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			add("c", 7)
			find("c", 7)
		}
	}
	junk := "\n{\n\x00\x00\x00\n[]\n" + strings.Repeat("x", 3*maxLedgerLine) + "\n" + `{"schema":1,"name":"a","digest":"md5:1"}` + "\n" + `{"schema":9,"name":"z"}`
	if err := os.WriteFile(path, slices.Concat(whole, []byte(junk)), 0o600); err != nil {
		t.Fatal(err)
	}
	add("d", 9)
	find("a", 1, 2)
	find("d", 9)
	if _, err := s.FindPins("z"); !errors.Is(err, ErrNewer) {
		t.Errorf("a newer line: %v", err)
	}
	for _, bad := range []LedgerEntry{{}, {Name: "a"}, {Name: "a", Digest: "sha256:1"}, {Digest: pinOf("", 1).Digest}, pinOf(strings.Repeat("n", maxLedgerLine), 1)} {
		if err := s.AppendPin(bad); err == nil {
			t.Errorf("%.100v was written", bad)
		}
	}
}

func TestLinkTouchesOnlyItsOwn(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	dir := scratch(t)
	path := filepath.Join(dir, "rocm")
	var le *LinkError
	if err := s.Link(path, sl); !errors.As(err, &le) {
		t.Errorf("linked where nothing is active: %v", err)
	}
	install(t, sl, night(1), night(2))
	status := func(want LinkState) LinkStatus {
		t.Helper()
		ls, err := s.LinkStatus(path)
		if err != nil || ls.State != want {
			t.Errorf("%+v, %v, want %s", ls, err, want)
		}
		return ls
	}
	status(LinkAbsent)
	for range 2 {
		if err := errors.Join(s.CheckLink(path), s.Link(path+"/", sl)); err != nil {
			t.Fatal(err)
		}
	}
	if ls := status(LinkOurs); ls.Slot != sl.Name() || ls.Target != sl.CurrentPath() || ls.Dangling {
		t.Errorf("%+v", ls)
	}
	other := s.Slot("rc", "gfx1151")
	install(t, other, night(3))
	if err := s.Link(path, other); err != nil || status(LinkOurs).Slot != other.Name() {
		t.Errorf("%v", err)
	}
	if err := os.Remove(other.CurrentPath()); err != nil || !status(LinkOurs).Dangling {
		t.Errorf("dangling: %v", err)
	}
	if err := errors.Join(s.Unlink(path), s.Unlink(path)); err != nil {
		t.Error(err)
	}
	status(LinkAbsent)
	equal(t, "directory", entries(t, dir), nil)

	inside := filepath.Join(s.Root(), "slots", "nightly-gfx1151", "out")
	for name, make := range map[string]func() error{
		"a directory": func() error { return os.Mkdir(path, 0o755) },
		"a file":      func() error { return os.WriteFile(path, []byte("x"), 0o600) },
		"a link to /opt/rocm-6.0.0": func() error {
			return os.Symlink("/opt/rocm-6.0.0", path)
		},
		"a link to " + s.Root():                 func() error { return os.Symlink(s.Root(), path) },
		"a link to " + s.Root() + "/slots":      func() error { return os.Symlink(s.Root()+"/slots", path) },
		"a link to " + s.Root() + "/slots/../x": func() error { return os.Symlink(s.Root()+"/slots/../x", path) },
		"a link to " + s.Root() + "/slotsx/y":   func() error { return os.Symlink(s.Root()+"/slotsx/y", path) },
		"a link to " + inside: func() error { // textually inside, in fact not
			return errors.Join(os.Symlink("/etc", inside), os.Symlink(inside, path))
		},
		"a link to alternatives": func() error { // in fact inside, textually not
			return errors.Join(os.Symlink(sl.CurrentPath(), filepath.Join(dir, "alternatives")), os.Symlink("alternatives", path))
		},
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{s.CheckLink(path), s.Link(path, sl), s.Unlink(path)} {
			if !errors.As(err, &le) || !strings.HasPrefix(le.What, name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		after, err := os.Lstat(path)
		if err != nil || !os.SameFile(before, after) {
			t.Errorf("%s was touched: %v", name, err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{filepath.Join(dir, "not/there"), filepath.Join(s.Root(), "x"), s.Root() + "/slots/nightly-gfx1151/current"} {
		if err := s.Link(bad, sl); !errors.As(err, &le) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := s.Link("opt/rocm", sl); err == nil {
		t.Error("linked a relative path")
	}
}

func TestLinkByWayOfALinkedRoot(t *testing.T) {
	dir := scratch(t)
	alias := filepath.Join(dir, "alias")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "real"), 0o755), os.Symlink("real", alias)); err != nil {
		t.Fatal(err)
	}
	s, err := Open(alias)
	if err != nil {
		t.Fatal(err)
	}
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	path := filepath.Join(dir, "rocm")
	for _, target := range []string{sl.CurrentPath(), filepath.Join(dir, "real/slots/nightly-gfx1151/current"), "alias/slots/nightly-gfx1151/current"} {
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		if ls, err := s.LinkStatus(path); err != nil || ls.State != LinkOurs || ls.Dangling {
			t.Errorf("%s: %+v, %v", target, ls, err)
		}
		if err := s.Unlink(path); err != nil {
			t.Fatal(err)
		}
	}
}
