package forge

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
)

// TestGitHubLife is the life of a request, straight.
func TestGitHubLife(t *testing.T) {
	s := githubtest.New(t)
	hubLife(t, s, Config{}, s.URL)
}

// TestGitHubByTheBook is the same, and the life of an App, every request and
// answer checked against GitHub's own OpenAPI description.
func TestGitHubByTheBook(t *testing.T) {
	s := githubtest.New(t)
	p := githubtest.ByTheBook(t, s)
	t.Run("the book is read", func(t *testing.T) {
		res, err := http.Post(p.URL+"/repos/acme/flake/git/refs", "application/json", strings.NewReader(`{"ref":1}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusUnprocessableEntity || len(s.Requests()) != 0 {
			t.Errorf("a wrong request: %s, and %d came through", res.Status, len(s.Requests()))
		}
	})
	t.Run("token", func(t *testing.T) { hubLife(t, s, Config{HTTP: p}, p.URL) })
	t.Run("app", func(t *testing.T) { hubAppLife(t, s, Config{HTTP: p}, p.URL) })
}

func hubMust[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func hubLife(t *testing.T, s *githubtest.Server, c Config, api string) {
	ctx := t.Context()
	s.Organization("acme")
	repo := s.Repo("acme/flake", map[string]string{"pin.nix": "version = \"1\";\n", "dir/a": "a\n", "link": "symlink:dir", "ülf": "x"})
	c.Auth = hubToken(s.User("bot")).Auth
	repo.Allow("bot", "push")
	repo.Allow("anna", "push")
	repo.Set(false, false, true)
	h := hubAt(t, c, api, "acme/flake")

	info := hubMust[Info](t)(h.Info(ctx))
	if info.Login != "bot" || !info.Push || info.Default != "main" || !info.AutoMerge || info.Signs || !strings.HasSuffix(info.Email, "+bot@users.noreply.127.0.0.1") {
		t.Errorf("Info = %+v", info)
	}
	made := hubMake(t, h, "rocm-nightly/flake", "version = \"2\";\n")
	if repo.Tip("rocm-nightly/flake") != made.ID || repo.Read("rocm-nightly/flake", "pin.nix") != "version = \"2\";\n" || repo.Read("rocm-nightly/flake", "dir/a") != "a\n" {
		t.Errorf("the branch does not hold the commit %+v", made)
	}
	hubLifeOfFiles(t, h, made)
	hubLifeOfPull(t, h, repo, made)
	hubLifeOfIssue(t, h)
	hubLifeOfFork(t, s, c, api)
	hubLifeOfTrouble(t, s, h)
}

func hubLifeOfFiles(t *testing.T, h *hub, made Commit) {
	ctx := t.Context()
	tip := hubMust[Commit](t)(h.Tip(ctx, "rocm-nightly/flake"))
	if tip.ID != made.ID || tip.Login != "bot" || tip.Message != "bump\n\nwith a body" || len(tip.Parents) != 1 || tip.Verified {
		t.Errorf("Tip = %+v", tip)
	}
	f := hubMust[File](t)(h.File(ctx, made.ID, "dir/a", 100))
	if string(f.Text) != "a\n" || f.Mode != "100644" {
		t.Errorf("File = %+v", f)
	}
	if f := hubMust[File](t)(h.File(ctx, made.ID, "link", 100)); f.Mode != "120000" || f.Text != nil {
		t.Errorf("a symlink is read: %+v", f)
	}
	if f := hubMust[File](t)(h.File(ctx, made.ID, "dir", 100)); f.Mode != "040000" {
		t.Errorf("a directory is %+v", f)
	}
	if f := hubMust[File](t)(h.File(ctx, made.ID, "ülf", 100)); string(f.Text) != "x" {
		t.Errorf("File = %+v", f)
	}
	for name, want := range map[string]string{
		"link/a": "symlink", "nothing": "not found", "dir/nothing/x": "not found", "pin.nix/x": "not found", "../x": "no path", ".git/config": "no path", "/x": "no path", "": "no path",
	} {
		if _, err := h.File(ctx, made.ID, name, 100); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("File(%q): %v; want %s", name, err, want)
		}
	}
	if _, err := h.File(ctx, made.ID, "pin.nix", 3); err == nil || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a large file: %v", err)
	}
	// The same content in another request is the same tree, and bytes that are
	// no text arrive as they are.
	n := NewCommit{Parent: made.Parents[0], Files: []File{{Path: "pin.nix", Mode: "100644", Text: []byte("version = \"2\";\n")}}}
	if tree := hubMust[string](t)(h.Tree(ctx, n)); tree != made.Tree {
		t.Errorf("the same tree is %s and %s", tree, made.Tree)
	}
	n.Files = []File{{Path: "bin/x", Mode: "100755", Text: []byte("\xff\x00\xfe")}, {Path: "empty", Mode: "100644"}}
	binary := hubMust[Commit](t)(h.Commit(ctx, NewCommit{Parent: made.ID, Message: "m", Author: "A", Email: "a@x", Committed: time.Unix(1e9, 0)}, hubMust[string](t)(h.Tree(ctx, n))))
	if binary.AuthorName != "A" || binary.CommitterAdr != "a@x" {
		t.Errorf("Commit = %+v", binary)
	}
	if f := hubMust[File](t)(h.File(ctx, binary.ID, "bin/x", 100)); string(f.Text) != "\xff\x00\xfe" || f.Mode != "100755" {
		t.Errorf("File = %+v", f)
	}
}

func hubLifeOfPull(t *testing.T, h *hub, repo *githubtest.Repo, made Commit) {
	ctx := t.Context()
	ask := NewPull{Title: "ROCm 2", Body: "old", Base: "main", Head: "rocm-nightly/flake", Draft: true}
	p := hubMust[Pull](t)(h.OpenPull(ctx, ask))
	if p.Number != 1 || p.State != Opened || !p.Draft || p.HeadCommit != made.ID || p.HeadRepo != "acme/flake" || p.Author != "bot" {
		t.Errorf("OpenPull = %+v", p)
	}
	if again, err := h.OpenPull(ctx, ask); !errors.Is(err, ErrExists) || again.Number != 1 {
		t.Errorf("a second OpenPull = %+v, %v", again, err)
	}
	body, ready := "new", false
	if p = hubMust[Pull](t)(h.EditPull(ctx, 1, PullEdit{Body: &body, Draft: &ready})); p.Body != "new" || p.Title != "ROCm 2" || p.Draft {
		t.Errorf("EditPull = %+v", p)
	}
	hubDecorate(t, h)
	repo.Review(1, "carl")
	p = hubMust[Pull](t)(h.Pull(ctx, 1))
	if !slices.Equal(p.Labels, []string{"bot", "rocm"}) || !slices.Equal(p.Assignees, []string{"anna"}) || !slices.Equal(p.Reviewers, []string{"anna", "carl"}) || p.Conflicts {
		t.Errorf("Pull = %+v", p)
	}
	if diff := hubMust[string](t)(h.Diff(ctx, 1, 1<<20)); !strings.Contains(diff, "+version = \"2\";") {
		t.Errorf("Diff = %s", diff)
	}
	if diff := hubMust[string](t)(h.Diff(ctx, 1, 10)); len(diff) != 10 {
		t.Errorf("Diff cut = %q", diff)
	}
	c := hubMust[Comment](t)(h.AddComment(ctx, 1, "hello"))
	if err := h.EditComment(ctx, 1, c.ID, "hello again"); err != nil {
		t.Error(err)
	}
	if all := hubMust[[]Comment](t)(h.Comments(ctx, 1)); len(all) != 1 || all[0].Body != "hello again" || all[0].Author != "bot" {
		t.Errorf("Comments = %+v", all)
	}
	hubLifeOfMerge(t, h, repo, made)
}

func hubDecorate(t *testing.T, h *hub) {
	t.Helper()
	ctx := t.Context()
	for _, err := range []error{
		h.AddLabels(ctx, 1, []string{"bot", "rocm", "odd/label ü"}), h.RemoveLabel(ctx, 1, "odd/label ü"), h.RemoveLabel(ctx, 1, "none"),
		h.Ask(ctx, 1, []string{"anna"}, []string{"acme/packagers", "reviewers"}), h.Assign(ctx, 1, []string{"anna"}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	var auth *AuthError
	if err := h.Ask(ctx, 1, []string{"stranger"}, []string{"team"}); !errors.As(err, &auth) || !strings.Contains(err.Error(), "stranger, team") {
		t.Errorf("Ask of a stranger: %v", err)
	}
	if err := h.Ask(ctx, 1, nil, []string{"others/team"}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("Ask of another organisation's team: %v", err)
	}
	if err := h.Assign(ctx, 1, []string{"Anna", "stranger"}); !errors.As(err, &auth) || !strings.Contains(err.Error(), "left out stranger") {
		t.Errorf("Assign of a stranger: %v", err)
	}
}

func hubLifeOfMerge(t *testing.T, h *hub, repo *githubtest.Repo, made Commit) {
	ctx := t.Context()
	if c := hubMust[Checks](t)(h.Checks(ctx, made.ID, "main")); c.State != "none" || c.Required {
		t.Errorf("Checks = %+v", c)
	}
	if err := h.AutoMerge(ctx, 1, made.ID, true, "squash"); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "required checks") {
		t.Errorf("AutoMerge without checks: %v", err)
	}
	repo.Require("main", []string{"build"}, []string{"lint"})
	repo.Status(made.ID, "build", "success")
	repo.Check(made.ID, "lint", "")
	if c := hubMust[Checks](t)(h.Checks(ctx, made.ID, "main")); c.State != "pending" || !c.Required || c.Total != 2 {
		t.Errorf("Checks = %+v", c)
	}
	for _, on := range []bool{true, true, false} {
		if err := h.AutoMerge(ctx, 1, made.ID, on, "squash"); err != nil {
			t.Errorf("AutoMerge %v: %v", on, err)
		}
		if got := repo.Items()[0].AutoMerge; got != on {
			t.Errorf("AutoMerge %v leaves it %v", on, got)
		}
	}
	if err := h.Merge(ctx, 1, made.ID, "merge"); !errors.Is(err, ErrNotMergable) || !strings.Contains(err.Error(), "lint") {
		t.Errorf("Merge before its checks: %v", err)
	}
	repo.Check(made.ID, "lint", "success")
	if err := h.Merge(ctx, 1, made.Parents[0], "merge"); !errors.Is(err, ErrMoved) {
		t.Errorf("Merge of another commit: %v", err)
	}
	if err := h.Merge(ctx, 1, made.ID, "squash"); err != nil {
		t.Error(err)
	}
	if p := hubMust[Pull](t)(h.Pull(ctx, 1)); p.State != Merged || p.Merger != "bot" || p.MergeCommit != repo.Tip("main") || p.Ended.IsZero() {
		t.Errorf("Pull = %+v", p)
	}
	if err := h.Remove(ctx, "rocm-nightly/flake", made.Parents[0]); !errors.Is(err, ErrMoved) {
		t.Errorf("Remove of another commit: %v", err)
	}
	for range 2 {
		if err := h.Remove(ctx, "rocm-nightly/flake", made.ID); err != nil {
			t.Errorf("Remove: %v", err)
		}
	}
	if _, err := h.Tip(ctx, "rocm-nightly/flake"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Tip of no branch: %v", err)
	}
	all := hubMust[[]Pull](t)(h.Pulls(ctx, Query{State: Closed, Head: "rocm-nightly/flake", HeadRepo: "acme/flake", Base: "main"}))
	if len(all) != 1 || all[0].State != Merged {
		t.Errorf("Pulls = %+v", all)
	}
	if all := hubMust[[]Pull](t)(h.Pulls(ctx, Query{State: Opened})); len(all) != 0 {
		t.Errorf("open Pulls = %+v", all)
	}
}

func hubLifeOfIssue(t *testing.T, h *hub) {
	ctx := t.Context()
	i := hubMust[Issue](t)(h.OpenIssue(ctx, "Dashboard", "- [ ] a", []string{"rocm"}))
	body, closed := "- [x] a", false
	if err := h.EditIssue(ctx, i.Number, nil, &body, nil); err != nil {
		t.Error(err)
	}
	all := hubMust[[]Issue](t)(h.Issues(ctx, "Dashboard"))
	if len(all) != 1 || all[0].Body != body || !all[0].Open || all[0].Author != "bot" || !slices.Equal(all[0].Labels, []string{"rocm"}) {
		t.Errorf("Issues = %+v", all)
	}
	if err := h.EditIssue(ctx, i.Number, nil, nil, &closed); err != nil {
		t.Error(err)
	}
	if all := hubMust[[]Issue](t)(h.Issues(ctx, "Dashboard")); len(all) != 0 {
		t.Errorf("Issues = %+v", all)
	}
}

func hubLifeOfFork(t *testing.T, s *githubtest.Server, c Config, api string) {
	ctx := t.Context()
	c.Auth = hubToken(s.User("eve")).Auth
	s.Repo("eve/flake", nil) // has the name, and nothing to do with it
	up := hubAt(t, c, api, "acme/flake")
	if info := hubMust[Info](t)(up.Info(ctx)); info.Push {
		t.Errorf("eve may push: %+v", info)
	}
	fork := hubMust[Forge](t)(up.Fork(ctx, ""))
	again := hubMust[Forge](t)(up.Fork(ctx, "eve"))
	info := hubMust[Info](t)(fork.Info(ctx))
	if info.Owner != "eve" || info.Name != "flake-1" || !info.Push || hubMust[Info](t)(again.Info(ctx)).Name != info.Name {
		t.Errorf("Fork = %+v", info)
	}
	s.Find("acme/flake").Push("main", "anna", "newer", map[string]string{"new": "x"})
	tip := hubMust[Commit](t)(up.Tip(ctx, "main"))
	n := NewCommit{Parent: tip.ID, Message: "m", Files: []File{{Path: "pin.nix", Mode: "100644", Text: []byte("3")}}}
	trees := fork.(Trees)
	made := hubMust[Commit](t)(trees.Commit(ctx, n, hubMust[string](t)(trees.Tree(ctx, n))))
	if err := trees.Move(ctx, "bump", "", made.ID); err != nil {
		t.Fatal(err)
	}
	// A fork that lacks the objects is brought up to date first.
	s.Fail(githubtest.Fault{Method: "POST", Path: "eve/flake-1/git/trees", Status: 404})
	n.Files[0].Text = []byte("4")
	hubMust[string](t)(trees.Tree(ctx, n))
	if fork := s.Find("eve/flake-1"); fork.Tip("main") != tip.ID {
		t.Error("the fork was not brought up to date")
	}
	p := hubMust[Pull](t)(up.OpenPull(ctx, NewPull{Title: "t", Base: "main", Head: "bump", HeadRepo: "eve/flake-1"}))
	if p.HeadRepo != "eve/flake-1" || p.Head != "bump" || p.HeadCommit != made.ID {
		t.Errorf("OpenPull = %+v", p)
	}
	closed := Closed
	if p = hubMust[Pull](t)(up.EditPull(ctx, p.Number, PullEdit{State: &closed})); p.State != Closed || p.Ended.IsZero() {
		t.Errorf("EditPull = %+v", p)
	}
	if err := trees.Move(ctx, "bump", made.ID, tip.ID); err != nil {
		t.Error(err)
	}
	open := Opened
	if _, err := up.EditPull(ctx, p.Number, PullEdit{State: &open}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("reopen after a force push: %v", err)
	}
}

// hubLifeOfTrouble has the classes of errors come through whatever lies between.
func hubLifeOfTrouble(t *testing.T, s *githubtest.Server, h *hub) {
	ctx := t.Context()
	var auth *AuthError
	for _, c := range []struct {
		fault githubtest.Fault
		is    func(error) bool
	}{
		{githubtest.Fault{Status: 401}, func(err error) bool { return errors.As(err, &auth) && auth.Bad }},
		{githubtest.Fault{Status: 403}, func(err error) bool { return errors.As(err, &auth) && !auth.Bad }},
		{githubtest.Fault{Status: 404}, func(err error) bool { return errors.Is(err, ErrNotFound) }},
		{githubtest.Fault{Status: 429, Header: map[string]string{"Retry-After": "1"}}, func(err error) bool { return err == nil }},
		{githubtest.Fault{Status: 403, Header: map[string]string{"Retry-After": "1"}}, func(err error) bool { return err == nil }},
		{githubtest.Fault{Status: 503, Times: 2}, func(err error) bool { return err == nil }},
		{githubtest.Fault{Times: 2}, func(err error) bool { return err == nil }},
	} {
		s.Fail(c.fault)
		if _, err := h.Comments(ctx, 1); !c.is(err) {
			t.Errorf("%+v becomes %v", c.fault, err)
		}
	}
}
