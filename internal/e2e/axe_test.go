package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
)

// The slot of these tests, and its nights, the oldest first.
const (
	axeSlot    = "slots/nightly-gfx1151"
	axeSegment = 1 << 20 // bytes of a segment of these nights
	axeConns   = 4       // connections
)

// axe is AMD's side, which counts what it sends, and a store whose program is
// killed and whose disk fails.
type axe struct {
	amd    string // the directory that is served
	url    string
	dir    string // of this test; short-lived, in memory where that can be had
	disk   string // that the store and its link are on; dir, if not said
	root   string
	config string
	health string       // the config's
	sent   atomic.Int64 // bytes of tarballs
	gate   atomic.Pointer[gate]
}

// memory is a directory that is gone after the test, on a tmpfs where there is
// one: a kill loses nothing that was written, so that a disk would test nothing more.
func memory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "rocm-nightly-axe-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// newAxe publishes so many nights, of which nothing is installed.
func newAxe(t *testing.T, nights int) *axe {
	t.Helper()
	dir := memory(t)
	return newAxeOn(t, nights, dir, dir)
}

// newAxeOn has the store and its link on a disk of their own.
func newAxeOn(t *testing.T, nights int, dir, disk string) *axe {
	t.Helper()
	a := &axe{dir: dir, disk: disk, root: filepath.Join(disk, "root"), health: `{smoke: "off"}`}
	a.amd, a.config = filepath.Join(dir, "amd"), filepath.Join(dir, "config.yaml")
	for _, dir := range []string{a.amd, filepath.Join(disk, "opt"), filepath.Join(dir, "home")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for n := range nights {
		a.publish(t, n)
	}
	handler, err := demo.Handler(a.amd)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".tar.gz") && r.Method == http.MethodGet {
			w = &counting{w, &a.sent}
			if g := a.gate.Load(); g != nil {
				g.come()
				<-g.open
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	a.url = server.URL + demo.IndexPath
	a.configure(t, "")
	return a
}

// gate holds requests for tarballs back until it is opened.
type gate struct {
	once sync.Once
	came chan struct{} // closed by the first request
	open chan struct{}
}

func (g *gate) come() { g.once.Do(func() { close(g.came) }) }

// shut has requests for tarballs wait from now on.
func (a *axe) shut() *gate {
	g := &gate{came: make(chan struct{}), open: make(chan struct{})}
	a.gate.Store(g)
	return g
}

// counting counts the bytes of the bodies that are sent.
type counting struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c *counting) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// axeNight is the version of the n-th night.
func axeNight(n int) string {
	return "10.2.0a" + time.Date(2026, 9, 1+n, 0, 0, 0, 0, time.UTC).Format("20060102")
}

func (a *axe) publish(t *testing.T, n int) {
	t.Helper()
	_, err := demo.Night(t.Context(), a.amd, demo.NightOptions{Version: axeNight(n), Date: time.Now().Add(time.Duration(n-100) * time.Hour), Compiler: "none", Noise: 2 << 20})
	if err != nil {
		t.Fatal(err)
	}
}

// configure writes the config; more is added to it.
func (a *axe) configure(t *testing.T, more string) {
	t.Helper()
	text := fmt.Sprintf("root: %s\nchannels: {nightly: {indexes: [{url: %q}]}}\ninstalls: [{target: gfx1151, link: %s}]\npolicy: {settle: 0s, stale_after: 0s}\n"+
		"download: {retries: 1, connections: %d}\nhealth: %s\nkeep: {last: 2}\n%s", a.root, a.url, filepath.Join(a.disk, "opt/rocm"), axeConns, a.health, more)
	if err := os.WriteFile(a.config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command is the program with its arguments; env is added to its environment.
func (a *axe) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, append([]string{"--config", a.config}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(a.dir, "home")}, env...)
	return cmd
}

// do runs the program.
func (a *axe) do(t *testing.T, env []string, args ...string) result {
	t.Helper()
	cmd := a.command(t.Context(), env, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// install installs the n-th night and no other.
func (a *axe) install(t *testing.T, n int) {
	t.Helper()
	a.do(t, nil, "update", "--no-bump", "--version", axeNight(n)).want(t, 0, "", "")
}

func (a *axe) slot(elem ...string) string {
	return filepath.Join(append([]string{a.root, axeSlot}, elem...)...)
}

// active is the name of the active generation, "" if there is none.
func (a *axe) active() string {
	to, err := os.Readlink(a.slot("current"))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// restore makes the store what the copy is.
func (a *axe) restore(t *testing.T, copied string) {
	t.Helper()
	for _, dir := range []string{a.root, filepath.Join(a.disk, "opt")} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"root": a.root, "opt": filepath.Join(a.disk, "opt")} {
		if out, err := exec.Command("cp", "-a", filepath.Join(copied, from), to).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
	}
}

// keep copies the store, for restore.
func (a *axe) keep(t *testing.T, name string) string {
	t.Helper()
	to := filepath.Join(a.dir, name)
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	for from, name := range map[string]string{a.root: "root", filepath.Join(a.disk, "opt"): "opt"} {
		if out, err := exec.Command("cp", "-a", from, filepath.Join(to, name)).CombinedOutput(); err != nil {
			t.Fatalf("cp: %v\n%s", err, out)
		}
	}
	return to
}

// killedBySignal reports whether a process was ended by SIGKILL.
func killedBySignal(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func mapKeys(m map[string]string) iter.Seq[string] { return maps.Keys(m) }
