package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "gitlab.com/gitlab-org/api/client-go/v2"
)

// Bounds of what is read page by page; 100 is the most that GitLab gives.
const (
	gitlabPage  = 100
	gitlabPages = 20
)

// jobToken begins the token of a CI job (https://docs.gitlab.com/security/tokens/).
const jobToken = "glcbt-"

// gitlab is a project on GitLab (https://docs.gitlab.com/api/rest/).
type gitlab struct {
	c    Config
	base *url.URL // of the site, without /api/v4
}

// newGitLab returns the project that c names on GitLab; c.Owner is a user or a
// path of groups. It asks the forge nothing yet. c.API may be the site, as in
// https://example.org/gitlab, or its API, with /api/v4.
func newGitLab(c Config) (Forge, error) {
	base, err := apiBase(c.API, c.Web, "/api/v4")
	if err != nil {
		return nil, err
	}
	if c.Owner == "" || c.Name == "" || strings.Contains(c.Name, "/") {
		return nil, fmt.Errorf("open %.100q on gitlab: a project there is GROUP/NAME or GROUP/SUBGROUP/NAME", c.Owner+"/"+c.Name)
	}
	if c.HTTP == nil {
		c.HTTP = defaultHTTP()
	}
	return &gitlab{c: c, base: base}, nil
}

func (g *gitlab) path() string { return g.c.Owner + "/" + g.c.Name }

func (g *gitlab) job() bool { return strings.HasPrefix(g.c.Auth.Token.Reveal(), jobToken) }

// begin returns the carrier of one call and the client library over it. The
// library's own retries and limiter are off: the carrier has both.
func (g *gitlab) begin(ctx context.Context, doing string) (*sdk.Client, *sdkCall, error) {
	call := g.c.newCall(doing, g.base, func(h http.Header) {
		switch {
		case g.c.Auth.Token.Empty():
		case g.job():
			h.Set("Job-Token", g.c.Auth.Token.Reveal())
		default: // of OAuth, and of access tokens just as well
			h.Set("Authorization", "Bearer "+g.c.Auth.Token.Reveal())
		}
	})
	client, err := sdk.NewAuthSourceClient(sdk.Unauthenticated{}, sdk.WithBaseURL(g.base.String()), sdk.WithHTTPClient(call.client()), sdk.WithoutRetries(),
		sdk.WithCustomLimiter(unlimited{}), sdk.WithRequestOptions(sdk.WithContext(ctx)))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", doing, err)
	}
	return client, call, nil
}

// unlimited is no limiter: the library would slow down by what the headers say
// of a whole minute, although a bump asks little.
type unlimited struct{}

func (unlimited) Wait(ctx context.Context) error { return ctx.Err() }

// given returns what the library read. An answer that is the word null is none.
func given[T any](v *T, _ *sdk.Response, err error) (*T, error) {
	if err == nil && v == nil {
		err = errors.New("the forge answered with nothing")
	}
	return v, err
}

// labPages calls list for one page after another, by GitLab's offsets.
func labPages(list func(sdk.ListOptions) (*sdk.Response, error)) error {
	for page := int64(1); page > 0 && page <= gitlabPages; {
		resp, err := list(sdk.ListOptions{Page: page, PerPage: gitlabPage})
		if err != nil || resp == nil || resp.NextPage <= page {
			return err
		}
		page = resp.NextPage
	}
	return nil
}

// Info implements Forge.
func (g *gitlab) Info(ctx context.Context) (Info, error) {
	doing := "look at " + g.path()
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Info{}, err
	}
	p, err := given(client.Projects.GetProject(g.path(), nil))
	if err != nil {
		return Info{}, g.fault(doing, err)
	}
	info := Info{
		Owner: g.c.Owner, Name: g.c.Name, Default: p.DefaultBranch, Page: p.WebURL, Clone: p.HTTPURLToRepo, Push: mayPush(p),
		Archived: p.Archived, Requests: p.MergeRequestsAccessLevel != sdk.DisabledAccessControl,
		Issues: p.IssuesAccessLevel != sdk.DisabledAccessControl, AutoMerge: p.OnlyAllowMergeIfPipelineSucceeds,
	}
	if i := strings.LastIndexByte(p.PathWithNamespace, '/'); i > 0 {
		info.Owner, info.Name = p.PathWithNamespace[:i], p.PathWithNamespace[i+1:]
	}
	if g.c.Auth.Token.Empty() {
		return info, nil
	}
	if g.job() {
		return Info{}, g.fault("use the token of a CI job", &refusal{status: http.StatusForbidden})
	}
	me, err := given(client.Users.CurrentUser())
	if err != nil {
		return Info{}, g.fault("ask whose token it is", err)
	}
	info.Login, info.Email = me.Username, me.Email
	info.Missing, err = g.missing(client)
	return info, err
}

// missing names the scope that the token lacks. api holds all others; a token
// of OAuth does not tell.
func (g *gitlab) missing(client *sdk.Client) ([]string, error) {
	token, err := given(client.PersonalAccessTokens.GetSinglePersonalAccessToken())
	var r *refusal
	if errors.As(err, &r) && r.status != http.StatusUnauthorized {
		return nil, nil
	}
	if err != nil {
		return nil, g.fault("ask what the token may do", err)
	}
	if len(token.Scopes) > 0 && !slices.Contains(token.Scopes, "api") {
		return []string{"api"}, nil
	}
	return nil, nil
}

// mayPush reports whether the token's user is a developer or more.
func mayPush(p *sdk.Project) bool {
	if p.Permissions == nil {
		return false
	}
	own, group := p.Permissions.ProjectAccess, p.Permissions.GroupAccess
	return own != nil && own.AccessLevel >= sdk.DeveloperPermissions || group != nil && group.AccessLevel >= sdk.DeveloperPermissions
}

// Diff implements Forge.
func (g *gitlab) Diff(ctx context.Context, number int64, limit int) (string, error) {
	doing := fmt.Sprintf("read the diff of %s!%d", g.path(), number)
	_, call, err := g.begin(ctx, doing)
	if err != nil {
		return "", err
	}
	at := *g.base
	at.Path = g.base.Path + "/api/v4/projects/" + g.path() + fmt.Sprintf("/merge_requests/%d/raw_diffs", number)
	at.RawPath = g.base.EscapedPath() + "/api/v4/projects/" + url.PathEscape(g.path()) + fmt.Sprintf("/merge_requests/%d/raw_diffs", number)
	text, err := call.text(ctx, &at, limit)
	return text, g.fault(doing, err)
}

// Fork implements Forge.
func (g *gitlab) Fork(ctx context.Context, owner string) (Forge, error) {
	doing := "fork " + g.path()
	client, call, err := g.begin(ctx, doing)
	if err != nil {
		return nil, err
	}
	if owner == "" {
		me, err := given(client.Users.CurrentUser())
		if err != nil {
			return nil, g.fault(doing, err)
		}
		owner = me.Username
	}
	fork, err := g.findFork(client, owner)
	if err != nil {
		return nil, g.fault(doing, err)
	}
	if fork == nil {
		if fork, err = given(client.Projects.ForkProject(g.path(), &sdk.ForkProjectOptions{NamespacePath: &owner})); err != nil {
			var r *refusal
			if errors.As(err, &r) && r.status == http.StatusConflict {
				return nil, fmt.Errorf("%s: %s has another project named %s, which is no fork of it (rename that one, or set fork to another owner): %w", doing, owner, g.c.Name, ErrExists)
			}
			return nil, g.fault(doing, err)
		}
	}
	if fork, err = g.awaitFork(ctx, client, call, fork.ID); err != nil {
		return nil, g.fault(doing, err)
	}
	i := strings.LastIndexByte(fork.PathWithNamespace, '/')
	if i < 1 || !strings.EqualFold(fork.PathWithNamespace[:i], owner) {
		return nil, fmt.Errorf("%s: the forge made a fork that does not belong to %s", doing, owner)
	}
	c := g.c
	c.Owner, c.Name = fork.PathWithNamespace[:i], fork.PathWithNamespace[i+1:]
	return &gitlab{c: c, base: g.base}, nil
}

// findFork returns the fork that owner has, or nil.
func (g *gitlab) findFork(client *sdk.Client, owner string) (found *sdk.Project, err error) {
	err = labPages(func(o sdk.ListOptions) (*sdk.Response, error) {
		forks, resp, err := client.Projects.ListProjectForks(g.path(), &sdk.ListProjectsOptions{ListOptions: o})
		if err != nil {
			return nil, err
		}
		for _, f := range forks {
			if f == nil {
				continue
			}
			if i := strings.LastIndexByte(f.PathWithNamespace, '/'); i > 0 && strings.EqualFold(f.PathWithNamespace[:i], owner) {
				found = f
				return nil, nil
			}
		}
		return resp, nil
	})
	return found, err
}

// awaitFork waits until GitLab has filled a fork, which it does behind the
// request.
func (g *gitlab) awaitFork(ctx context.Context, client *sdk.Client, call *sdkCall, id int64) (*sdk.Project, error) {
	for wait := 500 * time.Millisecond; ; wait = min(2*wait, 15*time.Second) {
		p, err := given(client.Projects.GetProject(id, nil))
		if err != nil {
			return nil, err
		}
		switch p.ImportStatus {
		case "failed":
			return nil, fmt.Errorf("the forge could not fill %s: %s", p.PathWithNamespace, oneLine(p.ImportError))
		case "none", "finished", "":
			if !mayPush(p) {
				return nil, fmt.Errorf("the token may not push to %s: %w", p.PathWithNamespace, ErrUnsupported)
			}
			return p, nil
		}
		if call.now().Add(wait).After(call.until) {
			return nil, fmt.Errorf("%s is still empty: the forge is slow to fill it (try again later)", p.PathWithNamespace)
		}
		if err := call.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}
