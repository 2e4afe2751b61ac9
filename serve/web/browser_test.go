package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/browsertest"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

const testToken = "a token of the tests, long enough"

// deeds is what was done.
type deeds struct {
	mu  sync.Mutex
	all []string
	err error
}

func (d *deeds) add(s string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, s)
	return d.err
}

func (d *deeds) Run(_ context.Context, job string) error       { return d.add("run " + job) }
func (d *deeds) Rollback(_ context.Context, slot string) error { return d.add("rollback " + slot) }
func (d *deeds) Unhold(_ context.Context, slot string) error   { return d.add("unhold " + slot) }
func (d *deeds) Use(_ context.Context, slot, version string) error {
	return d.add("use " + slot + " " + version)
}

// The page in Chromium: accessible, readable on a phone, silent, alone, live, and
// usable by keyboard, in every state.
func TestPageInChromium(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for name, st := range scenarios() {
		_, ts := start(t, Options{Source: hub(st)})
		pages[name] = ts.URL + "/"
	}
	moving := hub(running())
	_, live := start(t, Options{Source: moving})
	done := &deeds{}
	_, act := start(t, Options{Source: hub(running()), Actions: done, Token: testToken})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shots := os.Getenv("ROCM_NIGHTLY_SCREENSHOTS")
	full := heavy || shots != ""
	checks := browsertest.Run(ctx, t, "testdata/page.cjs", map[string]any{
		"pages": pages, "full": full, "shots": shots,
		"live": map[string]string{"url": live.URL + "/", "move": mover(t, moving)},
		"act":  map[string]string{"url": act.URL, "token": testToken},
	})
	for _, c := range checks {
		t.Run(c.Name, func(t *testing.T) {
			if !c.OK {
				t.Error(c.Detail)
			}
		})
	}
	if len(checks) < len(pages)+5 {
		t.Errorf("only %d things were looked at", len(checks))
	}
	want := []string{"run update", "rollback nightly-gfx1151", "use nightly-gfx1151 10.2.0a20260929"}
	for i, got := range done.all {
		if got != want[i%len(want)] {
			t.Errorf("deed %d: %s, want %s", i, got, want[i%len(want)])
		}
	}
	rounds := 1
	if full { // without JavaScript too
		rounds = 2
	}
	if len(done.all) != rounds*len(want) {
		t.Errorf("done: %q", done.all)
	}
}

// mover changes what h holds when it is asked to.
func mover(t *testing.T, h *state.Hub) string {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.Update(func(s *state.State) {
			run := *s.Running
			if n, err := strconv.ParseInt(r.FormValue("done"), 10, 64); err == nil {
				run.Done = n
			}
			s.Running = &run
			if v := r.FormValue("version"); v != "" {
				sl := s.Slots[0]
				active := *sl.Active
				active.Version = v
				sl.Active = &active
				s.Slots = append([]state.Slot{sl}, s.Slots[1:]...)
			}
		})
	}))
	t.Cleanup(ts.Close)
	return ts.URL
}
