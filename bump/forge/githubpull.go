package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v92/github"
)

const hubDefaultLimit = 200

// Pulls lists pull requests, the newest first, of at most hubMaxPages pages.
func (h *hub) Pulls(ctx context.Context, q Query) ([]Pull, error) {
	ctx = h.t.call(ctx)
	o := &github.PullRequestListOptions{State: "all", Base: q.Base, Sort: "created", Direction: "desc"}
	switch q.State {
	case Opened:
		o.State = "open"
	case Closed, Merged:
		o.State = "closed"
	}
	if owner, _, ok := strings.Cut(q.HeadRepo, "/"); ok && q.Head != "" {
		o.Head = owner + ":" + q.Head
	}
	o.PerPage = hubPerPage
	limit := cmp.Or(q.Limit, hubDefaultLimit)
	var found []Pull
	for range hubMaxPages {
		page, res, err := h.client.PullRequests.List(ctx, h.owner, h.name, o)
		if err != nil {
			return nil, h.fail("list the pull requests of "+h.repo(), err)
		}
		for _, p := range page {
			if pull := hubPullOf(p); q.selects(pull) && len(found) < limit {
				found = append(found, pull)
			}
		}
		if res.NextPage == 0 || len(found) >= limit {
			break
		}
		o.Page = res.NextPage
	}
	return found, nil
}

// selects reports whether q asks for p. GitHub has filtered by most of it; a
// filter that it does not understand it leaves out without a word.
func (q Query) selects(p Pull) bool {
	return (q.Head == "" || p.Head == q.Head) &&
		(q.HeadRepo == "" || strings.EqualFold(p.HeadRepo, q.HeadRepo)) &&
		(q.Base == "" || p.Base == q.Base) &&
		(q.State == "" || (q.State == Opened) == (p.State == Opened)) &&
		(q.State != Merged || p.State == Merged)
}

// Pull returns one pull request. GitHub works out whether it can be merged only
// when it is asked for, so Pull asks up to three times.
func (h *hub) Pull(ctx context.Context, number int64) (Pull, error) {
	ctx = h.t.call(ctx)
	doing := fmt.Sprintf("look at %s#%d", h.repo(), number)
	p, _, err := h.client.PullRequests.Get(ctx, h.owner, h.name, int(number))
	for try := 1; err == nil && p.GetState() == "open" && p.Mergeable == nil && try < 3; try++ {
		if h.t.wait(ctx, budgetOf(ctx, h.t.maxWait), time.Duration(try)*time.Second, nil) != nil {
			break
		}
		p, _, err = h.client.PullRequests.Get(ctx, h.owner, h.name, int(number))
	}
	if err != nil {
		return Pull{}, h.fail(doing, err)
	}
	pull := hubPullOf(p)
	reviews, _, err := h.client.PullRequests.ListReviews(ctx, h.owner, h.name, int(number), &github.ListOptions{PerPage: hubPerPage})
	if err != nil {
		return Pull{}, h.fail(doing, err)
	}
	for _, r := range reviews {
		if login := r.GetUser().GetLogin(); login != "" && login != pull.Author && !slices.Contains(pull.Reviewers, login) {
			pull.Reviewers = append(pull.Reviewers, login)
		}
	}
	return pull, nil
}

func hubPullOf(p *github.PullRequest) Pull {
	pull := Pull{
		Number: int64(p.GetNumber()), Page: p.GetHTMLURL(), Title: p.GetTitle(), Body: p.GetBody(),
		State: Opened, Draft: p.GetDraft(), Base: p.GetBase().GetRef(), Head: p.GetHead().GetRef(),
		HeadRepo: p.GetHead().GetRepo().GetFullName(), HeadCommit: p.GetHead().GetSHA(), Author: p.GetUser().GetLogin(),
		Created: p.GetCreatedAt().Time, Updated: p.GetUpdatedAt().Time, Ended: p.GetClosedAt().Time,
		Conflicts: p.Mergeable != nil && !p.GetMergeable() && p.GetMergeableState() == "dirty", AutoMerge: p.AutoMerge != nil,
	}
	switch {
	case p.MergedAt != nil:
		pull.State, pull.Ended = Merged, p.GetMergedAt().Time
		pull.MergeCommit, pull.Merger = p.GetMergeCommitSHA(), p.GetMergedBy().GetLogin()
	case p.GetState() == "closed":
		pull.State = Closed
	}
	for _, l := range p.Labels {
		pull.Labels = append(pull.Labels, l.GetName())
	}
	for _, u := range p.Assignees {
		pull.Assignees = append(pull.Assignees, u.GetLogin())
	}
	for _, u := range p.RequestedReviewers {
		pull.Reviewers = append(pull.Reviewers, u.GetLogin())
	}
	for _, team := range p.RequestedTeams {
		pull.Reviewers = append(pull.Reviewers, team.GetSlug())
	}
	return pull
}

// OpenPull opens a pull request. A branch that was made a moment ago may not be
// known to every server of GitHub's yet, so "invalid head" and "not found" are
// tried again a few times.
func (h *hub) OpenPull(ctx context.Context, n NewPull) (Pull, error) {
	ctx = h.t.call(ctx)
	doing := "open a pull request on " + h.repo()
	asked := github.CreatePullRequest{Title: &n.Title, Body: &n.Body, Base: n.Base, Head: n.Head, Draft: &n.Draft}
	from := cmp.Or(n.HeadRepo, h.repo())
	if owner, name, _ := strings.Cut(from, "/"); !strings.EqualFold(from, h.repo()) {
		asked.Head = owner + ":" + n.Head
		// Only a person can let maintainers push to their fork; GitHub refuses
		// the whole request where an organisation's is offered.
		if who, err := h.me(ctx); err == nil && strings.EqualFold(owner, who.login) {
			asked.MaintainerCanModify = new(true)
		}
		if strings.EqualFold(owner, h.owner) { // a fork beside it
			asked.HeadRepo = &name
		}
	}
	for try := 1; ; try++ {
		p, _, err := h.client.PullRequests.Create(ctx, h.owner, h.name, asked)
		switch {
		case err == nil:
			return hubPullOf(p), nil
		case hubSays(err, "already exists"):
			return h.existing(ctx, doing, n, from)
		case hubUnsure(err) && ctx.Err() == nil:
			if p, found := h.existing(ctx, doing, n, from); errors.Is(found, ErrExists) {
				return p, nil
			}
			return Pull{}, h.fail(doing, err)
		case hubSays(err, "draft pull requests are not supported"):
			return Pull{}, fmt.Errorf("%s: %w: its plan has no drafts (turn draft off)", doing, ErrUnsupported)
		case !hubLags(err) || try >= maxAttempts:
			return Pull{}, h.fail(doing, err)
		}
		if late := h.t.wait(ctx, budgetOf(ctx, h.t.maxWait), backoff(try), err); late != nil {
			return Pull{}, h.fail(doing, err)
		}
	}
}

// hubLags reports whether err may be a branch that one of GitHub's servers has not
// heard of yet.
func hubLags(err error) bool {
	if hubStatus(err) == http.StatusNotFound {
		return true
	}
	var answer *github.ErrorResponse
	if hubStatus(err) != http.StatusUnprocessableEntity || !errors.As(err, &answer) {
		return false
	}
	return slices.ContainsFunc(answer.Errors, func(e github.Error) bool {
		return (e.Field == "head" || e.Field == "head_sha" || e.Field == "base") && (e.Code == "invalid" || e.Code == "missing")
	}) || hubSays(err, "object does not exist", "no commits between")
}

// existing returns the open pull request of n's head and base, and ErrExists.
func (h *hub) existing(ctx context.Context, doing string, n NewPull, from string) (Pull, error) {
	found, err := h.Pulls(ctx, Query{State: Opened, Head: n.Head, HeadRepo: from, Base: n.Base, Limit: 1})
	switch {
	case err != nil:
		return Pull{}, err
	case len(found) == 0:
		return Pull{}, fmt.Errorf("%s: GitHub says that there is one, but lists none", doing)
	}
	return found[0], fmt.Errorf("%s: %w: #%d", doing, ErrExists, found[0].Number)
}

// EditPull sets what e names; doing it twice changes nothing, so it may be tried
// again.
func (h *hub) EditPull(ctx context.Context, number int64, e PullEdit) (Pull, error) {
	ctx = repeatable(h.t.call(ctx))
	doing := fmt.Sprintf("edit %s#%d", h.repo(), number)
	change := &github.PullRequest{Title: e.Title, Body: e.Body}
	if e.Base != nil {
		change.Base = &github.PullRequestBranch{Ref: e.Base}
	}
	if e.State != nil {
		state := "open"
		if *e.State != Opened {
			state = "closed"
		}
		change.State = &state
	}
	var p *github.PullRequest
	var err error
	if e.Title == nil && e.Body == nil && e.Base == nil && e.State == nil {
		p, _, err = h.client.PullRequests.Get(ctx, h.owner, h.name, int(number))
	} else {
		p, _, err = h.client.PullRequests.Edit(ctx, h.owner, h.name, int(number), change)
	}
	if err != nil {
		if hubSays(err, "state cannot be changed") || hubSays(err, "force-pushed or recreated") {
			return Pull{}, fmt.Errorf("%s: %w: %s", doing, ErrUnsupported, h.fail("reopen", err))
		}
		return Pull{}, h.fail(doing, err)
	}
	pull := hubPullOf(p)
	if e.Draft != nil && *e.Draft != pull.Draft {
		if err := h.setDraft(ctx, number, p.GetNodeID(), *e.Draft); err != nil {
			return pull, err
		}
		pull.Draft = *e.Draft
	}
	return pull, nil
}

// Diff returns the unified diff of a pull request, cut at limit bytes.
func (h *hub) Diff(ctx context.Context, number int64, limit int) (string, error) {
	diff, _, err := h.client.PullRequests.GetRaw(h.t.call(ctx), h.owner, h.name, int(number), github.RawOptions{Type: github.Diff})
	if hubStatus(err) == http.StatusNotAcceptable {
		return "", fmt.Errorf("read the diff of %s#%d: %w: it is too large for GitHub to show", h.repo(), number, ErrUnsupported)
	}
	if err != nil {
		return "", h.fail(fmt.Sprintf("read the diff of %s#%d", h.repo(), number), err)
	}
	return diff[:min(len(diff), max(limit, 0))], nil
}

// Merge merges now, if the head is still headCommit. Whether an answer that got
// lost meant success is looked up.
func (h *hub) Merge(ctx context.Context, number int64, headCommit, method string) error {
	ctx = h.t.call(ctx)
	doing := fmt.Sprintf("merge %s#%d", h.repo(), number)
	how, err := hubMergeMethod(method)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	done, _, err := h.client.PullRequests.Merge(ctx, h.owner, h.name, int(number), "", &github.PullRequestOptions{SHA: headCommit, MergeMethod: how})
	if err == nil && done.GetMerged() {
		return nil
	}
	if err == nil {
		return fmt.Errorf("%s: %w: %s", doing, ErrNotMergable, h.t.detail(done.GetMessage()))
	}
	if hubUnsure(err) || hubStatus(err) == http.StatusMethodNotAllowed {
		p, _, lookErr := h.client.PullRequests.Get(ctx, h.owner, h.name, int(number))
		if lookErr == nil && p.MergedAt != nil && p.GetHead().GetSHA() == headCommit {
			return nil
		}
	}
	return h.fail(doing, err)
}
