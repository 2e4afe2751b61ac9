package forge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/gitlabtest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// lab is a stand-in for GitLab below a relative root, with a project in a group
// of a group.
type lab struct {
	site     *gitlabtest.Server
	ann, bot *gitlabtest.User // maintainer and developer
	bob      *gitlabtest.User // may read
	project  *gitlabtest.Project
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{site: gitlabtest.Start(t, "/gitlab")}
	l.site.Change(func() {
		l.ann, l.bot, l.bob = l.site.User("ann", "api"), l.site.User("bot", "api"), l.site.User("bob", "api")
		l.project = l.site.Project("group/sub.group/flake", map[string]int{"ann": 40, "bot": 30, "bob": 20})
	})
	return l
}

func (l *lab) open(t *testing.T, token string) *gitlab {
	t.Helper()
	f, err := newGitLab(Config{Kind: "gitlab", API: l.site.URL + "/api/v4", Owner: "group/sub.group", Name: "flake", HTTP: l.site.HTTP, Auth: Auth{Token: secret.New(token)}})
	if err != nil {
		t.Fatal(err)
	}
	return f.(*gitlab)
}

// request makes a branch and a merge request for it.
func (l *lab) request(t *testing.T, f Forge, branch string) Pull {
	t.Helper()
	l.branch(l.project, branch)
	p, err := f.OpenPull(t.Context(), NewPull{Title: "bump " + branch, Body: "body", Base: "main", Head: branch})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (l *lab) branch(p *gitlabtest.Project, name string) {
	l.site.Change(func() { p.Branches[name] = strings.Repeat(fmt.Sprintf("%x", len(p.Branches)%16), 40) })
}

func TestGitLabInfo(t *testing.T) {
	l := newLab(t)
	info, err := l.open(t, l.bot.Token).Info(t.Context())
	page := l.site.URL + "/group/sub.group/flake"
	want := Info{
		Owner: "group/sub.group", Name: "flake", Default: "main", Page: page, Clone: page + ".git", Push: true,
		Requests: true, Issues: true, Login: "bot", Email: "bot@example.org",
	}
	if err != nil || fmt.Sprint(info) != fmt.Sprint(want) {
		t.Errorf("%+v, %v\nwant %+v", info, err, want)
	}
	if asked := l.site.Asked(); asked[0] != "GET projects/group%2Fsub%2Egroup%2Fflake" && asked[0] != "GET projects/group%2Fsub.group%2Fflake" {
		t.Errorf("%q: the path is one part, escaped", asked)
	}
	l.site.Change(func() { l.project.NeedPipeline, l.project.NoRequests, l.bot.Scopes = true, true, []string{"read_api"} })
	info, err = l.open(t, l.bot.Token).Info(t.Context())
	if err != nil || !info.AutoMerge || info.Requests || fmt.Sprint(info.Missing) != "[api]" {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err = l.open(t, l.bob.Token).Info(t.Context()); err != nil || info.Push {
		t.Errorf("who may read: %+v, %v", info, err)
	}
}

func TestGitLabOpen(t *testing.T) {
	l := newLab(t)
	f := l.open(t, l.bot.Token)
	ctx := t.Context()
	p := l.request(t, f, "rocm-nightly/x")
	if p.Number != 1 || p.State != Opened || p.Title != "bump rocm-nightly/x" || p.Body != "body" || p.Base != "main" || p.Head != "rocm-nightly/x" ||
		p.HeadRepo != "group/sub.group/flake" || p.Author != "bot" || p.HeadCommit != l.project.Branches["rocm-nightly/x"] || p.Draft || !p.Ended.IsZero() {
		t.Errorf("%+v", p)
	}
	again, err := f.OpenPull(ctx, NewPull{Title: "again", Base: "main", Head: "rocm-nightly/x"})
	if !errors.Is(err, ErrExists) || again.Number != 1 {
		t.Errorf("a second one: %+v, %v", again, err)
	}
	title, body, closed, opened := "another", "", Closed, Opened
	if p, err = f.EditPull(ctx, 1, PullEdit{Title: &title, Body: &body}); err != nil || p.Title != title || p.Body != "" {
		t.Errorf("%+v, %v", p, err)
	}
	for _, state := range []*string{&closed, &closed, &opened, &opened} { // twice is once
		if p, err = f.EditPull(ctx, 1, PullEdit{State: state}); err != nil || p.State != *state || p.Ended.IsZero() != (*state == Opened) {
			t.Errorf("%+v, %v", p, err)
		}
	}
	if p, err = f.EditPull(ctx, 1, PullEdit{}); err != nil || p.Number != 1 {
		t.Errorf("nothing to change: %+v, %v", p, err)
	}
	diff, err := f.Diff(ctx, 1, 10)
	if err != nil || diff != "diff --git" {
		t.Errorf("%q, %v", diff, err)
	}
	if _, err := f.Pull(ctx, 99); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := f.OpenPull(ctx, NewPull{Title: "t", Base: "main", Head: "none"}); err == nil || !strings.Contains(err.Error(), "branch does not exist") {
		t.Error(err)
	}
}

func TestGitLabPages(t *testing.T) {
	l := newLab(t)
	f := l.open(t, l.bot.Token)
	for i := range 8 { // a page has three
		l.request(t, f, fmt.Sprint("b", i))
	}
	closed := Closed
	if _, err := f.EditPull(t.Context(), 2, PullEdit{State: &closed}); err != nil {
		t.Fatal(err)
	}
	l.site.Change(func() { l.project.Requests[3].State = "merged" })
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{}, "[8 7 6 5 4 3 2 1]"}, {Query{Limit: 4}, "[8 7 6 5]"}, {Query{State: Opened}, "[8 7 6 5 3 1]"}, {Query{State: Closed}, "[4 2]"},
		{Query{Head: "b6"}, "[7]"}, {Query{Head: "b6", HeadRepo: "GROUP/sub.group/flake"}, "[7]"}, {Query{HeadRepo: "bob/flake"}, "[]"}, {Query{Base: "other"}, "[]"},
	} {
		list, err := f.Pulls(t.Context(), c.q)
		numbers := []int64{}
		for _, p := range list {
			numbers = append(numbers, p.Number)
		}
		if err != nil || fmt.Sprint(numbers) != c.want {
			t.Errorf("%+v: %v, %v, want %s", c.q, numbers, err, c.want)
		}
	}
}

func TestGitLabDrafts(t *testing.T) {
	l := newLab(t)
	f := l.open(t, l.bot.Token)
	l.branch(l.project, "d")
	p, err := f.OpenPull(t.Context(), NewPull{Title: "bump", Base: "main", Head: "d", Draft: true})
	if err != nil || !p.Draft || p.Title != "bump" {
		t.Fatalf("%+v, %v", p, err)
	}
	yes, no, title := true, false, "newer"
	for i, s := range []struct {
		edit  PullEdit
		title string
		draft bool
	}{
		{PullEdit{Title: &title}, "newer", true}, {PullEdit{Draft: &no}, "newer", false}, {PullEdit{Draft: &yes}, "newer", true},
		{PullEdit{Draft: &yes}, "newer", true}, {PullEdit{Title: &title, Draft: &no}, "newer", false},
	} {
		if p, err = f.EditPull(t.Context(), 1, s.edit); err != nil || p.Title != s.title || p.Draft != s.draft {
			t.Errorf("step %d: %+v, %v", i, p, err)
		}
	}
}

func TestGitLabPeople(t *testing.T) {
	l := newLab(t)
	f := l.open(t, l.bot.Token)
	ctx := t.Context()
	l.request(t, f, "p")
	for range 2 {
		err := errors.Join(f.AddLabels(ctx, 1, []string{"rocm", "bump"}), f.Ask(ctx, 1, []string{"ann"}, nil), f.Assign(ctx, 1, []string{"Bot"}), f.Assign(ctx, 1, []string{"ann"}))
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.RemoveLabel(ctx, 1, "bump"), f.RemoveLabel(ctx, 1, "bump")); err != nil {
		t.Error(err)
	}
	p, err := f.Pull(ctx, 1)
	if err != nil || fmt.Sprint(p.Labels, p.Reviewers, p.Assignees) != "[rocm] [ann] [bot ann]" {
		t.Errorf("%+v, %v", p, err)
	}
	if err := f.Ask(ctx, 1, []string{"nobody"}, nil); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "nobody") {
		t.Error(err)
	}
	if err := f.Ask(ctx, 1, nil, []string{"group/team"}); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if err := f.AddLabels(ctx, 1, []string{"a,b"}); err == nil {
		t.Error("one label becomes two")
	}
}

func TestGitLabMerge(t *testing.T) {
	l := newLab(t)
	f := l.open(t, l.ann.Token)
	ctx := t.Context()
	p := l.request(t, f, "m")
	sha := p.HeadCommit
	if err := f.Merge(ctx, 1, strings.Repeat("9", 40), "merge"); !errors.Is(err, ErrMoved) {
		t.Errorf("another head: %v", err)
	}
	if err := f.Merge(ctx, 1, sha, "rebase"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("not this project's method: %v", err)
	}
	var auth *AuthError
	if err := l.open(t, l.bot.Token).Merge(ctx, 1, sha, "merge"); !errors.As(err, &auth) || auth.Bad {
		t.Errorf("a developer where maintainers merge: %v", err)
	}
	l.site.Change(func() { l.project.Requests[0].Conflicts = true })
	if p, err := f.Pull(ctx, 1); err != nil || !p.Conflicts {
		t.Errorf("%+v, %v", p, err)
	}
	if err := f.Merge(ctx, 1, sha, "merge"); !errors.Is(err, ErrNotMergable) {
		t.Errorf("with conflicts: %v", err)
	}
	l.site.Change(func() { l.project.Requests[0].Conflicts = false })
	if err := f.AutoMerge(ctx, 1, sha, true, "merge"); !errors.Is(err, ErrUnsupported) {
		t.Errorf("without a required pipeline: %v", err)
	}
	l.site.Change(func() { l.project.NeedPipeline = true })
	if err := f.Merge(ctx, 1, sha, "merge"); !errors.Is(err, ErrNotMergable) {
		t.Errorf("before its pipeline: %v", err)
	}
	for _, on := range []bool{true, true, false, false, true} {
		if err := f.AutoMerge(ctx, 1, sha, on, "squash"); err != nil {
			t.Fatalf("on %v: %v", on, err)
		}
		if p, err := f.Pull(ctx, 1); err != nil || p.AutoMerge != on {
			t.Errorf("on %v: %+v, %v", on, p, err)
		}
	}
	if err := f.AutoMerge(ctx, 1, strings.Repeat("9", 40), true, "merge"); !errors.Is(err, ErrMoved) {
		t.Errorf("another head: %v", err)
	}
	l.site.Pipe(l.project, sha, "push", "success")
	if err := f.Merge(ctx, 1, sha, "squash"); err != nil {
		t.Fatal(err)
	}
	p, err := f.Pull(ctx, 1)
	if err != nil || p.State != Merged || p.Merger == "" || p.MergeCommit == "" || p.Ended.IsZero() || !l.project.Requests[0].Squashed {
		t.Errorf("%+v, %v", p, err)
	}
	closed := Closed
	if _, err := f.EditPull(ctx, 1, PullEdit{State: &closed}); err == nil || !strings.Contains(err.Error(), "merged") {
		t.Error(err)
	}
	if err := f.Merge(ctx, 1, sha, "merge"); !errors.Is(err, ErrNotMergable) {
		t.Errorf("merged already: %v", err)
	}
}

func TestGitLabChecks(t *testing.T) {
	l := newLab(t)
	f := l.open(t, l.bot.Token)
	sha := strings.Repeat("a", 40)
	look := func(want Checks) {
		t.Helper()
		if got, err := f.Checks(t.Context(), sha, "main"); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	look(Checks{State: "none"})
	l.site.Pipe(l.project, sha, "push", "running")
	look(Checks{State: "pending", Total: 1})
	l.site.Pipe(l.project, sha, "push", "failed", "build", "lint")
	look(Checks{State: "failure", Total: 1, Failed: []string{"build", "lint"}})
	l.site.Pipe(l.project, sha, "push", "success")
	look(Checks{State: "success", Total: 1})
	l.site.Pipe(l.project, sha, "merge_request_event", "manual")
	l.site.Change(func() { l.project.NeedPipeline = true })
	look(Checks{State: "pending", Total: 2, Required: true})
	l.site.Pipe(l.project, sha, "merge_request_event", "canceled")
	look(Checks{State: "failure", Total: 2, Required: true, Failed: []string{"pipeline canceled"}})
}

func TestGitLabTalk(t *testing.T) {
	l := newLab(t)
	f := l.open(t, l.bot.Token)
	ctx := t.Context()
	l.request(t, f, "n")
	first, err := f.AddComment(ctx, 1, "one")
	if err != nil || first.Author != "bot" || first.Body != "one" {
		t.Fatalf("%+v, %v", first, err)
	}
	l.site.Change(func() {
		m := l.project.Requests[0]
		m.Notes = append(m.Notes, &gitlabtest.Note{ID: 1, Body: "changed the title", System: true})
		for i := range 5 {
			m.Notes = append(m.Notes, &gitlabtest.Note{ID: int64(2 + i), Author: l.ann, Body: fmt.Sprint("talk ", i)})
		}
	})
	if err := f.EditComment(ctx, 1, first.ID, "two"); err != nil {
		t.Error(err)
	}
	list, err := f.Comments(ctx, 1)
	if err != nil || len(list) != 6 || list[0].Body != "two" || list[5].Body != "talk 4" || list[5].Author != "ann" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := l.open(t, l.ann.Token).OpenIssue(ctx, "Dashboard", "of ann", nil); err != nil {
		t.Fatal(err)
	}
	one, err := f.OpenIssue(ctx, "Dashboard", "text", []string{"x"})
	if err != nil || one.Number != 2 || one.Author != "bot" || !one.Open || fmt.Sprint(one.Labels) != "[x]" {
		t.Errorf("%+v, %v", one, err)
	}
	body, open := "changed", false
	if err := f.EditIssue(ctx, 2, nil, &body, nil); err != nil {
		t.Error(err)
	}
	issues, err := f.Issues(ctx, "Dashboard")
	if err != nil || len(issues) != 1 || issues[0].Number != 2 || issues[0].Body != "changed" {
		t.Errorf("%+v, %v", issues, err)
	}
	if err := f.EditIssue(ctx, 2, nil, nil, &open); err != nil {
		t.Error(err)
	}
	if issues, err = f.Issues(ctx, "Dashboard"); err != nil || len(issues) != 0 {
		t.Errorf("%+v, %v", issues, err)
	}
}

func TestGitLabFork(t *testing.T) {
	l := newLab(t)
	ctx := t.Context()
	bobs := l.open(t, l.bob.Token)
	for range 2 { // the second time it is found
		fork, err := bobs.Fork(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		if info, err := fork.Info(ctx); err != nil || info.Owner != "bob" || info.Name != "flake" || !info.Push {
			t.Errorf("%+v, %v", info, err)
		}
	}
	var fork *gitlabtest.Project
	l.site.Change(func() { fork = l.site.Project("bot/flake", map[string]int{"bot": 50}) }) // takes a name
	if _, err := l.open(t, l.bot.Token).Fork(ctx, ""); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "bot has another project") {
		t.Error(err)
	}
	if _, err := bobs.Fork(ctx, "ann"); !errors.Is(err, ErrNotFound) {
		t.Errorf("another's namespace: %v", err)
	}
	l.branch(fork, "x") // a branch of a project that is no fork is none of ours
	f := l.open(t, l.bot.Token)
	p, err := f.OpenPull(ctx, NewPull{Title: "from elsewhere", Base: "main", Head: "x", HeadRepo: "bot/flake"})
	if err != nil || p.HeadRepo != "bot/flake" {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err = f.OpenPull(ctx, NewPull{Title: "again", Base: "main", Head: "x", HeadRepo: "bot/flake"}); !errors.Is(err, ErrExists) || p.Number != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestGitLabRefusals: what GitLab says is told in the words of Forge.
func TestGitLabRefusals(t *testing.T) {
	var auth *AuthError
	var protected *ProtectedError
	for _, c := range []struct {
		name   string
		status int
		body   string
		token  string
		holds  func(error) bool
		says   string
	}{
		{"a bad token", 401, `{"message":"401 Unauthorized"}`, "glpat-x", func(err error) bool { return errors.As(err, &auth) && auth.Bad }, "scope api"},
		{"an expired token", 401, `{"error":"invalid_token","error_description":"Token is expired. You can either do re-authorization or token refresh."}`, "glpat-x", func(err error) bool { return errors.As(err, &auth) && auth.Bad }, "Token is expired"},
		{"too small a scope", 403, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api ai_features"}`, "glpat-x", func(err error) bool { return errors.As(err, &auth) && fmt.Sprint(auth.Missing) == "[api]" }, "the token lacks api"},
		{"too small a role", 403, `{"message":"403 Forbidden"}`, "glpat-x", func(err error) bool { return errors.As(err, &auth) && !auth.Bad && auth.Missing == nil }, "role Developer"},
		{"the token of a job", 404, `{"message":"404 Project Not Found"}`, "glcbt-64_x", func(err error) bool { return errors.As(err, &auth) }, "token of a CI job cannot open merge requests"},
		{"an archived project", 403, `{"message":"403 Forbidden - project is archived"}`, "glpat-x", func(err error) bool { return errors.Is(err, ErrUnsupported) }, "archived"},
		{"a protected branch", 403, `{"message":"You are not allowed to push code to protected branches on this project."}`, "glpat-x", func(err error) bool { return errors.As(err, &protected) }, "Protected branches"},
		{"nothing there", 404, `{"message":"404 Project Not Found"}`, "glpat-x", func(err error) bool { return errors.Is(err, ErrNotFound) }, "may not see"},
		{"there already", 409, `{"message":["Another open merge request already exists for this source branch: !5"]}`, "glpat-x", func(err error) bool { return errors.Is(err, ErrExists) }, "!5"},
		{"a bad field", 400, `{"message":{"body":["can't be blank","is too long"],"base":["no"]}}`, "glpat-x", func(err error) bool { return true }, "no; body: can't be blank, is too long"},
		{"a proxy's page", 403, "<html><body>blocked</body></html>", "glpat-x", func(err error) bool { return !strings.Contains(err.Error(), "<") }, "it is not allowed"},
		{"signs that move the cursor", 422, `{"message":"a\u001b[2Jb\u009bc\nd` + strings.Repeat("x", 5000) + `"}`, "glpat-x", func(err error) bool {
			return len(err.Error()) < 600 && !strings.ContainsAny(err.Error(), "\x1b\n\u009b")
		}, `a\x1b[2Jb\u009bc d`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := newGitLab(Config{Web: "https://git.example.org", Owner: "me", Name: "flake", Auth: Auth{Token: secret.New(c.token)},
				HTTP: answering(func(*http.Request) (*http.Response, error) { return answer(c.status, c.body, nil), nil })})
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.AddComment(t.Context(), 1, "x")
			if err == nil || !c.holds(err) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), c.token) {
				t.Errorf("%T %v", err, err)
			}
		})
	}
}
