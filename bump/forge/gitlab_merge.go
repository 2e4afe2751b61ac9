package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	sdk "gitlab.com/gitlab-org/api/client-go/v2"
)

// AutoMerge implements Forge. Where the project does not ask for a pipeline
// that has succeeded, GitLab may merge at once, which is not what was asked for.
func (g *gitlab) AutoMerge(ctx context.Context, number int64, headCommit string, on bool, method string) error {
	doing := fmt.Sprintf("let %s!%d merge itself", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	m, err := given(client.MergeRequests.GetMergeRequest(g.path(), number, nil))
	if err != nil {
		return g.fault(doing, err)
	}
	if !on {
		if !m.MergeWhenPipelineSucceeds {
			return nil
		}
		_, err = given(client.MergeRequests.CancelMergeWhenPipelineSucceeds(g.path(), number))
		return g.mergeFault("take back to "+doing, err)
	}
	if m.SHA != headCommit {
		return fmt.Errorf("%s: %w", doing, ErrMoved)
	}
	if m.MergeWhenPipelineSucceeds {
		return nil
	}
	p, err := given(client.Projects.GetProject(g.path(), nil))
	if err != nil {
		return g.fault(doing, err)
	}
	if !p.OnlyAllowMergeIfPipelineSucceeds {
		return fmt.Errorf("%s: the project merges without a pipeline that has succeeded, so that it could be merged at once (switch on Pipelines must succeed under Settings, Merge requests, or set auto_merge to a duration): %w", doing, ErrUnsupported)
	}
	opt, err := acceptOptions(p, headCommit, method)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	opt.AutoMerge = ptr(true)
	//lint:ignore SA1019 it is the name that servers before 17.11 know
	opt.MergeWhenPipelineSucceeds = ptr(true)
	_, err = given(client.MergeRequests.AcceptMergeRequest(g.path(), number, opt))
	return g.mergeFault(doing, err)
}

// acceptOptions says how to merge. Whether GitLab makes a merge commit or
// rebases is a setting of the project.
func acceptOptions(p *sdk.Project, headCommit, method string) (*sdk.AcceptMergeRequestOptions, error) {
	opt := &sdk.AcceptMergeRequestOptions{SHA: &headCommit}
	rebases := p.MergeMethod == sdk.RebaseMerge || p.MergeMethod == sdk.FastForwardMerge
	switch {
	case method == "squash":
		opt.Squash = ptr(true)
	case method == "rebase" && !rebases:
		return nil, fmt.Errorf("the project's merge method is a merge commit (change it under Settings, Merge requests, or set merge_method): %w", ErrUnsupported)
	}
	return opt, nil
}

// Merge implements Forge.
func (g *gitlab) Merge(ctx context.Context, number int64, headCommit, method string) error {
	doing := fmt.Sprintf("merge %s!%d", g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	p, err := given(client.Projects.GetProject(g.path(), nil))
	if err != nil {
		return g.fault(doing, err)
	}
	opt, err := acceptOptions(p, headCommit, method)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	_, err = given(client.MergeRequests.AcceptMergeRequest(g.path(), number, opt))
	return g.mergeFault(doing, err)
}

// Checks implements Forge: the newest pipeline of each source. Other systems'
// statuses are jobs of a pipeline too.
func (g *gitlab) Checks(ctx context.Context, commit, base string) (Checks, error) {
	doing := fmt.Sprintf("read the pipelines of %.12s in %s", commit, g.path())
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Checks{}, err
	}
	p, err := given(client.Projects.GetProject(g.path(), nil))
	if err != nil {
		return Checks{}, g.fault(doing, err)
	}
	list, _, err := client.Pipelines.ListProjectPipelines(g.path(), &sdk.ListProjectPipelinesOptions{
		ListOptions: sdk.ListOptions{PerPage: gitlabPage}, SHA: &commit, OrderBy: ptr("id"), Sort: ptr("desc"),
	})
	if err != nil {
		return Checks{}, g.fault(doing, err)
	}
	out := Checks{State: "none", Required: p.OnlyAllowMergeIfPipelineSucceeds}
	var sources []string
	for _, one := range list {
		if one == nil || slices.Contains(sources, one.Source) {
			continue
		}
		sources = append(sources, one.Source)
		out.Total++
		state := pipelineState(one.Status, p.AllowMergeOnSkippedPipeline)
		out.State = worse(out.State, state)
		if state == "failure" {
			failed, err := g.failedJobs(client, one)
			if err != nil {
				return Checks{}, g.fault(doing, err)
			}
			out.Failed = append(out.Failed, failed...)
		}
	}
	return out, nil
}

// pipelineState maps the states of pipelines. One that waits for a person is
// pending: GitLab does not merge with it where pipelines must succeed.
func pipelineState(status string, skippedOK bool) string {
	switch status {
	case "success":
		return "success"
	case "skipped":
		if skippedOK {
			return "success"
		}
		return "failure"
	case "failed", "canceled", "canceling":
		return "failure"
	}
	return "pending"
}

func worse(a, b string) string {
	order := []string{"none", "success", "pending", "failure"}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// failedJobs names the jobs that made a pipeline fail.
func (g *gitlab) failedJobs(client *sdk.Client, one *sdk.PipelineInfo) ([]string, error) {
	jobs, _, err := client.Jobs.ListPipelineJobs(g.path(), one.ID, &sdk.ListJobsOptions{
		ListOptions: sdk.ListOptions{PerPage: 20}, Scope: &[]sdk.BuildStateValue{sdk.Failed},
	})
	var r *refusal
	if errors.As(err, &r) && (r.status == http.StatusForbidden || r.status == http.StatusNotFound) {
		jobs, err = nil, nil // jobs may be for members only
	}
	var names []string
	for _, j := range jobs {
		if j != nil && !j.AllowFailure {
			names = append(names, oneLine(j.Name))
		}
	}
	if len(names) == 0 {
		names = []string{"pipeline " + oneLine(one.Status)}
	}
	return names, err
}
