package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/go-github/v92/github"
)

func (h *hub) doing(what string, number int64) string {
	return fmt.Sprintf("%s %s#%d", what, h.repo(), number)
}

// AddLabels adds labels; GitHub makes those that there are none of.
func (h *hub) AddLabels(ctx context.Context, number int64, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	ctx = repeatable(h.t.call(ctx))
	// GitHub recommends an object; its library sends the list alone.
	path := fmt.Sprintf("repos/%s/%s/issues/%d/labels", h.owner, h.name, number)
	req, err := h.client.NewRequest(ctx, http.MethodPost, path, map[string][]string{"labels": labels})
	if err == nil {
		_, err = h.client.Do(req, nil)
	}
	if err != nil {
		return h.fail(h.doing("label", number), err)
	}
	return nil
}

// RemoveLabel takes a label off; one that is not there is no error.
func (h *hub) RemoveLabel(ctx context.Context, number int64, label string) error {
	ctx = repeatable(h.t.call(ctx))
	_, err := h.client.Issues.RemoveLabelForIssue(ctx, h.owner, h.name, int(number), url.PathEscape(label))
	if err != nil && !(hubStatus(err) == http.StatusNotFound && hubSays(err, "label does not exist")) {
		return h.fail(h.doing("take a label off", number), err)
	}
	return nil
}

// Ask requests reviews. GitHub refuses them all for one that may not review, so
// its error names those asked.
func (h *hub) Ask(ctx context.Context, number int64, users, teams []string) error {
	if len(users)+len(teams) == 0 {
		return nil
	}
	ctx = repeatable(h.t.call(ctx))
	doing := h.doing("ask for reviews of", number)
	request := github.ReviewersRequest{Reviewers: users}
	for _, team := range teams {
		org, slug, ok := strings.Cut(team, "/")
		if !ok {
			org, slug = h.owner, team
		}
		if !strings.EqualFold(org, h.owner) {
			return fmt.Errorf("%s: %w: team %s is of another organisation than %s", doing, ErrUnsupported, team, h.owner)
		}
		request.TeamReviewers = append(request.TeamReviewers, slug)
	}
	_, _, err := h.client.PullRequests.RequestReviewers(ctx, h.owner, h.name, int(number), request)
	switch {
	case err == nil:
		return nil
	case hubStatus(err) == http.StatusUnprocessableEntity:
		return &AuthError{Doing: doing, Detail: h.detailOf(err),
			Hint: fmt.Sprintf("who is asked must be able to read %s, and cannot be the request's author; asked were %s",
				h.repo(), strings.Join(append(append([]string{}, users...), teams...), ", "))}
	}
	return h.fail(doing, err)
}

// Assign assigns users. GitHub drops those who cannot be assigned without a
// word; Assign names them.
func (h *hub) Assign(ctx context.Context, number int64, users []string) error {
	if len(users) == 0 {
		return nil
	}
	ctx = repeatable(h.t.call(ctx))
	doing := h.doing("assign", number)
	issue, _, err := h.client.Issues.AddAssignees(ctx, h.owner, h.name, int(number), users)
	if err != nil {
		return h.fail(doing, err)
	}
	is := map[string]bool{}
	for _, u := range issue.Assignees {
		is[strings.ToLower(u.GetLogin())] = true
	}
	var dropped []string
	for _, user := range users {
		if !is[strings.ToLower(user)] {
			dropped = append(dropped, user)
		}
	}
	if len(dropped) > 0 {
		return &AuthError{Doing: doing, Detail: "GitHub has left out " + strings.Join(dropped, ", "),
			Hint: "only those with access to the repository can be assigned, ten at most, and only by who may push"}
	}
	return nil
}

// Comments lists the comments of a pull request or issue, the oldest first, of
// at most hubMaxPages pages.
func (h *hub) Comments(ctx context.Context, number int64) ([]Comment, error) {
	ctx = h.t.call(ctx)
	o := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: hubPerPage}}
	var found []Comment
	for range hubMaxPages {
		page, res, err := h.client.Issues.ListComments(ctx, h.owner, h.name, int(number), o)
		if err != nil {
			return nil, h.fail(h.doing("list the comments of", number), err)
		}
		for _, c := range page {
			found = append(found, hubCommentOf(c))
		}
		if res.NextPage == 0 {
			break
		}
		o.Page = res.NextPage
	}
	return found, nil
}

func hubCommentOf(c *github.IssueComment) Comment {
	return Comment{ID: c.GetID(), Author: c.GetUser().GetLogin(), Body: c.GetBody(), Created: c.GetCreatedAt().Time}
}

// AddComment adds a comment. It is not tried again when the answer gets lost:
// two comments are worse than an error.
func (h *hub) AddComment(ctx context.Context, number int64, body string) (Comment, error) {
	c, _, err := h.client.Issues.CreateComment(h.t.call(ctx), h.owner, h.name, int(number), github.IssueCommentRequest{Body: body})
	if err != nil {
		return Comment{}, h.fail(h.doing("comment on", number), err)
	}
	return hubCommentOf(c), nil
}

// EditComment sets the text of a comment.
func (h *hub) EditComment(ctx context.Context, number, id int64, body string) error {
	ctx = repeatable(h.t.call(ctx))
	if _, _, err := h.client.Issues.UpdateComment(ctx, h.owner, h.name, id, github.IssueCommentRequest{Body: body}); err != nil {
		return h.fail(h.doing("edit a comment of", number), err)
	}
	return nil
}

// Issues lists the open issues of that title that whoever acts has opened.
func (h *hub) Issues(ctx context.Context, title string) ([]Issue, error) {
	ctx = h.t.call(ctx)
	who, err := h.me(ctx)
	if err != nil {
		return nil, err
	}
	o := &github.IssueListByRepoOptions{State: "open", Creator: who.login, Sort: "created", Direction: "asc"}
	o.ListOptions.PerPage = hubPerPage
	var found []Issue
	for range hubMaxPages {
		page, res, err := h.client.Issues.ListByRepo(ctx, h.owner, h.name, o)
		if hubStatus(err) == http.StatusUnprocessableEntity {
			return found, nil // an account that has never opened anything
		}
		if err != nil {
			return nil, h.fail("list the issues of "+h.repo(), err)
		}
		for _, i := range page {
			if !i.IsPullRequest() && i.GetTitle() == title && i.GetUser().GetLogin() == who.login {
				found = append(found, hubIssueOf(i))
			}
		}
		if res.NextPage == 0 {
			break
		}
		o.ListOptions.Page = res.NextPage
	}
	return found, nil
}

func hubIssueOf(i *github.Issue) Issue {
	issue := Issue{
		Number: int64(i.GetNumber()), Page: i.GetHTMLURL(), Title: i.GetTitle(), Body: i.GetBody(),
		Open: i.GetState() == "open", Author: i.GetUser().GetLogin(), Updated: i.GetUpdatedAt().Time,
	}
	for _, l := range i.Labels {
		issue.Labels = append(issue.Labels, l.GetName())
	}
	return issue
}

// OpenIssue opens an issue. Like a comment, it is not tried again.
func (h *hub) OpenIssue(ctx context.Context, title, body string, labels []string) (Issue, error) {
	i, _, err := h.client.Issues.Create(h.t.call(ctx), h.owner, h.name, github.CreateIssueRequest{Title: title, Body: &body, Labels: labels})
	if err != nil {
		return Issue{}, h.fail("open an issue on "+h.repo(), err)
	}
	return hubIssueOf(i), nil
}

// EditIssue sets what is not nil.
func (h *hub) EditIssue(ctx context.Context, number int64, title, body *string, open *bool) error {
	ctx = repeatable(h.t.call(ctx))
	change := github.UpdateIssueRequest{Title: title, Body: body}
	if open != nil {
		state := "closed"
		if *open {
			state = "open"
		}
		change.State = &state
	}
	if _, _, err := h.client.Issues.Update(ctx, h.owner, h.name, int(number), change); err != nil {
		return h.fail(h.doing("edit", number), err)
	}
	return nil
}
