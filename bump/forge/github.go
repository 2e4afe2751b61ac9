package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/google/go-github/v92/github"
)

// hub is a repository on GitHub or GitHub Enterprise.
type hub struct {
	client      *github.Client
	t           *transport
	auth        hubAuth
	conf        Config
	owner, name string
	graphql     string // address
	upstream    *hub   // whose fork this is, if Fork made it

	mu    sync.Mutex // guards what follows, all of it answers that stay
	who   *hubAccount
	roots map[string]string       // trees, by commit
	trees map[string]*github.Tree // by id
	scope *hubScopes
}

// hubAccount is who acts.
type hubAccount struct {
	login string
	id    int64 // 0: unknown
}

// hubPerPage is the most that GitHub gives at once; hubMaxPages bounds every listing.
const (
	hubPerPage  = 100
	hubMaxPages = 30
)

var (
	hubName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)
	hubID   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// hubSlug reports whether s may be an owner's or a repository's name. GitHub's
// library puts names into addresses as they are.
func hubSlug(s string) bool { return hubName.MatchString(s) && s != "." && s != ".." }

// newGitHub returns the repository that c names, on GitHub or GitHub Enterprise.
func newGitHub(c Config) (Forge, error) {
	if !hubSlug(c.Owner) || !hubSlug(c.Name) {
		return nil, fmt.Errorf("open %q/%q on GitHub: that is no name of a repository (OWNER/NAME)", c.Owner, c.Name)
	}
	base, graphql, err := hubBase(c)
	if err != nil {
		return nil, err
	}
	t, err := newTransport(c, base)
	if err != nil {
		return nil, err
	}
	return openHub(c, t, base, graphql)
}

func openHub(c Config, t *transport, base, graphql string) (*hub, error) {
	h := &hub{t: t, conf: c, owner: c.Owner, name: c.Name, graphql: graphql, roots: map[string]string{}, trees: map[string]*github.Tree{}}
	var err error
	if h.auth, err = newHubAuth(c, t, base); err != nil {
		return nil, err
	}
	// The library's own check of limits goes by the machine's clock and is
	// about what has been waited for here already.
	h.client, err = github.NewClient(github.WithHTTPClient(t.client(h.auth)), github.WithURLs(&base, &base),
		github.WithUserAgent(userAgent), github.WithDisableRateLimitCheck())
	if err != nil {
		return nil, fmt.Errorf("open %s/%s on GitHub: %w", c.Owner, c.Name, err)
	}
	return h, nil
}

// hubBase returns the addresses of the two APIs. GitHub Enterprise Server has
// them below its pages, GitHub and GitHub Enterprise Cloud with data residency
// on a host api. of their own.
func hubBase(c Config) (rest, graphql string, err error) {
	rest = c.API
	if rest == "" {
		web := c.Web
		if web == "" {
			web = "https://github.com"
		}
		u, err := url.Parse(web)
		if err != nil || u.Host == "" {
			return "", "", fmt.Errorf("open %s/%s on GitHub: %q is no address of its pages (e.g. https://github.com)", c.Owner, c.Name, c.Web)
		}
		switch host := strings.ToLower(u.Host); {
		case host == "github.com" || host == "www.github.com":
			rest = "https://api.github.com"
		case strings.HasSuffix(host, ".ghe.com"):
			rest = u.Scheme + "://api." + strings.TrimPrefix(host, "api.")
		default:
			rest = u.Scheme + "://" + u.Host + "/api/v3"
		}
	}
	rest = strings.TrimRight(rest, "/")
	graphql = rest + "/graphql"
	if under, ok := strings.CutSuffix(rest, "/api/v3"); ok {
		graphql = under + "/api/graphql"
	}
	return rest + "/", graphql, nil
}

func (h *hub) repo() string { return h.owner + "/" + h.name }

// Info asks for the repository and for who acts.
func (h *hub) Info(ctx context.Context) (Info, error) {
	ctx = h.t.call(ctx)
	doing := "look at " + h.repo()
	r, res, err := h.client.Repositories.Get(ctx, h.owner, h.name)
	if err != nil {
		return Info{}, h.fail(doing, err)
	}
	if !hubSlug(r.GetOwner().GetLogin()) || !hubSlug(r.GetName()) {
		return Info{}, fmt.Errorf("%s: GitHub's answer names no repository", doing)
	}
	who, err := h.me(ctx)
	if err != nil {
		return Info{}, err
	}
	scope := hubScopesOf(res.Header)
	h.mu.Lock()
	h.scope = scope
	h.mu.Unlock()
	i := Info{
		Owner: r.GetOwner().GetLogin(), Name: r.GetName(), Default: r.GetDefaultBranch(),
		Page: r.GetHTMLURL(), Clone: r.GetCloneURL(),
		Push: r.GetPermissions().GetPush(), Archived: r.GetArchived(),
		Requests: true, Issues: r.GetHasIssues(), AutoMerge: r.GetAllowAutoMerge(),
		Login: who.login, Email: h.email(who), Signs: h.auth.bot(),
	}
	i.Missing = scope.missing(r.GetPrivate())
	if h.auth.bot() {
		// What the repository says of permissions is about people; an App has
		// its own.
		i.Push, i.Missing = h.auth.may(i.Push)
	}
	i.Push = i.Push && !i.Archived
	return i, nil
}

// email is the address that GitHub itself gives to commits of who hides theirs.
func (h *hub) email(who hubAccount) string {
	if who.id == 0 || who.login == "" {
		return ""
	}
	host := "github.com"
	if at := h.t.base.Hostname(); at != "api.github.com" {
		host = strings.TrimPrefix(at, "api.")
	}
	return fmt.Sprintf("%d+%s@users.noreply.%s", who.id, who.login, host)
}

// hubActionsLogin is who the token of GitHub Actions acts as.
const hubActionsLogin = "github-actions[bot]"

// me returns who acts, and asks but once.
func (h *hub) me(ctx context.Context) (hubAccount, error) {
	h.mu.Lock()
	who := h.who
	h.mu.Unlock()
	if who != nil {
		return *who, nil
	}
	found, err := h.findMe(ctx)
	if err != nil {
		return hubAccount{}, err
	}
	h.mu.Lock()
	h.who = &found
	h.mu.Unlock()
	return found, nil
}

func (h *hub) findMe(ctx context.Context) (hubAccount, error) {
	if slug, ok, err := h.auth.slug(ctx, h); err != nil {
		return hubAccount{}, err
	} else if ok {
		return h.bot(ctx, slug+"[bot]"), nil
	}
	u, _, err := h.client.Users.Get(ctx, "")
	if err == nil {
		return hubAccount{u.GetLogin(), u.GetID()}, nil
	}
	err = h.fail("ask GitHub whose token this is", err)
	var auth *AuthError
	if !errors.As(err, &auth) || auth.Bad {
		return hubAccount{}, err
	}
	// A token of an installation belongs to no user. GraphQL knows the bot.
	var viewer struct {
		Viewer struct {
			Login      string `json:"login"`
			DatabaseID int64  `json:"databaseId"`
		} `json:"viewer"`
	}
	if h.query(repeatable(ctx), "query{viewer{login databaseId}}", nil, &viewer) == nil && viewer.Viewer.Login != "" {
		return hubAccount{viewer.Viewer.Login, viewer.Viewer.DatabaseID}, nil
	}
	return h.bot(ctx, hubActionsLogin), nil
}

// bot looks up the number of a bot's account, which its address has in it; 0 if
// GitHub does not tell.
func (h *hub) bot(ctx context.Context, login string) hubAccount {
	u, _, err := h.client.Users.Get(ctx, url.PathEscape(login))
	if err != nil {
		return hubAccount{login: login}
	}
	return hubAccount{login, u.GetID()}
}

// hubStatus returns the HTTP status of err, 0 if GitHub has not answered.
func hubStatus(err error) int {
	var answer *github.ErrorResponse
	if errors.As(err, &answer) && answer.Response != nil {
		return answer.Response.StatusCode
	}
	return 0
}

// hubSays reports whether GitHub's error speaks of one of words, in any case.
func hubSays(err error, words ...string) bool {
	var answer *github.ErrorResponse
	if !errors.As(err, &answer) {
		return false
	}
	text := strings.ToLower(hubText(answer))
	for _, word := range words {
		if strings.Contains(text, strings.ToLower(word)) {
			return true
		}
	}
	return false
}

// hubUnsure reports whether err leaves open if a change was made: the connection
// broke, or the forge failed.
func hubUnsure(err error) bool {
	code := hubStatus(err)
	var limit *LimitError
	return err != nil && (code == 0 || code >= http.StatusInternalServerError) && !errors.As(err, &limit)
}
