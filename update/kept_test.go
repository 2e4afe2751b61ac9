package update

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// keeping is a world in which so many tarballs are kept, in small parts.
func keeping(t *testing.T, n int) *world {
	t.Helper()
	w := newWorld(t)
	w.o.Installs[0].KeepTarballs = n
	w.o.Client = func(event func(fetch.Event)) (*fetch.Client, error) {
		return fetch.New(fetch.Options{Retries: -1, SegmentSize: 64 << 10, Event: event})
	}
	return w
}

// kept names what is kept.
func (w *world) kept() (names []string) {
	w.t.Helper()
	all, err := w.o.Store.Tarballs()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range all {
		if err := k.Check(context.Background()); err != nil {
			w.t.Error(err)
		}
		names = append(names, k.Entry().Version)
	}
	slices.Sort(names)
	return names
}

// must runs, and returns how many requests for tarballs that took.
func (w *world) must(change ...func(*Options)) (*Outcome, int64) {
	w.t.Helper()
	before := w.tarballs.Load()
	out := w.run(change...)
	if out.Exit != 0 {
		w.t.Fatalf("%+v", out)
	}
	return out, w.tarballs.Load() - before
}

func (w *world) noSpool() {
	w.t.Helper()
	if left, _ := filepath.Glob(filepath.Join(w.root, "spool/*/*")); len(left) > 0 {
		w.t.Errorf("downloads are left: %q", left)
	}
}

func version(v string) func(*Options) { return func(o *Options) { o.Version = v } }

func TestTheLastTarballsAreKept(t *testing.T) {
	t.Parallel()
	w := keeping(t, 2)
	for i, v := range []string{"10.2.0a20260927", "10.2.0a20260928", "10.2.0a20260929"} {
		w.publish(v, 3-i)
		if out, _ := w.must(); out.Kept == "" {
			t.Errorf("%+v", out)
		}
	}
	if got := w.kept(); !slices.Equal(got, []string{"10.2.0a20260928", "10.2.0a20260929"}) {
		t.Errorf("kept: %v", got)
	}
	w.noSpool()
	// Fewer, from the next run on, and none.
	w.o.Installs[0].KeepTarballs = 1
	w.must(func(o *Options) { o.DryRun = true })
	if got := w.kept(); len(got) != 2 {
		t.Errorf("a dry run has removed a tarball: %v", got)
	}
	w.must()
	if got := w.kept(); !slices.Equal(got, []string{"10.2.0a20260929"}) {
		t.Errorf("kept: %v", got)
	}
	w.o.Installs[0].KeepTarballs = 0
	w.must()
	if got := w.kept(); len(got) != 0 {
		t.Errorf("kept: %v", got)
	}
}

// What AMD has deleted is installed again of what is kept: by its name, when its
// generation is gone, and by another recipe.
func TestAKeptTarballIsTakenInPlaceOfTheNetwork(t *testing.T) {
	t.Parallel()
	w := keeping(t, 3)
	old := w.publish("10.2.0a20260928", 2)
	w.must()
	w.publish("10.2.0a20260929", 1)
	w.must()
	if err := os.Remove(old); err != nil {
		t.Fatal(err)
	}
	slot := w.o.Store.Slot("nightly", "gfx1151")
	if err := slot.Remove(context.Background(), "10.2.0a20260928"); err != nil {
		t.Fatal(err)
	}
	out, _ := w.must(version("10.2.0a20260928"), func(o *Options) { o.DryRun = true })
	if !strings.Contains(out.Message, "would install 10.2.0a20260928 of the tarball that is kept in ") || !strings.Contains(out.Message, "it takes") {
		t.Errorf("%+v", out)
	}
	out, n := w.must(version("10.2.0a20260928"))
	if n != 0 || w.active() != "10.2.0a20260928" || !strings.Contains(out.Verified.Against[0], "kept in") {
		t.Errorf("%d requests, %+v", n, out)
	}
	// Another recipe of the newest one.
	omit := func(o *Options) { o.Installs = slices.Clone(o.Installs); o.Installs[0].Repack.Omit = []string{"docs"} }
	before := w.bodies.Load()
	if out, _ := w.must(version("10.2.0a20260929"), omit); w.bodies.Load() != before || w.active() != "10.2.0a20260929-r2" {
		t.Errorf("%+v", out)
	}
	// It is the last one now.
	w.o.Installs[0].KeepTarballs = 1
	w.must(omit)
	if got := w.kept(); !slices.Equal(got, []string{"10.2.0a20260929"}) {
		t.Errorf("kept: %v", got)
	}
}

// A version that is kept can be named while no index answers.
func TestAKeptVersionNeedsNoIndex(t *testing.T) {
	t.Parallel()
	w := keeping(t, 2)
	w.publish("10.2.0a20260928", 2)
	w.must()
	w.publish("10.2.0a20260929", 1)
	w.must()
	if err := w.o.Store.Slot("nightly", "gfx1151").Remove(context.Background(), "10.2.0a20260928"); err != nil {
		t.Fatal(err)
	}
	nowhere := func(o *Options) {
		o.Channels = map[string]Channel{"nightly": {Indexes: fetch.Sources("http://127.0.0.1:1/")}}
	}
	if out, n := w.must(version("10.2.0a20260928"), nowhere); n != 0 || w.active() != "10.2.0a20260928" {
		t.Errorf("%+v", out)
	}
	if out := w.run(version("10.2.0a20260927"), nowhere); out.Exit != ExitFailed {
		t.Errorf("%+v", out)
	}
	if out := w.run(version("10.2.0a20260927")); out.Exit != ExitFailed {
		t.Errorf("%+v", out)
	}
}

// Of a damaged one only the damaged part is fetched again; where AMD has it no
// more, the part is named, and nothing is lost.
func TestADamagedKeptTarballIsMended(t *testing.T) {
	t.Parallel()
	w := keeping(t, 2)
	path := w.publish("10.2.0a20260928", 2)
	out, _ := w.must()
	w.publish("10.2.0a20260929", 1)
	w.must()
	slot := w.o.Store.Slot("nightly", "gfx1151")
	spoil := func() {
		t.Helper()
		part := filepath.Join(out.Kept, "0001")
		b, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(part, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spoil()
	if err := slot.Remove(context.Background(), "10.2.0a20260928"); err != nil {
		t.Fatal(err)
	}
	bodies := w.bodies.Load()
	_, n := w.must(version("10.2.0a20260928"))
	// Two looks at what there is, its beginning perhaps, its digests beside it, and one part.
	if first := w.bodies.Load() - bodies; n > 8 || first > 2 || w.active() != "10.2.0a20260928" {
		t.Errorf("%d requests, %d of them for the first part", n, first)
	}
	if got := w.kept(); len(got) != 2 {
		t.Errorf("kept: %v", got)
	}
	w.noSpool()

	// The server breaks off: what is whole stays kept.
	spoil()
	w.must(version("10.2.0a20260929"))
	if err := slot.Remove(context.Background(), "10.2.0a20260928"); err != nil {
		t.Fatal(err)
	}
	w.broken.Store(true)
	broken := w.run(version("10.2.0a20260928"))
	if _, err := os.Stat(filepath.Join(out.Kept, "0000")); broken.Exit != ExitFailed || err != nil {
		t.Errorf("%v, %+v", err, broken)
	}
	w.noSpool()
	w.broken.Store(false)
	if w.must(version("10.2.0a20260928")); len(w.kept()) != 2 {
		t.Errorf("kept: %v", w.kept())
	}

	spoil()
	if err := os.Rename(path, path+".gone"); err != nil {
		t.Fatal(err)
	}
	w.must(version("10.2.0a20260929"))
	if err := slot.Remove(context.Background(), "10.2.0a20260928"); err != nil {
		t.Fatal(err)
	}
	out = w.run(version("10.2.0a20260928"))
	if out.Exit != ExitFailed || !strings.Contains(out.Error, "damaged in 0001") || !strings.Contains(out.Error, "could not be fetched again") {
		t.Errorf("%+v", out)
	}
	if w.active() != "10.2.0a20260929" {
		t.Errorf("%s is active", w.active())
	}
	if all, err := w.o.Store.Tarballs(); err != nil || len(all) != 2 {
		t.Errorf("%v, %v", all, err)
	}
}

// A run that died before it kept the tarball has left the download whole.
func TestATarballIsKeptByTheNextRun(t *testing.T) {
	t.Parallel()
	for _, newer := range []bool{false, true} {
		w := keeping(t, 2)
		path := w.publish("10.2.0a20260928", 2)
		out, _ := w.must()
		spool := w.o.Store.SpoolDir("nightly", filepath.Base(path))
		if err := os.Rename(out.Kept, spool); err != nil {
			t.Fatal(err)
		}
		want := []string{"10.2.0a20260928"}
		if newer {
			w.publish("10.2.0a20260929", 1)
			want = append(want, "10.2.0a20260929")
		}
		w.must()
		if got := w.kept(); !slices.Equal(got, want) {
			t.Errorf("kept: %v", got)
		}
		w.noSpool()
	}
}

// What cannot be kept stays a download, which the next run keeps.
func TestATarballThatCannotBeKeptIsNoFailure(t *testing.T) {
	w := keeping(t, 2)
	w.publish("10.2.0a20260928", 2)
	if err := os.MkdirAll(w.root, 0o755); err != nil {
		t.Fatal(err)
	}
	blocked := w.o.Store.TarballsDir()
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	w.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	for range 2 {
		if w.must(); w.active() != "10.2.0a20260928" || !strings.Contains(log.String(), "could not be kept") {
			t.Errorf("%s", log.String())
		}
		log.Reset()
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	w.must()
	if got := w.kept(); len(got) != 1 {
		t.Errorf("kept: %v", got)
	}
	w.noSpool()
}

// With --no-install the tarball is kept too, and serves to install it.
func TestATarballIsKeptWithoutInstalling(t *testing.T) {
	w := keeping(t, 1)
	path := w.publish("10.2.0a20260928", 2)
	w.must(func(o *Options) { o.NoInstall = true })
	if got := w.kept(); len(got) != 1 || w.active() != "" {
		t.Errorf("kept: %v", got)
	}
	if _, n := w.must(); n != 0 || w.active() != "10.2.0a20260928" {
		t.Errorf("%d requests", n)
	}
	// New bytes are asked of the server, and both are kept while they are wanted.
	w.o.Installs[0].KeepTarballs = 2
	other := w.publish("10.2.0a20260927", 2)
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	if out := w.run(func(o *Options) { o.NoInstall = true }); out.Exit != ExitNewBytes && out.Exit != 0 {
		t.Errorf("%+v", out)
	}
	out, n := w.must(func(o *Options) { o.AcceptNewBytes = true })
	if n == 0 || w.active() != "10.2.0a20260928-r2" {
		t.Errorf("%d requests, %+v", n, out)
	}
	if got := w.kept(); !slices.Equal(got, []string{"10.2.0a20260928", "10.2.0a20260928"}) {
		t.Errorf("kept: %v", got)
	}
}

// Two slots of one tarball have one copy of it, and one download even where
// they cannot share files.
func TestTwoSlotsKeepOneCopy(t *testing.T) {
	t.Parallel()
	for _, runPath := range []string{"", "runpath"} {
		w := keeping(t, 1)
		w.publishFamily("10.2.0a20260929", "gfx103X-all")
		keep := func(o *Options) {
			for i := range o.Installs {
				o.Installs[i].KeepTarballs = 1
			}
			o.Installs[1].Repack.RunPath = runPath
		}
		rep, n := w.twins(keep)
		if rep.Exit != 0 || n != 1 {
			t.Fatalf("%d downloads, %+v %+v", n, rep.Installs[0], rep.Installs[1])
		}
		all, err := w.o.Store.Tarballs()
		if err != nil || len(all) != 1 || !slices.Equal(all[0].Slots, []string{"nightly-gfx1030", "nightly-gfx1036"}) {
			t.Fatalf("%+v, %v", all, err)
		}
		w.noSpool()
		w.twins(keep, func(o *Options) { o.Installs[0].KeepTarballs = 0 })
		if got := w.kept(); len(got) != 1 {
			t.Errorf("kept: %v", got)
		}
		w.twins(keep, func(o *Options) { o.Installs[0].KeepTarballs, o.Installs[1].KeepTarballs = 0, 0 })
		if got := w.kept(); len(got) != 0 {
			t.Errorf("kept: %v", got)
		}
	}
}

// A tarball of other bytes than the ledger's last is not the one that is wanted.
func TestTheKeptTarballIsTheOneThatIsWanted(t *testing.T) {
	w := keeping(t, 1)
	w.publish("10.2.0a20260928", 2)
	out, _ := w.must()
	k, err := w.o.Store.KeptTarball("nightly", filepath.Base(out.Kept))
	if err != nil || k == nil {
		t.Fatalf("%v, %v", k, err)
	}
	e := k.Entry()
	e.Digest = release.Digest("sha256:" + strings.Repeat("0", 64))
	if err := w.o.Store.AppendPin(e); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.root, "slots")); err != nil {
		t.Fatal(err)
	}
	if out := w.run(); out.Exit != ExitNewBytes || w.active() != "" {
		t.Errorf("%+v", out)
	}
	// Where the ledger is lost, the record is as good, and is written into it.
	if err := os.Remove(filepath.Join(w.root, "ledger.jsonl")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(w.root, "slots")); err != nil {
		t.Fatal(err)
	}
	if _, n := w.must(); n != 0 || w.active() != "10.2.0a20260928" {
		t.Errorf("%d requests", n)
	}
	if pins, err := w.o.Store.FindPins(k.Name); err != nil || len(pins) != 1 || pins[0].Digest != k.Digest {
		t.Errorf("%v, %v", pins, err)
	}
}

// Where there is no room, the error says what is kept; nothing of it is thrown
// away.
func TestKeptTarballsAreNotThrownAwayForRoom(t *testing.T) {
	w := keeping(t, 2)
	w.publish("10.2.0a20260928", 2)
	w.must()
	w.publish("10.2.0a20260929", 1)
	out := w.run(func(o *Options) {
		o.Space = func(string) (diskspace.Space, error) {
			return diskspace.Space{Mount: "/", Bytes: 1000, Inodes: 10}, nil
		}
	})
	if out.Exit != ExitFailed || !strings.Contains(out.Error, "or keep_tarballs: 1 kept tarballs take ") {
		t.Errorf("%+v", out)
	}
	if got := w.kept(); len(got) != 1 {
		t.Errorf("kept: %v", got)
	}
}

// Where tarballs are kept on another file system, a copy has to fit there.
func TestACopyElsewhereTakesRoomThere(t *testing.T) {
	w := keeping(t, 2)
	w.publish("10.2.0a20260928", 2)
	out := w.run(func(o *Options) {
		o.Space = func(dir string) (diskspace.Space, error) {
			if strings.HasPrefix(dir, o.Store.TarballsDir()) {
				return diskspace.Space{Mount: "/kept", Dev: 2, Bytes: 1000, Inodes: 1 << 20}, nil
			}
			return diskspace.Space{Mount: "/", Dev: 1, Bytes: 1 << 40, Inodes: 1 << 20}, nil
		}
	})
	var short *diskspace.ShortError
	if !errors.As(out.Err, &short) || short.Space.Mount != "/kept" {
		t.Errorf("%+v", out)
	}
}

// Nothing is fetched just to be kept, but where that is asked for.
func TestKeepTarballFetchesWhatIsInstalled(t *testing.T) {
	w := keeping(t, 0)
	path := w.publish("10.2.0a20260928", 2)
	w.must()
	w.o.Installs[0].KeepTarballs = 1
	if _, n := w.must(); n != 0 || len(w.kept()) != 0 {
		t.Errorf("%d requests", n)
	}
	sl := w.o.Store.Slot("nightly", "gfx1151")
	g, err := sl.Current()
	if err != nil {
		t.Fatal(err)
	}
	m, err := g.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	keep := func(n int) error {
		_, err := KeepTarball(t.Context(), w.o, sl, m.Name, release.Digest(m.Digest), n)
		return err
	}
	var usage *UsageError
	if err := keep(0); !errors.As(err, &usage) {
		t.Errorf("%v", err)
	}
	for range 2 {
		before := w.bodies.Load()
		if err := keep(1); err != nil || len(w.kept()) != 1 {
			t.Errorf("%v", err)
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		} else if err != nil && w.bodies.Load() != before {
			t.Error("what is kept was fetched")
		}
	}
	w.noSpool()
	lock, err := w.o.Store.LockRun(t.Context(), "prune")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	var locked *store.LockedError
	if err := keep(1); !errors.As(err, &locked) {
		t.Errorf("%v", err)
	}
}
