package update

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// later moves the clock of a run.
func later(d time.Duration) func(*Options) {
	return func(o *Options) { o.Now = func() time.Time { return time.Now().Add(d) } }
}

// Once a day the server is asked for the headers of what is installed, and no
// more often: a run without news asks the index alone.
func TestHeadersOfWhatIsInstalledAreAskedForDaily(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	w.run()
	for hours, want := range map[int]int64{1: 0, 12: 0} {
		before := w.tarballs.Load()
		if out := w.run(later(time.Duration(hours) * time.Hour)); out.Exit != 0 || w.tarballs.Load()-before != want {
			t.Errorf("after %d hours: %d requests, %+v", hours, w.tarballs.Load()-before, out)
		}
	}
	before := w.tarballs.Load()
	if out := w.run(later(25 * time.Hour)); out.Exit != 0 || w.tarballs.Load()-before != 1 {
		t.Errorf("after a day: %d requests, %+v", w.tarballs.Load()-before, out)
	}
	before = w.tarballs.Load()
	if out := w.run(later(26 * time.Hour)); out.Exit != 0 || w.tarballs.Load() != before {
		t.Errorf("an hour after the check: %d requests, %+v", w.tarballs.Load()-before, out)
	}
}

// New bytes under an old name are found by the daily check although the index
// shows nothing, also of a generation that is not active.
func TestNewBytesAreFoundWithoutTheIndex(t *testing.T) {
	t.Parallel()
	for name, active := range map[string]bool{"active": true, "kept": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			path := w.publish("10.2.0a20260929", 2)
			w.run()
			if !active {
				w.publish("10.2.0a20260930", 1)
				w.run()
			}
			w.replace(path)
			if out := w.run(later(time.Hour)); out.Exit != 0 {
				t.Fatalf("before the check was due: %+v", out)
			}
			was := w.active()
			out := w.run(later(30 * time.Hour))
			if out.Exit != ExitNewBytes || !strings.Contains(out.Error, "new bytes under a known name") || w.active() != was {
				t.Fatalf("%+v", out)
			}
			// It is not downloaded again to find the same.
			before := w.tarballs.Load()
			out = w.run(later(60 * time.Hour))
			if n := w.tarballs.Load() - before; n > 2 || active && out.Exit != ExitNewBytes {
				t.Errorf("%d requests, %+v", n, out)
			}
		})
	}
}

// replace puts other bytes that are a tarball too in place of one, and keeps
// its time.
func (w *world) replace(path string) {
	w.t.Helper()
	fi, err := os.Stat(path)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	data = append(data, 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(path, fi.ModTime(), fi.ModTime()); err != nil {
		w.t.Fatal(err)
	}
}

// What AMD has deleted is no alarm.
func TestWhatIsGoneIsNoAlarm(t *testing.T) {
	w := newWorld(t)
	old := w.publish("10.2.0a20260928", 3)
	w.run()
	w.publish("10.2.0a20260929", 2)
	w.run()
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	if out := w.run(later(30 * time.Hour)); out.Exit != 0 || out.Changed {
		t.Errorf("%+v", out)
	}
}

// What stays active although AMD is about to delete it is announced.
func TestTheEndOfANightIsAnnounced(t *testing.T) {
	w := newWorld(t)
	ch := w.o.Channels["nightly"]
	ch.Retention, ch.StaleAfter = 120*24*time.Hour, 0
	w.o.Channels["nightly"] = ch
	w.publish("10.2.0a20260901", 100)
	var log bytes.Buffer
	w.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	if out := w.run(); out.Expires != "" {
		t.Errorf("at 100 days: %+v", out)
	}
	if out := w.run(later(5 * 24 * time.Hour)); out.Expires != "" || strings.Contains(log.String(), "deletes") {
		t.Errorf("at 105 days: %+v", out)
	}
	want := time.Now().Add(20 * 24 * time.Hour).UTC().Format(time.DateOnly)
	if out := w.run(later(7 * 24 * time.Hour)); out.Expires != want || !strings.Contains(log.String(), want) {
		t.Errorf("at 107 days: %+v, want %s", out, want)
	}
	w.publish("10.2.0a20260902", 110)
	if out := w.run(); !out.Changed || out.Expires == "" {
		t.Errorf("of one that was installed just now: %+v", out)
	}
}

func TestExpiry(t *testing.T) {
	v, err := release.ParseVersion("10.2.0a20260930")
	if err != nil {
		t.Fatal(err)
	}
	final, err := release.ParseVersion("10.2.0")
	if err != nil {
		t.Fatal(err)
	}
	up := time.Date(2026, 10, 2, 3, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		v         release.Version
		published time.Time
		days      int
		want      string
	}{
		{v, up, 120, "2027-01-30"}, {v, time.Time{}, 120, "2027-01-28"}, {v, up, 0, ""}, {final, time.Time{}, 120, ""}, {final, up, 730, "2028-10-01"},
	} {
		day, ok := Expiry(tt.v, tt.published, time.Duration(tt.days)*24*time.Hour)
		if got := day.Format(time.DateOnly); ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%v: %s, %v", tt, got, ok)
		}
	}
}

// The lock may name an address from which AMD has deleted the night; a mirror
// among the indexes has it still.
func TestALockedNightIsTakenFromWhereItStillIs(t *testing.T) {
	w := newWorld(t)
	path := w.publish("10.2.0a20260929", 2)
	w.run()
	pins, err := w.o.Store.FindPins(filepath.Base(path))
	if err != nil || len(pins) != 1 {
		t.Fatal(pins, err)
	}
	lock := filepath.Join(t.TempDir(), "rocm-nightly.lock")
	at := strings.Replace(pins[0].URL, "/tarball/", "/gone/", 1)
	text := `{"schema":1,"pins":[{"channel":"nightly","target":"gfx1151","family":"gfx1151","version":"10.2.0a20260929","name":"` +
		filepath.Base(path) + `","url":"` + at + `","digest":"` + string(pins[0].Digest) + `","size":` + strconv.FormatInt(pins[0].Size, 10) + `}]}`
	if err := os.WriteFile(lock, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.root, "slots")); err != nil {
		t.Fatal(err)
	}
	locked := func(o *Options) { o.Lock = Place{URL: lock} }
	// What it names and was refused is not replaced by another, nor fetched again.
	for night, want := range []string{"exit status 1", "policy.lock names it"} {
		before := w.bodies.Load()
		out := w.run(locked, healthy("exit 1", SandboxOff))
		if out.Exit != ExitRefused || !strings.Contains(out.Error, want) || night > 0 && w.bodies.Load() != before {
			t.Errorf("%d downloads, %+v", w.bodies.Load()-before, out)
		}
	}
	out := w.run(locked)
	if out.Exit != 0 || !out.Changed || out.Locked != lock || w.active() != "10.2.0a20260929" {
		t.Errorf("%+v", out)
	}
}
