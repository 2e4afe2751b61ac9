package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/giteatest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

func testGiteaFork(t *testing.T, w *giteaWorld, f *gitea) {
	ctx := t.Context()
	bobs := w.open(t, w.repo, w.bob.Token)
	fork, err := bobs.Fork(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	again, err := bobs.Fork(ctx, "Bob")
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []Forge{fork, again} {
		if info, err := one.Info(ctx); err != nil || info.Owner != "bob" || info.Name != "flake" || !info.Push {
			t.Errorf("%+v, %v", info, err)
		}
	}
	w.bob.Commit(t, giteatest.Repo{Owner: "bob", Name: "flake"}, "rocm-nightly/fork", "bump", map[string]string{"bobs": "1\n"})
	p, err := bobs.OpenPull(ctx, NewPull{Title: "from a fork", Base: "main", Head: "rocm-nightly/fork", HeadRepo: "bob/flake"})
	if err != nil || p.HeadRepo != "bob/flake" || p.Head != "rocm-nightly/fork" || p.Author != "bob" {
		t.Fatalf("%+v, %v", p, err)
	}
	if p, err = bobs.OpenPull(ctx, NewPull{Title: "again", Base: "main", Head: "rocm-nightly/fork", HeadRepo: "bob/flake"}); !errors.Is(err, ErrExists) || p.HeadRepo != "bob/flake" {
		t.Errorf("%+v, %v", p, err)
	}
	list, err := bobs.Pulls(ctx, Query{State: Opened, Head: "rocm-nightly/fork", HeadRepo: "bob/flake"})
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	// An organisation's, and a name that is taken.
	w.bob.Org(t, "bobs", "all")
	if org, err := bobs.Fork(ctx, "bobs"); err != nil {
		t.Error(err)
	} else if info, err := org.Info(ctx); err != nil || info.Owner != "bobs" {
		t.Errorf("%+v, %v", info, err)
	}
	w.bot.Repo(t, "bot", "flake", nil)
	if _, err := f.Fork(ctx, ""); !errors.Is(err, ErrExists) || !strings.Contains(err.Error(), "bot has another repository named flake") {
		t.Error(err)
	}
	if _, err := bobs.Fork(ctx, "ann"); err == nil {
		t.Error("bob makes a fork for ann")
	}
}

func testGiteaRights(t *testing.T, w *giteaWorld, f *gitea) {
	ctx := t.Context()
	var auth *AuthError
	if _, err := w.open(t, w.repo, "0123456789abcdef0123456789abcdef01234567").Info(ctx); !errors.As(err, &auth) || !auth.Bad {
		t.Errorf("a token that nobody made: %v", err)
	}
	little := w.open(t, w.repo, w.bot.NewToken(t, "little", "read:repository", "read:user"))
	if _, err := little.OpenPull(ctx, NewPull{Title: "t", Base: "main", Head: "checks"}); !errors.As(err, &auth) || fmt.Sprint(auth.Missing) != "[write:repository]" {
		t.Errorf("a token with little: %v", err)
	}
	if _, err := little.OpenIssue(ctx, "t", "", nil); !errors.As(err, &auth) || fmt.Sprint(auth.Missing) != "[write:issue]" {
		t.Errorf("a token with little: %v", err)
	}
	nobody := w.open(t, w.repo, w.bot.NewToken(t, "nobody", "write:repository"))
	if info, err := nobody.Info(ctx); err != nil || fmt.Sprint(info.Missing) != "[read:user write:issue]" || info.Login != "" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := w.open(t, giteatest.Repo{Owner: "packagers", Name: "none"}, w.bot.Token).Info(ctx); !errors.Is(err, ErrNotFound) {
		t.Errorf("no such repository: %v", err)
	}
	p := w.request(t, f, "rights", "rights\n")
	bobs := w.open(t, w.repo, w.bob.Token)
	awaitMergeable(t, w, p.Number)
	title := "taken over"
	_, edit := bobs.EditPull(ctx, p.Number, PullEdit{Title: &title})
	for doing, err := range map[string]error{
		"edit": edit, "label": bobs.AddLabels(ctx, p.Number, []string{"new"}), "merge": bobs.Merge(ctx, p.Number, p.HeadCommit, "merge"),
	} {
		if !errors.As(err, &auth) || auth.Bad {
			t.Errorf("%s without the right: %v", doing, err)
		}
	}
	w.ann.Call(t, 200, "PATCH", w.repo.API(), map[string]any{"has_pull_requests": false}, nil)
	if info, err := f.Info(ctx); err != nil || info.Requests {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := f.OpenPull(ctx, NewPull{Title: "t", Base: "main", Head: "checks"}); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "switched off") {
		t.Error(err)
	}
	w.ann.Call(t, 200, "PATCH", w.repo.API(), map[string]any{"has_pull_requests": true}, nil)
}

// testGiteaPages: what does not fit on one page is found.
func testGiteaPages(t *testing.T, w *giteaWorld, _ *gitea) {
	n := 8 // the server gives seven at once
	if heavy {
		n = 23
	}
	repo := w.bot.Repo(t, "bot", "pages", nil)
	f := w.open(t, repo, w.bot.Token)
	w.bot.Commit(t, repo, "change", "x", map[string]string{"x": "x"})
	for i := range n {
		branch := fmt.Sprint("b", i)
		w.bot.Call(t, 201, "POST", repo.API()+"/branches", map[string]any{"new_branch_name": branch, "old_ref_name": "change"}, nil)
		w.bot.Call(t, 201, "POST", repo.API()+"/pulls", map[string]any{"title": branch, "head": branch, "base": "main"}, nil)
		w.bot.Call(t, 201, "POST", repo.API()+"/labels", map[string]any{"name": branch, "color": "#ffffff"}, nil)
	}
	list, err := f.Pulls(t.Context(), Query{})
	if err != nil || len(list) != n || list[0].Head != fmt.Sprint("b", n-1) {
		t.Errorf("%d, %v", len(list), err)
	}
	if list, err = f.Pulls(t.Context(), Query{Limit: 3}); err != nil || len(list) != 3 {
		t.Errorf("%d, %v", len(list), err)
	}
	if list, err = f.Pulls(t.Context(), Query{Head: "b0"}); err != nil || len(list) != 1 {
		t.Fatalf("%d, %v", len(list), err)
	}
	if err := f.AddLabels(t.Context(), list[0].Number, []string{"b0", "b7"}); err != nil {
		t.Error(err)
	}
	var labels []any
	if w.bot.Call(t, 200, "GET", repo.API()+"/labels?page="+fmt.Sprint(1+n/7), nil, &labels); len(labels) != n%7 {
		t.Errorf("%d labels on the last page: some were made twice", len(labels))
	}
}

// TestGiteaAsksForNoVersion: one question is one request, whatever the server
// calls itself.
func TestGiteaAsksForNoVersion(t *testing.T) {
	var asked []string
	f, err := newGitea(Config{Web: "https://git.example.org", Owner: "me", Name: "flake", Auth: Auth{Token: secret.New("s3cret")},
		HTTP: answering(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Method+" "+r.URL.Path)
			return answer(200, `{"number":1,"state":"closed"}`, nil), nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Pull(context.Background(), 1); err != nil || len(asked) != 1 || asked[0] != "GET /api/v1/repos/me/flake/pulls/1" {
		t.Errorf("%q, %v", asked, err)
	}
}
