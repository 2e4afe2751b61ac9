package forge

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

func hubApp(id int64, key string) Config {
	return Config{Auth: Auth{AppID: id, PrivateKey: secret.New(key)}}
}

var hubWrites = map[string]string{"contents": "write", "pull_requests": "write"}

// TestGitHubApp: an App finds its installation, and GitHub signs its commits.
func TestGitHubApp(t *testing.T) {
	s := githubtest.New(t)
	hubAppLife(t, s, Config{}, s.URL)
}

func hubAppLife(t *testing.T, s *githubtest.Server, c Config, api string) {
	repo := s.Repo("corp/flake", map[string]string{"pin.nix": "1"})
	repo.Set(true, false, false)
	id, key := s.App("bumper", "corp", hubWrites, 0)
	c.Auth = hubApp(id, key).Auth
	h := hubAt(t, c, api, "corp/flake")
	info := hubMust[Info](t)(h.Info(t.Context()))
	if info.Login != "bumper[bot]" || !info.Push || !info.Signs || len(info.Missing) != 0 || !strings.Contains(info.Email, "+bumper[bot]@") {
		t.Errorf("Info = %+v", info)
	}
	made := hubMake(t, h, "b", "2")
	if !made.Verified || made.AuthorName != "bumper[bot]" || repo.Tip("b") != made.ID {
		t.Errorf("Commit = %+v", made)
	}
	if tip := hubMust[Commit](t)(h.Tip(t.Context(), "b")); tip.Login != "bumper[bot]" || !tip.Verified {
		t.Errorf("Tip = %+v", tip)
	}
	tokens := 0
	for _, r := range s.Requests() {
		if strings.HasSuffix(r.Path, "/access_tokens") {
			tokens++
		}
	}
	if tokens != 1 {
		t.Errorf("%d tokens were asked for", tokens)
	}
	if _, err := h.Fork(t.Context(), ""); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "App") {
		t.Errorf("Fork: %v", err)
	}
}

// TestGitHubAppRenews: a token that has run out is replaced.
func TestGitHubAppRenews(t *testing.T) {
	s := githubtest.New(t)
	s.Repo("acme/flake", map[string]string{"f": "1"})
	id, key := s.App("bumper", "acme", hubWrites, time.Second) // below the minute in which it is renewed
	h := hubAt(t, hubApp(id, key), s.URL, "acme/flake")
	for range 2 {
		hubMust[Commit](t)(h.Tip(t.Context(), "main"))
	}
	if n := len(slices.DeleteFunc(s.Requests(), func(r githubtest.Request) bool { return !strings.HasSuffix(r.Path, "/access_tokens") })); n < 2 {
		t.Errorf("%d tokens were asked for", n)
	}
}

func TestGitHubAppErrors(t *testing.T) {
	s := githubtest.New(t)
	s.Repo("acme/flake", map[string]string{"f": "1"})
	s.Repo("other/flake", map[string]string{"f": "1"})
	id, key := s.App("bumper", "acme", map[string]string{"contents": "read"}, 0)
	_, wrong := s.App("another", "acme", hubWrites, 0)
	var auth *AuthError
	_, err := hubAt(t, hubApp(id, wrong), s.URL, "acme/flake").Info(t.Context())
	if !errors.As(err, &auth) || !auth.Bad || !strings.Contains(err.Error(), "belong together") {
		t.Errorf("the key of another App: %v", err)
	}
	_, err = hubAt(t, hubApp(id, key), s.URL, "other/flake").Info(t.Context())
	if !errors.As(err, &auth) || !slices.Equal(auth.Missing, []string{"an installation on the repository"}) {
		t.Errorf("not installed: %v", err)
	}
	info := hubMust[Info](t)(hubAt(t, hubApp(id, key), s.URL, "acme/flake").Info(t.Context()))
	if info.Push || !slices.Equal(info.Missing, []string{"contents=write", "pull_requests=write"}) {
		t.Errorf("Info = %+v", info)
	}
	c := hubApp(id, "-----BEGIN nothing\nsecretsecret")
	c.Kind, c.Owner, c.Name = GitHub, "acme", "flake"
	if _, err := Open(t.Context(), c); err == nil || strings.Contains(err.Error(), "secretsecret") || !strings.Contains(err.Error(), "PEM") {
		t.Errorf("no key: %v", err)
	}
}

// TestGitHubActions: the token of a workflow belongs to no user.
func TestGitHubActions(t *testing.T) {
	w := hubNewWorld(t)
	h := w.as(t, w.s.ActionsToken())
	info := hubMust[Info](t)(h.Info(t.Context()))
	if info.Login != "github-actions[bot]" || !info.Push || !info.Signs || !strings.Contains(info.Email, "+github-actions[bot]@") {
		t.Errorf("Info = %+v", info)
	}
	if made := hubMake(t, h, "b", "2"); !made.Verified {
		t.Errorf("Commit = %+v", made)
	}
	w.s.Fail(githubtest.Fault{Path: "/graphql", Status: 403, Times: 9})
	if who := hubMust[hubAccount](t)(w.as(t, w.s.ActionsToken()).me(t.Context())); who.login != hubActionsLogin {
		t.Errorf("without GraphQL it is %+v", who)
	}
}

// TestGitHubScopes: what a classic token lacks is known before anything is done.
func TestGitHubScopes(t *testing.T) {
	w := hubNewWorld(t)
	for _, c := range []struct {
		private bool
		scopes  []string
		missing []string
	}{
		{false, []string{"public_repo"}, nil},
		{false, []string{"repo"}, nil},
		{false, []string{"gist"}, []string{"public_repo"}},
		{false, []string{}, []string{"public_repo"}},
		{true, []string{"repo", "workflow"}, nil},
	} {
		w.repo.Set(c.private, false, false)
		h := w.as(t, w.s.ClassicToken("bot", c.scopes...))
		if info := hubMust[Info](t)(h.Info(t.Context())); !slices.Equal(info.Missing, c.missing) {
			t.Errorf("%v: Missing = %v", c.scopes, info.Missing)
		}
		tip := w.repo.Tip("main")
		_, err := h.Tree(t.Context(), NewCommit{Parent: tip, Files: []File{{Path: ".github/workflows/x.yml", Mode: "100644", Text: []byte("x")}}})
		var auth *AuthError
		if lacks := !slices.Contains(c.scopes, "workflow"); lacks != (errors.As(err, &auth) && slices.Equal(auth.Missing, []string{"workflow"})) {
			t.Errorf("%v: a workflow: %v", c.scopes, err)
		}
	}
}

func TestGitHubArchived(t *testing.T) {
	w := hubNewWorld(t)
	w.repo.Set(false, true, false)
	if info := hubMust[Info](t)(w.hub.Info(t.Context())); !info.Archived || info.Push {
		t.Errorf("Info = %+v", info)
	}
	_, err := w.hub.OpenIssue(t.Context(), "t", "", nil)
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("OpenIssue: %v", err)
	}
}

func TestGitHubAddresses(t *testing.T) {
	for _, c := range []struct{ web, api, rest, graphql string }{
		{"", "", "https://api.github.com/", "https://api.github.com/graphql"},
		{"https://github.com", "", "https://api.github.com/", "https://api.github.com/graphql"},
		{"https://git.example.com", "", "https://git.example.com/api/v3/", "https://git.example.com/api/graphql"},
		{"https://acme.ghe.com", "", "https://api.acme.ghe.com/", "https://api.acme.ghe.com/graphql"},
		{"https://x", "https://git.example.com/api/v3/", "https://git.example.com/api/v3/", "https://git.example.com/api/graphql"},
	} {
		rest, graphql, err := hubBase(Config{Web: c.web, API: c.api})
		if err != nil || rest != c.rest || graphql != c.graphql {
			t.Errorf("%s %s: %s, %s, %v", c.web, c.api, rest, graphql, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	good := secret.New("ghp_0123456789abcdef")
	for name, c := range map[string]struct {
		c    Config
		want string
	}{
		"unknown kind":         {Config{Kind: "svn"}, "gitea"},
		"no token":             {Config{Kind: GitHub, Owner: "o", Name: "n"}, "config"},
		"owner with a slash":   {Config{Kind: GitHub, Owner: "o/../x", Name: "n", Auth: Auth{Token: good}}, "no name"},
		"dots":                 {Config{Kind: GitHub, Owner: "..", Name: "n", Auth: Auth{Token: good}}, "no name"},
		"http elsewhere":       {Config{Kind: GitHub, Owner: "o", Name: "n", API: "http://git.example.com/api/v3", Auth: Auth{Token: good}}, "https"},
		"password in address":  {Config{Kind: GitHub, Owner: "o", Name: "n", API: "https://u:hunter2@git.example.com", Auth: Auth{Token: good}}, "no user"},
		"no address":           {Config{Kind: GitHub, Owner: "o", Name: "n", API: "ghp_0123456789abcdef", Auth: Auth{Token: good}}, "no address"},
		"pages without a host": {Config{Kind: GitHub, Owner: "o", Name: "n", Web: "github", Auth: Auth{Token: good}}, "no address"},
	} {
		_, err := Open(t.Context(), c.c)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), good.Reveal()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type hubRoundTrip func(*http.Request) (*http.Response, error)

func (f hubRoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestTransportHidesTokens: not even an error from below shows one.
func TestTransportHidesTokens(t *testing.T) {
	c := hubToken("ghp_0123456789abcdef")
	c.HTTP = hubRoundTrip(func(r *http.Request) (*http.Response, error) {
		return nil, errors.New("proxy says: " + r.Header.Get("Authorization"))
	})
	_, err := hubAt(t, c, "http://127.0.0.1:1", "o/n").Comments(t.Context(), 1)
	if err == nil || strings.Contains(err.Error(), "0123456789") || !strings.Contains(err.Error(), "redacted") {
		t.Errorf("%v", err)
	}
}

// hubEndless is a body without an end.
type hubEndless struct{}

func (hubEndless) Read(p []byte) (int, error) { return len(p), nil }
func (hubEndless) Close() error               { return nil }

// TestTransportLosesPatience: a forge that does not answer is asked again.
func TestTransportLosesPatience(t *testing.T) {
	w := hubNewWorld(t)
	w.hub.t.patience = 300 * time.Millisecond
	w.s.Fail(githubtest.Fault{Delay: time.Minute})
	if _, err := w.hub.Info(t.Context()); err != nil {
		t.Error(err)
	}
	w.s.Fail(githubtest.Fault{Delay: time.Minute, Method: "POST"})
	if _, err := w.hub.AddComment(t.Context(), 1, "x"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a comment: %v", err)
	}
}

func TestTransportBoundsAnswers(t *testing.T) {
	asked := 0
	c := hubToken("ghp_0123456789abcdef")
	c.HTTP = hubRoundTrip(func(r *http.Request) (*http.Response, error) {
		asked++
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: hubEndless{}, Request: r}, nil
	})
	_, err := hubAt(t, c, "http://127.0.0.1:1", "o/n").Comments(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
