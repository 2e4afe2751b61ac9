package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/google/go-github/v92/github"
)

// Checks sums up the two kinds of checks that GitHub has, statuses and check
// runs, and looks up what base requires. A required check that has not begun is
// pending.
func (h *hub) Checks(ctx context.Context, commit, base string) (Checks, error) {
	ctx = h.t.call(ctx)
	if !hubID.MatchString(commit) {
		return Checks{}, fmt.Errorf("look at the checks of %s: %q is no commit", h.repo(), hubShort(commit))
	}
	states := map[string]string{}
	if err := h.statuses(ctx, commit, states); err != nil {
		return Checks{}, h.fail("look at the statuses of "+h.repo()+"@"+hubShort(commit), err)
	}
	if err := h.runs(ctx, commit, states); err != nil {
		return Checks{}, h.fail("look at the checks of "+h.repo()+"@"+hubShort(commit), err)
	}
	required, err := h.required(ctx, base)
	if err != nil {
		return Checks{}, h.fail("look at what "+h.repo()+" requires of branch "+base, err)
	}
	return hubSum(states, required), nil
}

// hubSum makes one answer of the states of checks by name.
func hubSum(states map[string]string, required []string) Checks {
	for _, name := range required {
		if states[name] == "" {
			states[name] = "pending"
		}
	}
	c := Checks{State: "none", Total: len(states), Required: len(required) > 0}
	pending := false
	for name, state := range states {
		switch state {
		case "failure":
			c.Failed = append(c.Failed, name)
		case "pending":
			pending = true
		}
	}
	slices.Sort(c.Failed)
	switch {
	case len(c.Failed) > 0:
		c.State = "failure"
	case pending:
		c.State = "pending"
	case c.Total > 0:
		c.State = "success"
	}
	return c
}

func (h *hub) statuses(ctx context.Context, commit string, into map[string]string) error {
	o := &github.ListOptions{PerPage: hubPerPage}
	for range hubMaxPages {
		all, res, err := h.client.Repositories.GetCombinedStatus(ctx, h.owner, h.name, commit, o)
		if err != nil {
			return err
		}
		for _, s := range all.Statuses {
			state := s.GetState()
			if state == "error" {
				state = "failure"
			}
			into[s.GetContext()] = state
		}
		if res.NextPage == 0 {
			return nil
		}
		o.Page = res.NextPage
	}
	return nil
}

func (h *hub) runs(ctx context.Context, commit string, into map[string]string) error {
	o := &github.ListCheckRunsOptions{Filter: new("latest"), ListOptions: github.ListOptions{PerPage: hubPerPage}}
	for range hubMaxPages {
		all, res, err := h.client.Checks.ListCheckRunsForRef(ctx, h.owner, h.name, commit, o)
		// A token without checks=read sees the statuses at least.
		if code := hubStatus(err); code == http.StatusForbidden || code == http.StatusNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		for _, r := range all.CheckRuns {
			state := hubRunState(r)
			// Runs of one name, of several Apps: the worst counts.
			if into[r.GetName()] != "failure" && (into[r.GetName()] != "pending" || state == "failure") {
				into[r.GetName()] = state
			}
		}
		if res.NextPage == 0 {
			return nil
		}
		o.Page = res.NextPage
	}
	return nil
}

func hubRunState(r *github.CheckRun) string {
	if r.GetStatus() != "completed" {
		return "pending"
	}
	switch r.GetConclusion() {
	case "success", "neutral", "skipped":
		return "success"
	}
	return "failure"
}

// required lists the checks that a branch requires, by its protection and by
// rules. Who may not see the one may see the other; what neither shows is taken
// for not there.
func (h *hub) required(ctx context.Context, branch string) ([]string, error) {
	if branch == "" {
		return nil, nil
	}
	names := map[string]bool{}
	// The branch itself tells readers more than its protection, which is for
	// administrators.
	path := fmt.Sprintf("repos/%s/%s/branches/%s", h.owner, h.name, url.PathEscape(branch))
	req, err := h.client.NewRequest(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	var found struct {
		Protection struct {
			Required struct {
				Level    string   `json:"enforcement_level"`
				Contexts []string `json:"contexts"`
			} `json:"required_status_checks"`
		} `json:"protection"`
	}
	if _, err := h.client.Do(req, &found); err != nil && !hubHidden(err) {
		return nil, err
	}
	if found.Protection.Required.Level != "off" {
		for _, name := range found.Protection.Required.Contexts {
			names[name] = true
		}
	}
	rules, _, err := h.client.Repositories.ListRulesForBranch(ctx, h.owner, h.name, branch, &github.ListOptions{PerPage: hubPerPage})
	if err != nil && !hubHidden(err) {
		return nil, err
	}
	if rules != nil {
		for _, rule := range rules.RequiredStatusChecks {
			for _, check := range rule.Parameters.RequiredStatusChecks {
				if check != nil {
					names[check.Context] = true
				}
			}
		}
	}
	var list []string
	for name := range names {
		list = append(list, name)
	}
	slices.Sort(list)
	return list, nil
}

func hubHidden(err error) bool {
	code := hubStatus(err)
	return code == http.StatusForbidden || code == http.StatusNotFound
}
