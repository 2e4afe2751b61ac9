package bump_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// hubLives is a GitHub on which requests are opened and come to their end.
type hubLives struct {
	site *githubtest.Server
	api  string            // its address, or that of a proxy before it
	http http.RoundTripper // nil: the usual one
}

// hubSubject is one repository of ann's there, and the bump of it.
type hubSubject struct {
	*hubLives
	repo  *githubtest.Repo
	bump  bump.Repo
	token string
	clock *hubClock
}

// hubClock is a clock that goes on only when somebody waits.
type hubClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *hubClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *hubClock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	return ctx.Err()
}

// begin makes a repository with a pin for each target, to which bot may push.
func (l *hubLives) begin(t *testing.T, name string, targets ...string) *hubSubject {
	t.Helper()
	s := &hubSubject{hubLives: l, token: l.site.User("bot"), clock: &hubClock{at: time.Now()}}
	s.repo = l.site.Repo("ann/"+name, map[string]string{"rocm.nix": pinned(targets...)})
	s.repo.Allow("bot", "push")
	s.bump = bump.Repo{
		Name: name, Forge: "github", URL: "https://github.example.org/ann/" + name, API: l.api, Base: "main", Token: secret.Source{Env: "BOT_TOKEN"},
		Files: pins("rocm.nix", targets...), Config: "config.yaml, bump " + name,
	}
	return s
}

func (s *hubSubject) run(t *testing.T, n int, change ...func(*bump.Repo, *bump.Options)) (*bump.Result, error) {
	t.Helper()
	set := map[string]bump.Pin{}
	for _, f := range s.bump.Files {
		set[f.Target] = night(n, f.Target)
	}
	return s.runPins(t, set, s.http, change...)
}

func (s *hubSubject) runPins(t *testing.T, set map[string]bump.Pin, through http.RoundTripper, change ...func(*bump.Repo, *bump.Options)) (*bump.Result, error) {
	t.Helper()
	o := bump.Options{
		Env: func(name string) string {
			switch name {
			case "PATH", "HOME":
				return os.Getenv(name)
			case "BOT_TOKEN":
				return s.token
			}
			return ""
		},
		Open: func(ctx context.Context, c forge.Config) (forge.Forge, error) {
			c.HTTP, c.Sleep = through, s.clock.sleep
			return forge.Open(ctx, c)
		},
		Now: s.clock.now, WorkDir: t.TempDir(), Proofs: map[string]body.Proof{},
	}
	for target, p := range set {
		o.Proofs[target] = body.Proof{Target: target, Pin: p, Against: []string{"its size", "its trailer"}}
	}
	repo := s.bump
	for _, c := range change {
		c(&repo, &o)
	}
	return bump.Run(t.Context(), repo, set, o)
}

func (s *hubSubject) must(t *testing.T, n int, action string, change ...func(*bump.Repo, *bump.Options)) *bump.Result {
	t.Helper()
	r, err := s.run(t, n, change...)
	if err != nil {
		t.Fatalf("night %d: %v", n, err)
	}
	if r.Action != action {
		t.Fatalf("night %d: %s, want %s: %s %q", n, r.Action, action, r.Message, r.Actions)
	}
	return r
}

// pulls lists the requests in a state, "" for all.
func (s *hubSubject) pulls(state string) (found []githubtest.Item) {
	for _, i := range s.repo.Items() {
		if i.Pull && (state == "" || i.State == state) {
			found = append(found, i)
		}
	}
	return found
}

func (s *hubSubject) item(n int) githubtest.Item { return s.repo.Items()[n-1] }

func (s *hubSubject) only(t *testing.T) githubtest.Item {
	t.Helper()
	open := s.pulls("open")
	if len(open) != 1 {
		t.Fatalf("%d requests are open: %+v", len(open), open)
	}
	return open[0]
}

// holds checks that the branch is one commit on top of main, whose file pins the
// night n of each target and is otherwise as it was.
func (s *hubSubject) holds(t *testing.T, in *githubtest.Repo, branch, path string, n int, targets ...string) {
	t.Helper()
	want := pinned(targets...)
	for _, target := range targets {
		p := night(n, target)
		want = strings.NewReplacer("old-"+target+".tar.gz", "tarball/"+p.Name).Replace(want)
		want = strings.Replace(want, "10.1.0a20260901", p.Version, 1)
		want = strings.Replace(want, "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", p.SRI, 1)
	}
	if got := in.Read(branch, path); got != want {
		t.Errorf("%s on %s:\n%s\nwant\n%s", path, branch, got, want)
	}
	if log := in.Log(branch); !slices.Equal(log[1:], s.repo.Log("main")) {
		t.Errorf("%s is no single commit on main: %q", branch, log)
	}
}

// TestGitHubLife: a request from its opening to its end.
func TestGitHubLife(t *testing.T) {
	site := githubtest.New(t)
	hubWholeLife(t, &hubLives{site: site, api: site.URL})
}

func hubWholeLife(t *testing.T, l *hubLives) {
	for _, part := range []struct {
		name string
		test func(*testing.T, *hubLives)
	}{
		{"Refresh", hubRefresh}, {"Human", hubHuman}, {"Close", hubClose}, {"Merge", hubMerged}, {"Obsolete", hubObsolete}, {"Withdrawn", hubWithdrawn},
		{"Conflict", hubConflict}, {"Fork", hubFork}, {"Lockstep", hubLockstep}, {"Independent", hubIndependent}, {"People", hubPeople},
		{"Theirs", hubTheirs}, {"Dashboard", hubDashboard}, {"AutoMerge", hubAutoMerge}, {"App", hubApp}, {"Actions", hubActions}, {"Scopes", hubScopes},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, l) })
	}
}

// hubRefresh: opened once, edited in place, left alone when all is said.
func hubRefresh(t *testing.T, l *hubLives) {
	s := l.begin(t, "refresh", "gfx1151")
	r := s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	if r.Number != int64(p.Number) || !r.Pushed || r.URL == "" || p.Author != "bot" || p.Head != branchOf+"refresh" || !strings.Contains(p.Title, "10.2.0a20261001") {
		t.Errorf("%+v\n%+v", r, p)
	}
	s.holds(t, s.repo, p.Head, "rocm.nix", 1, "gfx1151")
	if body.Fingerprint(p.Body) == "" {
		t.Errorf("the body carries no fingerprint:\n%s", p.Body)
	}
	s.must(t, 1, bump.ActionNone)
	s.repo.Push("main", "ann", "elsewhere", map[string]string{"README.md": "more\n"})
	r = s.must(t, 1, bump.ActionNone)
	if again := s.only(t); r.Pushed || again.Commit != p.Commit || again.Body != p.Body || again.Title != p.Title {
		t.Errorf("nothing is new, yet: %+v\n%+v", r, again)
	}
	r = s.must(t, 2, bump.ActionUpdated)
	if next := s.only(t); next.Number != p.Number || !r.Pushed || !strings.Contains(next.Title, "10.2.0a20261002") || !strings.Contains(next.Body, "10.2.0a20261002") {
		t.Errorf("%+v\n%+v", r, next)
	}
	s.holds(t, s.repo, p.Head, "rocm.nix", 2, "gfx1151")
}

// hubHuman: a person's commit wins, until the box is ticked.
func hubHuman(t *testing.T, l *hubLives) {
	s := l.begin(t, "human", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	theirs := s.repo.Push(p.Head, "ann", "fix the build", map[string]string{"fix.patch": "x\n"})
	for range 2 {
		r, err := s.run(t, 2)
		var human *bump.HumanCommitsError
		if err != nil && !errors.As(err, &human) || err == nil && r.Pushed {
			t.Errorf("a person's commit: %+v, %v", r, err)
		}
	}
	if tip := s.repo.Tip(p.Head); tip != theirs {
		t.Errorf("%s took the place of their %s", tip, theirs)
	}
	again := s.only(t)
	if len(again.Comments) != 1 {
		t.Errorf("it should be said once: %q", again.Comments)
	}
	s.repo.Edit(p.Number, again.Title, tick(t, again.Body, body.BoxRetry))
	s.must(t, 2, bump.ActionUpdated)
	if again := s.only(t); again.Number != p.Number || slices.Contains(body.Ticked(again.Body), body.BoxRetry) {
		t.Errorf("the box is still ticked, or the request another: %+v", again)
	}
	s.holds(t, s.repo, p.Head, "rocm.nix", 2, "gfx1151")
}

// hubClose: what a person closed is not offered again, but the next one is.
func hubClose(t *testing.T, l *hubLives) {
	s := l.begin(t, "close", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	s.repo.Close(s.only(t).Number)
	for range 2 {
		s.must(t, 1, bump.ActionIgnored)
	}
	if open := s.pulls("open"); len(open) != 0 {
		t.Errorf("%+v", open)
	}
	s.must(t, 2, bump.ActionOpened)
	s.holds(t, s.repo, s.only(t).Head, "rocm.nix", 2, "gfx1151")

	s.repo.Close(s.only(t).Number)
	always := func(r *bump.Repo, _ *bump.Options) { r.Reopen = "always" }
	s.must(t, 2, bump.ActionOpened, always)
	s.holds(t, s.repo, s.only(t).Head, "rocm.nix", 2, "gfx1151")
}

// hubMerged: after a merge the branch goes, and the next night is a new request.
func hubMerged(t *testing.T, l *hubLives) {
	s := l.begin(t, "merge", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.repo.Merge(p.Number, "ann")
	if r, err := s.run(t, 1); err != nil || r.Changed || r.Pushed || s.repo.Tip(p.Head) != "" {
		t.Errorf("%+v, %v; %s is at %q", r, err, p.Head, s.repo.Tip(p.Head))
	}
	if r := s.must(t, 2, bump.ActionOpened); r.Number == int64(p.Number) {
		t.Errorf("%+v", r)
	}
	s.holds(t, s.repo, p.Head, "rocm.nix", 2, "gfx1151")
}

// hubObsolete: what the base has already needs no request.
func hubObsolete(t *testing.T, l *hubLives) {
	s := l.begin(t, "obsolete", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.repo.Push("main", "ann", "by hand", map[string]string{"rocm.nix": s.repo.Read(p.Head, "rocm.nix")})
	s.must(t, 1, bump.ActionClosed)
	s.ended(t, p)
	s.must(t, 1, bump.ActionNone)
}

// ended checks that a request was closed by us, with one reason, and its branch
// removed.
func (s *hubSubject) ended(t *testing.T, p githubtest.Item) {
	t.Helper()
	if now := s.item(p.Number); now.State != "closed" || len(now.Comments) != 1 || s.repo.Tip(p.Head) != "" {
		t.Errorf("%+v, %s is at %q", now, p.Head, s.repo.Tip(p.Head))
	}
}

// hubWithdrawn: what AMD has taken back is not offered.
func hubWithdrawn(t *testing.T, l *hubLives) {
	s := l.begin(t, "withdrawn", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	s.must(t, 1, bump.ActionClosed, func(_ *bump.Repo, o *bump.Options) { o.Published = func(string) bool { return false } })
	s.ended(t, p)
	// It was not a person who closed it.
	s.must(t, 1, bump.ActionOpened)
}

// hubConflict: the branch is made anew on a base that contradicts it.
func hubConflict(t *testing.T, l *hubLives) {
	s := l.begin(t, "conflict", "gfx1151")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	older := strings.ReplaceAll(pinned("gfx1151"), "10.1.0a20260901", "10.1.0a20260915")
	s.repo.Push("main", "ann", "an older one by hand", map[string]string{"rocm.nix": older})
	s.must(t, 1, bump.ActionUpdated)
	if again := s.only(t); again.Number != p.Number {
		t.Errorf("%+v", again)
	}
	s.holds(t, s.repo, p.Head, "rocm.nix", 1, "gfx1151")
}

// hubFork: without the right to push, the branch lives in a fork.
func hubFork(t *testing.T, l *hubLives) {
	s := l.begin(t, "fork", "gfx1151")
	s.token = l.site.User("bob")
	s.must(t, 1, bump.ActionOpened)
	p := s.only(t)
	fork := l.site.Find("bob/fork")
	if fork == nil || p.Author != "bob" || p.Head != branchOf+"fork" || s.repo.Tip(p.Head) != "" {
		t.Fatalf("%+v", p)
	}
	s.must(t, 1, bump.ActionNone)
	s.repo.Push("main", "ann", "elsewhere", map[string]string{"README.md": "more\n"})
	s.must(t, 2, bump.ActionUpdated)
	if again := s.only(t); again.Number != p.Number || again.Commit == p.Commit {
		t.Errorf("%+v", again)
	}
	s.holds(t, fork, p.Head, "rocm.nix", 2, "gfx1151")
	if _, err := s.run(t, 3, func(r *bump.Repo, _ *bump.Options) { r.Fork = "never" }); err == nil {
		t.Error("pushed without the right to")
	}
	s.repo.Push("main", "ann", "by hand", map[string]string{"rocm.nix": fork.Read(p.Head, "rocm.nix")})
	s.must(t, 2, bump.ActionClosed)
	if now := s.item(p.Number); now.State != "closed" || fork.Tip(p.Head) != "" {
		t.Errorf("%+v", now)
	}
}

// hubLockstep: two targets of one version are one request.
func hubLockstep(t *testing.T, l *hubLives) {
	s := l.begin(t, "lockstep", "gfx1103", "gfx1151")
	r, err := s.runPins(t, map[string]bump.Pin{"gfx1151": night(1, "gfx1151")}, s.http)
	if err != nil || r.Action != bump.ActionWaits || fmt.Sprint(r.Waiting) != "[gfx1103]" || len(s.pulls("")) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	s.must(t, 1, bump.ActionOpened)
	s.holds(t, s.repo, s.only(t).Head, "rocm.nix", 1, "gfx1103", "gfx1151")
	s.must(t, 2, bump.ActionUpdated)
	s.holds(t, s.repo, s.only(t).Head, "rocm.nix", 2, "gfx1103", "gfx1151")
}

// hubIndependent: each target has a request of its own.
func hubIndependent(t *testing.T, l *hubLives) {
	s := l.begin(t, "independent", "gfx1103", "gfx1151")
	s.bump.Group = "independent"
	s.repo.Push("main", "ann", "two files", map[string]string{"a.nix": pinned("gfx1103"), "b.nix": pinned("gfx1151")})
	s.bump.Files = append(pins("a.nix", "gfx1103"), pins("b.nix", "gfx1151")...)
	r := s.must(t, 1, bump.ActionOpened)
	if len(r.Others) != 1 || r.Others[0].Action != bump.ActionOpened || len(s.pulls("open")) != 2 {
		t.Fatalf("%+v", r)
	}
	s.holds(t, s.repo, branchOf+"independent-gfx1103", "a.nix", 1, "gfx1103")
	s.holds(t, s.repo, branchOf+"independent-gfx1151", "b.nix", 1, "gfx1151")
	s.repo.Merge(s.pulls("open")[0].Number, "ann")
	if r, err := s.run(t, 2); err != nil || len(r.Others) != 1 || len(s.pulls("open")) != 2 || len(s.pulls("")) != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}
