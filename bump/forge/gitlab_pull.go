package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	sdk "gitlab.com/gitlab-org/api/client-go/v2"
)

// gitlabDraft is what makes a draft of a merge request on GitLab: a word before
// its title, of which it knows three spellings.
const gitlabDraft = "Draft: "

var gitlabDrafts = []string{"Draft:", "[Draft]", "(Draft)"}

// projects remembers the paths of projects within one call, by id.
type projects map[int64]string

func (g *gitlab) pull(client *sdk.Client, m *sdk.BasicMergeRequest, known projects) (Pull, error) {
	out := Pull{
		Number: m.IID, Page: m.WebURL, Title: m.Title, Body: m.Description, State: Opened, Draft: m.Draft,
		Base: m.TargetBranch, Head: m.SourceBranch, HeadCommit: m.SHA, Author: gitlabName(m.Author), Labels: m.Labels,
		Assignees: gitlabNames(m.Assignees), Reviewers: gitlabNames(m.Reviewers), Created: deref(m.CreatedAt), Updated: deref(m.UpdatedAt),
		Conflicts: m.HasConflicts, AutoMerge: m.MergeWhenPipelineSucceeds,
	}
	if m.Draft {
		out.Title = bareTitle(m.Title, gitlabDrafts)
	}
	switch m.State {
	case "merged":
		out.State, out.Ended, out.Merger, out.MergeCommit = Merged, deref(m.MergedAt), gitlabName(m.MergeUser), m.MergeCommitSHA
		if out.MergeCommit == "" {
			out.MergeCommit = m.SquashCommitSHA
		}
	case "closed":
		out.State, out.Ended = Closed, deref(m.ClosedAt)
	}
	if out.State != Opened {
		out.Conflicts, out.AutoMerge = false, false
	}
	var err error
	out.HeadRepo, err = g.headRepo(client, m, known)
	return out, err
}

// headRepo returns the path of the project that a merge request comes from.
func (g *gitlab) headRepo(client *sdk.Client, m *sdk.BasicMergeRequest, known projects) (string, error) {
	if m.SourceProjectID == m.TargetProjectID {
		return g.path(), nil
	}
	if m.SourceProjectID == 0 {
		return "", nil
	}
	if path, ok := known[m.SourceProjectID]; ok {
		return path, nil
	}
	p, err := given(client.Projects.GetProject(m.SourceProjectID, nil))
	var r *refusal
	switch {
	case errors.As(err, &r) && (r.status == http.StatusNotFound || r.status == http.StatusForbidden):
		known[m.SourceProjectID] = "" // it is gone, or private
		return "", nil
	case err != nil:
		return "", err
	}
	known[m.SourceProjectID] = p.PathWithNamespace
	return p.PathWithNamespace, nil
}

func gitlabName(u *sdk.BasicUser) string {
	if u == nil {
		return ""
	}
	return u.Username
}

func gitlabNames(users []*sdk.BasicUser) (names []string) {
	for _, u := range users {
		if u != nil {
			names = append(names, u.Username)
		}
	}
	return names
}

// Pulls implements Forge.
func (g *gitlab) Pulls(ctx context.Context, q Query) ([]Pull, error) {
	doing := "list the merge requests of " + g.path()
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return nil, err
	}
	found, err := g.pulls(client, q)
	return found, g.fault(doing, err)
}

func (g *gitlab) pulls(client *sdk.Client, q Query) (found []Pull, err error) {
	opt := sdk.ListProjectMergeRequestsOptions{OrderBy: ptr("created_at"), Sort: ptr("desc"), State: ptr("all")}
	if q.State == Opened {
		opt.State = ptr("opened")
	}
	if q.Head != "" {
		opt.SourceBranch = &q.Head
	}
	if q.Base != "" {
		opt.TargetBranch = &q.Base
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 200
	}
	known := projects{}
	err = labPages(func(o sdk.ListOptions) (*sdk.Response, error) {
		opt.ListOptions = o
		list, resp, err := client.MergeRequests.ListProjectMergeRequests(g.path(), &opt)
		if err != nil {
			return nil, err
		}
		for _, m := range list {
			if m == nil || q.State == Closed && (m.State == "opened" || m.State == "locked") {
				continue
			}
			if len(found) == limit {
				return nil, nil
			}
			p, err := g.pull(client, m, known)
			if err != nil {
				return nil, err
			}
			if q.chooses(p) {
				found = append(found, p)
			}
		}
		return resp, nil
	})
	return found, err
}

func ptr[T any](v T) *T { return &v }

// Pull implements Forge.
func (g *gitlab) Pull(ctx context.Context, number int64) (Pull, error) {
	doing := fmt.Sprintf("read %s!%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Pull{}, err
	}
	m, err := given(client.MergeRequests.GetMergeRequest(g.path(), number, nil))
	if err != nil {
		return Pull{}, g.fault(doing, err)
	}
	p, err := g.pull(client, &m.BasicMergeRequest, projects{})
	return p, g.fault(doing, err)
}

// OpenPull implements Forge. A merge request is opened at the project that it
// comes from, and names the one that it goes to.
func (g *gitlab) OpenPull(ctx context.Context, n NewPull) (Pull, error) {
	doing := "open a merge request on " + g.path()
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Pull{}, err
	}
	from := g.path()
	opt := sdk.CreateMergeRequestOptions{Title: &n.Title, Description: &n.Body, SourceBranch: &n.Head, TargetBranch: &n.Base}
	if n.Draft {
		opt.Title = ptr(gitlabDraft + n.Title)
	}
	if n.HeadRepo != "" && !strings.EqualFold(n.HeadRepo, from) {
		from = n.HeadRepo
		p, err := given(client.Projects.GetProject(g.path(), nil))
		if err != nil {
			return Pull{}, g.fault(doing, err)
		}
		opt.TargetProjectID = &p.ID
	}
	m, err := given(client.MergeRequests.CreateMergeRequest(from, &opt))
	var r *refusal
	if errors.As(err, &r) && r.status == http.StatusConflict {
		list, lerr := g.pulls(client, Query{State: Opened, Head: n.Head, HeadRepo: from, Base: n.Base, Limit: 1})
		if lerr != nil {
			return Pull{}, g.fault(doing, lerr)
		}
		if len(list) > 0 {
			return list[0], fmt.Errorf("%s: %w: !%d", doing, ErrExists, list[0].Number)
		}
	}
	if err != nil {
		return Pull{}, g.fault(doing, err)
	}
	p, err := g.pull(client, &m.BasicMergeRequest, projects{})
	return p, g.fault(doing, err)
}

// EditPull implements Forge.
func (g *gitlab) EditPull(ctx context.Context, number int64, e PullEdit) (Pull, error) {
	doing := fmt.Sprintf("edit %s!%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Pull{}, err
	}
	opt := sdk.UpdateMergeRequestOptions{Description: e.Body, TargetBranch: e.Base}
	if e.State != nil {
		if opt.StateEvent, err = g.event(client, number, *e.State); err != nil {
			return Pull{}, g.fault(doing, err)
		}
	}
	if opt.Title, err = g.titleFor(client, number, e); err != nil {
		return Pull{}, g.fault(doing, err)
	}
	m, err := g.update(client, number, opt)
	if err != nil {
		return Pull{}, g.fault(doing, err)
	}
	p, err := g.pull(client, &m.BasicMergeRequest, projects{})
	return p, g.fault(doing, err)
}

// update changes a merge request. GitLab refuses a change of nothing.
func (g *gitlab) update(client *sdk.Client, number int64, opt sdk.UpdateMergeRequestOptions) (*sdk.MergeRequest, error) {
	if opt == (sdk.UpdateMergeRequestOptions{}) {
		m, err := given(client.MergeRequests.GetMergeRequest(g.path(), number, nil))
		return m, err
	}
	m, err := given(client.MergeRequests.UpdateMergeRequest(g.path(), number, &opt))
	return m, err
}

// event returns what leads to state, nil where it is there already.
func (g *gitlab) event(client *sdk.Client, number int64, state string) (*string, error) {
	m, err := given(client.MergeRequests.GetMergeRequest(g.path(), number, nil))
	switch {
	case err != nil:
		return nil, err
	case m.State == "merged":
		return nil, errors.New("it is merged, so that it is neither closed nor opened again")
	case state == Closed && m.State == "opened":
		return ptr("close"), nil
	case state == Opened && m.State == "closed":
		return ptr("reopen"), nil
	}
	return nil, nil
}

// titleFor returns the title with or without the word that makes a draft, nil
// where it stays as it is. Who changes one of the two keeps the other.
func (g *gitlab) titleFor(client *sdk.Client, number int64, e PullEdit) (*string, error) {
	if e.Title == nil && e.Draft == nil {
		return nil, nil
	}
	title, draft := "", false
	if e.Title == nil || e.Draft == nil {
		m, err := given(client.MergeRequests.GetMergeRequest(g.path(), number, nil))
		if err != nil {
			return nil, err
		}
		title, draft = bareTitle(m.Title, gitlabDrafts), m.Draft
	}
	if e.Title != nil {
		title = *e.Title
	}
	if e.Draft != nil {
		draft = *e.Draft
	}
	if draft {
		title = gitlabDraft + title
	}
	return &title, nil
}
