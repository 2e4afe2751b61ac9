package bump_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
)

// hubTrouble is how a request to GitHub goes wrong.
type hubTrouble struct {
	name   string
	status int // of the answer; 0: there is none
	header map[string]string
	text   string
	done   bool // what was asked for is done all the same
	err    error
}

var hubTroubles = []hubTrouble{
	{name: "reset", err: errors.New("read: connection reset by peer")},
	{name: "lost answer", done: true, err: io.ErrUnexpectedEOF},
	{name: "timeout", err: context.DeadlineExceeded},
	{name: "500", status: 500, text: "Server Error"},
	{name: "502 afterwards", status: 502, text: "<html>Unicorn!</html>", done: true},
	{name: "401", status: 401, text: "Bad credentials"},
	{name: "403", status: 403, text: "Resource not accessible by personal access token"},
	{name: "404", status: 404, text: "Not Found"},
	{name: "409", status: 409, text: "Conflict"},
	{name: "422", status: 422, text: "Validation Failed"},
	{name: "429", status: 429, header: map[string]string{"Retry-After": "60"}},
	{name: "hourly limit", status: 403, header: map[string]string{"X-Ratelimit-Remaining": "0"}, text: "API rate limit exceeded"},
	{name: "secondary limit", status: 403, text: "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."},
	{name: "nonsense", status: 200, text: "null"},
}

// hubTroubled is a transport on which the n-th request meets trouble, and so do
// those after it if it lasts.
type hubTroubled struct {
	hubTrouble
	at    int // 0: never
	lasts bool
	now   func() time.Time

	mu    sync.Mutex
	asked int
	met   string // the first request that met it
}

func (h *hubTroubled) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.asked++
	meets := h.at > 0 && (h.asked == h.at || h.lasts && h.asked > h.at)
	if meets && h.met == "" {
		h.met = r.Method + " " + r.URL.Path
	}
	h.mu.Unlock()
	if !meets {
		return http.DefaultTransport.RoundTrip(r)
	}
	if h.done {
		if res, err := http.DefaultTransport.RoundTrip(r); err == nil {
			res.Body.Close()
		}
	}
	if h.err != nil {
		return nil, h.err
	}
	head := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	for k, v := range h.header {
		head.Set(k, v)
	}
	if h.name == "hourly limit" {
		head.Set("X-Ratelimit-Reset", strconv.FormatInt(h.now().Add(30*time.Minute).Unix(), 10))
	}
	text := h.text
	if h.status >= 400 && h.status < 500 {
		text = fmt.Sprintf(`{"message":%q,"documentation_url":"https://docs.github.com/rest"}`, h.text)
	}
	return &http.Response{StatusCode: h.status, Status: strconv.Itoa(h.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: head, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// hubScene is a state of a request, and what a run then has to bring about.
type hubScene struct {
	name  string
	set   func(*testing.T, *hubSubject)
	night int
	ends  func(*testing.T, *hubSubject)
}

var hubScenes = []hubScene{
	{"opening", func(*testing.T, *hubSubject) {}, 1, func(t *testing.T, s *hubSubject) { s.standsOnce(t, s.repo, 1) }},
	{"refreshing", func(t *testing.T, s *hubSubject) { s.must(t, 1, bump.ActionOpened) }, 2,
		func(t *testing.T, s *hubSubject) { s.standsOnce(t, s.repo, 2) }},
	{"closing", func(t *testing.T, s *hubSubject) {
		s.must(t, 1, bump.ActionOpened)
		s.repo.Push("main", "ann", "by hand", map[string]string{"rocm.nix": s.repo.Read(branchOf+s.bump.Name, "rocm.nix")})
	}, 1, func(t *testing.T, s *hubSubject) {
		all := s.pulls("")
		if len(all) != 1 {
			t.Fatalf("%+v", all)
		}
		s.ended(t, all[0])
	}},
	{"forking", func(_ *testing.T, s *hubSubject) {
		s.token = s.site.User("bob")
		s.bump.Labels, s.bump.Assignees, s.bump.Reviewers, s.bump.Dashboard = nil, nil, nil, ""
	}, 1, func(t *testing.T, s *hubSubject) { s.standsOnce(t, s.site.Find("bob/"+s.bump.Name), 1) }},
}

// standsOnce checks that there is one request with all that belongs to it.
func (s *hubSubject) standsOnce(t *testing.T, in *githubtest.Repo, n int) {
	t.Helper()
	all := s.pulls("")
	if len(all) != 1 || all[0].State != "open" || in == nil {
		t.Fatalf("%+v", all)
	}
	p := all[0]
	if len(p.Labels) != len(s.bump.Labels) || len(p.Assignees) != len(s.bump.Assignees) || len(p.Reviewers) != len(s.bump.Reviewers) || len(p.Comments) != 0 ||
		!strings.Contains(p.Title, night(n, "gfx1151").Version) || body.Versions(p.Body)["gfx1151"] != night(n, "gfx1151").Version {
		t.Errorf("%+v", p)
	}
	s.holds(t, in, branchOf+s.bump.Name, "rocm.nix", n, "gfx1151")
	if branches := in.Branches(); !slices.Equal(branches, []string{"main", branchOf + s.bump.Name}) {
		t.Errorf("branches %q", branches)
	}
}

// subject makes the scene in a repository of its own.
func (sc hubScene) subject(t *testing.T, l *hubLives, name string) *hubSubject {
	t.Helper()
	s := l.begin(t, name, "gfx1151")
	s.bump.Labels, s.bump.Assignees, s.bump.Reviewers, s.bump.Dashboard = []string{"rocm"}, []string{"ann"}, []string{"ann"}, "ROCm nightlies"
	sc.set(t, s)
	return s
}

func (s *hubSubject) meet(t *testing.T, n int, h *hubTroubled) (*bump.Result, error) {
	t.Helper()
	h.now = s.clock.now
	return s.runPins(t, map[string]bump.Pin{"gfx1151": night(n, "gfx1151")}, h)
}

// TestGitHubTrouble: whatever request meets whatever trouble, once or for the
// rest of a run, the next run leaves one branch and one request with the right
// content, and the one after it has nothing to do.
func TestGitHubTrouble(t *testing.T) {
	l := &hubLives{site: githubtest.New(t)}
	l.api = l.site.URL
	serial := 0
	for _, sc := range hubScenes {
		count := &hubTroubled{}
		s := sc.subject(t, l, "whole-"+sc.name)
		if _, err := s.meet(t, sc.night, count); err != nil {
			t.Fatal(err)
		}
		sc.ends(t, s)
		for n := 1; n <= count.asked; n++ {
			for i, trouble := range hubTroubles {
				for _, lasts := range []bool{false, true} {
					if serial++; !hubAllTroubles && serial%hubEvery != 0 {
						continue
					}
					t.Run(fmt.Sprintf("%s/%d/%s/%v", sc.name, n, trouble.name, lasts), func(t *testing.T) {
						s := sc.subject(t, l, fmt.Sprintf("%s-%d-%d-%v", sc.name, n, i, lasts))
						sc.meets(t, s, &hubTroubled{hubTrouble: trouble, at: n, lasts: lasts})
					})
				}
			}
		}
	}
}

func (sc hubScene) meets(t *testing.T, s *hubSubject, h *hubTroubled) {
	r, err := s.meet(t, sc.night, h)
	if err != nil && strings.Contains(err.Error(), s.token) {
		t.Errorf("the token is in %v", err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("%s: %+v, %v", h.met, r, err)
		}
	}()
	if _, err := s.meet(t, sc.night, &hubTroubled{}); err != nil {
		t.Fatalf("the next run: %v", err)
	}
	sc.ends(t, s)
	again := &hubTroubled{}
	if r, err := s.meet(t, sc.night, again); err != nil || r.Action != bump.ActionNone || len(r.Actions) != 0 {
		t.Errorf("the run after it finds something to do: %+v, %v", r, err)
	}
}
