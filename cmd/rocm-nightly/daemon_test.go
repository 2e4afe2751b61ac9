package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/demo"
	"github.com/rocm-nightly/rocm-nightly/serve"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// The daemon's jobs are the installs by schedule, and one run of a job is one
// update of its installs.
func TestDaemonJobs(t *testing.T) {
	amd, root := t.TempDir(), t.TempDir()
	for _, family := range []string{"gfx1151", "gfx110X-all"} {
		if _, err := demo.Night(context.Background(), amd, demo.NightOptions{Version: "10.2.0a20260930", Family: family, Date: time.Now().Add(-24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	url, stop, err := demo.Serve(context.Background(), amd)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf(`
root: %s
channels: {nightly: {indexes: [{url: %q}]}}
policy: {settle: 0s}
installs:
  - target: gfx1151
  - target: gfx1100
    schedule: "0 7 * * 1"
  - target: gfx1103
`, root, url)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &log, stderr: &log, getenv: func(string) string { return "" }, uid: 1000, configFile: file, logFormat: "json"}
	cfg, err := a.config()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{a: a, log: a.log(&log)}
	jobs := s.jobs(a, cfg)
	if len(jobs) != 3 || jobs[0].Spec != cfg.Schedule || jobs[1].Spec != "0 7 * * 1" || jobs[2].Kind != serve.Check {
		t.Fatalf("%+v", jobs)
	}
	if jobs[0].Name != "update" || jobs[1].Name != "update-nightly-gfx1100" || strings.Join(jobs[0].Slots, " ") != "nightly-gfx1151 nightly-gfx1103" {
		t.Errorf("%+v", jobs)
	}
	if names := jobsOf(jobs[:2], "nightly-gfx1103"); len(names) != 1 || names[0] != "update" {
		t.Errorf("%v", names)
	}
	var moved atomic.Bool
	run := func(ctx context.Context, i int) serve.Result {
		return jobs[i].Run(ctx, serve.Turn{Why: serve.Scheduled, Progress: func(p serve.Progress) { moved.Store(moved.Load() || p.Slot != "" && p.Stage == "unpack") }})
	}
	installed := func(want ...string) {
		t.Helper()
		slots, _ := filepath.Glob(filepath.Join(root, "slots/*/current"))
		if len(slots) != len(want) {
			t.Fatalf("installed %v, want %v; log: %s", slots, want, log.String())
		}
	}
	if res := run(t.Context(), 1); res.Err != nil || !res.Changed || res.After == nil {
		t.Fatalf("%+v", res)
	}
	installed("gfx1100")
	if res := run(t.Context(), 0); res.Err != nil || !moved.Load() {
		t.Fatalf("%+v", res)
	}
	installed("gfx1100", "gfx1103", "gfx1151")
	if res := run(t.Context(), 0); res.Err != nil || res.Changed {
		t.Errorf("%+v", res)
	}
	st, err := a.store()
	if err != nil {
		t.Fatal(err)
	}
	lock, err := st.LockRun(t.Context(), "prune")
	if err != nil {
		t.Fatal(err)
	}
	if res := run(t.Context(), 0); !res.Busy {
		t.Errorf("another process is at work: %+v", res)
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
	stop()
	if res := run(t.Context(), 0); res.Exit != update.ExitFailed || res.Err == nil {
		t.Errorf("an index that is gone is no failure: %+v", res)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if res := run(cancelled, 0); !errors.Is(res.Err, context.Canceled) {
		t.Errorf("%+v", res)
	}
}

func TestSourceLine(t *testing.T) {
	for _, tt := range []struct{ shell, prefix, want string }{
		{"/bin/bash", "/var/lib/x/current", ". /var/lib/x/current/etc/env.sh"},
		{"", "/p", ". /p/etc/env.sh"},
		{"/usr/bin/fish", "/p", "source /p/etc/env.fish"},
		{"/bin/tcsh", "/p", "source /p/etc/env.csh"},
		{"nu", "/p", "source /p/etc/env.nu"},
		{"/bin/sh", "/home/me/my rocm", ". '/home/me/my rocm/etc/env.sh'"},
		{"/bin/sh", "/it's", `. '/it'\''s/etc/env.sh'`},
	} {
		if got := sourceLine(tt.shell, tt.prefix); got != tt.want {
			t.Errorf("%s: %s", tt.shell, got)
		}
	}
}

func TestArchFindsItsInstall(t *testing.T) {
	cfg := config.Default()
	cfg.Installs = []config.Install{{Target: "auto", Channel: "stable", Link: "/opt/rocm"}, {Target: "RX 7900 XTX", Channel: "dev"}}
	if in := archInstall(cfg, "gfx1100"); in.Channel != "dev" {
		t.Errorf("%+v", in)
	}
	if in := archInstall(cfg, "gfx1151"); in.Channel != "stable" || in.Target != "gfx1151" || in.Link != "/opt/rocm" {
		t.Errorf("%+v", in)
	}
	cfg.Installs = nil
	if in := archInstall(cfg, "gfx1151"); in.Channel != "nightly" {
		t.Errorf("%+v", in)
	}
}

func TestPrintable(t *testing.T) {
	if got := printable("a\x1b[31mb\u009bc\nd"); strings.ContainsAny(got, "\x1b\u009b") || !strings.Contains(got, "\nd") {
		t.Errorf("%q", got)
	}
}

// An address that is taken ends the daemon at once: with one line, which says who may
// be there and what to change, and with no promise to try again.
func TestDaemonAddressTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("root: %s\ninstalls: [{target: gfx1151}]\nserve: {listen: %q}\n", t.TempDir(), l.Addr())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &stderr, getenv: func(string) string { return "" }, uid: os.Getuid()}
	code := a.run(t.Context(), []string{"--config", file, "daemon"})
	said := stderr.String()
	if code != 1 || strings.Count(said, "\n") != 1 || !strings.Contains(said, "ss -ltnp") || !strings.Contains(said, "serve.listen names another") || strings.Contains(said, "PROXY") {
		t.Errorf("%d: %s", code, said)
	}
}
