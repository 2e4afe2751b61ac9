package forge

import (
	"context"
	"fmt"
	"slices"

	sdk "code.gitea.io/sdk/gitea"
)

// Comments implements Forge.
func (g *gitea) Comments(ctx context.Context, number int64) ([]Comment, error) {
	doing := fmt.Sprintf("read the comments of %s#%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return nil, err
	}
	// Gitea gives all of them at once, whatever page is asked for.
	list, _, err := client.ListIssueComments(g.c.Owner, g.c.Name, number, sdk.ListIssueCommentOptions{})
	if err != nil {
		return nil, g.fault(doing, err)
	}
	var out []Comment
	for _, c := range list {
		if c != nil {
			out = append(out, giteaComment(c))
		}
	}
	return out, nil
}

func giteaComment(c *sdk.Comment) Comment {
	return Comment{ID: c.ID, Author: giteaName(c.Poster), Body: c.Body, Created: c.Created}
}

// AddComment implements Forge.
func (g *gitea) AddComment(ctx context.Context, number int64, body string) (Comment, error) {
	doing := fmt.Sprintf("comment on %s#%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Comment{}, err
	}
	c, _, err := client.CreateIssueComment(g.c.Owner, g.c.Name, number, sdk.CreateIssueCommentOption{Body: body})
	if err != nil {
		return Comment{}, g.fault(doing, err)
	}
	return giteaComment(c), nil
}

// EditComment implements Forge.
func (g *gitea) EditComment(ctx context.Context, number, id int64, body string) error {
	doing := fmt.Sprintf("edit a comment on %s#%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	_, _, err = client.EditIssueComment(g.c.Owner, g.c.Name, id, sdk.EditIssueCommentOption{Body: body})
	return g.fault(doing, err)
}

// Issues implements Forge. The title is compared here: Gitea's search is of
// words, and lags behind.
func (g *gitea) Issues(ctx context.Context, title string) ([]Issue, error) {
	doing := "list the issues of " + g.path()
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return nil, err
	}
	me, err := g.login(client)
	if err != nil {
		return nil, g.fault(doing, err)
	}
	var out []Issue
	err = pages(func(o sdk.ListOptions) (int, *sdk.Response, error) {
		list, resp, err := client.ListRepoIssues(g.c.Owner, g.c.Name, sdk.ListIssueOption{
			ListOptions: o, State: sdk.StateOpen, Type: sdk.IssueTypeIssue, CreatedBy: me,
		})
		if err != nil {
			return 0, nil, err
		}
		for _, i := range list {
			if i != nil && i.Title == title && i.PullRequest == nil && giteaName(i.Poster) == me {
				out = append(out, giteaIssue(i))
			}
		}
		return len(list), resp, nil
	})
	slices.SortFunc(out, func(a, b Issue) int { return int(a.Number - b.Number) })
	return out, g.fault(doing, err)
}

func giteaIssue(i *sdk.Issue) Issue {
	out := Issue{
		Number: i.Index, Page: i.HTMLURL, Title: i.Title, Body: i.Body, Open: i.State == sdk.StateOpen,
		Author: giteaName(i.Poster), Updated: i.Updated,
	}
	for _, l := range i.Labels {
		if l != nil {
			out.Labels = append(out.Labels, l.Name)
		}
	}
	return out
}

// OpenIssue implements Forge.
func (g *gitea) OpenIssue(ctx context.Context, title, body string, labels []string) (Issue, error) {
	doing := "open an issue on " + g.path()
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Issue{}, err
	}
	var ids []int64
	if len(labels) > 0 {
		if ids, _, err = g.labelIDs(client, labels); err != nil {
			return Issue{}, g.fault(doing+" with its labels", err)
		}
	}
	i, _, err := client.CreateIssue(g.c.Owner, g.c.Name, sdk.CreateIssueOption{Title: title, Body: body, Labels: ids})
	if err != nil {
		return Issue{}, g.fault(doing, err)
	}
	return giteaIssue(i), nil
}

// EditIssue implements Forge.
func (g *gitea) EditIssue(ctx context.Context, number int64, title, body *string, open *bool) error {
	doing := fmt.Sprintf("edit issue %s#%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	opt := sdk.EditIssueOption{Body: body}
	if title != nil {
		opt.Title = *title
	}
	if open != nil {
		state := sdk.StateClosed
		if *open {
			state = sdk.StateOpen
		}
		opt.State = &state
	}
	_, _, err = client.EditIssue(g.c.Owner, g.c.Name, number, opt)
	return g.fault(doing, err)
}
