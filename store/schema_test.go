package store

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/schema"
)

// stored returns a record that a program of schema 1 has written.
func stored(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/schema1", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Files of each schema that there ever was are read. A schema that is raised
// needs stored files of the one before it here.
func TestStoredRecordsAreRead(t *testing.T) {
	for _, f := range []schema.Format{rootFormat, stateFormat, checksFormat, ledgerFormat, runFormat, linksFormat, tarballFormat, leaseFormat, sealFormat} {
		if f.Now() != 1 {
			t.Errorf("%s: schema %d: store files of schema %d and read them here", f.Name, f.Now(), f.Now()-1)
		}
	}
	if stateSchema != stateFormat.Now() || checksSchema != checksFormat.Now() || ledgerSchema != ledgerFormat.Now() ||
		linksSchema != linksFormat.Now() || tarballSchema != tarballFormat.Now() || leaseSchema != leaseFormat.Now() || sealSchema != sealFormat.Now() {
		t.Error("the schema that is written is not that of the table")
	}
	st, err := parseState(stored(t, "state.json"))
	if err != nil || len(st.Installed) != 2 || len(st.History) != 4 || st.History[2].Why != "rollback" || !slices.Equal(st.Left, []string{"10.2.0a20261118"}) ||
		st.Hold == nil || st.Hold.Reason != "a deadline" || len(st.Refused) != 1 {
		t.Errorf("state: %+v, %v", st, err)
	}
	if again, err := st.encode(); err != nil || !bytes.Equal(again, stored(t, "state.json")) {
		t.Errorf("it is written as\n%s, %v", again, err)
	}
	if c := parseChecks(stored(t, "checks.json")); c.Size != 1383845 || c.At.IsZero() || c.ETag == "" {
		t.Errorf("checks: %+v", c)
	}
	pins, skipped, err := ParseLedger(bytes.NewReader(stored(t, "ledger.jsonl")))
	if err != nil || skipped != 0 || len(pins) != 2 || pins[1].Version != "10.2.0a20261121" || pins[1].MTime.IsZero() || pins[1].FirstSeen.IsZero() {
		t.Errorf("ledger: %+v, %d, %v", pins, skipped, err)
	}
	if h := readHolder("testdata/schema1/run.lock"); h.PID != 4242 || h.Host != "build1" || h.What != "update" || h.Since.IsZero() {
		t.Errorf("lock: %+v", h)
	}
}

// Everything of a newer program is refused with words, and left as it is.
func TestNewerRecordsAreLeftAlone(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2))
	lock, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lock.Release(), sl.WriteRun(night(2), map[string]int{"schema": 1})); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(s.Root(), rootName):   `{"schema": 2, "layout": "a song"}`,
		sl.path(stateName):                  `{"schema": 2, "history": {}}`,
		sl.path(runsName, night(2)+".json"): `{"schema": 2}`,
		filepath.Join(s.Root(), ledgerName): `{"schema": 2, "name": "a"}` + "\n",
	} {
		was, err := os.ReadFile(path)
		if err != nil && filepath.Base(path) != ledgerName {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var rec map[string]any
		var failed bool
		for what, do := range map[string]func() error{
			"open": func() error { _, err := Open(s.Root()); return err },
			"lock": func() error {
				l, err := s.LockRun(t.Context(), "update")
				if err == nil {
					err = l.Release()
				}
				return err
			},
			"list":     func() error { _, err := sl.Generations(); return err },
			"rollback": func() error { return second(sl.Rollback(t.Context())) },
			"hold":     func() error { return sl.Hold(t.Context(), time.Time{}, "") },
			"run":      func() error { return sl.ReadRun(night(2), &rec) },
			"pins":     func() error { _, err := s.FindPins("a"); return err },
		} {
			if err := do(); err != nil {
				failed = true
				if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "upgrade") {
					t.Errorf("%s, %s: %v", filepath.Base(path), what, err)
				}
			}
		}
		if !failed {
			t.Errorf("%s was not refused", path)
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != text {
			t.Errorf("%s was changed: %s, %v", path, b, err)
		}
		if err := os.WriteFile(path, was, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range []string{night(1), night(2)} {
		if _, err := os.Stat(sl.path(generationsName, g)); err != nil {
			t.Error(err)
		}
	}
}

// everyRecord fills a store with every kind of file, and makes a link.
func everyRecord(t *testing.T, s *Store) {
	t.Helper()
	_, second := twoAlike(t, s, treeToDamage())
	must(t, s.Slot("nightly", "gfx1151").Activate(t.Context(), second.Name, "update"))
	lock, err := s.LockRun(t.Context(), "update")
	if err != nil {
		t.Fatal(err)
	}
	kept := keepOne(t, s, 1, "nightly-gfx1151")
	sl := s.Slot("nightly", "gfx1151")
	_, _, lerr := sl.Lease(t.Context(), "", os.Getpid())
	_, err = s.MakeLink(t.Context(), sl, LinkOptions{Path: filepath.Join(filepath.Dir(s.Root()), "rocm"), By: LinkByVerb})
	must(t, err, lerr, sl.RecordCheck(t.Context(), Check{Name: "a"}), sl.WriteRun(night(1), map[string]int{"schema": 1}), s.AppendPin(pinOf(night(1), 1)),
		os.RemoveAll(filepath.Join(kept.Dir, "state.json")), lock.Release()) // the download's, which fetch looks after
}

// Whatever file of a store has a schema: one that is newer stays as it is, byte for
// byte, whatever is done, and who asks for it is refused with words, or does without.
func TestNoNewerFileIsChanged(t *testing.T) {
	first := open(t)
	everyRecord(t, first)
	kinds := map[string]bool{} // whether it is refused
	err := filepath.WalkDir(first.Root(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		was, err := os.ReadFile(path)
		newer := regexp.MustCompile(`"schema": ?1`).ReplaceAll(was, []byte(`"schema": 999`))
		if err != nil || bytes.Equal(was, newer) {
			return err
		}
		s := open(t)
		if out, err := exec.Command("cp", "-a", first.Root(), s.Root()).CombinedOutput(); err != nil {
			t.Fatalf("%s, %v", out, err)
		}
		rel := strings.TrimPrefix(path, first.Root()+"/")
		must(t, os.WriteFile(filepath.Join(s.Root(), rel), newer, 0o644))
		refused := false
		for what, do := range everyCall(t, s) {
			if err := do(); err != nil {
				if refused = true; !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "upgrade") {
					t.Errorf("%s, %s: %v", rel, what, err)
				}
			}
		}
		if now, err := os.ReadFile(filepath.Join(s.Root(), rel)); err != nil || !bytes.Equal(now, newer) {
			t.Errorf("%s was changed: %.200s, %v", rel, now, err)
		}
		kind := e.Name()
		if dir, _, _ := strings.Cut(rel, "/"); dir == leasesName {
			kind = dir
			if p, err := s.Slot("nightly", "gfx1151").Prune(t.Context(), Keep{Last: 1}); err != nil || len(p.Removed) > 0 {
				t.Errorf("a lease of a newer program has not kept %v, %v", p.Removed, err)
			}
		} else if above := filepath.Base(filepath.Dir(path)); above == sealsName || above == runsName {
			kind = above
		}
		kinds[kind] = refused
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		rootName: true, stateName: true, ledgerName: true, linksName: true, tarballName: true, runsName: true, manifest.Name: true,
		checksName: false, leasesName: false, sealsName: false,
	}
	if !maps.Equal(kinds, want) {
		t.Errorf("refused: %v, want %v", kinds, want)
	}
}

// everyCall is what writes, or reads what is written down.
func everyCall(t *testing.T, s *Store) map[string]func() error {
	sl := s.Slot("nightly", "gfx1151")
	return map[string]func() error{
		"run": func() error {
			l, err := s.LockRun(t.Context(), "update")
			if err == nil {
				_, err = s.PruneTarballs(t.Context(), map[string]int{sl.Name(): 0})
				err = errors.Join(err, l.Release())
			}
			return err
		},
		"hold": func() error { return sl.Hold(t.Context(), time.Time{}, "") },
		"link": func() error {
			_, err := s.MakeLink(t.Context(), sl, LinkOptions{Path: filepath.Join(filepath.Dir(s.Root()), "rocm"), By: LinkByVerb})
			return err
		},
		"pins":   func() error { _, err := s.FindPins(night(1)); return err },
		"record": func() error { var rec any; return sl.ReadRun(night(1), &rec) },
		"prune":  func() error { _, err := sl.Prune(t.Context(), Keep{Last: 2}); return err },
		"check":  func() error { _, err := sl.LastCheck(); return err },
		"tarballs": func() error {
			bad, err := s.DamagedTarballs()
			if len(bad) > 0 {
				err = errors.Join(err, bad[0])
			}
			return err
		},
		"verify": func() error {
			gens, err := sl.Generations()
			if err != nil {
				return err
			}
			_, err = s.Verify(t.Context(), gens, VerifyOptions{})
			for i := range gens {
				_, merr := gens[i].Manifest()
				err = errors.Join(err, merr)
			}
			return err
		},
	}
}

func TestTheRootSaysWhatItIs(t *testing.T) {
	s := open(t)
	path := filepath.Join(s.Root(), rootName)
	run := func() {
		t.Helper()
		lock, err := s.LockRun(t.Context(), "update")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	run()
	want := "{\n  \"schema\": 1\n}\n"
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%q, %v", b, err)
	}
	for _, damage := range []string{"", "{", "[]", `{"schema":0}`, strings.Repeat(" ", maxRootLen+1)} {
		if err := os.WriteFile(path, []byte(damage), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(s.Root()); err != nil {
			t.Errorf("%.10q: %v", damage, err)
		}
		run()
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("after %.10q: %q, %v", damage, b, err)
		}
		if b, err := os.ReadFile(path + ".broken"); err != nil || string(b) != damage {
			t.Errorf("kept %.10q, %v", b, err)
		}
	}
	// What cannot be written is no reason not to make room.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	var told []Event
	s.Event = func(e Event) { told = append(told, e) }
	s.disk.replace = func(string, []byte) error { return errors.New("no space") }
	if run(); len(told) != 1 || told[0].Kind != EventState {
		t.Errorf("told %+v", told)
	}
}

func TestProvenanceGoesWithItsGeneration(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1), night(2), night(3))
	for _, v := range []string{night(1), night(2), night(3)} {
		if err := sl.WriteProvenance(v, []byte("{}\n")); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := sl.ReadProvenance(night(1)); err != nil || string(b) != "{}\n" {
		t.Errorf("%q, %v", b, err)
	}
	runs, err := sl.Runs()
	if err != nil || slices.ContainsFunc(runs, func(r Run) bool { return strings.Contains(r.Name, "intoto") }) {
		t.Errorf("%v, %v", runs, err)
	}
	if err := sl.Remove(t.Context(), night(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := sl.ReadProvenance(night(1)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for _, v := range []string{night(2), night(3)} {
		if _, err := sl.ReadProvenance(v); err != nil {
			t.Error(err)
		}
	}
	if err := sl.WriteProvenance("../x", nil); err == nil {
		t.Error("wrote outside")
	}
}
