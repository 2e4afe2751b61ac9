//go:build heavy

package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
	"github.com/rocm-nightly/rocm-nightly/serve"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// soakedNights is how many are published to the daemon.
const soakedNights = 120

// The daemon takes night after night by the real pipeline, from an index that fails in
// every way that indexes fail in. Neither memory, nor goroutines, nor open files grow.
func TestDaemonSoak(t *testing.T) {
	amd, root := t.TempDir(), t.TempDir()
	handler, err := demo.Handler(amd)
	if err != nil {
		t.Fatal(err)
	}
	var fault atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tarball := strings.HasSuffix(r.URL.Path, ".tar.gz")
		switch n := fault.Load(); {
		case n == 1 && !tarball:
			http.Error(w, "Bad Gateway", http.StatusBadGateway)
		case n == 2 && tarball && r.Method == http.MethodGet:
			panic(http.ErrAbortHandler)
		case n == 3 && !tarball:
			fmt.Fprint(w, "<!DOCTYPE html><title>maintenance</title>")
		case n == 4 && tarball:
			http.NotFound(w, r)
		default:
			handler.ServeHTTP(w, r)
		}
	}))
	defer server.Close()
	// Each run has connections of its own, which would stay open for a while: nights
	// are a day apart, and these are not.
	server.Config.SetKeepAlivesEnabled(false)
	s, jobs := soakService(t, root, server.URL+demo.IndexPath)
	if s.sched, err = serve.New(jobs, s.options(root, false, nil)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.sched.Run(ctx) }()
	var was use
	for night := range soakedNights {
		publishNext(t, amd, night)
		if night%5 != 0 {
			fault.Store(int32(night % 5))
			runOnce(t, s)
			fault.Store(0)
		}
		if j := runOnce(t, s); j.Error != "" {
			t.Fatalf("night %d: %s", night, j.Error)
		}
		if night == soakedNights/4 {
			was = inUse(t)
		}
	}
	now := inUse(t)
	t.Logf("after a quarter %+v, at the end %+v", was, now)
	if now.heap > was.heap+was.heap/2+4<<20 || now.goroutines > was.goroutines+5 || now.files > was.files+5 {
		t.Errorf("it was %+v, and is %+v", was, now)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if gens, _ := filepath.Glob(filepath.Join(root, "slots/*/generations/*")); len(gens) != 3 {
		t.Errorf("%d generations are left: %v", len(gens), gens)
	}
}

func soakService(t *testing.T, root, url string) (*service, []serve.Job) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("root: %s\nchannels: {nightly: {indexes: [{url: %q}]}}\npolicy: {settle: 0s}\ndownload: {retries: 0}\nhealth: {smoke: off}\ninstalls: [{target: gfx1151}]\n", root, url)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, getenv: func(string) string { return "" }, uid: 1000, configFile: file, logFormat: "json", quiet: true}
	cfg, err := a.config()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{a: a, log: a.log(&out), hub: new(state.Hub)}
	jobs, err := s.load(a, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, jobs
}

// publishNext publishes a night, and takes away the one that is too old.
func publishNext(t *testing.T, amd string, night int) {
	t.Helper()
	version := "10.2.0a" + time.Date(2026, 1, 1+night, 0, 0, 0, 0, time.UTC).Format("20060102")
	at := time.Now().Add(time.Duration(night-soakedNights) * time.Minute)
	if _, err := demo.Night(t.Context(), amd, demo.NightOptions{Version: version, Date: at, Compiler: "none"}); err != nil {
		t.Fatal(err)
	}
	if old, _ := filepath.Glob(filepath.Join(amd, "*.tar.gz")); len(old) > 5 {
		if err := os.Remove(old[0]); err != nil { // names are in order
			t.Fatal(err)
		}
	}
}

// runOnce has the update run, and waits for its end.
func runOnce(t *testing.T, s *service) state.Job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	update := func() state.Job {
		if all := s.hub.State().Jobs; len(all) > 0 {
			return all[0]
		}
		return state.Job{}
	}
	before := update().Runs
	for s.sched.RunNow(ctx, "update") != nil { // it runs still
		if ctx.Err() != nil {
			t.Fatal("it does not begin")
		}
		<-time.After(5 * time.Millisecond)
	}
	for {
		changed := s.hub.Changed()
		if j := update(); j.Runs > before && s.hub.State().Running == nil {
			return j
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("it does not end")
		}
	}
}

// use is what a process has of its machine.
type use struct {
	heap              uint64
	goroutines, files int
}

func inUse(t *testing.T) use {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return use{m.HeapAlloc, runtime.NumGoroutine(), len(files)}
}
