package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"
)

// giteaDraft is what makes a draft of a pull request on Gitea: a word before
// its title (WORK_IN_PROGRESS_PREFIXES of its app.ini, which knows both
// spellings unless it was changed).
const giteaDraft = "WIP: "

var giteaDrafts = []string{"WIP:", "[WIP]"}

// bareTitle takes the words off that make a draft.
func bareTitle(title string, words []string) string {
	for again := true; again; {
		again = false
		for _, w := range words {
			if len(title) >= len(w) && strings.EqualFold(title[:len(w)], w) {
				title, again = strings.TrimSpace(title[len(w):]), true
			}
		}
	}
	return title
}

func (g *gitea) pull(p *sdk.PullRequest) Pull {
	out := Pull{
		Number: p.Index, Page: p.HTMLURL, Title: p.Title, Body: p.Body, State: Opened, Draft: p.Draft,
		Author: giteaName(p.Poster), Created: deref(p.Created), Updated: deref(p.Updated),
	}
	if p.Draft {
		out.Title = bareTitle(p.Title, giteaDrafts)
	}
	if p.Base != nil {
		out.Base = p.Base.Ref
	}
	if p.Head != nil {
		// Ref becomes refs/pull/N/head when the branch is deleted; the name stays.
		out.Head, out.HeadCommit = p.Head.Name, p.Head.Sha
		if p.Head.Repository != nil {
			out.HeadRepo = p.Head.Repository.FullName
		}
	}
	switch {
	case p.HasMerged:
		out.State, out.Ended, out.Merger = Merged, deref(p.Merged), giteaName(p.MergedBy)
		if p.MergedCommitID != nil {
			out.MergeCommit = *p.MergedCommitID
		}
	case p.State == sdk.StateClosed:
		out.State, out.Ended = Closed, deref(p.Closed)
	}
	for _, l := range p.Labels {
		if l != nil {
			out.Labels = append(out.Labels, l.Name)
		}
	}
	out.Assignees, out.Reviewers = giteaNames(p.Assignees), giteaNames(p.RequestedReviewers)
	for _, t := range p.RequestedReviewersTeams {
		if t != nil {
			out.Reviewers = append(out.Reviewers, g.c.Owner+"/"+t.Name)
		}
	}
	return out
}

func deref(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func giteaName(u *sdk.User) string {
	if u == nil {
		return ""
	}
	return u.UserName
}

func giteaNames(users []*sdk.User) (names []string) {
	for _, u := range users {
		if u != nil {
			names = append(names, u.UserName)
		}
	}
	return names
}

// Pulls implements Forge. Gitea's list knows neither heads nor bases, so that
// it is read, the newest first, and chosen from here; of very many requests the
// oldest are not seen.
func (g *gitea) Pulls(ctx context.Context, q Query) ([]Pull, error) {
	doing := "list the pull requests of " + g.path()
	client, call, err := g.begin(ctx, doing)
	if err != nil {
		return nil, err
	}
	found, err := g.pulls(client, q)
	if err != nil {
		return nil, g.fault(doing, err)
	}
	for i := range found {
		if q.Head != "" && found[i].State == Opened {
			if found[i], err = g.settled(ctx, client, call, found[i].Number); err != nil {
				return nil, g.fault(doing, err)
			}
		}
	}
	return found, nil
}

func (g *gitea) pulls(client *sdk.Client, q Query) (found []Pull, err error) {
	state := map[string]sdk.StateType{"": sdk.StateAll, Opened: sdk.StateOpen, Closed: sdk.StateClosed}[q.State]
	if state == "" {
		return nil, fmt.Errorf("there is no state %q", q.State)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 200
	}
	err = pages(func(o sdk.ListOptions) (int, *sdk.Response, error) {
		list, resp, err := client.ListRepoPullRequests(g.c.Owner, g.c.Name, sdk.ListPullRequestsOptions{ListOptions: o, State: state})
		if err != nil {
			return 0, nil, err
		}
		for _, p := range list {
			if p == nil {
				continue
			}
			if one := g.pull(p); q.chooses(one) && len(found) < limit {
				found = append(found, one)
			}
		}
		if len(found) >= limit {
			resp = nil
		}
		return len(list), resp, nil
	})
	return found, err
}

// chooses reports whether p is one that q asks for, its state apart.
func (q Query) chooses(p Pull) bool {
	return (q.Head == "" || p.Head == q.Head) && (q.Base == "" || p.Base == q.Base) &&
		(q.HeadRepo == "" || strings.EqualFold(p.HeadRepo, q.HeadRepo))
}

// Pull implements Forge.
func (g *gitea) Pull(ctx context.Context, number int64) (Pull, error) {
	doing := fmt.Sprintf("read %s#%d", g.path(), number)
	client, call, err := g.begin(ctx, doing)
	if err != nil {
		return Pull{}, err
	}
	p, err := g.settled(ctx, client, call, number)
	return p, g.fault(doing, err)
}

// settled reads a pull request whole. Gitea says only whether one can be
// merged, which a draft cannot, nor one that it is still looking at: after a
// moment what is left is a conflict.
func (g *gitea) settled(ctx context.Context, client *sdk.Client, call *sdkCall, number int64) (Pull, error) {
	var out Pull
	for try := 0; ; try++ {
		p, _, err := client.GetPullRequest(g.c.Owner, g.c.Name, number)
		if err != nil {
			return Pull{}, err
		}
		out = g.pull(p)
		if out.State != Opened || p.Mergeable || p.Draft {
			break
		}
		if try == 4 {
			out.Conflicts = true
			break
		}
		if err := call.sleep(ctx, 100*time.Millisecond<<try); err != nil {
			return Pull{}, err
		}
	}
	if out.State == Opened {
		reviewed, err := g.reviewed(client, number)
		if err != nil {
			return Pull{}, err
		}
		for _, name := range reviewed {
			if !slices.Contains(out.Reviewers, name) {
				out.Reviewers = append(out.Reviewers, name)
			}
		}
	}
	return out, nil
}

// reviewed returns who has reviewed a pull request.
func (g *gitea) reviewed(client *sdk.Client, number int64) (names []string, err error) {
	err = pages(func(o sdk.ListOptions) (int, *sdk.Response, error) {
		list, resp, err := client.ListPullReviews(g.c.Owner, g.c.Name, number, sdk.ListPullReviewsOptions{ListOptions: o})
		if err != nil {
			return 0, nil, err
		}
		for _, r := range list {
			if r != nil && r.Reviewer != nil && r.State != sdk.ReviewStatePending {
				names = append(names, r.Reviewer.UserName)
			}
		}
		return len(list), resp, nil
	})
	return names, err
}

// OpenPull implements Forge.
func (g *gitea) OpenPull(ctx context.Context, n NewPull) (Pull, error) {
	doing := "open a pull request on " + g.path()
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Pull{}, err
	}
	opt := sdk.CreatePullRequestOption{Head: n.Head, Base: n.Base, Title: n.Title, Body: n.Body}
	if n.HeadRepo != "" && !strings.EqualFold(n.HeadRepo, g.path()) {
		owner, _, _ := strings.Cut(n.HeadRepo, "/")
		opt.Head = owner + ":" + n.Head
	}
	if n.Draft {
		opt.Title = giteaDraft + n.Title
	}
	p, _, err := client.CreatePullRequest(g.c.Owner, g.c.Name, opt)
	var r *refusal
	switch {
	case err == nil:
		return g.pull(p), nil
	case errors.As(err, &r) && r.status == http.StatusConflict:
		return g.openOne(client, doing, n, err)
	case errors.As(err, &r) && r.status == http.StatusNotFound:
		return Pull{}, fmt.Errorf("%s: %w: no branch %s or %s, or pull requests are switched off there, or the token does not see it", doing, ErrNotFound, opt.Head, n.Base)
	}
	return Pull{}, g.fault(doing, err)
}

// openOne returns the pull request that stands in the way of a new one.
func (g *gitea) openOne(client *sdk.Client, doing string, n NewPull, cause error) (Pull, error) {
	head := n.HeadRepo
	if head == "" {
		head = g.path()
	}
	list, err := g.pulls(client, Query{State: Opened, Head: n.Head, HeadRepo: head, Base: n.Base, Limit: 1})
	if err != nil {
		return Pull{}, g.fault(doing, err)
	}
	if len(list) == 0 {
		return Pull{}, g.fault(doing, cause)
	}
	return list[0], fmt.Errorf("%s: %w: #%d", doing, ErrExists, list[0].Number)
}

// EditPull implements Forge.
func (g *gitea) EditPull(ctx context.Context, number int64, e PullEdit) (Pull, error) {
	doing := fmt.Sprintf("edit %s#%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Pull{}, err
	}
	opt := sdk.EditPullRequestOption{Body: e.Body}
	if e.Base != nil {
		opt.Base = *e.Base
	}
	if e.State != nil {
		state := sdk.StateOpen
		if *e.State == Closed {
			state = sdk.StateClosed
		}
		opt.State = &state
	}
	if opt.Title, err = g.titleFor(client, number, e); err != nil {
		return Pull{}, g.fault(doing, err)
	}
	p, _, err := client.EditPullRequest(g.c.Owner, g.c.Name, number, opt)
	if err != nil {
		return Pull{}, g.fault(doing, err)
	}
	return g.pull(p), nil
}

// titleFor returns the title with or without the word that makes a draft, ""
// where it stays as it is. Who changes one of the two keeps the other.
func (g *gitea) titleFor(client *sdk.Client, number int64, e PullEdit) (string, error) {
	if e.Title == nil && e.Draft == nil {
		return "", nil
	}
	title, draft := "", false
	if e.Title == nil || e.Draft == nil {
		p, _, err := client.GetPullRequest(g.c.Owner, g.c.Name, number)
		if err != nil {
			return "", err
		}
		title, draft = p.Title, p.Draft
		if draft {
			title = bareTitle(title, giteaDrafts)
		}
	}
	if e.Title != nil {
		title = *e.Title
	}
	if e.Draft != nil {
		draft = *e.Draft
	}
	if draft {
		return giteaDraft + title, nil
	}
	return title, nil
}
