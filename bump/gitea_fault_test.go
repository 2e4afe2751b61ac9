//go:build faults

package bump_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/internal/giteatest"
)

// faultChild names the variable that makes TestFaultChild a run of a bump.
const faultChild = "ROCM_NIGHTLY_TEST_BUMP"

// child is what such a run is told.
type child struct {
	Repo           bump.Repo
	Night          int
	Hours          int // by which its clock is ahead
	CA, Token, Dir string
}

func (c child) run(t *testing.T) (*bump.Result, error) {
	s := &subject{lives: &lives{site: giteatest.Trusting(t, c.CA)}, as: giteatest.User{Token: c.Token}}
	o := s.options(s.site.HTTP)
	o.WorkDir = c.Dir
	o.Now = func() time.Time { return time.Now().Add(time.Duration(c.Hours) * time.Hour) }
	return bump.Run(t.Context(), c.Repo, map[string]bump.Pin{"gfx1151": night(c.Night, "gfx1151")}, o)
}

// TestFaultChild is the process that is killed; by itself it does nothing.
func TestFaultChild(t *testing.T) {
	raw := os.Getenv(faultChild)
	if raw == "" {
		return
	}
	var c child
	if err := json.Unmarshal([]byte(raw), &c); err != nil {
		t.Fatal(err)
	}
	if r, err := c.run(t); err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
}

// TestFaultAtEveryPoint: a process is killed at each point of a bump, on a real
// Gitea. The next run comes to the end that the killed one was on its way to,
// and the one after it finds nothing to do.
func TestFaultAtEveryPoint(t *testing.T) {
	l := newLives(t)
	ways := map[string]struct {
		points []string
		begin  func(*testing.T, *subject)
		child  child
		end    func(*testing.T, *subject)
	}{
		"open":    {[]string{"bump.commit.made", "bump.branch.moved", "bump.request.opened", "bump.request.tended", "bump.dashboard.opened"}, nil, child{Night: 1}, faultOpen(1)},
		"refresh": {[]string{"bump.request.edited", "bump.dashboard.edited"}, faultBegin, child{Night: 2}, faultOpen(2)},
		"close": {[]string{"bump.request.commented", "bump.request.closed", "bump.branch.deleted"}, func(t *testing.T, s *subject) {
			faultBegin(t, s)
			s.ann.Commit(t, s.repo, "main", "by hand", map[string]string{"rocm.nix": s.ann.File(t, s.repo, s.only(t).Head.Branch, "rocm.nix")})
		}, child{Night: 1}, func(t *testing.T, s *subject) { s.ended(t, s.ann.Pulls(t, s.repo, "all")[0]) }},
		"merge": {[]string{"bump.request.merged"}, func(t *testing.T, s *subject) {
			s.bump.AutoMerge = "1h"
			s.ann.Call(t, 201, "POST", s.repo.API()+"/branch_protections", map[string]any{
				"rule_name": "main", "enable_status_check": true, "status_check_contexts": []string{"ci"}, "enable_push": true,
			}, nil)
			faultBegin(t, s)
			s.ann.Call(t, 201, "POST", s.repo.API()+"/statuses/"+s.only(t).Head.SHA, map[string]any{"context": "ci", "state": "success"}, nil)
		}, child{Night: 1, Hours: 2}, func(t *testing.T, s *subject) {
			if all := s.ann.Pulls(t, s.repo, "all"); len(all) != 1 || !all[0].Merged || s.ann.Tip(t, s.repo, all[0].Head.Branch) != "" {
				t.Errorf("%+v", all)
			}
		}},
	}
	var known []string
	for name, way := range ways {
		for _, point := range way.points {
			known = append(known, point)
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				s := l.begin(t, name+"-"+strings.ReplaceAll(point, ".", "-"), "gfx1151")
				s.bump.Labels, s.bump.Dashboard = []string{"rocm"}, "ROCm nightlies"
				if way.begin != nil {
					way.begin(t, s)
				}
				c := way.child
				c.Repo, c.CA, c.Token, c.Dir = s.bump, s.site.CA, s.as.Token, t.TempDir()
				c.killed(t, point)
				if r, err := c.run(t); err != nil {
					t.Fatalf("%+v, %v", r, err)
				}
				way.end(t, s)
				if r, err := c.run(t); err != nil || r.Action != bump.ActionNone {
					t.Errorf("a third run finds something to do: %+v, %v", r, err)
				}
				way.end(t, s)
			})
		}
	}
	for _, p := range fault.Points() {
		if strings.HasPrefix(p.Name, "bump.") && !slices.Contains(known, p.Name) {
			t.Errorf("nobody is killed at %s", p.Name)
		}
	}
}

// killed runs c in a process of its own that dies at point.
func (c child) killed(t *testing.T, point string) {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestFaultChild$", "-test.v")
	cmd.Env = append(os.Environ(), faultChild+"="+string(raw), "ROCM_NIGHTLY_FAULT="+point+":exit")
	out, err := cmd.CombinedOutput()
	status, is := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err == nil || !is || !status.Signaled() || status.Signal() != syscall.SIGKILL || !strings.Contains(string(out), "fault point "+point+": exit") {
		t.Fatalf("it was not killed at %s: %v\n%s", point, err, out)
	}
}

// faultBegin opens the request for the first night.
func faultBegin(t *testing.T, s *subject) { s.must(t, 1, bump.ActionOpened) }

// faultOpen checks that there is one request, which is for night n, and one
// dashboard that speaks of it.
func faultOpen(n int) func(*testing.T, *subject) {
	return func(t *testing.T, s *subject) {
		t.Helper()
		version := night(n, "gfx1151").Version
		all := s.ann.Pulls(t, s.repo, "all")
		if len(all) != 1 || all[0].State != "open" || labelsOf(all[0]) != "rocm" || !strings.Contains(all[0].Title, version) {
			t.Fatalf("%+v", all)
		}
		s.holds(t, all[0].Head.Branch, "rocm.nix", n, "gfx1151")
		var boards []struct{ Body string }
		s.ann.Call(t, 200, "GET", s.repo.API()+"/issues?type=issues&state=open", nil, &boards)
		if len(boards) != 1 || !strings.Contains(boards[0].Body, version) {
			t.Errorf("%+v", boards)
		}
	}
}
