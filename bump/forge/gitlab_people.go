package forge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	sdk "gitlab.com/gitlab-org/api/client-go/v2"
)

// AddLabels implements Forge. GitLab makes the labels that it does not know.
func (g *gitlab) AddLabels(ctx context.Context, number int64, labels []string) error {
	doing := fmt.Sprintf("label %s!%d", g.path(), number)
	if len(labels) == 0 {
		return nil
	}
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	if err := checkLabels(labels); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	add := sdk.LabelOptions(labels)
	_, err = g.update(client, number, sdk.UpdateMergeRequestOptions{AddLabels: &add})
	return g.fault(doing, err)
}

// checkLabels refuses what GitLab's lists of labels cannot say.
func checkLabels(labels []string) error {
	for _, l := range labels {
		if strings.Contains(l, ",") || strings.TrimSpace(l) == "" {
			return fmt.Errorf("label %q: it is empty or holds a comma, which GitLab does not take", l)
		}
	}
	return nil
}

// RemoveLabel implements Forge.
func (g *gitlab) RemoveLabel(ctx context.Context, number int64, label string) error {
	doing := fmt.Sprintf("take label %s off %s!%d", label, g.path(), number)
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	if err := checkLabels([]string{label}); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	_, err = g.update(client, number, sdk.UpdateMergeRequestOptions{RemoveLabels: &sdk.LabelOptions{label}})
	return g.fault(doing, err)
}

// Ask implements Forge. Groups cannot be asked for a review on GitLab: rules of
// approval and CODEOWNERS do that.
func (g *gitlab) Ask(ctx context.Context, number int64, users, teams []string) error {
	doing := fmt.Sprintf("ask for reviews of %s!%d", g.path(), number)
	if len(users) > 0 {
		err := g.addPeople(ctx, doing, number, users,
			func(m *sdk.MergeRequest) []*sdk.BasicUser { return m.Reviewers },
			func(ids []int64) sdk.UpdateMergeRequestOptions {
				return sdk.UpdateMergeRequestOptions{ReviewerIDs: &ids}
			})
		if err != nil {
			return err
		}
	}
	if len(teams) > 0 {
		return fmt.Errorf("%s: of groups, such as %s (name users, or use approval rules): %w", doing, teams[0], ErrUnsupported)
	}
	return nil
}

// Assign implements Forge. Those who are assigned stay so. GitLab without a
// licence keeps one alone, the first.
func (g *gitlab) Assign(ctx context.Context, number int64, users []string) error {
	doing := fmt.Sprintf("assign %s!%d", g.path(), number)
	if len(users) == 0 {
		return nil
	}
	return g.addPeople(ctx, doing, number, users,
		func(m *sdk.MergeRequest) []*sdk.BasicUser { return m.Assignees },
		func(ids []int64) sdk.UpdateMergeRequestOptions {
			return sdk.UpdateMergeRequestOptions{AssigneeIDs: &ids}
		})
}

// addPeople adds users to those that a merge request has, unless all are there.
func (g *gitlab) addPeople(ctx context.Context, doing string, number int64, users []string, have func(*sdk.MergeRequest) []*sdk.BasicUser, change func([]int64) sdk.UpdateMergeRequestOptions) error {
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	m, err := given(client.MergeRequests.GetMergeRequest(g.path(), number, nil))
	if err != nil {
		return g.fault(doing, err)
	}
	var ids []int64
	for _, u := range have(m) {
		if u != nil {
			ids = append(ids, u.ID)
		}
	}
	before := len(ids)
	names := gitlabNames(have(m))
	for _, name := range users {
		if slices.ContainsFunc(names, func(s string) bool { return strings.EqualFold(s, name) }) {
			continue
		}
		id, err := userID(client, name)
		if err != nil {
			return g.fault(doing, err)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == before {
		return nil
	}
	_, err = g.update(client, number, change(ids))
	return g.fault(doing, err)
}

// userID returns the id that GitLab wants in place of a name.
func userID(client *sdk.Client, name string) (int64, error) {
	list, _, err := client.Users.ListUsers(&sdk.ListUsersOptions{Username: &name})
	if err != nil {
		return 0, err
	}
	for _, u := range list {
		if u != nil && strings.EqualFold(u.Username, name) {
			return u.ID, nil
		}
	}
	return 0, fmt.Errorf("user %s: %w", name, ErrNotFound)
}
