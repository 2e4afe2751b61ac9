package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/bradleyfalzon/ghinstallation/v2"
	appgithub "github.com/google/go-github/v88/github"
	"github.com/google/go-github/v92/github"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// hubAuth puts who acts into requests.
type hubAuth interface {
	http.RoundTripper
	// bot reports whether an App acts, the one of GitHub Actions included:
	// GitHub signs commits of theirs.
	bot() bool
	// may returns whether an App may push, and which permissions it lacks; push
	// is what holds if that is unknown.
	may(push bool) (bool, []string)
	// slug is the name of the App; false if a token acts.
	slug(ctx context.Context, h *hub) (string, bool, error)
	// now is the token that is valid now.
	now(ctx context.Context) (secret.Secret, error)
}

// GitToken returns a token with which git reads the repository, as the password
// of x-access-token: that of the config, or one of the App's, which is good for
// an hour.
func (h *hub) GitToken(ctx context.Context) (secret.Secret, error) {
	token, err := h.auth.now(h.t.call(ctx))
	if err != nil {
		return secret.Secret{}, h.fail("get a token to read "+h.repo()+" by git", err)
	}
	return token, nil
}

func newHubAuth(c Config, t *transport, base string) (hubAuth, error) {
	if c.Auth.AppID == 0 {
		if c.Auth.Token.Empty() {
			return nil, &AuthError{Doing: "open " + c.Owner + "/" + c.Name + " on GitHub", Bad: true,
				Detail: "there is none", Hint: "name a token or an App in the config"}
		}
		return &tokenAuth{t, c.Auth.Token}, nil
	}
	apps, err := ghinstallation.NewAppsTransport(t, c.Auth.AppID, []byte(c.Auth.PrivateKey.Reveal()))
	if err != nil {
		// The parser's error may quote what it was given.
		return nil, fmt.Errorf("open %s/%s on GitHub: the private key of App %d cannot be read: it is no RSA key in PEM (take the file that GitHub offered when the key was made, whole)", c.Owner, c.Name, c.Auth.AppID)
	}
	apps.BaseURL = strings.TrimRight(base, "/")
	return &appAuth{t: t, apps: apps, id: c.Auth.AppID, owner: c.Owner, name: c.Name, installation: c.Auth.InstallationID}, nil
}

// tokenAuth is a token: of a person, fine-grained or classic, of GitHub
// Actions, or of an App's installation that somebody else has asked for.
type tokenAuth struct {
	t     *transport
	token secret.Secret
}

func (a *tokenAuth) RoundTrip(req *http.Request) (*http.Response, error) {
	return hubAuthorized(a.t, req, a.token.Reveal())
}

// hubAuthorized does a copy of req, as its contract asks, with the token in it.
func hubAuthorized(t *transport, req *http.Request, token string) (*http.Response, error) {
	if !t.own(req.URL) {
		return t.RoundTrip(req) // which refuses
	}
	r := req.Clone(req.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.RoundTrip(r)
}

// bot goes by the prefix: ghs_ is for "GitHub App installation access tokens",
// of which the token of Actions is one.
func (a *tokenAuth) bot() bool { return strings.HasPrefix(a.token.Reveal(), "ghs_") }

func (a *tokenAuth) may(bool) (bool, []string) { return true, nil }

func (a *tokenAuth) slug(context.Context, *hub) (string, bool, error) { return "", false, nil }

func (a *tokenAuth) now(context.Context) (secret.Secret, error) { return a.token, nil }

// appAuth is an App: its key signs for a token of one installation, which lasts
// an hour and is renewed in time. The token is good for one repository.
type appAuth struct {
	t           *transport
	apps        *ghinstallation.AppsTransport
	id          int64
	owner, name string

	mu           sync.Mutex // guards what follows
	installation int64
	tokens       *ghinstallation.Transport
	hidden       string // the token that is hidden in errors already
}

func (a *appAuth) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := a.token(req.Context())
	if err != nil {
		return nil, err
	}
	return hubAuthorized(a.t, req, token)
}

func (a *appAuth) token(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ctx = repeatable(ctx) // one token too many does no harm
	if a.tokens == nil {
		if err := a.findInstallation(ctx); err != nil {
			return "", err
		}
		a.tokens = ghinstallation.NewFromAppsTransport(a.apps, a.installation)
		a.tokens.InstallationTokenOptions = &appgithub.InstallationTokenOptions{Repositories: []string{a.name}}
	}
	token, err := a.tokens.Token(ctx)
	if err != nil {
		return "", a.explain(err)
	}
	if token != a.hidden {
		a.t.hide(secret.New(token))
		a.hidden = token
	}
	return token, nil
}

func (a *appAuth) now(ctx context.Context) (secret.Secret, error) {
	token, err := a.token(ctx)
	return secret.New(token), err
}

// appClient is a client that acts as the App itself, of no installation.
func (a *appAuth) appClient() (*github.Client, error) {
	base := a.apps.BaseURL + "/"
	return github.NewClient(github.WithHTTPClient(a.t.client(a.apps)), github.WithURLs(&base, &base),
		github.WithUserAgent(userAgent), github.WithDisableRateLimitCheck())
}

func (a *appAuth) findInstallation(ctx context.Context) error {
	if a.installation != 0 {
		return nil
	}
	client, err := a.appClient()
	if err != nil {
		return err
	}
	found, _, err := client.Apps.GetRepositoryInstallation(ctx, a.owner, a.name)
	if err != nil {
		return a.explain(err)
	}
	a.installation = found.GetID()
	return nil
}

// explain says what is wrong with an App that gets no token.
func (a *appAuth) explain(err error) error {
	code, detail := hubStatus(err), ""
	var token *ghinstallation.HTTPError
	if code == 0 && errors.As(err, &token) && token.Response != nil {
		code = token.Response.StatusCode
		if answer := github.CheckResponse(token.Response); answer != nil {
			err = answer
		}
	}
	var answer *github.ErrorResponse
	if errors.As(err, &answer) {
		detail = a.t.detail(hubText(answer))
	}
	auth := &AuthError{Doing: fmt.Sprintf("act as App %d on %s/%s", a.id, a.owner, a.name), Detail: detail}
	switch code {
	case http.StatusUnauthorized:
		auth.Bad = true
		auth.Hint = "the App's number and its private key must belong together, the key must not have been deleted, and the clock must be right"
	case http.StatusNotFound, http.StatusUnprocessableEntity:
		auth.Missing = []string{"an installation on the repository"}
		auth.Hint = "install the App there, on the page of its settings"
	case http.StatusForbidden:
		auth.Hint = "the installation may be suspended"
	default:
		return err
	}
	return auth
}

func (a *appAuth) bot() bool { return true }

func (a *appAuth) may(push bool) (bool, []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tokens == nil {
		return push, nil
	}
	p, err := a.tokens.Permissions()
	if err != nil {
		return push, nil
	}
	var missing []string
	for _, need := range []struct{ name, has string }{
		{"contents", p.GetContents()}, {"pull_requests", p.GetPullRequests()},
	} {
		if need.has != "write" && need.has != "admin" {
			missing = append(missing, need.name+"=write")
		}
	}
	return p.GetContents() == "write", missing
}

func (a *appAuth) slug(ctx context.Context, h *hub) (string, bool, error) {
	client, err := a.appClient()
	if err != nil {
		return "", true, err
	}
	app, _, err := client.Apps.Get(ctx, "")
	if err != nil {
		return "", true, h.fail("ask GitHub which App this is", a.explain(err))
	}
	return app.GetSlug(), true, nil
}
