package metrics

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

var update = flag.Bool("update", false, "write the golden files anew")

// full is a State in which everything is known.
func full() *state.State {
	at := time.Date(2026, 11, 22, 6, 30, 0, 0, time.UTC)
	active := state.Generation{Name: "10.3.0a20261121", Version: "10.3.0a20261121", Active: true, Published: at.Add(-24 * time.Hour), Installed: at.Add(-20 * time.Hour), Disk: 9e9, Alone: 4e9, Audit: &state.Audit{Required: 2, Warnings: 17}}
	kept := state.Generation{Name: "10.3.0a20261120", Version: "10.3.0a20261120", Disk: 8.5e9, Alone: 3.5e9}
	return &state.State{
		Schema: state.Schema, Time: at.Add(time.Minute), Host: "here", Root: "/var/lib/rocm-nightly",
		Program: state.Program{Version: "1.2.3", Commit: "0123456", Go: "go1.26.0", Started: at.Add(-240 * time.Hour), Loaded: at.Add(-240 * time.Hour)},
		Running: &state.Running{Job: "update", Why: "scheduled", Started: at, Slot: "nightly-gfx1151", Stage: "download", Done: 5e8, Total: 2e9},
		Alarms:  []state.Alarm{{Kind: "held", Level: state.Warning, Slot: "stable-gfx1100", Text: "held"}},
		Jobs: []state.Job{
			{Name: "update", Kind: "update", Next: at.Add(24 * time.Hour), Last: at.Add(-24 * time.Hour), LastSeconds: 321.5, LastSuccess: at.Add(-20 * time.Hour), Runs: 12, Failed: 2, Retries: 1},
			{Name: "check", Kind: "check", Next: at.Add(42 * time.Minute), Runs: 0},
		},
		Slots: []state.Slot{
			{
				Slot: "nightly-gfx1151", Channel: "nightly", Target: "gfx1151", Configured: true, Active: &active,
				Newest:      &state.Newest{Version: "10.3.0a20261122", Published: at.Add(-time.Hour), Size: 2e9, State: "newer"},
				Expires:     "2027-03-21",
				LastSuccess: at.Add(-20 * time.Hour), Generations: []state.Generation{active, kept},
				Runs: []state.Run{{Name: "10.3.0a20261121", Version: "10.3.0a20261121", Finished: at.Add(-20 * time.Hour), Seconds: 300.25, Bytes: 1.9e9,
					Stages: []state.Stage{{Stage: "download", Seconds: 200}, {Stage: "unpack", Seconds: 60}, {Stage: "download", Seconds: 20}, {Stage: "audit", Seconds: 20.25}}}},
			},
			{Slot: "stable-gfx1100", Channel: "stable", Target: "gfx1100", Hold: &state.Hold{Since: at.Add(-400 * time.Hour)}, Error: "state.json: EOF", Generations: []state.Generation{{Disk: -1, Alone: -1}}},
		},
		Indexes: []state.Index{{Channel: "nightly", URL: "https://nightly.repo.amd.com/rocm/core/tarball/", Checked: at, Newest: at.Add(-time.Hour)}},
		Bumps:   []state.Bump{{Name: "flake", State: "open", At: at.Add(-20 * time.Hour)}},
		Disk:    state.Disk{Used: 12.5e9, Tarballs: 2e9, Spool: 5e8, Free: 100e9, Total: 500e9, Measured: at.Add(-20 * time.Hour)},
	}
}

type fixed struct{ s *state.State }

func (f fixed) State() *state.State { return f.s }

func scrape(t testing.TB, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Fatalf("%d %s: %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	return w.Body.String()
}

// ours leaves out what the Go and the process collector tell.
func ours(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) || strings.HasPrefix(line, "# HELP "+prefix) || strings.HasPrefix(line, "# TYPE "+prefix) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// golden compares with what was reviewed; go test -update writes it anew.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is told now:\n%s", file, got)
	}
}

func TestScrape(t *testing.T) {
	golden(t, "full.prom", ours(scrape(t, Handler(fixed{full()}))))
	golden(t, "empty.prom", ours(scrape(t, Handler(new(state.Hub)))))
}

func TestTheProcessIsTold(t *testing.T) {
	text := scrape(t, Handler(new(state.Hub)))
	for _, name := range []string{"go_goroutines", "process_start_time_seconds", "process_resident_memory_bytes", "process_open_fds"} {
		if !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("no %s", name)
		}
	}
}

// Every name of the table is told of a State in which everything is known.
func TestNothingOfTheTableIsMissing(t *testing.T) {
	text := scrape(t, Handler(fixed{full()}))
	for _, f := range families {
		if !regexp.MustCompile(`(?m)^` + prefix + f.name + `[ {]`).MatchString(text) {
			t.Errorf("nothing tells %s", f.name)
		}
	}
}

func TestTextfile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "rocm-nightly.prom")
	for range 2 { // it is replaced
		if err := WriteTextfile(path, full()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "textfile.prom", string(text))
	for _, f := range families {
		if told := bytes.Contains(text, []byte("\n"+prefix+f.name)); told == f.live {
			t.Errorf("%s: told %v, right only in a process %v", f.name, told, f.live)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("beside it: %v", left)
	}
}

// What stands there, be it a link to something of somebody else's, is replaced and
// not written into; what cannot be replaced is an error that names the file.
func TestTextfileReplaces(t *testing.T) {
	dir := t.TempDir()
	other, path := filepath.Join(dir, "other"), filepath.Join(dir, "a.prom")
	if err := os.WriteFile(other, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	if err := WriteTextfile(path, full()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(other); err != nil || string(got) != "mine" {
		t.Errorf("%q, %v", got, err)
	}
	if err := WriteTextfile(filepath.Join(dir, "none", "a.prom"), full()); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("in a directory that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d.prom"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteTextfile(filepath.Join(dir, "d.prom"), full()); err == nil {
		t.Error("a directory was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPromtoolFindsNothing(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool (Debian's prometheus) is not installed")
	}
	for name, s := range map[string]*state.State{"full": full(), "empty": new(state.Hub).State(), "hostile": hostile()} {
		cmd := exec.Command(promtool, "check", "metrics")
		// What the Go collector calls its metrics is not ours to change.
		cmd.Stdin = strings.NewReader(ours(scrape(t, Handler(fixed{s}))))
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// hostile is a State whose names are made to break a scrape.
func hostile() *state.State {
	evil := "a\"} 1\n# HELP x\nevil_total{x=\"" + `\` + "\xff\x1b[2J\u202e" + strings.Repeat("y", 1000)
	s := full()
	s.Program = state.Program{Version: evil, Commit: evil, Go: evil, Config: evil}
	s.Running.Job, s.Running.Slot, s.Running.Stage, s.Running.Done = evil, evil, evil, 1<<62
	s.Alarms = []state.Alarm{{Kind: evil, Level: evil, Text: evil}, {Kind: "failed", Level: state.Critical}}
	s.Bumps = []state.Bump{{Name: evil, State: evil, Error: evil}, {Name: evil, State: "open"}}
	s.Indexes = []state.Index{{Channel: evil, URL: "https://user:secret@h/p?token=secret"}, {Channel: evil, URL: "https://h/p"}, {URL: ":" + evil}}
	s.Slots[0].Slot, s.Slots[0].Channel, s.Slots[0].Active.Version, s.Slots[0].Newest.Version, s.Slots[0].Newest.State, s.Slots[0].Expires = evil, evil, evil, evil, evil, evil
	s.Slots = append(s.Slots, s.Slots[0]) // twice
	for i := range 2_000 {
		s.Slots[0].Runs[0].Stages = append(s.Slots[0].Runs[0].Stages, state.Stage{Stage: fmt.Sprint(evil[:10], i)})
		s.Bumps = append(s.Bumps, state.Bump{Name: fmt.Sprint(i)})
		s.Jobs = append(s.Jobs, state.Job{Name: fmt.Sprint(i), Failed: 3})
		s.Indexes = append(s.Indexes, state.Index{URL: fmt.Sprint("https://h/", i)})
		s.Slots = append(s.Slots, state.Slot{Slot: fmt.Sprint(i)})
	}
	return s
}

func TestHostileNames(t *testing.T) {
	text := ours(scrape(t, Handler(fixed{hostile()})))
	if n := strings.Count(text, "\n"); n > 15_000 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(text) {
		if len(line) > 2000 || !plain.Is(strings.TrimSuffix(line, "\n")) || strings.Contains(line, "secret") || strings.HasPrefix(line, "evil") {
			t.Errorf("%q", line)
		}
	}
}

// A job that the config has anew begins at 0; what is told goes on.
func TestCountersDoNotGoDown(t *testing.T) {
	var hub state.Hub
	h := Handler(&hub)
	for _, step := range []struct {
		runs, failed uint64
		gone         bool
		want         string
	}{
		{runs: 3, failed: 1, want: "2 1"},
		{runs: 5, failed: 1, want: "4 1"},
		{gone: true},
		{runs: 0, failed: 0, want: "4 1"},
		{runs: 2, failed: 2, want: "4 3"},
		{runs: 1, failed: 0, want: "5 3"},
	} {
		hub.Update(func(s *state.State) {
			s.Jobs = []state.Job{{Name: "update", Runs: step.runs, Failed: step.failed}}
			if step.gone {
				s.Jobs = nil
			}
		})
		got := strings.Join(regexp.MustCompile(`(?m)^rocm_nightly_job_runs_total\{.*\} (\d+)$`).FindAllString(scrape(t, h), -1), "\n")
		var success, failure int
		for line := range strings.Lines(got) {
			_, _ = fmt.Sscanf(line, `rocm_nightly_job_runs_total{name="update",result="success"} %d`, &success)
			_, _ = fmt.Sscanf(line, `rocm_nightly_job_runs_total{name="update",result="failure"} %d`, &failure)
		}
		if told := fmt.Sprint(success, failure); !step.gone && told != step.want || step.gone && got != "" {
			t.Errorf("%+v: %s\n%s", step, told, got)
		}
	}
}

func TestScrapesWhileItChanges(t *testing.T) {
	var hub state.Hub
	srv := httptest.NewServer(Handler(&hub))
	defer srv.Close()
	var wg sync.WaitGroup
	for range maxScrapes {
		wg.Go(func() {
			for range 10 {
				resp, err := srv.Client().Get(srv.URL)
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(prefix+"running ")) {
					t.Errorf("%d, %v", resp.StatusCode, err)
				}
				hub.Update(func(s *state.State) { s.Jobs = []state.Job{{Name: "update", Runs: uint64(len(s.Jobs))}} })
			}
		})
	}
	wg.Wait()
}

// many is a State with 64 slots.
func many() *state.State {
	s := full()
	slot := s.Slots[0]
	s.Slots = nil
	for i := range 64 {
		slot.Slot = fmt.Sprintf("nightly-gfx%04d", i)
		s.Slots = append(s.Slots, slot)
	}
	return s
}

func BenchmarkScrape(b *testing.B) {
	h := Handler(fixed{many()})
	for b.Loop() {
		scrape(b, h)
	}
}

func ExampleHandler() {
	var hub state.Hub
	hub.Update(func(s *state.State) {
		s.Slots = []state.Slot{{Slot: "nightly-gfx1151", LastSuccess: time.Unix(1795330000, 0)}}
	})
	w := httptest.NewRecorder()
	Handler(&hub).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, "slot_last_success") {
			fmt.Print(line)
		}
	}
	// Output:
	// # HELP rocm_nightly_slot_last_success_timestamp_seconds When a run for the slot last did what it should, in seconds since 1970.
	// # TYPE rocm_nightly_slot_last_success_timestamp_seconds gauge
	// rocm_nightly_slot_last_success_timestamp_seconds{slot="nightly-gfx1151"} 1.79533e+09
}

func ExampleWriteTextfile() {
	dir, err := os.MkdirTemp("", "textfile")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	// Where Debian's prometheus-node-exporter looks: /var/lib/prometheus/node-exporter.
	fmt.Println(WriteTextfile(filepath.Join(dir, "rocm-nightly.prom"), new(state.Hub).State()))
	// Output: <nil>
}
