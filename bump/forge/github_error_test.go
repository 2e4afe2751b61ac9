package forge

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
)

// hubSaid is a refusal of GitHub's, in its shape.
func hubSaid(text string) string {
	return `{"message":"` + text + `","documentation_url":"https://docs.github.com/rest"}`
}

// TestGitHubErrors tells what each refusal of GitHub's becomes.
func TestGitHubErrors(t *testing.T) {
	auth := func(check func(*AuthError) bool) func(error) bool {
		return func(err error) bool {
			var a *AuthError
			return errors.As(err, &a) && check(a)
		}
	}
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	protected := func(err error) bool {
		var p *ProtectedError
		return errors.As(err, &p) && p.Branch == "b"
	}
	plain := func(error) bool { return true }
	edit := func(ctx context.Context, h *hub) error {
		body := "x"
		_, err := h.EditPull(ctx, 1, PullEdit{Body: &body})
		return err
	}
	look := func(ctx context.Context, h *hub) error {
		_, err := h.Comments(ctx, 1)
		return err
	}
	move := func(ctx context.Context, h *hub) error {
		tip, err := h.Tip(ctx, "main")
		if err != nil {
			return err
		}
		return h.Move(ctx, "b", "", tip.ID)
	}
	merge := func(ctx context.Context, h *hub) error {
		return h.Merge(ctx, 1, strings.Repeat("0", 40), "")
	}
	for _, c := range []struct {
		name   string
		do     func(context.Context, *hub) error
		fault  githubtest.Fault
		is     func(error) bool
		speaks string
	}{
		{"bad token", look, githubtest.Fault{Status: 401, Body: hubSaid("Bad credentials")}, auth(func(a *AuthError) bool { return a.Bad }), "Bad credentials"},
		{"fine-grained token lacks", edit, githubtest.Fault{Method: "PATCH", Status: 403, Body: hubSaid("Resource not accessible by personal access token"),
			Header: map[string]string{"X-Accepted-GitHub-Permissions": "pull_requests=write,contents=read; issues=write"}},
			auth(func(a *AuthError) bool {
				return slices.Equal(a.Missing, []string{"pull_requests=write", "contents=read"})
			}), "the token lacks pull_requests=write, contents=read"},
		{"App lacks", edit, githubtest.Fault{Method: "PATCH", Status: 403, Body: hubSaid("Resource not accessible by integration"),
			Header: map[string]string{"X-Accepted-GitHub-Permissions": "pull_requests=write"}}, auth(func(a *AuthError) bool { return len(a.Missing) == 1 }), "permissions:"},
		{"classic token lacks", edit, githubtest.Fault{Method: "PATCH", Status: 403, Body: hubSaid("Must have push access"),
			Header: map[string]string{"X-Accepted-OAuth-Scopes": "repo, public_repo", "X-OAuth-Scopes": "gist, read:org"}},
			auth(func(a *AuthError) bool { return slices.Equal(a.Missing, []string{"repo"}) }), "lacks repo"},
		{"classic token has all", edit, githubtest.Fault{Method: "PATCH", Status: 403, Body: hubSaid("no"),
			Header: map[string]string{"X-Accepted-OAuth-Scopes": "public_repo", "X-OAuth-Scopes": "repo"}}, auth(func(a *AuthError) bool { return a.Missing == nil }), "not allowed"},
		{"single sign-on", look, githubtest.Fault{Status: 403, Body: hubSaid("Resource protected by organization SAML enforcement"),
			Header: map[string]string{"X-GitHub-SSO": "required; url=https://github.com/orgs/o/sso?authorization_request=A"}},
			auth(func(a *AuthError) bool { return true }), "authorise the token for it at https://github.com/orgs/o/sso"},
		{"archived", edit, githubtest.Fault{Method: "PATCH", Status: 403, Body: hubSaid("Repository was archived so is read-only.")}, is(ErrUnsupported), "archived"},
		{"not there, or hidden", look, githubtest.Fault{Status: 404, Body: hubSaid("Not Found")}, is(ErrNotFound), "private repository"},
		{"gone", look, githubtest.Fault{Status: 410, Body: hubSaid("Issues are disabled for this repo")}, is(ErrUnsupported), "settings"},
		{"blocked by law", look, githubtest.Fault{Status: 451, Body: hubSaid("Repository access blocked")}, is(ErrNotFound), "blocked"},
		{"empty repository", look, githubtest.Fault{Status: 409, Body: hubSaid("Git Repository is empty.")}, is(ErrNotFound), "first commit"},
		{"head modified", merge, githubtest.Fault{Method: "PUT", Status: 409, Body: hubSaid("Head branch was modified. Review and try the merge again.")}, is(ErrMoved), "modified"},
		{"merge conflict", merge, githubtest.Fault{Method: "PUT", Status: 409, Body: hubSaid("Merge conflict")}, is(ErrNotMergable), "conflict"},
		{"not mergeable", merge, githubtest.Fault{Method: "PUT", Status: 405, Body: hubSaid("Pull Request is not mergeable")}, is(ErrNotMergable), "not mergeable"},
		{"validation", edit, githubtest.Fault{Method: "PATCH", Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"body","code":"custom","message":"body is too long"}]}`}, plain, "Validation Failed: body is too long"},
		{"validation without words", edit, githubtest.Fault{Method: "PATCH", Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"base","code":"invalid"}]}`}, plain, "PullRequest base invalid"},
		{"rules", move, githubtest.Fault{Method: "POST", Path: "/git/refs", Status: 422, Body: hubSaid("Repository rule violations found\\n\\nCannot create ref due to creations being restricted.")}, protected, "creations being restricted"},
		{"protected branch", move, githubtest.Fault{Method: "POST", Path: "/git/refs", Status: 403, Body: hubSaid("You're not authorized to push to this protected branch.")}, protected, "protected"},
		{"workflow scope", move, githubtest.Fault{Method: "POST", Path: "/git/refs", Status: 422, Body: hubSaid("refusing to allow a Personal Access Token to create or update workflow `.github/workflows/x.yml` without `workflow` scope")},
			auth(func(a *AuthError) bool { return slices.Equal(a.Missing, []string{"workflow"}) }), "workflow"},
		{"forge in trouble", look, githubtest.Fault{Status: 502, Times: 99, Body: "<html>bad gateway</html>", Header: map[string]string{"Content-Type": "text/html"}}, plain, "GitHub is in trouble"},
		{"connection broken off", look, githubtest.Fault{Times: 99}, plain, "list the comments of me/flake#1"},
		{"no JSON", look, githubtest.Fault{Status: 200, Body: "<html>"}, plain, "list the comments"},
		{"strange text", look, githubtest.Fault{Status: 400, Body: hubSaid(`a\u001b[2J\r\nb\u202e` + strings.Repeat("x", 9000))}, func(err error) bool {
			return len(err.Error()) < 700 && !strings.ContainsAny(err.Error(), "\x1b\n\u202e")
		}, `a\x1b[2J b`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := hubNewWorld(t)
			w.repo.Push("f", "bot", "m", map[string]string{"f": "f"})
			w.repo.OpenPull("bot", "t", "b", "main", "f")
			w.s.Fail(c.fault)
			err := c.do(t.Context(), w.hub)
			if err == nil || !c.is(err) || !strings.Contains(err.Error(), c.speaks) {
				t.Errorf("it is %T: %v; want %q", err, err, c.speaks)
			}
			if err != nil && strings.Contains(err.Error(), w.bot) {
				t.Errorf("the token is in the error: %v", err)
			}
		})
	}
}

// TestGitHubTriesAgain: what may be tried again is, and nothing is done twice.
func TestGitHubTriesAgain(t *testing.T) {
	at := time.Now().Add(20 * time.Minute)
	for _, c := range []struct {
		name  string
		fault githubtest.Fault
		wait  time.Duration // at least
		most  time.Duration
	}{
		{"bad gateway", githubtest.Fault{Status: 502, Times: 3}, 0, 10 * time.Second},
		{"broken connection", githubtest.Fault{Times: 2}, 0, 10 * time.Second},
		{"secondary limit with Retry-After", githubtest.Fault{Status: 403, Header: map[string]string{"Retry-After": "7"}}, 7 * time.Second, 8 * time.Second},
		{"too many requests until a date", githubtest.Fault{Status: 429, Header: map[string]string{"Retry-After": at.UTC().Format(http.TimeFormat)}}, 19 * time.Minute, 21 * time.Minute},
		{"secondary limit in words", githubtest.Fault{Status: 403, Times: 2, Body: hubSaid("You have exceeded a secondary rate limit.")}, 2 * time.Minute, 3 * time.Minute},
		{"primary limit", githubtest.Fault{Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(at.Unix(), 10)}}, 19 * time.Minute, 21 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := hubNewWorld(t)
			conf := hubToken(w.bot)
			conf.Now, conf.Sleep, conf.MaxWait = w.k.now, w.k.sleep, time.Hour
			h := hubAt(t, conf, w.s.URL, "me/flake")
			w.s.Fail(c.fault)
			if _, err := h.Tip(t.Context(), "main"); err != nil {
				t.Fatal(err)
			}
			if got := w.k.longest(); got < c.wait || got > c.most {
				t.Errorf("it waited %v; want %v to %v", got, c.wait, c.most)
			}
		})
	}
}

// TestGitHubLimitError: what would take longer than MaxWait is an error that
// says until when.
func TestGitHubLimitError(t *testing.T) {
	w := hubNewWorld(t)
	until := w.k.now().Add(50 * time.Minute)
	w.s.Fail(githubtest.Fault{Status: 403, Times: 9, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(until.Unix(), 10)}})
	_, err := w.hub.AddComment(t.Context(), 1, "x")
	var limit *LimitError
	if !errors.As(err, &limit) || limit.Secondary || limit.Until.Sub(until).Abs() > 2*time.Second || !strings.Contains(err.Error(), "comment on me/flake#1") {
		t.Errorf("it is %T: %v", err, err)
	}
	// A secondary limit that does not end grows, and ends in an error too.
	w = hubNewWorld(t)
	w.s.Fail(githubtest.Fault{Status: 429, Times: 99})
	_, err = w.hub.Comments(t.Context(), 1)
	if !errors.As(err, &limit) || !limit.Secondary || !slices.Equal(w.k.slept, []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute}) {
		t.Errorf("%v; it slept %v", err, w.k.slept)
	}
}

// TestGitHubLostAnswers: the change was made, but nobody was told.
func TestGitHubLostAnswers(t *testing.T) {
	w := hubNewWorld(t)
	ctx := t.Context()
	w.s.Fail(githubtest.Fault{Method: "POST", Path: "/git/trees", Done: true})
	w.s.Fail(githubtest.Fault{Method: "POST", Path: "/git/commits", Done: true, Status: 502})
	w.s.Fail(githubtest.Fault{Method: "POST", Path: "/git/refs", Done: true})
	made := hubMake(t, w.hub, "b", "2")
	w.s.Fail(githubtest.Fault{Method: "POST", Path: "/pulls", Done: true, Status: 504})
	if p, err := w.hub.OpenPull(ctx, NewPull{Title: "t", Base: "main", Head: "b"}); err != nil || p.Number != 1 {
		t.Errorf("OpenPull = %+v, %v", p, err)
	}
	w.s.Fail(githubtest.Fault{Method: "PUT", Path: "/merge", Done: true})
	if err := w.hub.Merge(ctx, 1, made.ID, ""); err != nil {
		t.Error(err)
	}
	w.s.Fail(githubtest.Fault{Method: "DELETE", Done: true, Status: 500})
	if err := w.hub.Remove(ctx, "b", made.ID); err != nil {
		t.Error(err)
	}
	// A comment is not made twice.
	w.s.Fail(githubtest.Fault{Method: "POST", Path: "/comments", Done: true})
	if _, err := w.hub.AddComment(ctx, 1, "once"); err == nil {
		t.Error("nobody knows whether there is a comment, and no error says so")
	}
	if items := w.repo.Items(); len(items) != 1 || len(items[0].Comments) != 1 || items[0].State != "merged" {
		t.Errorf("there is %+v", items)
	}
}

// TestGitHubLags: a branch that was made a moment ago is not known everywhere.
func TestGitHubLags(t *testing.T) {
	w := hubNewWorld(t)
	hubMake(t, w.hub, "b", "2")
	w.s.Fail(githubtest.Fault{Method: "POST", Path: "/pulls", Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"head","code":"invalid"}]}`})
	w.s.Fail(githubtest.Fault{Method: "POST", Path: "/pulls", Status: 404})
	if _, err := w.hub.OpenPull(t.Context(), NewPull{Title: "t", Base: "main", Head: "b"}); err != nil {
		t.Error(err)
	}
	if _, err := w.hub.OpenPull(t.Context(), NewPull{Title: "t", Base: "main", Head: "none"}); err == nil || !strings.Contains(err.Error(), "head invalid") {
		t.Errorf("a head that never comes: %v", err)
	}
}

func TestGitHubMove(t *testing.T) {
	w := hubNewWorld(t)
	ctx := t.Context()
	main := w.repo.Tip("main")
	made := hubMake(t, w.hub, "b", "2")
	if err := w.hub.Move(ctx, "b", "", main); !errors.Is(err, ErrMoved) {
		t.Errorf("make a branch that is there: %v", err)
	}
	if err := w.hub.Move(ctx, "b", made.ID, made.ID); err != nil {
		t.Errorf("move to where it is: %v", err)
	}
	human := w.repo.Push("b", "anna", "fix", map[string]string{"x": "y"})
	if err := w.hub.Move(ctx, "b", made.ID, main); !errors.Is(err, ErrMoved) || w.repo.Tip("b") != human {
		t.Errorf("move what a person has pushed to: %v", err)
	}
	if err := w.hub.Move(ctx, "b", human, main); err != nil || w.repo.Tip("b") != main {
		t.Errorf("move back: %v", err)
	}
	// Somebody is quicker by the time between look and change.
	w.s.Fail(githubtest.Fault{Method: "POST", Path: "/git/refs", Status: 422, Body: hubSaid("Reference already exists")})
	if err := w.hub.Move(ctx, "c", "", main); err != nil {
		t.Errorf("a refusal that is over: %v", err)
	}
	w.repo.Protect("d", "Cannot update this protected ref.")
	var protected *ProtectedError
	if err := w.hub.Move(ctx, "d", "", main); !errors.As(err, &protected) || protected.Branch != "d" {
		t.Errorf("a protected branch: %v", err)
	}
	// A branch whose name begins like another's is none.
	if _, err := w.hub.Tip(ctx, "ma"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Tip of ma: %v", err)
	}
}

func TestGitHubPages(t *testing.T) {
	w := hubNewWorld(t)
	w.repo.Push("f", "bot", "m", map[string]string{"f": "f"})
	for range 230 {
		w.repo.OpenPull("bot", "t", "", "main", "f")
	}
	for range 120 {
		w.repo.Comment(1, "bot", "c")
	}
	all, err := w.hub.Pulls(t.Context(), Query{Head: "f", HeadRepo: "me/flake", Limit: 210})
	if err != nil || len(all) != 210 || all[0].Number != 230 {
		t.Errorf("%d pulls, %v", len(all), err)
	}
	if all, err := w.hub.Pulls(t.Context(), Query{}); err != nil || len(all) != hubDefaultLimit {
		t.Errorf("%d pulls, %v", len(all), err)
	}
	if all, err := w.hub.Comments(t.Context(), 1); err != nil || len(all) != 120 {
		t.Errorf("%d comments, %v", len(all), err)
	}
}

// TestGitHubWritesArePaced: a second lies between changes, as GitHub asks.
func TestGitHubWritesArePaced(t *testing.T) {
	w := hubNewWorld(t)
	hubMake(t, w.hub, "b", "2") // tree, commit, branch
	if !slices.Equal(w.k.slept, []time.Duration{time.Second, time.Second}) {
		t.Errorf("it slept %v", w.k.slept)
	}
}

// TestGitHubConflict: GitHub knows of a conflict only once it is asked.
func TestGitHubConflict(t *testing.T) {
	w := hubNewWorld(t)
	hubMake(t, w.hub, "b", "2")
	w.repo.OpenPull("bot", "t", "", "main", "b")
	w.repo.Push("main", "anna", "m", map[string]string{"pin.nix": "3"})
	if p, err := w.hub.Pull(t.Context(), 1); err != nil || !p.Conflicts {
		t.Errorf("Pull = %+v, %v", p, err)
	}
	if err := w.hub.Merge(t.Context(), 1, w.repo.Tip("b"), ""); !errors.Is(err, ErrNotMergable) {
		t.Errorf("Merge: %v", err)
	}
}

// TestGitHubRedirects: the token goes to no other host, whatever GitHub's
// answer says, and a change is never turned into a read.
func TestGitHubRedirects(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s, Authorization %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(thief.Close)
	for _, status := range []int{301, 302, 307, 308} {
		w := hubNewWorld(t)
		w.s.Fail(githubtest.Fault{Status: status, Header: map[string]string{"Location": thief.URL + "/x"}, Times: 9})
		if _, err := w.hub.Comments(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "another host") {
			t.Errorf("%d: %v", status, err)
		}
		w = hubNewWorld(t)
		w.repo.Push("f", "bot", "m", map[string]string{"f": "f"})
		w.repo.OpenPull("bot", "t", "b", "main", "f")
		w.s.Fail(githubtest.Fault{Method: "POST", Status: status, Header: map[string]string{"Location": "/repos/me/flake/issues/1/comments"}})
		_, err := w.hub.AddComment(t.Context(), 1, "x")
		if moved := status < 307; moved != (err != nil) {
			t.Errorf("%d for a change: %v", status, err)
		}
	}
}
