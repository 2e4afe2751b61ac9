package bump_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump"
)

// dying is a transport under which the process ends at its n-th request: that
// one is not sent, or its answer is never read, and all that follows fails.
type dying struct {
	under  http.RoundTripper
	at     int64
	sent   bool // the n-th request arrives at the forge
	kill   context.CancelFunc
	asked  atomic.Int64
	writes atomic.Int64 // requests so far that change something
}

var errKilled = errors.New("killed")

func (d *dying) RoundTrip(r *http.Request) (*http.Response, error) {
	n := d.asked.Add(1)
	if r.Method != http.MethodGet {
		d.writes.Add(1)
	}
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

// TestGiteaKilled: killed at any request to the forge and run again, there is
// one branch, one request, and the right content.
func TestGiteaKilled(t *testing.T) {
	l := newLives(t)
	s := l.begin(t, "kills", "gfx1151")
	s.bump.Labels, s.bump.Assignees = []string{"rocm"}, []string{"ann"}

	// One run that is let live says how many requests there are.
	count := &dying{under: s.site.HTTP}
	if _, err := s.runAs(t, "whole", count, nil); err != nil {
		t.Fatal(err)
	}
	total := count.asked.Load()
	if total < 4 || count.writes.Load() < 1 {
		t.Fatalf("only %d requests, %d writes", total, count.writes.Load())
	}
	for n := int64(1); n <= total; n++ {
		name := fmt.Sprint("kill-", n)
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d := &dying{under: s.site.HTTP, at: n, sent: n%2 == 0, kill: cancel}
			if r, err := s.runAs(t, name, d, ctx); err == nil && d.asked.Load() >= n {
				t.Logf("it lived through request %d: %+v", n, r)
			}
			if _, err := s.runAs(t, name, s.site.HTTP, nil); err != nil {
				t.Fatal(err)
			}
			if r, err := s.runAs(t, name, s.site.HTTP, nil); err != nil || r.Action != bump.ActionNone {
				t.Errorf("a third run finds something to do: %+v, %v", r, err)
			}
			s.once(t, name)
		})
	}
}

// runAs bumps a file of its own, so that one repository serves all.
func (s *subject) runAs(t *testing.T, name string, through http.RoundTripper, ctx context.Context) (*bump.Result, error) {
	t.Helper()
	if ctx == nil {
		ctx = t.Context()
	}
	if path := name + ".nix"; s.ann.Missing(t, s.repo, "main", path) {
		s.ann.Commit(t, s.repo, "main", "add "+name, map[string]string{path: pinned("gfx1151")})
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
