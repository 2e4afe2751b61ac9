package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/demo"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// world is AMD's side and ours: a directory that is served, and a store.
type world struct {
	t         *testing.T
	amd, root string
	tarballs  atomic.Int64 // requests for tarballs
	bodies    atomic.Int64 // those of them that ask for the first byte: downloads
	broken    atomic.Bool  // tarballs end early
	gone      atomic.Bool  // the index lists what the server has not
	o         Options
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, amd: t.TempDir(), root: filepath.Join(t.TempDir(), "root")}
	handler, err := demo.Handler(w.amd)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tar.gz") {
			w.tarballs.Add(1)
			if at := r.Header.Get("Range"); r.Method != http.MethodHead && (at == "" || strings.HasPrefix(at, "bytes=0-")) {
				w.bodies.Add(1)
			}
			if w.gone.Load() {
				http.NotFound(rw, r)
				return
			}
			if w.broken.Load() && r.Method == http.MethodGet {
				panic(http.ErrAbortHandler)
			}
		}
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(server.Close)
	st, err := store.Open(w.root)
	if err != nil {
		t.Fatal(err)
	}
	w.o = Options{
		Store:    st,
		Channels: map[string]Channel{"nightly": {Indexes: fetch.Sources(server.URL + demo.IndexPath), StaleAfter: 96 * time.Hour}},
		Installs: []Install{{Target: "gfx1151", Channel: "nightly", Keep: 3}},
		Policy:   Policy{Prefer: "version"},
		Client: func(event func(fetch.Event)) (*fetch.Client, error) {
			return fetch.New(fetch.Options{Retries: -1, Event: event})
		},
	}
	return w
}

// publish adds a night that is so many days old.
func (w *world) publish(version string, daysAgo int) string {
	w.t.Helper()
	return publishNight(w.t, w.amd, version, "", daysAgo)
}

// run runs the pipeline and returns what became of the one install.
func (w *world) run(change ...func(*Options)) *Outcome {
	w.t.Helper()
	o := w.o
	for _, c := range change {
		c(&o)
	}
	rep, err := Run(context.Background(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(rep.Installs) != 1 || rep.Exit != rep.Installs[0].Exit {
		w.t.Fatalf("%+v", rep)
	}
	return rep.Installs[0]
}

func (w *world) active() string {
	w.t.Helper()
	to, err := os.Readlink(filepath.Join(w.root, "slots/nightly-gfx1151/current"))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

func TestUpToDateMeansNoDownload(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	out := w.run()
	if out.Exit != 0 || !out.Changed || out.From != "" || out.To != "10.2.0a20260929" || out.Verified == nil || out.Audit == nil {
		t.Fatalf("%+v", out)
	}
	before := w.tarballs.Load()
	out = w.run()
	if out.Exit != 0 || out.Changed || out.To != "10.2.0a20260929" || w.tarballs.Load() != before {
		t.Errorf("%+v after %d requests", out, w.tarballs.Load()-before)
	}
}

func TestOlderIsNotTakenUnlessAsked(t *testing.T) {
	w := newWorld(t)
	newer := w.publish("10.2.0a20260930", 1)
	w.run()
	if err := os.Remove(newer); err != nil {
		t.Fatal(err)
	}
	w.publish("10.2.0a20260929", 2)
	if out := w.run(); out.Changed || out.Exit != 0 || w.active() != "10.2.0a20260930" {
		t.Errorf("%+v", out)
	}
	if out := w.run(func(o *Options) { o.Policy.AllowDowngrade = true }); !out.Changed || w.active() != "10.2.0a20260929" {
		t.Errorf("%+v", out)
	}
}

// An interrupted download keeps its segments; damaged bytes are thrown away.
func TestWhatIsKeptOfADownload(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 2)
	w.run()
	path := w.publish("10.2.0a20260930", 1)
	spool := w.o.Store.SpoolDir("nightly", filepath.Base(path))
	w.broken.Store(true)
	if out := w.run(); out.Exit != ExitFailed || w.active() != "10.2.0a20260929" {
		t.Errorf("%+v", out)
	}
	if _, err := os.Stat(filepath.Join(spool, "state.json")); err != nil {
		t.Errorf("the spool of an interrupted download is gone: %v", err)
	}
	w.broken.Store(false)

	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte{}, whole...)
	damaged[len(damaged)-6] ^= 1
	if err := os.WriteFile(path, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := w.run(); out.Exit != ExitFailed || w.active() != "10.2.0a20260929" {
		t.Errorf("%+v", out)
	}
	if left, _ := filepath.Glob(filepath.Join(spool, "0*")); len(left) > 0 {
		t.Errorf("damaged segments were kept: %v", left)
	}
	if err := os.WriteFile(path, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := w.run(); out.Exit != 0 || w.active() != "10.2.0a20260930" {
		t.Errorf("%+v", out)
	}
}

// A run that died between committing a generation and activating it is
// finished by the next, without a download.
func TestAGenerationThatWasNotActivatedIsFinished(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	w.run()
	if err := os.Remove(filepath.Join(w.root, "slots/nightly-gfx1151/current")); err != nil {
		t.Fatal(err)
	}
	before := w.tarballs.Load()
	if out := w.run(); out.Exit != 0 || !out.Changed || w.active() != "10.2.0a20260929" || w.tarballs.Load() != before {
		t.Errorf("%+v after %d requests", out, w.tarballs.Load()-before)
	}
}

// One that died after that has left its download: it goes, unless another
// install is still to be made of it.
func TestADownloadThatHasServedGoesWithTheNextRun(t *testing.T) {
	w := newWorld(t)
	name := filepath.Base(w.publishFamily("10.2.0a20260929", "gfx103X-all"))
	spool := w.o.Store.SpoolDir("nightly", name)
	leave := func() {
		t.Helper()
		if err := os.MkdirAll(spool, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	first := func(o *Options) { o.Installs = o.Installs[:1] }
	kernels := func(o *Options) {
		for i := range o.Installs {
			o.Installs[i].Repack.Omit = []string{"kernels"}
		}
	}
	w.twins(first, kernels)
	leave()
	if rep, _ := w.twins(first, kernels, func(o *Options) { o.DryRun = true }); rep.Exit != 0 {
		t.Fatalf("%+v", rep.Installs[0])
	}
	if _, err := os.Stat(spool); err != nil {
		t.Errorf("a dry run removed a download: %v", err)
	}
	if rep, n := w.twins(first, kernels); rep.Exit != 0 || n != 0 || rep.Installs[0].Changed {
		t.Fatalf("%+v", rep.Installs[0])
	}
	if _, err := os.Stat(spool); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the download was left: %v", err)
	}
	w.broken.Store(true)
	for _, change := range []func(*Options){func(*Options) {}, func(o *Options) { slices.Reverse(o.Installs) }} {
		rep, n := w.twins(kernels, change)
		if rep.Exit != ExitFailed || n == 0 {
			t.Fatalf("exit %d, %d downloads", rep.Exit, n)
		}
		if _, err := os.Stat(filepath.Join(spool, "state.json")); err != nil {
			t.Errorf("the interrupted download of the other install is gone: %v", err)
		}
	}
}

func TestDryRunTouchesNothing(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260929", 1)
	out := w.run(func(o *Options) { o.DryRun = true })
	if !out.Changed || out.To != "10.2.0a20260929" || !strings.Contains(out.Message, "would download") {
		t.Errorf("%+v", out)
	}
	if _, err := os.Stat(w.root); err == nil {
		t.Error("something was made")
	}
}

// What a dry run says of pruning is what happens: the generation that is to be
// activated is not among those that go.
func TestDryRunNamesWhatGoes(t *testing.T) {
	w := newWorld(t)
	w.o.Installs[0].Keep = 2
	w.publish("10.2.0a20260928", 3)
	w.run()
	w.publish("10.2.0a20260929", 2)
	w.run()
	back := func(o *Options) { o.Version, o.DryRun = "10.2.0a20260928", true }
	if out := w.run(back); !strings.Contains(out.Message, "would activate 10.2.0a20260928") || strings.Contains(out.Message, "remove") {
		t.Errorf("%+v", out)
	}
	w.publish("10.2.0a20260930", 1)
	if out := w.run(func(o *Options) { o.DryRun = true }); !strings.Contains(out.Message, "remove 10.2.0a20260928") {
		t.Errorf("%+v", out)
	}
	if out := w.run(); !strings.Contains(out.Message, "removed 10.2.0a20260928") {
		t.Errorf("%+v", out)
	}
}

// A pin that was verified without installing does not vouch for a re-upload.
func TestNoInstallNoticesNewBytes(t *testing.T) {
	w := newWorld(t)
	path := w.publish("10.2.0a20260930", 1)
	keepNothing := func(o *Options) { o.NoInstall = true }
	if out := w.run(keepNothing); out.Exit != 0 || out.pin == nil || w.active() != "" {
		t.Fatalf("%+v", out)
	}
	before := w.tarballs.Load()
	if out := w.run(keepNothing); out.Exit != 0 || out.pin == nil || w.tarballs.Load() != before {
		t.Fatalf("%+v after %d requests", out, w.tarballs.Load()-before)
	}
	again := w.publish("10.2.0a20260929", 2) // other bytes for the same name
	if err := os.Rename(again, path); err != nil {
		t.Fatal(err)
	}
	if out := w.run(keepNothing); out.Exit != ExitNewBytes || out.pin != nil {
		t.Errorf("%+v", out)
	}
}

func TestPruneKeepsTheLast(t *testing.T) {
	w := newWorld(t)
	w.o.Installs[0].Keep = 2
	for i, v := range []string{"10.2.0a20260927", "10.2.0a20260928", "10.2.0a20260929", "10.2.0a20260930"} {
		w.publish(v, 4-i)
		w.run()
	}
	entries, err := os.ReadDir(filepath.Join(w.root, "slots/nightly-gfx1151/generations"))
	if err != nil || len(entries) != 2 || entries[0].Name() != "10.2.0a20260929" {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestTwoRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	lock, err := w.o.Store.LockRun(context.Background(), "prune")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	_, err = Run(context.Background(), w.o)
	var locked *store.LockedError
	if !errors.As(err, &locked) || locked.Holder.What != "prune" || locked.Holder.PID != os.Getpid() {
		t.Errorf("error %v", err)
	}
}

func TestAutoIsTheGPUsOfThisMachine(t *testing.T) {
	o := Options{Installs: []Install{{Target: gfx.Auto, Channel: "nightly"}, {Target: "gfx1100", Channel: "nightly"}}}.withDefaults()
	node := func(v string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("gfx_target_version " + v + "\n")}
	}
	o.Sys = fstest.MapFS{
		"class/kfd/kfd/topology/nodes/1/properties": node("110000"),
		"class/kfd/kfd/topology/nodes/2/properties": node("110501"),
	}
	got, err := o.expand()
	if err != nil || len(got) != 2 || got[0].Target != "gfx1100" || got[1].Target != "gfx1151" {
		t.Errorf("%+v, %v", got, err)
	}
	o.Sys = fstest.MapFS{}
	var usage *UsageError
	if _, err := o.expand(); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--arch") {
		t.Errorf("error %v", err)
	}
}

func TestGravestExitCode(t *testing.T) {
	order := []int{ExitOK, ExitStale, ExitFailed, ExitRefused, ExitNewBytes}
	for i, a := range order {
		for j, b := range order {
			if got := gravest(a, b); got != order[max(i, j)] {
				t.Errorf("of %d and %d: %d", a, b, got)
			}
		}
	}
}

func TestExitOf(t *testing.T) {
	for _, tt := range []struct {
		want int
		err  error
	}{
		{ExitFailed, errors.New("x")},
		{ExitRefused, &repack.RefusedError{}},
		{ExitRefused, fmt.Errorf("wrapped: %w", errRefusedBefore)},
		{ExitNewBytes, &release.MismatchError{Want: release.Expectation{Source: ledgerKind}}},
		{ExitFailed, &release.MismatchError{Want: release.Expectation{Source: "--digest"}}},
	} {
		if got := exitOf(tt.err); got != tt.want {
			t.Errorf("%v: %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestAge(t *testing.T) {
	v, err := release.ParseVersion("10.2.0a20260930")
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC)
	for after, want := range map[time.Duration]string{0: "today", 24 * time.Hour: "1 day", 72 * time.Hour: "3 days"} {
		if got := Age(v, day.Add(after)); got != want {
			t.Errorf("after %v: %q", after, got)
		}
	}
}

// Who watches a run of several installs is told for which of them it downloads.
func TestADownloadSaysWhoseItIs(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260930", 1)
	w.publishFamily("10.2.0a20260930", "gfx110X-all")
	w.o.Installs = append(w.o.Installs, Install{Target: "gfx1100", Channel: "nightly", Keep: 3})
	var mu sync.Mutex
	seen := map[string]bool{}
	w.o.Event = func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Stage == "download" && e.Total > 0 {
			seen[e.Install] = true
		}
	}
	if _, err := Run(t.Context(), w.o); err != nil {
		t.Fatal(err)
	}
	if !seen["nightly-gfx1151"] || !seen["nightly-gfx1100"] || seen[""] {
		t.Errorf("%v", seen)
	}
}

// A daemon lives on after a run, and after a look: no connection of theirs stays open.
func TestNoConnectionOutlivesARun(t *testing.T) {
	w := newWorld(t)
	w.publish("10.2.0a20260930", 1)
	handler, err := demo.Handler(w.amd)
	if err != nil {
		t.Fatal(err)
	}
	var open atomic.Int64
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Add(-1)
		}
	}
	server.Start()
	defer server.Close()
	w.o.Channels["nightly"] = Channel{Indexes: fetch.Sources(server.URL + demo.IndexPath)}
	for _, do := range []func(){func() { w.look() }, func() { w.run() }, func() { w.run() }} {
		do()
		for end := time.Now().Add(5 * time.Second); open.Load() > 0; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%d connections are open", open.Load())
			}
		}
	}
}
