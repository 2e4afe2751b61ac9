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

func giteaStyle(method string) sdk.MergeStyle {
	if method == "" {
		return sdk.MergeStyleMerge
	}
	return sdk.MergeStyle(method) // merge, squash and rebase have the same names
}

// AutoMerge implements Forge. Where the base asks for no checks Gitea would
// merge at once, which is not what was asked for. A request that is scheduled
// already stays so.
func (g *gitea) AutoMerge(ctx context.Context, number int64, headCommit string, on bool, method string) error {
	doing := fmt.Sprintf("let %s#%d merge itself", g.path(), number)
	client, call, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	var r *refusal
	if !on {
		_, err := client.CancelScheduledAutoMerge(g.c.Owner, g.c.Name, number)
		if errors.As(err, &r) && r.status == http.StatusNotFound {
			return nil // none is scheduled
		}
		return g.fault("take back to "+doing, err)
	}
	p, _, err := client.GetPullRequest(g.c.Owner, g.c.Name, number)
	if err != nil {
		return g.fault(doing, err)
	}
	if p.Base == nil || p.Head == nil || p.Head.Sha != headCommit {
		return fmt.Errorf("%s: %w", doing, ErrMoved)
	}
	branch, err := g.branch(client, p.Base.Ref)
	if err != nil {
		return g.fault(doing, err)
	}
	if !branch.EnableStatusCheck || len(branch.StatusCheckContexts) == 0 {
		return fmt.Errorf("%s: the protection of branch %s asks for no status checks, so that it would be merged at once (protect it with status checks, or set auto_merge to a duration): %w", doing, p.Base.Ref, ErrUnsupported)
	}
	err = g.merge(ctx, client, call, number, sdk.MergePullRequestOption{
		Style: giteaStyle(method), HeadCommitId: headCommit, MergeWhenChecksSucceed: true,
	})
	if errors.As(err, &r) && r.status == http.StatusConflict {
		return nil // scheduled already: the head was looked at above
	}
	return g.mergeFault(doing, err)
}

// Merge implements Forge.
func (g *gitea) Merge(ctx context.Context, number int64, headCommit, method string) error {
	doing := fmt.Sprintf("merge %s#%d", g.path(), number)
	client, call, err := g.begin(ctx, doing)
	if err != nil {
		return err
	}
	err = g.merge(ctx, client, call, number, sdk.MergePullRequestOption{Style: giteaStyle(method), HeadCommitId: headCommit})
	return g.mergeFault(doing, err)
}

// merge asks Gitea to merge, again for as long as it is still looking for
// conflicts, which it does anew after each change of the base or its protection.
func (g *gitea) merge(ctx context.Context, client *sdk.Client, call *sdkCall, number int64, opt sdk.MergePullRequestOption) error {
	for try := 0; ; try++ {
		_, _, err := client.MergePullRequest(g.c.Owner, g.c.Name, number, opt)
		var r *refusal
		if try == 5 || !errors.As(err, &r) || r.status != http.StatusMethodNotAllowed || !strings.Contains(r.message, "try again later") {
			return err
		}
		if err := call.sleep(ctx, 100*time.Millisecond<<try); err != nil {
			return err
		}
	}
}

// Checks implements Forge: the newest status of each context, and those that
// the base's protection asks for and that nobody has reported yet.
func (g *gitea) Checks(ctx context.Context, commit, base string) (Checks, error) {
	doing := fmt.Sprintf("read the checks of %.12s in %s", commit, g.path())
	client, _, err := g.begin(ctx, doing)
	if err != nil {
		return Checks{}, err
	}
	newest := map[string]*sdk.Status{}
	err = pages(func(o sdk.ListOptions) (int, *sdk.Response, error) {
		list, resp, err := client.ListStatuses(g.c.Owner, g.c.Name, commit, sdk.ListStatusesOption{ListOptions: o})
		if err != nil {
			return 0, nil, err
		}
		for _, s := range list {
			if s != nil && (newest[s.Context] == nil || newest[s.Context].ID < s.ID) {
				newest[s.Context] = s
			}
		}
		return len(list), resp, nil
	})
	if err != nil {
		return Checks{}, g.fault(doing, err)
	}
	branch, err := g.branch(client, base)
	if err != nil {
		return Checks{}, g.fault(doing, err)
	}
	var required []string
	if branch.EnableStatusCheck {
		required = branch.StatusCheckContexts
	}
	return giteaChecks(newest, required), nil
}

func (g *gitea) branch(client *sdk.Client, name string) (*sdk.Branch, error) {
	b, _, err := client.GetRepoBranch(g.c.Owner, g.c.Name, name)
	if err == nil && b == nil {
		err = errors.New("the forge answered with nothing")
	}
	return b, err
}

func giteaChecks(newest map[string]*sdk.Status, required []string) Checks {
	out := Checks{State: "none", Total: len(newest), Required: len(required) > 0}
	var pending bool
	for name, s := range newest {
		switch s.State {
		case sdk.StatusSuccess, "skipped":
		case sdk.StatusPending, "":
			pending = true
		default: // failure, error, and warning, which Gitea does not merge with either
			out.Failed = append(out.Failed, oneLine(name))
		}
	}
	for _, pattern := range required {
		met := false
		for name := range newest {
			met = met || wild(pattern, name)
		}
		pending = pending || !met
	}
	slices.Sort(out.Failed)
	switch {
	case len(out.Failed) > 0:
		out.State = "failure"
	case pending:
		out.State = "pending"
	case out.Total > 0:
		out.State = "success"
	}
	return out
}

// wild matches the patterns of a branch's protection as far as '*' goes; one
// with other signs matches only itself, so that what is in doubt is waited for.
func wild(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		_, after, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, last)
}
