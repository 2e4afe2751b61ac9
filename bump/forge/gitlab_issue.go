package forge

import (
	"context"
	"fmt"
	"slices"

	sdk "gitlab.com/gitlab-org/api/client-go/v2"
)

// Comments implements Forge, of a merge request: on GitLab issues count for
// themselves. What GitLab itself notes there is left out.
func (g *gitlab) Comments(ctx context.Context, number int64) ([]Comment, error) {
	doing := fmt.Sprintf("read the comments of %s!%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return nil, err
	}
	var out []Comment
	err = labPages(func(o sdk.ListOptions) (*sdk.Response, error) {
		list, resp, err := client.Notes.ListMergeRequestNotes(g.path(), number, &sdk.ListMergeRequestNotesOptions{
			ListOptions: o, OrderBy: ptr("created_at"), Sort: ptr("asc"),
		})
		if err != nil {
			return nil, err
		}
		for _, n := range list {
			if n != nil && !n.System {
				out = append(out, gitlabComment(n))
			}
		}
		return resp, nil
	})
	return out, g.fault(doing, err)
}

func gitlabComment(n *sdk.Note) Comment {
	return Comment{ID: n.ID, Author: n.Author.Username, Body: n.Body, Created: deref(n.CreatedAt)}
}

// AddComment implements Forge.
func (g *gitlab) AddComment(ctx context.Context, number int64, body string) (Comment, error) {
	doing := fmt.Sprintf("comment on %s!%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Comment{}, err
	}
	n, err := given(client.Notes.CreateMergeRequestNote(g.path(), number, &sdk.CreateMergeRequestNoteOptions{Body: &body}))
	if err != nil {
		return Comment{}, g.fault(doing, err)
	}
	return gitlabComment(n), nil
}

// EditComment implements Forge.
func (g *gitlab) EditComment(ctx context.Context, number, id int64, body string) error {
	doing := fmt.Sprintf("edit a comment on %s!%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	_, err = given(client.Notes.UpdateMergeRequestNote(g.path(), number, id, &sdk.UpdateMergeRequestNoteOptions{Body: &body}))
	return g.fault(doing, err)
}

// Issues implements Forge.
func (g *gitlab) Issues(ctx context.Context, title string) ([]Issue, error) {
	doing := "list the issues of " + g.path()
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return nil, err
	}
	var out []Issue
	err = labPages(func(o sdk.ListOptions) (*sdk.Response, error) {
		list, resp, err := client.Issues.ListProjectIssues(g.path(), &sdk.ListProjectIssuesOptions{
			ListOptions: o, State: ptr("opened"), Scope: ptr("created_by_me"),
		})
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			if i != nil && i.Title == title {
				out = append(out, gitlabIssue(i))
			}
		}
		return resp, nil
	})
	slices.SortFunc(out, func(a, b Issue) int { return int(a.Number - b.Number) })
	return out, g.fault(doing, err)
}

func gitlabIssue(i *sdk.Issue) Issue {
	out := Issue{
		Number: i.IID, Page: i.WebURL, Title: i.Title, Body: i.Description, Open: i.State == "opened",
		Labels: i.Labels, Updated: deref(i.UpdatedAt),
	}
	if i.Author != nil {
		out.Author = i.Author.Username
	}
	return out
}

// OpenIssue implements Forge.
func (g *gitlab) OpenIssue(ctx context.Context, title, body string, labels []string) (Issue, error) {
	doing := "open an issue on " + g.path()
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Issue{}, err
	}
	opt := sdk.CreateIssueOptions{Title: &title, Description: &body}
	if len(labels) > 0 {
		if err := checkLabels(labels); err != nil {
			return Issue{}, fmt.Errorf("%s: %w", doing, err)
		}
		opt.Labels = (*sdk.LabelOptions)(&labels)
	}
	i, err := given(client.Issues.CreateIssue(g.path(), &opt))
	if err != nil {
		return Issue{}, g.fault(doing, err)
	}
	return gitlabIssue(i), nil
}

// EditIssue implements Forge.
func (g *gitlab) EditIssue(ctx context.Context, number int64, title, body *string, open *bool) error {
	doing := fmt.Sprintf("edit issue %s#%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	opt := sdk.UpdateIssueOptions{Title: title, Description: body}
	if open != nil {
		opt.StateEvent = ptr("close")
		if *open {
			opt.StateEvent = ptr("reopen")
		}
	}
	_, err = given(client.Issues.UpdateIssue(g.path(), number, &opt))
	return g.fault(doing, err)
}
