package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
)

// Of a night that fails again and again, the record says each time why, of the last
// ten at most.
func TestEveryAttemptIsRemembered(t *testing.T) {
	t.Parallel()
	const night = "10.2.0a20260930"
	w := newWorld(t)
	w.publish(night, 1)
	w.broken.Store(true)
	for range 12 {
		if out := w.run(); out.Exit != ExitFailed {
			t.Fatalf("%+v", out)
		}
	}
	w.broken.Store(false)
	if out := w.run(); out.Exit != ExitOK {
		t.Fatalf("%+v", out)
	}
	var rec Record
	if err := w.slot().ReadRun(night, &rec); err != nil || rec.Exit != ExitOK || len(rec.Attempts) != maxAttempts {
		t.Fatalf("%d attempts, %v", len(rec.Attempts), err)
	}
	for i, a := range rec.Attempts {
		if a.Exit != ExitFailed || a.Error == "" || a.Finished.Before(a.Started) || i > 0 && a.Started.Before(rec.Attempts[i-1].Started) {
			t.Errorf("%d: %+v", i, a)
		}
	}
}

// An attempt that fails before its version is known has a record too, in one file
// however often that happens; so has what was known before.
func TestAttemptsWithoutAVersionAreRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish("10.2.0a20260930", 1)
	index := w.o.Channels["nightly"].Indexes
	w.o.Channels["nightly"] = Channel{Indexes: fetch.Sources("http://127.0.0.1:1/")}
	w.run()
	if _, err := os.Stat(w.slot().Dir()); !os.IsNotExist(err) {
		t.Errorf("a run that found nothing has made a slot: %v", err)
	}
	w.o.Channels["nightly"] = Channel{Indexes: index}
	w.run()
	w.o.Channels["nightly"] = Channel{Indexes: fetch.Sources("http://127.0.0.1:1/")}
	for range 3 {
		w.run()
	}
	var rec Record
	if err := w.slot().ReadRun(NoRelease, &rec); err != nil || rec.Exit != ExitFailed || rec.Version != "" || len(rec.Attempts) != 2 {
		t.Fatalf("%+v, %v", rec, err)
	}
	runs, err := w.slot().Runs()
	if err != nil || len(runs) != 2 {
		t.Errorf("%v, %v", runs, err)
	}
}

// A run that was killed is told at once, and stays among the attempts on its version.
func TestARunThatWasKilledIsRemembered(t *testing.T) {
	t.Parallel()
	const night = "10.2.0a20260930"
	w := newWorld(t)
	w.publish(night, 1)
	w.die("downloading", "")
	rec, err := Interrupted(w.o.Store, w.slot())
	if err != nil || rec == nil || rec.Version != night || rec.Exit != ExitFailed || rec.Error != interrupted || !rec.Finished.Equal(rec.Started) {
		t.Fatalf("%+v, %v", rec, err)
	}
	if out := w.run(func(o *Options) { o.DryRun = true }); out.Exit != ExitOK || w.slot().ReadBegun(&Record{}) != nil {
		t.Errorf("a dry run has changed something: %+v", out)
	}
	if out := w.run(); out.Exit != ExitOK {
		t.Fatalf("%+v", out)
	}
	var now Record
	if err := w.slot().ReadRun(night, &now); err != nil || now.Exit != ExitOK || len(now.Attempts) != 1 || now.Attempts[0].Error != interrupted {
		t.Errorf("%+v, %v", now.Attempts, err)
	}
	if rec, err := Interrupted(w.o.Store, w.slot()); rec != nil || err != nil {
		t.Errorf("it is told for ever: %+v, %v", rec, err)
	}
	// One that is made in another way: what is known of the version stays.
	if err := w.slot().WriteBegun(Record{Schema: Schema, Version: night, Started: time.Now()}); err != nil {
		t.Fatal(err)
	}
	w.run()
	var then Record
	if err := w.slot().ReadRun(night, &then); err != nil || then.Verified == nil || then.Generation != now.Generation || len(then.Attempts) != 2 {
		t.Errorf("%+v, %v", then.Attempts, err)
	}
	// And one that was killed when its record was written.
	if err := w.slot().WriteBegun(then); err != nil {
		t.Fatal(err)
	}
	if rec, err := Interrupted(w.o.Store, w.slot()); rec != nil || err != nil {
		t.Errorf("%+v, %v", rec, err)
	}
}

// A record that is cut off, or of a newer program, stops no run.
func TestRecordsMayBeDamaged(t *testing.T) {
	for name, text := range map[string]string{"cut off": `{"schema": 1, "vers`, "empty": "", "newer": `{"schema": 99}`, "of another kind": `[]`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const night = "10.2.0a20260930"
			w := newWorld(t)
			w.publish(night, 1)
			dir := filepath.Join(w.slot().Dir(), "runs")
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, n := range []string{night, NoRelease} {
				if err := os.WriteFile(filepath.Join(dir, n+".json"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "begun"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if out := w.run(); out.Exit != ExitOK {
				t.Errorf("%+v", out)
			}
			w.gone.Store(true)
			if out := w.run(); out.Exit != ExitOK {
				t.Errorf("%+v", out)
			}
		})
	}
}

func ExampleKeptBump() {
	b := &Bumped{Name: "my-flake", Number: 12, URL: "https://user:secret@git.example/pulls/12", version: "10.2.0a20260930"}
	k := b.kept(time.Now())
	fmt.Println(k.Name, k.State, k.Version, k.URL)
	// Output: my-flake open 10.2.0a20260930 https://git.example/pulls/12
}

// A run that is told to end has not failed: no record says so, what was known of the
// index stays, and the next run goes on.
func TestARunThatIsToldToEndHasNotFailed(t *testing.T) {
	for _, at := range []string{"list", "download", "unpack"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			w.publish("10.2.0a20260929", 2)
			w.run()
			w.publish("10.2.0a20260930", 1)
			before, err := ReadLooked(w.o.Store)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := w.o
			o.Event = func(e Event) {
				if e.Stage == at {
					cancel()
				}
			}
			rep, err := Run(ctx, o)
			if err != nil || rep.Exit != ExitFailed || !errors.Is(rep.Installs[0].Err, context.Canceled) {
				t.Fatalf("%+v, %v", rep, err)
			}
			var rec Record
			if err := w.slot().ReadRun("10.2.0a20260930", &rec); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is on record as %d, %s: %v", rec.Exit, rec.Error, err)
			}
			after, err := ReadLooked(w.o.Store)
			if err != nil || len(after.Installs) != 1 || after.Installs[0].Error != "" || after.Installs[0].At != before.Installs[0].At ||
				len(after.Indexes) != 1 || after.Indexes[0].Error != "" {
				t.Errorf("%+v, %v", after, err)
			}
			if out := w.run(); out.Exit != ExitOK || w.active() != "10.2.0a20260930" {
				t.Errorf("%+v", out)
			}
		})
	}
}
