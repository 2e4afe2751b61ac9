package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func keepRecord(t *testing.T, sl *Slot, version, text string) {
	t.Helper()
	if err := sl.KeepRecord(t.Context(), version, map[string][]byte{"manifest.json": []byte(text)}); err != nil {
		t.Fatal(err)
	}
}

// kept is the content of a record, "" if there is none.
func kept(t *testing.T, sl *Slot, version string) string {
	t.Helper()
	r, err := sl.Record(version)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(r.Dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What stays of trees is kept by version, the newest ten, and needs no generation.
func TestTreeRecords(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	if all, err := sl.Records(); err != nil || len(all) != 0 || kept(t, sl, night(1)) != "" {
		t.Fatalf("%v, %v", all, err)
	}
	for i := range maxRecords + 3 {
		keepRecord(t, sl, night(i+1), fmt.Sprint(i))
	}
	keepRecord(t, sl, night(7), "again")
	all, err := sl.Records()
	if err != nil || len(all) != maxRecords || all[0].Version != night(7) || all[1].Version != night(maxRecords+3) {
		t.Fatalf("%v, %v", all, err)
	}
	if kept(t, sl, night(7)) != "again" || kept(t, sl, night(1)) != "" {
		t.Error("the wrong ones stay")
	}
	if e := entries(t, sl.path(recordsName)); len(e) != maxRecords {
		t.Errorf("%v", e)
	}
}

func TestTreeRecordsTakeNoOtherNames(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	for _, bad := range []string{"", "..", "../x", ".new-1", "a/b", "10.2.0a20260930-r2"} {
		if err := sl.KeepRecord(t.Context(), bad, nil); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := sl.Record(bad); !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := sl.KeepRecord(t.Context(), night(1), map[string][]byte{"../x": nil}); !errors.Is(err, ErrName) {
		t.Error(err)
	}
}

// Wherever it fails, what was there or what is new is there, whole, or nothing;
// and the next one sweeps.
func TestTreeRecordsAreWhole(t *testing.T) {
	for call := range 5 {
		s := open(t)
		sl := s.Slot("nightly", "gfx1151")
		keepRecord(t, sl, night(1), "old")
		broken, real := errors.New("broken"), s.disk
		fail := func(n int) error {
			if n == call {
				return broken
			}
			return nil
		}
		n := -1
		s.disk.replace = func(path string, data []byte) error { n++; return errors.Join(fail(n), real.replace(path, data)) }
		s.disk.syncDir = func(path string) error { n++; return errors.Join(fail(n), real.syncDir(path)) }
		err := sl.KeepRecord(t.Context(), night(1), map[string][]byte{"manifest.json": []byte("new")})
		s.disk = real
		if call < 4 != errors.Is(err, broken) {
			t.Errorf("call %d: %v", call, err)
		}
		if got := kept(t, sl, night(1)); got != "old" && got != "new" {
			t.Errorf("call %d: %q", call, got)
		}
	}
}

// What a killed process has left goes with the next one.
func TestTreeRecordsAreSwept(t *testing.T) {
	sl := open(t).Slot("nightly", "gfx1151")
	keepRecord(t, sl, night(1), "old")
	if err := os.MkdirAll(sl.path(recordsName, recordPrefix+"x", "y"), 0o755); err != nil {
		t.Fatal(err)
	}
	st, err := sl.Stage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Abort(); err != nil {
		t.Fatal(err)
	}
	if e := entries(t, sl.path(recordsName)); len(e) != 1 {
		t.Errorf("%v", e)
	}
}
