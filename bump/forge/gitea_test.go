package forge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/giteatest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// giteaWorld is a Gitea with people, an organisation and a repository.
type giteaWorld struct {
	site     *giteatest.Server
	ann, bot giteatest.User // who owns the organisation; who may write
	bob      giteatest.User // who may read
	repo     giteatest.Repo
}

func newGiteaWorld(t *testing.T) *giteaWorld {
	t.Helper()
	w := &giteaWorld{site: giteatest.Start(t)}
	w.ann, w.bot, w.bob = w.site.User(t, "ann"), w.site.User(t, "bot"), w.site.User(t, "bob")
	w.ann.Org(t, "packagers", "rocm", w.bot)
	w.repo = w.ann.Repo(t, "packagers", "flake", map[string]string{"flake.nix": "version = \"1\";\n"})
	return w
}

// open returns the forge of repo for whoever has token.
func (w *giteaWorld) open(t *testing.T, repo giteatest.Repo, token string) *gitea {
	t.Helper()
	f, err := newGitea(Config{
		Kind: "gitea", Web: w.site.URL, Owner: repo.Owner, Name: repo.Name, HTTP: w.site.HTTP,
		Auth: Auth{Token: secret.New(token)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return f.(*gitea)
}

// branch makes a branch with a change of its own, and a request for it.
func (w *giteaWorld) request(t *testing.T, f Forge, branch, text string) Pull {
	t.Helper()
	w.bot.Commit(t, w.repo, branch, "bump", map[string]string{"flake.nix": text})
	p, err := f.OpenPull(t.Context(), NewPull{Title: "bump to " + branch, Body: "body", Base: "main", Head: branch})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGitea asks a real Gitea for everything that Forge promises.
func TestGitea(t *testing.T) {
	w := newGiteaWorld(t)
	f := w.open(t, w.repo, w.bot.Token)
	for _, part := range []struct {
		name string
		test func(*testing.T, *giteaWorld, *gitea)
	}{
		{"Info", testGiteaInfo}, {"Open", testGiteaOpen}, {"Drafts", testGiteaDrafts}, {"People", testGiteaPeople}, {"Merge", testGiteaMerge},
		{"AutoMerge", testGiteaAutoMerge}, {"Checks", testGiteaChecks}, {"Conflicts", testGiteaConflicts}, {"Comments", testGiteaComments},
		{"Issues", testGiteaIssues}, {"Fork", testGiteaFork}, {"Rights", testGiteaRights}, {"Pages", testGiteaPages},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, w, f) })
	}
	t.Run("Archived", func(t *testing.T) { // the last: nothing can change after it
		w.ann.Call(t, 200, "PATCH", w.repo.API(), map[string]any{"archived": true}, nil)
		if info, err := f.Info(t.Context()); err != nil || !info.Archived {
			t.Errorf("%+v, %v", info, err)
		}
		_, err := f.OpenIssue(t.Context(), "x", "", nil)
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "archived") {
			t.Error(err)
		}
	})
}

func testGiteaInfo(t *testing.T, w *giteaWorld, f *gitea) {
	info, err := f.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := Info{
		Owner: "packagers", Name: "flake", Default: "main", Page: w.repo.Page(), Clone: w.repo.URL,
		Push: true, Requests: true, Issues: true, AutoMerge: true, Login: "bot", Email: "bot@example.org",
	}
	if fmt.Sprint(info) != fmt.Sprint(want) {
		t.Errorf("%+v\nwant %+v", info, want)
	}
	if info, err = w.open(t, w.repo, w.bob.Token).Info(t.Context()); err != nil || info.Push || info.Login != "bob" {
		t.Errorf("who may read: %+v, %v", info, err)
	}
	// The name as it is written in the config need not be the forge's.
	other := giteatest.Repo{Owner: "PACKAGERS", Name: "Flake"}
	if info, err = w.open(t, other, w.bot.Token).Info(t.Context()); err != nil || info.Owner != "packagers" || info.Name != "flake" {
		t.Errorf("%+v, %v", info, err)
	}
}

func testGiteaOpen(t *testing.T, w *giteaWorld, f *gitea) {
	p := w.request(t, f, "rocm-nightly/open", "2\n")
	if p.State != Opened || p.Title != "bump to rocm-nightly/open" || p.Body != "body" || p.Base != "main" || p.Head != "rocm-nightly/open" ||
		p.HeadRepo != "packagers/flake" || p.Author != "bot" || p.HeadCommit != w.bot.Tip(t, w.repo, "rocm-nightly/open") || p.Draft ||
		p.Created.IsZero() || !p.Ended.IsZero() || !strings.HasPrefix(p.Page, w.repo.Page()) {
		t.Errorf("%+v", p)
	}
	again, err := f.OpenPull(t.Context(), NewPull{Title: "again", Base: "main", Head: "rocm-nightly/open"})
	if !errors.Is(err, ErrExists) || again.Number != p.Number {
		t.Errorf("a second one: %+v, %v", again, err)
	}
	list, err := f.Pulls(t.Context(), Query{State: Opened, Head: "rocm-nightly/open", HeadRepo: "Packagers/flake", Base: "main"})
	if err != nil || len(list) != 1 || list[0].Number != p.Number {
		t.Errorf("%+v, %v", list, err)
	}
	for _, q := range []Query{{Head: "rocm-nightly/no"}, {State: Closed, Head: p.Head}, {Head: p.Head, Base: "other"}, {Head: p.Head, HeadRepo: "bob/flake"}} {
		if list, err := f.Pulls(t.Context(), q); err != nil || len(list) != 0 {
			t.Errorf("%+v: %+v, %v", q, list, err)
		}
	}
	title, body, state := "another title", "", Closed
	if p, err = f.EditPull(t.Context(), p.Number, PullEdit{Title: &title, Body: &body}); err != nil || p.Title != title || p.Body != "" || p.State != Opened {
		t.Errorf("%+v, %v", p, err)
	}
	diff, err := f.Diff(t.Context(), p.Number, 1<<16)
	if err != nil || !strings.Contains(diff, "+2") || !strings.Contains(diff, "-version") {
		t.Errorf("%q, %v", diff, err)
	}
	if cut, err := f.Diff(t.Context(), p.Number, 20); err != nil || cut != diff[:20] {
		t.Errorf("%q, %v", cut, err)
	}
	if p, err = f.EditPull(t.Context(), p.Number, PullEdit{State: &state}); err != nil || p.State != Closed || p.Ended.IsZero() || p.Title != title {
		t.Errorf("%+v, %v", p, err)
	}
	if list, err = f.Pulls(t.Context(), Query{State: Closed, Head: p.Head}); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	state = Opened
	if p, err = f.EditPull(t.Context(), p.Number, PullEdit{State: &state}); err != nil || p.State != Opened {
		t.Errorf("%+v, %v", p, err)
	}
	for _, n := range []NewPull{{Title: "t", Base: "main", Head: "no-such-branch"}, {Title: "t", Base: "no-such-branch", Head: p.Head}} {
		if _, err := f.OpenPull(t.Context(), n); !errors.Is(err, ErrNotFound) {
			t.Errorf("%+v: %v", n, err)
		}
	}
	if _, err := f.Pull(t.Context(), 99999); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	// The branch is gone, its name stays.
	w.bot.Call(t, 204, "DELETE", w.repo.API()+"/branches/rocm-nightly%2Fopen", nil, nil)
	if p, err = f.Pull(t.Context(), p.Number); err != nil || p.Head != "rocm-nightly/open" {
		t.Errorf("%+v, %v", p, err)
	}
}

func testGiteaDrafts(t *testing.T, w *giteaWorld, f *gitea) {
	w.bot.Commit(t, w.repo, "draft", "bump", map[string]string{"flake.nix": "draft\n"})
	p, err := f.OpenPull(t.Context(), NewPull{Title: "bump", Base: "main", Head: "draft", Draft: true})
	if err != nil || !p.Draft || p.Title != "bump" {
		t.Fatalf("%+v, %v", p, err)
	}
	yes, no, title := true, false, "newer"
	steps := []struct {
		edit  PullEdit
		title string
		draft bool
	}{
		{PullEdit{Title: &title}, "newer", true},
		{PullEdit{Draft: &no}, "newer", false},
		{PullEdit{Draft: &yes}, "newer", true},
		{PullEdit{Draft: &yes}, "newer", true},
		{PullEdit{Title: &title, Draft: &no}, "newer", false},
	}
	for i, s := range steps {
		if p, err = f.EditPull(t.Context(), p.Number, s.edit); err != nil || p.Title != s.title || p.Draft != s.draft {
			t.Errorf("step %d: %+v, %v", i, p, err)
		}
	}
}

func testGiteaPeople(t *testing.T, w *giteaWorld, f *gitea) {
	p := w.request(t, f, "people", "people\n")
	w.ann.Call(t, 201, "POST", "/orgs/packagers/labels", map[string]any{"name": "of the org", "color": "#00ff00"}, nil)
	ctx := t.Context()
	for range 2 { // the second time changes nothing
		err := errors.Join(
			f.AddLabels(ctx, p.Number, []string{"rocm", "of the org", "rocm"}),
			f.Assign(ctx, p.Number, []string{"ann"}), f.Assign(ctx, p.Number, []string{"Bot"}),
			f.Ask(ctx, p.Number, []string{"ann", "bot"}, []string{"packagers/rocm"}),
		)
		if err != nil {
			t.Fatal(err)
		}
		if p, err = f.Pull(ctx, p.Number); err != nil {
			t.Fatal(err)
		}
		slices.Sort(p.Labels)
		slices.Sort(p.Assignees)
		if fmt.Sprint(p.Labels, p.Assignees, p.Reviewers) != "[of the org rocm] [ann bot] [ann packagers/rocm]" {
			t.Errorf("%q %q %q", p.Labels, p.Assignees, p.Reviewers)
		}
	}
	if err := errors.Join(f.RemoveLabel(ctx, p.Number, "rocm"), f.RemoveLabel(ctx, p.Number, "rocm")); err != nil {
		t.Error(err)
	}
	if p, err := f.Pull(ctx, p.Number); err != nil || len(p.Labels) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	if err := f.Ask(ctx, p.Number, []string{"nobody-there"}, nil); err == nil || !strings.Contains(err.Error(), "nobody-there") {
		t.Error(err)
	}
	if err := f.Assign(ctx, p.Number, []string{"nobody-there"}); err == nil || !strings.Contains(err.Error(), "nobody-there") {
		t.Error(err)
	}
	// Who has reviewed is not asked again.
	w.ann.Call(t, 200, "POST", fmt.Sprintf("%s/pulls/%d/reviews", w.repo.API(), p.Number), map[string]any{"event": "COMMENT", "body": "seen"}, nil)
	var before, after []map[string]any
	reviews := fmt.Sprintf("%s/pulls/%d/reviews", w.repo.API(), p.Number)
	w.ann.Call(t, 200, "GET", reviews, nil, &before)
	if err := f.Ask(ctx, p.Number, []string{"ann"}, nil); err != nil {
		t.Error(err)
	}
	if w.ann.Call(t, 200, "GET", reviews, nil, &after); len(before) != len(after) {
		t.Errorf("%d reviews became %d", len(before), len(after))
	}
}

// awaitMergeable waits until Gitea has looked for conflicts.
func awaitMergeable(t *testing.T, w *giteaWorld, number int64) {
	t.Helper()
	for range 1000 {
		var p struct {
			Mergeable bool `json:"mergeable"`
		}
		if w.bot.Call(t, 200, "GET", fmt.Sprintf("%s/pulls/%d", w.repo.API(), number), nil, &p); p.Mergeable {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Fatal("Gitea does not find it mergeable")
}

func testGiteaMerge(t *testing.T, w *giteaWorld, f *gitea) {
	ctx := t.Context()
	w.bot.Commit(t, w.repo, "merge", "bump", map[string]string{"merged": "1\n"})
	p, err := f.OpenPull(ctx, NewPull{Title: "merge it", Base: "main", Head: "merge"})
	if err != nil {
		t.Fatal(err)
	}
	awaitMergeable(t, w, p.Number)
	if err := f.Merge(ctx, p.Number, strings.Repeat("1", 40), "squash"); !errors.Is(err, ErrMoved) {
		t.Errorf("another head: %v", err)
	}
	if err := f.Merge(ctx, p.Number, p.HeadCommit, "squash"); err != nil {
		t.Fatal(err)
	}
	p, err = f.Pull(ctx, p.Number)
	if err != nil || p.State != Merged || p.Merger != "bot" || p.MergeCommit != w.bot.Tip(t, w.repo, "main") || p.Ended.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if err := f.Merge(ctx, p.Number, p.HeadCommit, "merge"); !errors.Is(err, ErrNotMergable) {
		t.Errorf("merged already: %v", err)
	}
	state := Opened
	if _, err := f.EditPull(ctx, p.Number, PullEdit{State: &state}); err == nil || !strings.Contains(err.Error(), "merged") {
		t.Error(err)
	}
}

// protect asks for a status check on a branch, and takes that back afterwards.
func (w *giteaWorld) protect(t *testing.T, branch string, contexts ...string) {
	t.Helper()
	w.ann.Call(t, 201, "POST", w.repo.API()+"/branch_protections", map[string]any{
		"rule_name": branch, "enable_status_check": true, "status_check_contexts": contexts, "enable_push": true,
	}, nil)
	t.Cleanup(func() {
		w.ann.Call(t, 204, "DELETE", w.repo.API()+"/branch_protections/"+branch, nil, nil)
	})
}

func (w *giteaWorld) status(t *testing.T, commit, name, state string) {
	t.Helper()
	w.bot.Call(t, 201, "POST", w.repo.API()+"/statuses/"+commit, map[string]any{"context": name, "state": state}, nil)
}

func testGiteaAutoMerge(t *testing.T, w *giteaWorld, f *gitea) {
	ctx := t.Context()
	w.bot.Commit(t, w.repo, "auto", "bump", map[string]string{"auto": "1\n"})
	p, err := f.OpenPull(ctx, NewPull{Title: "auto", Base: "main", Head: "auto"})
	if err != nil {
		t.Fatal(err)
	}
	awaitMergeable(t, w, p.Number)
	if err := f.AutoMerge(ctx, p.Number, p.HeadCommit, true, "merge"); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "asks for no status checks") {
		t.Errorf("without checks: %v", err)
	}
	w.protect(t, "main", "ci/build")
	if err := f.AutoMerge(ctx, p.Number, strings.Repeat("1", 40), true, "merge"); !errors.Is(err, ErrMoved) {
		t.Errorf("another head: %v", err)
	}
	if err := f.Merge(ctx, p.Number, p.HeadCommit, "merge"); !errors.Is(err, ErrNotMergable) {
		t.Errorf("before its checks: %v", err)
	}
	for _, on := range []bool{true, true, false, false, true} { // twice is once
		if err := f.AutoMerge(ctx, p.Number, p.HeadCommit, on, "merge"); err != nil {
			t.Fatalf("on %v: %v", on, err)
		}
	}
	w.status(t, p.HeadCommit, "ci/build", "success")
	for try := 0; ; try++ {
		if p, err = f.Pull(ctx, p.Number); err != nil {
			t.Fatal(err)
		} else if p.State == Merged {
			break
		} else if try == 1000 {
			t.Fatal("it does not merge itself")
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func testGiteaChecks(t *testing.T, w *giteaWorld, f *gitea) {
	ctx := t.Context()
	commit := w.bot.Commit(t, w.repo, "checks", "bump", map[string]string{"checks": "1\n"})
	look := func(want Checks) {
		t.Helper()
		if got, err := f.Checks(ctx, commit, "main"); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	look(Checks{State: "none"})
	w.status(t, commit, "ci/build", "pending")
	look(Checks{State: "pending", Total: 1})
	w.status(t, commit, "ci/build", "failure")
	look(Checks{State: "failure", Total: 1, Failed: []string{"ci/build"}})
	w.status(t, commit, "ci/build", "success")
	look(Checks{State: "success", Total: 1})
	w.protect(t, "main", "ci/*", "lint")
	look(Checks{State: "pending", Total: 1, Required: true})
	w.status(t, commit, "lint", "success")
	look(Checks{State: "success", Total: 2, Required: true})
	for i := range 9 { // more than a page
		w.status(t, commit, fmt.Sprint("many/", i), "success")
	}
	w.status(t, commit, "ci/build", "error")
	look(Checks{State: "failure", Total: 11, Required: true, Failed: []string{"ci/build"}})
}

func testGiteaConflicts(t *testing.T, w *giteaWorld, f *gitea) {
	p := w.request(t, f, "conflict", "mine\n")
	awaitMergeable(t, w, p.Number)
	if p, err := f.Pull(t.Context(), p.Number); err != nil || p.Conflicts {
		t.Errorf("%+v, %v", p, err)
	}
	w.ann.Commit(t, w.repo, "main", "theirs", map[string]string{"flake.nix": "theirs\n"})
	for try := 0; ; try++ {
		if p, err := f.Pull(t.Context(), p.Number); err != nil {
			t.Fatal(err)
		} else if p.Conflicts {
			break
		} else if try == 1000 {
			t.Fatal("the conflict is not seen")
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	if err := f.Merge(t.Context(), p.Number, p.HeadCommit, "merge"); !errors.Is(err, ErrNotMergable) {
		t.Error(err)
	}
}

func testGiteaComments(t *testing.T, w *giteaWorld, f *gitea) {
	p := w.request(t, f, "comments", "comments\n")
	ctx := t.Context()
	first, err := f.AddComment(ctx, p.Number, "one <b>&")
	if err != nil || first.Author != "bot" || first.Body != "one <b>&" || first.Created.IsZero() {
		t.Fatalf("%+v, %v", first, err)
	}
	for i := range 9 {
		w.ann.Call(t, 201, "POST", fmt.Sprintf("%s/issues/%d/comments", w.repo.API(), p.Number), map[string]any{"body": fmt.Sprint("talk ", i)}, nil)
	}
	if err := f.EditComment(ctx, p.Number, first.ID, "two"); err != nil {
		t.Fatal(err)
	}
	list, err := f.Comments(ctx, p.Number)
	if err != nil || len(list) != 10 || list[0].Body != "two" || list[0].ID != first.ID || list[9].Author != "ann" || list[9].Body != "talk 8" {
		t.Errorf("%d: %+v, %v", len(list), list, err)
	}
}

func testGiteaIssues(t *testing.T, w *giteaWorld, f *gitea) {
	ctx := t.Context()
	w.ann.Call(t, 201, "POST", w.repo.API()+"/issues", map[string]any{"title": "Dashboard", "body": "of somebody else"}, nil)
	one, err := f.OpenIssue(ctx, "Dashboard", "text", []string{"dash"})
	if err != nil || !one.Open || one.Title != "Dashboard" || one.Author != "bot" || fmt.Sprint(one.Labels) != "[dash]" {
		t.Fatalf("%+v, %v", one, err)
	}
	if _, err := f.OpenIssue(ctx, "Dashboard of another", "text", nil); err != nil {
		t.Fatal(err)
	}
	list, err := f.Issues(ctx, "Dashboard")
	if err != nil || len(list) != 1 || list[0].Number != one.Number || list[0].Body != "text" {
		t.Errorf("%+v, %v", list, err)
	}
	body, open := "changed", false
	if err := f.EditIssue(ctx, one.Number, nil, &body, nil); err != nil {
		t.Error(err)
	}
	if list, err = f.Issues(ctx, "Dashboard"); err != nil || len(list) != 1 || list[0].Body != "changed" || list[0].Title != "Dashboard" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := f.EditIssue(ctx, one.Number, nil, nil, &open); err != nil {
		t.Error(err)
	}
	if list, err = f.Issues(ctx, "Dashboard"); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}
