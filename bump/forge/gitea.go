package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"
)

// Bounds of what is read page by page.
const (
	giteaPage  = 50 // what Gitea gives at most, unless its MAX_RESPONSE_ITEMS says otherwise
	giteaPages = 40
)

// gitea is a repository on Gitea or Forgejo, which speak the same API
// (https://docs.gitea.com/api).
type gitea struct {
	c    Config
	base *url.URL // of the site, without /api/v1
}

// newGitea returns the repository that c names on Gitea or Forgejo. It asks
// the forge nothing yet. c.API may be the site, as in https://git.example.org/gitea,
// or its API, with /api/v1.
func newGitea(c Config) (Forge, error) {
	base, err := apiBase(c.API, c.Web, "/api/v1")
	if err != nil {
		return nil, err
	}
	if c.Owner == "" || c.Name == "" || strings.Contains(c.Owner+c.Name, "/") {
		return nil, fmt.Errorf("open %.100q on gitea: a repository there is OWNER/NAME", c.Owner+"/"+c.Name)
	}
	if c.HTTP == nil {
		c.HTTP = defaultHTTP()
	}
	return &gitea{c: c, base: base}, nil
}

func (g *gitea) path() string { return g.c.Owner + "/" + g.c.Name }

// begin returns the carrier of one call and the SDK's client over it. The
// client is made anew for each call, since its context is the client's; it asks
// for no version, which Forgejo writes in a way of its own, and each method
// used here is older than any Gitea that is still kept up.
func (g *gitea) begin(ctx context.Context, doing string) (*sdk.Client, *sdkCall, error) {
	call := g.c.newCall(doing, g.base, func(h http.Header) {
		if !g.c.Auth.Token.Empty() {
			h.Set("Authorization", "token "+g.c.Auth.Token.Reveal())
		}
	})
	client, err := sdk.NewClient(g.base.String(), sdk.SetGiteaVersion(""), sdk.SetHTTPClient(call.client()), sdk.SetContext(ctx))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", doing, err)
	}
	return client, call, nil
}

// pages calls list for one page after another until there are no more, list
// returns no answer, or there were too many. Not every list of Gitea has a Link
// header, but then it tells how many there are in all, and a server may give
// fewer on a page than it was asked for.
func pages(list func(sdk.ListOptions) (n int, resp *sdk.Response, err error)) error {
	seen := 0
	for page := 1; page <= giteaPages; page++ {
		n, resp, err := list(sdk.ListOptions{Page: page, PageSize: giteaPage})
		if err != nil || n == 0 || resp == nil {
			return err
		}
		seen += n
		total, terr := strconv.Atoi(resp.Header.Get("X-Total-Count"))
		if resp.NextPage == 0 && (terr != nil && n < giteaPage || terr == nil && seen >= total) {
			return nil
		}
	}
	return nil
}

// Info implements Forge.
func (g *gitea) Info(ctx context.Context) (Info, error) {
	doing := "look at " + g.path()
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Info{}, err
	}
	r, _, err := client.GetRepo(g.c.Owner, g.c.Name)
	if err != nil {
		return Info{}, g.fault(doing, err)
	}
	info := Info{
		Owner: g.c.Owner, Name: r.Name, Default: r.DefaultBranch, Page: r.HTMLURL, Clone: r.CloneURL,
		Push: r.Permissions != nil && r.Permissions.Push, Archived: r.Archived,
		Requests: r.HasPullRequests, Issues: r.HasIssues && r.ExternalTracker == nil, AutoMerge: true,
	}
	if r.Owner != nil && r.Owner.UserName != "" {
		info.Owner = r.Owner.UserName
	}
	if g.c.Auth.Token.Empty() {
		return info, nil
	}
	me, _, err := client.GetMyUserInfo()
	var refused *refusal
	switch {
	case err == nil:
		info.Login, info.Email = me.UserName, me.Email
	case errors.As(err, &refused) && refused.status == http.StatusForbidden && len(refused.scopes) > 0:
		// The refusal tells what the token may do, and no other answer does.
		info.Missing = missingScopes(refused.has)
	default:
		return Info{}, g.fault("ask whose token it is", err)
	}
	return info, nil
}

// missingScopes returns what a token with scopes lacks for a bump; nil where
// scopes are unknown.
func missingScopes(scopes []string) []string {
	if len(scopes) == 0 || slices.Contains(scopes, "all") {
		return nil
	}
	missing := []string{"read:user"}
	for _, want := range []string{"write:repository", "write:issue"} {
		if !slices.Contains(scopes, want) {
			missing = append(missing, want)
		}
	}
	return missing
}

// login returns who acts.
func (g *gitea) login(client *sdk.Client) (string, error) {
	me, _, err := client.GetMyUserInfo()
	if err != nil {
		return "", err
	}
	return me.UserName, nil
}

// Diff implements Forge.
func (g *gitea) Diff(ctx context.Context, number int64, limit int) (string, error) {
	doing := fmt.Sprintf("read the diff of %s#%d", g.path(), number)
	_, call, err := g.begin(ctx, doing)
	if err != nil {
		return "", err
	}
	at := g.base.JoinPath("api/v1/repos", g.c.Owner, g.c.Name, "pulls", fmt.Sprintf("%d.diff", number))
	text, err := call.text(ctx, at, limit)
	return text, g.fault(doing, err)
}

// text gets at, cut at limit bytes.
func (s *sdkCall) text(ctx context.Context, at *url.URL, limit int) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", err
	}
	resp, err := s.client().Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)))
	return string(data), err
}

// Fork implements Forge.
func (g *gitea) Fork(ctx context.Context, owner string) (Forge, error) {
	doing := "fork " + g.path()
	client, call, err := g.begin(ctx, doing)
	if err != nil {
		return nil, err
	}
	me, err := g.login(client)
	if err != nil {
		return nil, g.fault(doing, err)
	}
	if owner == "" {
		owner = me
	}
	fork, err := g.findFork(client, owner)
	if err != nil {
		return nil, g.fault(doing, err)
	}
	if fork == nil {
		opt := sdk.CreateForkOption{}
		if !strings.EqualFold(owner, me) {
			opt.Organization = &owner
		}
		if fork, _, err = client.CreateFork(g.c.Owner, g.c.Name, opt); err != nil {
			return nil, g.forkFault(doing, owner, err)
		}
	}
	if fork == nil || fork.Owner == nil || !strings.EqualFold(fork.Owner.UserName, owner) {
		return nil, fmt.Errorf("%s: the forge made a fork that does not belong to %s", doing, owner)
	}
	c := g.c
	c.Owner, c.Name = fork.Owner.UserName, fork.Name
	if err := g.awaitFork(ctx, client, call, c); err != nil {
		return nil, g.fault(doing, err)
	}
	return &gitea{c: c, base: g.base}, nil
}

// findFork returns the fork that owner has, or nil.
func (g *gitea) findFork(client *sdk.Client, owner string) (found *sdk.Repository, err error) {
	err = pages(func(o sdk.ListOptions) (int, *sdk.Response, error) {
		forks, resp, err := client.ListForks(g.c.Owner, g.c.Name, sdk.ListForksOptions{ListOptions: o})
		if err != nil {
			return 0, nil, err
		}
		for _, f := range forks {
			if f != nil && f.Owner != nil && strings.EqualFold(f.Owner.UserName, owner) {
				found = f
				return 0, nil, nil
			}
		}
		return len(forks), resp, nil
	})
	return found, err
}

func (g *gitea) forkFault(doing, owner string, err error) error {
	var r *refusal
	if errors.As(err, &r) && r.status == http.StatusConflict {
		return fmt.Errorf("%s: %s has another repository named %s, which is no fork of it (rename that one, or set fork to another owner): %w", doing, owner, g.c.Name, ErrExists)
	}
	return g.fault(doing, err)
}

// awaitFork waits until the fork that c names has been filled.
func (g *gitea) awaitFork(ctx context.Context, client *sdk.Client, call *sdkCall, c Config) error {
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 15*time.Second) {
		r, _, err := client.GetRepo(c.Owner, c.Name)
		var refused *refusal
		if err != nil && (!errors.As(err, &refused) || refused.status != http.StatusNotFound) {
			return err
		}
		if err == nil && !r.Empty {
			if r.Permissions == nil || !r.Permissions.Push {
				return fmt.Errorf("the token may not push to %s/%s: %w", c.Owner, c.Name, ErrUnsupported)
			}
			return nil
		}
		if call.now().Add(wait).After(call.until) {
			return fmt.Errorf("%s/%s is still empty: the forge is slow to fill it (try again later)", c.Owner, c.Name)
		}
		if err := call.sleep(ctx, wait); err != nil {
			return err
		}
	}
}
