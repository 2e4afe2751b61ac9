package update

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/unpack"
)

// A run that is killed between the rename into generations and the switch is
// finished by the next, which downloads nothing; also where the record is lost.
func TestAGenerationThatWasNeverActivatedIsFinished(t *testing.T) {
	for name, lost := range map[string]bool{"state kept": false, "state lost": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.publish("10.2.0a20260929", 2)
			w.run()
			w.publish("10.2.0a20260930", 1)
			w.die("activating", "")
			if w.active() != "10.2.0a20260929" || !slices.Contains(w.generations(), "10.2.0a20260930") {
				t.Fatalf("it was killed elsewhere: %s of %v", w.active(), w.generations())
			}
			if lost {
				w.lose()
			}
			before := w.bodies.Load()
			if out := w.run(); out.Exit != 0 || w.active() != "10.2.0a20260930" || w.bodies.Load() != before {
				t.Errorf("%d downloads, %+v", w.bodies.Load()-before, out)
			}
		})
	}
}

// One whose health check was interrupted is checked by the next run.
func TestAnInterruptedCheckIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run()
	w.publish("10.2.0a20260930", 1)
	w.die("running the health command again,", "true")
	st, err := w.slot().State()
	if err != nil || w.active() != "10.2.0a20260930" || st.Unproven == nil || st.KnownGood() != "10.2.0a20260929" {
		t.Fatalf("%s, %+v, %v", w.active(), st, err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	before := w.bodies.Load()
	out := w.run(healthy("echo $ROCM_NIGHTLY_PHASE >> "+ran, SandboxOff))
	text, _ := os.ReadFile(ran)
	if out.Exit != 0 || string(text) != "after\n" || w.bodies.Load() != before {
		t.Errorf("%q, %+v", text, out)
	}
	if st, err = w.slot().State(); err != nil || st.Unproven != nil || st.KnownGood() != "10.2.0a20260930" {
		t.Errorf("%+v, %v", st, err)
	}
	// The same with an index that does not answer: it goes back all the same.
	w.publish("10.2.0a20261001", 1)
	w.die("running the health command again,", "true")
	out = w.run(healthy("test $ROCM_NIGHTLY_PHASE = before", SandboxOff), func(o *Options) { o.Channels = nil })
	if out.Exit != ExitRefused || w.active() != "10.2.0a20260930" || !strings.Contains(out.Error, "went back to 10.2.0a20260930") {
		t.Errorf("%s, %+v", w.active(), out)
	}
}

// healthy sets the health command.
func healthy(script, sandbox string) func(*Options) {
	return func(o *Options) {
		o.Health = Health{Command: []string{"/bin/sh", "-c", script}, Sandbox: sandbox}
	}
}

// Up to date is a question of the recipe: what shapes the bytes makes a new
// generation of the same version, once, and what does not makes none.
func TestUpToDateMeansAnEqualRecipe(t *testing.T) {
	t.Parallel()
	repacked := func(change func(*repack.Options)) func(*Options) {
		return func(o *Options) {
			o.Installs = slices.Clone(o.Installs)
			change(&o.Installs[0].Repack)
		}
	}
	w := newWorld(t)
	w.o.Installs[0].Keep = 9
	w.publish("10.2.0a20260929", 1)
	w.run()
	for name, same := range map[string]func(*Options){
		"dedup":         repacked(func(o *repack.Options) { o.Dedup = repack.DedupOff }),
		"audit":         repacked(func(o *repack.Options) { o.Audit.Refuse = "never" }),
		"decompressor":  repacked(func(o *repack.Options) { o.Decompressor = "klauspost" }),
		"limits":        repacked(func(o *repack.Options) { o.Limits = unpack.Limits{MaxBytes: 1 << 40} }),
		"said defaults": repacked(func(o *repack.Options) { o.RunPath, o.Profile, o.Layout = "rpath", "fhs", repack.LayoutRoot }),
		"empty lists":   repacked(func(o *repack.Options) { o.AddRPath, o.InterpreterPath, o.Omit = []string{}, []string{}, []string{} }),
		"keep":          func(o *Options) { o.Installs = slices.Clone(o.Installs); o.Installs[0].Keep = 8 },
		"smoke":         func(o *Options) { o.Smoke = SmokeOff },
		"health":        healthy("false", SandboxOff),
		"activate":      func(o *Options) { o.Installs = slices.Clone(o.Installs); o.Installs[0].Activate = ActivateManual },
		"no variables": func(o *Options) {
			o.Installs = slices.Clone(o.Installs)
			o.Installs[0].Env = map[string]string{}
		},
	} {
		before := w.bodies.Load()
		if out := w.run(same); out.Changed || out.Exit != 0 || w.bodies.Load() != before || len(w.generations()) != 1 {
			t.Errorf("%s made another one: %v, %+v", name, w.generations(), out)
		}
	}
	n := 1
	for _, other := range []struct {
		name  string
		do    func(*Options)
		fetch int64
	}{
		{"run path", repacked(func(o *repack.Options) { o.RunPath = "runpath" }), 1},
		{"add run path", repacked(func(o *repack.Options) { o.AddRPath = []string{"/opt/x"} }), 1},
		{"omit", repacked(func(o *repack.Options) { o.Omit = []string{"docs"} }), 1},
		{"env", func(o *Options) {
			o.Installs = slices.Clone(o.Installs)
			o.Installs[0].Env = map[string]string{"A": "b"}
		}, 0},
	} {
		n++
		before := w.bodies.Load()
		out := w.run(other.do)
		if !out.Changed || out.Exit != 0 || len(w.generations()) != n || w.bodies.Load()-before != other.fetch || !strings.HasPrefix(w.active(), "10.2.0a20260929-r") {
			t.Errorf("%s: %d downloads, %v, %+v", other.name, w.bodies.Load()-before, w.generations(), out)
		}
		if out := w.run(other.do); out.Changed || out.Exit != 0 {
			t.Errorf("%s, again: %+v", other.name, out)
		}
	}
	// The order and number of names says nothing; the first options are here already.
	before := w.bodies.Load()
	out := w.run(repacked(func(o *repack.Options) { o.Omit = []string{"docs", "docs"} }))
	if out.Exit != 0 || w.active() != "10.2.0a20260929-r4" || w.bodies.Load() != before {
		t.Errorf("%s, %+v", w.active(), out)
	}
	if out := w.run(); out.Exit != 0 || w.active() != "10.2.0a20260929" || w.bodies.Load() != before {
		t.Errorf("%s, %+v", w.active(), out)
	}
}

// What AMD has deleted and was not kept stays as it was made, and that is no error.
func TestOtherOptionsForADeletedNight(t *testing.T) {
	other := func(o *Options) {
		o.Installs = slices.Clone(o.Installs)
		o.Installs[0].Repack.RunPath = "runpath"
	}
	t.Run("the index lists it still", func(t *testing.T) {
		w := newWorld(t)
		w.publish("10.2.0a20260930", 1)
		w.run()
		rec := filepath.Join(w.root, "slots/nightly-gfx1151/runs/10.2.0a20260930.json")
		was, err := os.ReadFile(rec)
		if err != nil {
			t.Fatal(err)
		}
		w.gone.Store(true)
		for range 2 {
			out := w.run(other)
			if out.Exit != 0 || out.Changed || w.active() != "10.2.0a20260930" || !strings.Contains(out.Message, goneWords) {
				t.Errorf("%+v", out)
			}
		}
		if is, err := os.ReadFile(rec); err != nil || string(is) != string(was) {
			t.Errorf("the record of what is active was overwritten: %v", err)
		}
	})
	t.Run("the index has an older one", func(t *testing.T) {
		w := newWorld(t)
		newest := w.publish("10.2.0a20260930", 1)
		w.run()
		w.publish("10.2.0a20260929", 2)
		if err := os.Remove(newest); err != nil {
			t.Fatal(err)
		}
		out := w.run(other)
		if out.Exit != 0 || out.Changed || w.active() != "10.2.0a20260930" || !strings.Contains(out.Message, "nothing newer") || !strings.Contains(out.Message, goneWords) {
			t.Errorf("%+v", out)
		}
		// Other variables need no tarball.
		out = w.run(func(o *Options) {
			o.Installs = slices.Clone(o.Installs)
			o.Installs[0].Env = map[string]string{"A": "b"}
		})
		if out.Exit != 0 || w.active() != "10.2.0a20260930-r2" {
			t.Errorf("%s, %+v", w.active(), out)
		}
	})
}

// After rollback or use only something newer moves on, whatever else changes.
func TestWhatWasLeftDoesNotComeBack(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const d28, d29, d30 = "10.2.0a20260928", "10.2.0a20260929", "10.2.0a20260930"
	options := func(o *Options) {
		o.Installs = slices.Clone(o.Installs)
		o.Installs[0].Repack.RunPath = "runpath"
	}
	rollback := func(s *store.Slot) error { _, _, err := s.Rollback(ctx); return err }
	use := func(v string) func(s *store.Slot) error {
		return func(s *store.Slot) error { _, _, err := s.Use(ctx, v); return err }
	}
	for name, tt := range map[string]struct {
		do     []func(*store.Slot) error
		lose   bool
		change func(*Options)
		want   string // active after a run without anything new
	}{
		"rollback":                        {do: []func(*store.Slot) error{rollback}, want: d29},
		"rollback, state lost":            {do: []func(*store.Slot) error{rollback}, lose: true, want: d29},
		"rollback, other options":         {do: []func(*store.Slot) error{rollback}, change: options, want: d29},
		"rollback, both":                  {do: []func(*store.Slot) error{rollback}, lose: true, change: options, want: d29},
		"rollback twice":                  {do: []func(*store.Slot) error{rollback, rollback}, want: d30},
		"use older":                       {do: []func(*store.Slot) error{use(d28)}, want: d28},
		"use older, state lost":           {do: []func(*store.Slot) error{use(d28)}, lose: true, want: d28},
		"use older, then a little newer":  {do: []func(*store.Slot) error{use(d28), use(d29)}, want: d29},
		"use older, then what was left":   {do: []func(*store.Slot) error{use(d28), use(d30)}, want: d30},
		"rollback, then unhold":           {do: []func(*store.Slot) error{rollback, func(s *store.Slot) error { return s.Unhold(ctx) }}, want: d30},
		"rollback, then activate by name": {do: []func(*store.Slot) error{rollback, func(s *store.Slot) error { return s.Choose(ctx, d30, "activate", false) }}, want: d30},
		"nothing":                         {want: d30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i, v := range []string{d28, d29, d30} {
				w.publish(v, 4-i)
				w.run()
			}
			for _, do := range tt.do {
				if err := do(w.slot()); err != nil {
					t.Fatal(err)
				}
			}
			if tt.lose {
				w.lose()
			}
			change := tt.change
			if change == nil {
				change = func(*Options) {}
			}
			for range 2 {
				if out := w.run(change); out.Exit != 0 || w.active() != tt.want {
					t.Fatalf("%s, %+v", w.active(), out)
				}
			}
			w.publish("10.2.0a20261001", 0)
			if out := w.run(change); out.Exit != 0 || w.active() != "10.2.0a20261001" {
				t.Errorf("something newer: %s, %+v", w.active(), out)
			}
		})
	}
}

// Who left a revision does not get another of the same version.
func TestALeftRevisionDoesNotComeBack(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260930", 1)
	w.run()
	other := func(o *Options) { o.Installs = slices.Clone(o.Installs); o.Installs[0].Repack.RunPath = "runpath" }
	w.run(other)
	if _, _, err := w.slot().Rollback(context.Background()); err != nil || w.active() != "10.2.0a20260930" {
		t.Fatal(w.active(), err)
	}
	for _, lost := range []bool{false, true} {
		if lost {
			w.lose()
		}
		if out := w.run(other); out.Exit != 0 || out.Changed || w.active() != "10.2.0a20260930" || !strings.Contains(out.Message, "left") {
			t.Errorf("%s, %+v", w.active(), out)
		}
	}
}

// What failed by its own content is not fetched again, until something changes.
func TestAFailureIsRemembered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run()
	path := w.publish("10.2.0a20260930", 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte, at time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, b, 0o644), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	flipped := slices.Clone(whole)
	flipped[len(flipped)-6] ^= 1
	put(flipped, fi.ModTime())
	for night, want := range []struct {
		exit   int
		bodies bool
	}{{ExitFailed, true}, {ExitFailed, true}, {ExitOK, false}, {ExitOK, false}} {
		before := w.bodies.Load()
		out := w.run()
		if out.Exit != want.exit || (w.bodies.Load() != before) != want.bodies || w.active() != "10.2.0a20260929" {
			t.Errorf("night %d: %d downloads, %+v", night, w.bodies.Load()-before, out)
		}
		if want.exit == ExitOK && (len(out.PassedOver) != 1 || !strings.Contains(out.PassedOver[0].Reason, "downloaded twice")) {
			t.Errorf("night %d: %+v", night, out.PassedOver)
		}
	}
	for name, again := range map[string]func(*Options){
		"program": func(o *Options) { o.Program = "2" },
		"options": func(o *Options) { o.Installs = slices.Clone(o.Installs); o.Installs[0].Repack.RunPath = "runpath" },
		"limits":  func(o *Options) { o.Installs = slices.Clone(o.Installs); o.Installs[0].Repack.Limits.MaxEntries = 7 },
		"retry":   func(o *Options) { o.Retry = true },
		"version": func(o *Options) { o.Version = "10.2.0a20260930" },
	} {
		before := w.bodies.Load()
		if out := w.run(again); out.Exit != ExitFailed || w.bodies.Load() == before {
			t.Errorf("%s: %+v", name, out)
		}
	}
	// AMD uploads it again.
	put(whole, fi.ModTime().Add(time.Hour))
	if out := w.run(); out.Exit != 0 || w.active() != "10.2.0a20260930" {
		t.Errorf("%+v", out)
	}
	if st, err := w.slot().State(); err != nil || len(st.Refused) != 0 {
		t.Errorf("%+v, %v", st.Refused, err)
	}
}

// That what is to be left out cannot be is remembered like everything else.
func TestAnOmissionThatCannotBeIsRemembered(t *testing.T) {
	w := newWorld(t)
	w.publishFamily("10.2.0a20260929", "gfx103X-all")
	// No kernels for this target in that family.
	none := func(o *Options) {
		o.Installs = []Install{{Target: "gfx1030", Channel: "nightly", Keep: 3, Repack: repack.Options{Omit: []string{"kernels"}},
			Env: map[string]string{"HSA_OVERRIDE_GFX_VERSION": "9.0.6"}}}
	}
	out := w.run(none)
	if !errorsAs[*repack.OmitError](out.Err) {
		t.Fatalf("%+v", out)
	}
	before := w.bodies.Load()
	out = w.run(none)
	if w.bodies.Load() != before || !errors.Is(out.Err, errFailedBefore) {
		t.Errorf("%d downloads, %+v", w.bodies.Load()-before, out)
	}
	if out = w.run(none, func(o *Options) { o.Installs[0].Repack.Omit = nil }); out.Exit != 0 || !out.Changed {
		t.Errorf("%+v", out)
	}
}

// Whoever mends the script that the health command runs has changed something.
func TestAMendedHealthCommandTriesAgain(t *testing.T) {
	for _, shell := range []bool{false, true} {
		w := newWorld(t)
		script := filepath.Join(t.TempDir(), "check")
		says := func(code string) {
			t.Helper()
			if err := os.WriteFile(script, []byte("#!/bin/sh\nexit "+code+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		with := func(o *Options) {
			o.Health = Health{Command: []string{script}, Sandbox: SandboxOff}
			if shell {
				o.Health.Command = []string{"/bin/sh", script}
			}
		}
		w.publish("10.2.0a20260929", 1)
		says("7")
		if out := w.run(with); out.Exit != ExitRefused || w.active() != "" {
			t.Fatalf("%+v", out)
		}
		before := w.bodies.Load()
		if err := os.Chtimes(script, time.Now(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if out := w.run(with); !errors.Is(out.Err, errHealthBefore) || w.bodies.Load() != before {
			t.Errorf("%d downloads, %+v", w.bodies.Load()-before, out)
		}
		says("0")
		if out := w.run(with); out.Exit != ExitOK || w.active() != "10.2.0a20260929" {
			t.Errorf("%+v", out)
		}
	}
}
