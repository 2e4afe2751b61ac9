package bump_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump"
)

// dying is a transport under which the process ends at its n-th request: that
// one is not sent, or its answer is never read, and all that follows fails.
type dying struct {
	under http.RoundTripper
	at    int64
	sent  bool // the n-th request arrives at the forge
	kill  context.CancelFunc
	asked atomic.Int64

	mu      sync.Mutex
	methods []string // of the requests so far
}

var errKilled = errors.New("killed")

func (d *dying) RoundTrip(r *http.Request) (*http.Response, error) {
	n := d.asked.Add(1)
	d.mu.Lock()
	d.methods = append(d.methods, r.Method)
	d.mu.Unlock()
	if d.at == 0 || n < d.at {
		return d.under.RoundTrip(r)
	}
	if n == d.at && d.sent {
		// It arrives whatever becomes of who sent it.
		if resp, err := d.under.RoundTrip(r.WithContext(context.WithoutCancel(r.Context()))); err == nil {
			resp.Body.Close()
		}
	}
	d.kill()
	return nil, errKilled
}

// lifeKilled: killed at any request to the forge and run again, there is one
// branch, one request, and the right content. Between two requests that change
// something one death is like another, so that a short run dies once in each.
func lifeKilled(t *testing.T, l *lives) {
	s := l.begin(t, "kills", "gfx1151")
	s.bump.Labels, s.bump.Assignees = []string{"rocm"}, []string{"ann"}
	s.ann.Commit(t, s.repo, "main", "whole", map[string]string{"whole.nix": pinned("gfx1151")})

	// One run that is let live says how many requests there are.
	count := &dying{under: s.site.HTTP}
	if _, err := s.runAs(t, "whole", count, nil); err != nil {
		t.Fatal(err)
	}
	var deaths []death
	for n, method := range count.methods {
		for _, sent := range []bool{false, true} {
			changes := method != http.MethodGet && (sent || len(deaths) == 0)
			if d := (death{int64(n + 1), sent}); heavy || changes {
				deaths = append(deaths, d)
			}
		}
	}
	if len(deaths) < 5 {
		t.Fatalf("only %v", count.methods)
	}
	files := map[string]string{}
	for _, d := range deaths {
		files[d.name()+".nix"] = pinned("gfx1151")
	}
	s.ann.Commit(t, s.repo, "main", "one for each", files)
	for _, d := range deaths {
		t.Run(d.name(), func(t *testing.T) {
			t.Parallel()
			s.die(t, d)
		})
	}
}

// death is the request at which a process ends.
type death struct {
	at   int64
	sent bool
}

func (d death) name() string {
	if d.sent {
		return fmt.Sprintf("after-%d", d.at)
	}
	return fmt.Sprintf("before-%d", d.at)
}

// die bumps until d, and then to the end.
func (s *subject) die(t *testing.T, d death) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	through := &dying{under: s.site.HTTP, at: d.at, sent: d.sent, kill: cancel}
	if r, err := s.runAs(t, d.name(), through, ctx); through.asked.Load() < d.at {
		t.Errorf("it did not come to request %d: %+v, %v", d.at, r, err)
	}
	if _, err := s.runAs(t, d.name(), s.site.HTTP, nil); err != nil {
		t.Fatal(err)
	}
	if r, err := s.runAs(t, d.name(), s.site.HTTP, nil); err != nil || r.Action != bump.ActionNone {
		t.Errorf("a third run finds something to do: %+v, %v", r, err)
	}
	s.once(t, d.name())
}

// runAs bumps a file of its own, so that one repository serves all.
func (s *subject) runAs(t *testing.T, name string, through http.RoundTripper, ctx context.Context) (*bump.Result, error) {
	t.Helper()
	if ctx == nil {
		ctx = t.Context()
	}
	repo, o := s.bump, s.options(through)
	repo.Name, repo.Files, o.WorkDir = name, pins(name+".nix", "gfx1151"), t.TempDir()
	return bump.Run(ctx, repo, map[string]bump.Pin{"gfx1151": night(1, "gfx1151")}, o)
}

// once checks that there is one request from the branch of name, and what it
// has.
func (s *subject) once(t *testing.T, name string) {
	t.Helper()
	found := 0
	for _, p := range s.ann.Pulls(t, s.repo, "all") {
		if p.Head.Branch != branchOf+name {
			continue
		}
		if found++; p.State != "open" || len(p.Labels) != 1 || len(p.Assignees) != 1 {
			t.Errorf("%+v", p)
		}
	}
	if found != 1 {
		t.Errorf("%d requests from %s", found, name)
	}
	s.holds(t, branchOf+name, name+".nix", 1, "gfx1151")
}
