package update

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// look looks, and returns what was found of the one install.
func (w *world) look(change ...func(*Options)) LookedAt {
	w.t.Helper()
	o := w.o
	for _, c := range change {
		c(&o)
	}
	l, err := Look(context.Background(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(l.Installs) != 1 || l.Exit != l.Installs[0].Exit {
		w.t.Fatalf("%+v", l)
	}
	return l.Installs[0]
}

// disk is everything below root, with what it is.
func (w *world) disk() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(w.root, func(p string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		fi, ierr := e.Info()
		if err = errors.Join(err, ierr); err == nil && filepath.Base(p) != store.LooksFile && p != w.root {
			all[p] = fi.Mode().String() + fi.ModTime().String()
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// A look says what an update would do, and an update does that. Nothing is
// installed by a look, nothing is downloaded, and no lock is taken.
func TestLookSaysWhatAnUpdateWouldDo(t *testing.T) {
	t.Parallel()
	const first, second = "10.2.0a20260929", "10.2.0a20260930"
	for name, c := range map[string]struct {
		before func(w *world)
		policy func(o *Options)
		state  string
		admits bool
		exit   int
		newest string
		active string
	}{
		"nothing installed": {func(w *world) { w.publish(first, 1) }, nil, StateNewer, true, 0, first, ""},
		"up to date":        {func(w *world) { w.publish(first, 1); w.run() }, nil, StateInstalled, false, 0, first, first},
		"a newer one":       {func(w *world) { w.publish(first, 2); w.run(); w.publish(second, 1) }, nil, StateNewer, true, 0, second, first},
		"a young one": {func(w *world) { w.publish(first, 4); w.run(); w.publish(second, 1) },
			func(o *Options) { o.Policy.MinAge = 48 * time.Hour }, StateYoung, false, 0, second, first},
		"one that settles": {func(w *world) { w.publish(first, 2); w.run(); w.publish(second, 1) },
			func(o *Options) { o.Policy.Settle = 30 * time.Hour }, StateSettling, false, 0, second, first},
		"one that settles, and an older one that may be taken": {func(w *world) { w.publish(first, 3); w.publish(second, 1) },
			func(o *Options) { o.Policy.Settle = 30 * time.Hour }, StateSettling, true, 0, second, ""},
		"the first of all settles": {func(w *world) { w.publish(second, 1) },
			func(o *Options) { o.Policy.Settle = 30 * time.Hour }, StateSettling, false, 0, second, ""},
		"of this target not yet": {func(w *world) {
			w.publish(first, 2)
			w.run()
			publishNight(w.t, w.amd, second, "gfx1103", 1)
		}, func(o *Options) { o.Policy.Settle = 30 * time.Hour }, StateUploading, false, 0, second, first},
		"held": {func(w *world) {
			w.publish(first, 2)
			w.run()
			w.publish(second, 1)
			if err := w.slot().Hold(context.Background(), time.Time{}, "I compute"); err != nil {
				w.t.Fatal(err)
			}
			w.run()
		}, nil, StateHeld, false, 0, second, first},
		"held, and not here yet": {func(w *world) {
			w.publish(first, 2)
			w.run()
			w.publish(second, 1)
			if err := w.slot().Hold(context.Background(), time.Time{}, "I compute"); err != nil {
				w.t.Fatal(err)
			}
		}, nil, StateHeld, true, 0, second, first},
		"went back": {func(w *world) {
			w.publish(first, 2)
			w.run()
			w.publish(second, 1)
			w.run()
			if _, _, err := w.slot().Rollback(context.Background()); err != nil {
				w.t.Fatal(err)
			}
		}, nil, StateHeld, false, 0, second, first},
		"denied": {func(w *world) { w.publish(first, 2); w.run(); w.publish(second, 1) },
			func(o *Options) { o.Policy.Deny = []string{second} }, StateInstalled, false, 0, first, first},
		"older": {func(w *world) { w.publish(first, 2); w.publish(second, 1); w.run() },
			func(o *Options) { o.Policy.Deny = []string{second} }, StateOlder, false, 0, first, second},
		"stale": {func(w *world) { w.publish(first, 9); w.run() }, nil, StateInstalled, false, ExitStale, first, first},
		"gone":  {func(w *world) { w.publish(first, 1); w.run(); _ = os.RemoveAll(w.amd) }, nil, StateInstalled, false, ExitFailed, first, first},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.before(w)
			if c.policy == nil {
				c.policy = func(*Options) {}
			}
			downloads, was := w.bodies.Load(), w.disk()
			at := w.look(c.policy)
			if at.State != c.state || at.Admits != c.admits || at.Exit != c.exit || at.Newest != c.newest || at.Active != c.active {
				t.Errorf("%+v", at)
			}
			if early := c.state == StateYoung || c.state == StateSettling || c.state == StateUploading; early == at.Until.IsZero() {
				t.Errorf("until %v", at.Until)
			}
			if is := w.disk(); w.bodies.Load() != downloads || !reflect.DeepEqual(is, was) {
				t.Errorf("a look has changed %v into %v, with %d downloads", was, is, w.bodies.Load()-downloads)
			}
			if c.exit == ExitFailed {
				return
			}
			out := w.run(c.policy)
			if c.state != StateHeld && out.Changed != c.admits {
				t.Errorf("the look said %v, the update %+v", c.admits, out)
			}
			if !out.Again.Equal(at.Until) {
				t.Errorf("to be tried again at %v, and the look said %v", out.Again, at.Until)
			}
		})
	}
}

// What was refused is said, and is no failure of the look.
func TestLookNamesWhatWasRefused(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260930", 1)
	w.o.Health = Health{Command: []string{"/bin/false"}, Sandbox: SandboxOff}
	if out := w.run(); out.Exit != ExitRefused {
		t.Fatalf("%+v", out)
	}
	at := w.look()
	if at.State != StateRefused || at.Exit != ExitOK || at.Admits || at.Error == "" {
		t.Errorf("%+v", at)
	}
}

// An index that does not answer hides nothing of what it said before.
func TestASilentIndexKeepsWhatItSaid(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260930", 1)
	w.run()
	before, err := ReadLooked(w.o.Store)
	if err != nil || len(before.Installs) != 1 || len(before.Indexes) != 1 || before.Installs[0].Success.IsZero() || before.Indexes[0].Newest.IsZero() {
		t.Fatalf("%+v, %v", before, err)
	}
	if err := os.RemoveAll(w.amd); err != nil {
		t.Fatal(err)
	}
	if at := w.look(); at.Exit != ExitFailed {
		t.Fatalf("%+v", at)
	}
	l, err := ReadLooked(w.o.Store)
	if err != nil {
		t.Fatal(err)
	}
	is, was := l.Installs[0], before.Installs[0]
	if is.Newest != was.Newest || is.State != was.State || !is.Success.Equal(was.Success) || is.Error == "" {
		t.Errorf("%+v after %+v", is, was)
	}
	if ix := l.Indexes[0]; !ix.At.Equal(before.Indexes[0].At) || !ix.Newest.Equal(before.Indexes[0].Newest) || ix.Error == "" || !ix.Tried.After(ix.At) {
		t.Errorf("%+v after %+v", ix, before.Indexes[0])
	}
}

// Looks.json is lost, cut off, of a newer program, a link or not to be written: a
// look works all the same.
func TestLooksFileMayBeAnything(t *testing.T) {
	const night = "10.2.0a20260930"
	for name, c := range map[string]struct {
		spoil func(path string) error
		stays bool
	}{
		"cut off":     {func(p string) error { return os.Truncate(p, 20) }, false},
		"empty":       {func(p string) error { return os.Truncate(p, 0) }, false},
		"lost":        {os.Remove, false},
		"newer":       {func(p string) error { return os.WriteFile(p, []byte(`{"schema": 99}`), 0o644) }, true},
		"a directory": {func(p string) error { return errors.Join(os.Remove(p), os.MkdirAll(p+"/x", 0o755)) }, true},
		"a link": {func(p string) error {
			return errors.Join(os.Remove(p), os.Symlink("/dev/zero", p))
		}, false},
		"too long": {func(p string) error { return os.Truncate(p, 1<<30) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish(night, 1)
			if err := os.MkdirAll(w.root, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(w.root, store.LooksFile)
			w.look()
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			if at := w.look(); at.Newest != night || at.Exit != ExitOK {
				t.Errorf("%+v", at)
			}
			if l, err := ReadLooked(w.o.Store); (err != nil) != c.stays || !c.stays && l.Installs[0].Newest != night {
				t.Errorf("%+v, %v", l, err)
			}
		})
	}
}

// Where there is no store, a look makes none.
func TestALookMakesNoStore(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260930", 1)
	w.look()
	if _, err := os.Stat(w.root); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// What an index of the config says is kept as long as it is in the config.
func TestIndexesThatLeftTheConfigAreForgotten(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260930", 1)
	w.run()
	one := w.o.Channels["nightly"].Indexes
	dead := append(fetch.Sources("http://user:secret@127.0.0.1:1/x/?token=secret"), one...)
	w.look(func(o *Options) { o.Channels = map[string]Channel{"nightly": {Indexes: dead}} })
	l, err := ReadLooked(w.o.Store)
	if err != nil || len(l.Indexes) != 2 || l.Indexes[0].Error == "" || !l.Indexes[0].At.IsZero() {
		t.Fatalf("%+v, %v", l, err)
	}
	if raw, err := w.o.Store.ReadService(store.LooksFile); err != nil || strings.Contains(string(raw), "secret") {
		t.Errorf("%s, %v", raw, err)
	}
	w.look()
	if l, err = ReadLooked(w.o.Store); err != nil || len(l.Indexes) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
}
