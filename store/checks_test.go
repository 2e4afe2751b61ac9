package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestChecks(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	last := func(want Check) {
		t.Helper()
		if got, err := sl.LastCheck(); got != want || err != nil {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	last(Check{})
	var ge *GenerationError
	if err := sl.RecordCheck(t.Context(), Check{Name: "a"}); !errors.As(err, &ge) {
		t.Errorf("recorded of what is not installed: %v", err)
	}
	install(t, sl, night(1))
	last(Check{})
	at := time.Date(2026, 10, 1, 6, 30, 0, 5, time.UTC)
	for _, c := range []Check{
		{At: at, Name: "a.tar.gz", ETag: `"f4-13"`, Size: 1794376103},
		{At: at.Add(24 * time.Hour), Name: "a.tar.gz", ETag: `W/"<&>"`, Suspected: "the server says another ETag"},
		{At: at, Name: "b.tar.gz", Gone: true},
	} {
		if err := sl.RecordCheck(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		last(c)
	}
	if err := sl.RecordCheck(t.Context(), Check{At: at.In(time.FixedZone("", 3600)), Name: "a"}); err != nil {
		t.Fatal(err)
	}
	last(Check{At: at, Name: "a"})
	if fi, err := os.Stat(sl.path(checksName)); err != nil || fi.Mode() != 0o644 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	s.Now = func() time.Time { return at }
	if err := sl.RecordCheck(t.Context(), Check{Name: "b", ETag: "\xff"}); err != nil {
		t.Fatal(err)
	}
	last(Check{At: at, Name: "b", ETag: "\ufffd"})
	for what, c := range map[string]Check{"nothing": {}, "a long ETag": {Name: "a", ETag: strings.Repeat("x", maxCheckText+1)}, "what becomes longer": {Name: "a", ETag: strings.Repeat("\xffx", maxCheckText/2)}} {
		if err := sl.RecordCheck(t.Context(), c); err == nil {
			t.Errorf("recorded %s", what)
		}
	}
	worst := Check{At: at, Name: strings.Repeat("\x00", maxCheckText), ETag: strings.Repeat("\x01", maxCheckText), Suspected: strings.Repeat("\x02", maxCheckText)}
	if err := sl.RecordCheck(t.Context(), worst); err != nil {
		t.Fatal(err)
	}
	last(worst)
	if _, err := s.Slot("nightly", "../x").LastCheck(); !errors.Is(err, ErrName) {
		t.Errorf("%v", err)
	}
}

func TestChecksCanBeLost(t *testing.T) {
	s := open(t)
	sl := s.Slot("nightly", "gfx1151")
	install(t, sl, night(1))
	c := Check{At: time.Unix(1, 0).UTC(), Name: "a.tar.gz", Size: 1}
	for what, content := range map[string]string{
		"empty":    "",
		"torn":     `{"schema":1,"last":{"at":"2026`,
		"other":    `[]`,
		"newer":    `{"schema":2,"last":{"at":"2026-10-01T06:30:00Z","name":"a"}}`,
		"no name":  `{"schema":1,"last":{"at":"2026-10-01T06:30:00Z"}}`,
		"no time":  `{"schema":1,"last":{"name":"a"}}`,
		"too long": strings.Repeat(" ", maxChecksLen) + `{"schema":1,"last":{"at":"2026-10-01T06:30:00Z","name":"a"}}`,
		"long ":    `{"schema":1,"last":{"at":"2026-10-01T06:30:00Z","name":"` + strings.Repeat("a", maxCheckText+1) + `"}}`,
	} {
		write(t, sl.path(checksName), content)
		if got, err := sl.LastCheck(); got != (Check{}) || err != nil {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		half := sl.path("." + checksName + "123") // of a process that was killed
		write(t, half, content)
		if err := sl.RecordCheck(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if got, err := sl.LastCheck(); got != c || err != nil {
			t.Errorf("after %s: %+v, %v", what, got, err)
		}
		if left, err := filepath.Glob(sl.path("." + checksName + "*")); len(left) != 0 || err != nil {
			t.Errorf("left: %v, %v", left, err)
		}
	}
	s.disk.replace = func(string, []byte) error { return unix.ENOSPC }
	if err := sl.RecordCheck(t.Context(), Check{Name: "b"}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v", err)
	}
	if got, err := sl.LastCheck(); got != c || err != nil {
		t.Errorf("after a full disk: %+v, %v", got, err)
	}
	if active(t, sl) != night(1) {
		t.Error("current has changed")
	}
}

// FuzzChecks holds that any bytes are a check in its bounds or none.
func FuzzChecks(f *testing.F) {
	f.Add([]byte(`{"schema":1,"last":{"at":"2026-10-01T06:30:00Z","name":"a.tar.gz","etag":"\"x\"","size":5,"gone":true}}`))
	f.Add([]byte(`{"schema":1,"last":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c := parseChecks(b); c != (Check{}) && (c.check() != nil || c.At.IsZero()) {
			t.Fatalf("%+v", c)
		}
	})
}
