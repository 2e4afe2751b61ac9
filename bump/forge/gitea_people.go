package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
)

// labelColor is that of labels which are made here.
const labelColor = "#6e40c9"

// AddLabels implements Forge. Labels that neither the repository nor its
// organisation has are made; where that is not allowed, the others are added
// all the same and the error names the ones that are missing.
func (g *gitea) AddLabels(ctx context.Context, number int64, labels []string) error {
	doing := fmt.Sprintf("label %s#%d", g.path(), number)
	if len(labels) == 0 {
		return nil
	}
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	ids, missing, err := g.labelIDs(client, labels)
	if len(ids) > 0 {
		_, _, aerr := client.AddIssueLabels(g.c.Owner, g.c.Name, number, sdk.IssueLabelsOption{Labels: ids})
		if aerr != nil {
			return g.fault(doing, aerr)
		}
	}
	if err != nil {
		return g.fault(doing+", for which there is no label "+strings.Join(missing, ", "), err)
	}
	return nil
}

// labelIDs returns the ids of labels, made where they are missing. The ids that
// it has stand with an error too, and the names that it has none for.
func (g *gitea) labelIDs(client *sdk.Client, labels []string) (ids []int64, missing []string, err error) {
	known, err := g.knownLabels(client)
	if err != nil {
		return nil, labels, err
	}
	for _, name := range labels {
		id, ok := known[name]
		if !ok {
			l, _, cerr := client.CreateLabel(g.c.Owner, g.c.Name, sdk.CreateLabelOption{Name: name, Color: labelColor})
			if cerr != nil {
				err, missing = cerr, append(missing, name)
				continue
			}
			id, known[name] = l.ID, l.ID
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, missing, err
}

// knownLabels returns the labels of the repository, and of the organisation
// that owns it.
func (g *gitea) knownLabels(client *sdk.Client) (map[string]int64, error) {
	known := map[string]int64{}
	read := func(list func(sdk.ListOptions) ([]*sdk.Label, *sdk.Response, error)) error {
		return pages(func(o sdk.ListOptions) (int, *sdk.Response, error) {
			labels, resp, err := list(o)
			if err != nil {
				return 0, nil, err
			}
			for _, l := range labels {
				if l == nil {
					continue
				}
				if _, has := known[l.Name]; !has {
					known[l.Name] = l.ID
				}
			}
			return len(labels), resp, nil
		})
	}
	err := read(func(o sdk.ListOptions) ([]*sdk.Label, *sdk.Response, error) {
		return client.ListRepoLabels(g.c.Owner, g.c.Name, sdk.ListLabelsOptions{ListOptions: o})
	})
	if err != nil {
		return nil, err
	}
	err = read(func(o sdk.ListOptions) ([]*sdk.Label, *sdk.Response, error) {
		return client.ListOrgLabels(g.c.Owner, sdk.ListOrgLabelsOptions{ListOptions: o})
	})
	var r *refusal
	if errors.As(err, &r) && (r.status == http.StatusNotFound || r.status == http.StatusForbidden) {
		err = nil // a user has none, and a token may know the repository alone
	}
	return known, err
}

// RemoveLabel implements Forge. One that is not there is gone already.
func (g *gitea) RemoveLabel(ctx context.Context, number int64, label string) error {
	doing := fmt.Sprintf("take label %s off %s#%d", label, g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	labels, _, err := client.GetIssueLabels(g.c.Owner, g.c.Name, number, sdk.ListLabelsOptions{})
	if err != nil {
		return g.fault(doing, err)
	}
	for _, l := range labels {
		if l == nil || l.Name != label {
			continue
		}
		if _, err := client.DeleteIssueLabel(g.c.Owner, g.c.Name, number, l.ID); err != nil {
			return g.fault(doing, err)
		}
	}
	return nil
}

// Ask implements Forge. Who opened the request, has been asked or has reviewed
// is not asked again: each time is a mail.
func (g *gitea) Ask(ctx context.Context, number int64, users, teams []string) error {
	doing := fmt.Sprintf("ask for reviews of %s#%d", g.path(), number)
	if len(users)+len(teams) == 0 {
		return nil
	}
	client, call, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	p, err := g.settled(ctx, client, call, number)
	if err != nil {
		return g.fault(doing, err)
	}
	known := func(name string) bool {
		return slices.ContainsFunc(append([]string{p.Author}, p.Reviewers...), func(s string) bool { return strings.EqualFold(s, name) })
	}
	var opt sdk.PullReviewRequestOptions
	for _, name := range users {
		if !known(name) {
			opt.Reviewers = append(opt.Reviewers, name)
		}
	}
	for _, name := range teams {
		if _, team, ok := strings.Cut(name, "/"); ok {
			name = team
		}
		if !known(g.c.Owner + "/" + name) {
			opt.TeamReviewers = append(opt.TeamReviewers, name)
		}
	}
	if len(opt.Reviewers)+len(opt.TeamReviewers) == 0 {
		return nil
	}
	if _, err = client.CreateReviewRequests(g.c.Owner, g.c.Name, number, opt); err != nil {
		return g.fault(doing, err)
	}
	return nil
}

// Assign implements Forge. Those who are assigned stay so.
func (g *gitea) Assign(ctx context.Context, number int64, users []string) error {
	doing := fmt.Sprintf("assign %s#%d", g.path(), number)
	if len(users) == 0 {
		return nil
	}
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	p, _, err := client.GetPullRequest(g.c.Owner, g.c.Name, number)
	if err != nil {
		return g.fault(doing, err)
	}
	have := giteaNames(p.Assignees)
	all := slices.Clone(have)
	for _, name := range users {
		if !slices.ContainsFunc(all, func(s string) bool { return strings.EqualFold(s, name) }) {
			all = append(all, name)
		}
	}
	if len(all) == len(have) {
		return nil
	}
	_, _, err = client.EditPullRequest(g.c.Owner, g.c.Name, number, sdk.EditPullRequestOption{Assignees: all})
	return g.fault(doing, err)
}
