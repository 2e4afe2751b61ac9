package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// hubGraphError is a refusal of GitHub's GraphQL API, which has the status 200.
type hubGraphError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (e *hubGraphError) Error() string { return e.Message }

// query does one GraphQL operation: what the REST API lacks. Values go into
// variables, never into the text.
func (h *hub) query(ctx context.Context, text string, variables map[string]any, into any) error {
	body := map[string]any{"query": text}
	if variables != nil {
		body["variables"] = variables
	}
	req, err := h.client.NewRequest(ctx, http.MethodPost, h.graphql, body)
	if err != nil {
		return err
	}
	var answer struct {
		Data   json.RawMessage  `json:"data"`
		Errors []*hubGraphError `json:"errors"`
	}
	if _, err := h.client.Do(req, &answer); err != nil {
		return err
	}
	if len(answer.Errors) > 0 && answer.Errors[0] != nil {
		first := answer.Errors[0]
		return &hubGraphError{first.Type, h.t.detail(first.Message)}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		return fmt.Errorf("read the answer of GitHub's GraphQL API: %w", err)
	}
	return nil
}

// graphFail makes an error of this package's of what a GraphQL operation said.
func (h *hub) graphFail(doing string, err error) error {
	graph, ok := err.(*hubGraphError)
	if !ok {
		return h.fail(doing, err)
	}
	low := strings.ToLower(graph.Message)
	switch {
	case graph.Type == "FORBIDDEN" || graph.Type == "INSUFFICIENT_SCOPES" || strings.Contains(low, "not accessible by"):
		return &AuthError{Doing: doing, Detail: graph.Message, Hint: "it takes pull_requests=write and contents=write, or the scope repo"}
	case graph.Type == "RATE_LIMITED":
		return &LimitError{Doing: doing, Until: h.t.now().Add(secondaryWait)}
	case graph.Type == "NOT_FOUND":
		return fmt.Errorf("%s: %w: %s", doing, ErrNotFound, graph.Message)
	case strings.Contains(low, "head oid"), strings.Contains(low, "head sha"), strings.Contains(low, "expectedheadoid"):
		return fmt.Errorf("%s: %w: %s", doing, ErrMoved, graph.Message)
	}
	return fmt.Errorf("%s: %w: %s", doing, ErrUnsupported, graph.Message)
}

// setDraft makes a pull request a draft, or ready for review.
func (h *hub) setDraft(ctx context.Context, number int64, node string, draft bool) error {
	text := "mutation($id:ID!){markPullRequestReadyForReview(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
	if draft {
		text = "mutation($id:ID!){convertPullRequestToDraft(input:{pullRequestId:$id}){pullRequest{isDraft}}}"
	}
	if err := h.query(repeatable(ctx), text, map[string]any{"id": node}, nil); err != nil {
		return h.graphFail(fmt.Sprintf("set the draft state of %s#%d", h.repo(), number), err)
	}
	return nil
}

// AutoMerge has GitHub merge when everything that the branch asks for is there.
func (h *hub) AutoMerge(ctx context.Context, number int64, headCommit string, on bool, method string) error {
	ctx = h.t.call(ctx)
	doing := fmt.Sprintf("set the merging of %s#%d when its checks have passed", h.repo(), number)
	if _, err := hubMergeMethod(method); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	p, _, err := h.client.PullRequests.Get(ctx, h.owner, h.name, int(number))
	if err != nil {
		return h.fail(doing, err)
	}
	if (p.AutoMerge != nil) == on {
		return nil
	}
	if at := p.GetHead().GetSHA(); on && headCommit != "" && at != headCommit {
		return fmt.Errorf("%s: %w: it is at %s", doing, ErrMoved, hubShort(at))
	}
	variables := map[string]any{"id": p.GetNodeID()}
	text := "mutation($id:ID!){disablePullRequestAutoMerge(input:{pullRequestId:$id}){pullRequest{number}}}"
	if on {
		text = "mutation($id:ID!,$method:PullRequestMergeMethod,$head:GitObjectID){enablePullRequestAutoMerge(" +
			"input:{pullRequestId:$id,mergeMethod:$method,expectedHeadOid:$head}){pullRequest{number}}}"
		m, _ := hubMergeMethod(method)
		variables["method"] = strings.ToUpper(m)
		variables["head"] = p.GetHead().GetSHA()
	}
	if err := h.query(repeatable(ctx), text, variables, nil); err != nil {
		return h.graphFail(doing, hubExplainAutoMerge(err))
	}
	return nil
}

// hubExplainAutoMerge adds what to do to GitHub's two usual refusals.
func hubExplainAutoMerge(err error) error {
	graph, ok := err.(*hubGraphError)
	if !ok {
		return err
	}
	low := strings.ToLower(graph.Message)
	hint := ""
	switch {
	case strings.Contains(low, "not allowed for this repository"):
		hint = "turn on Allow auto-merge in the repository's settings"
	case strings.Contains(low, "clean status"), strings.Contains(low, "unstable status"):
		hint = "nothing is left for it to wait for: the base branch requires no checks or reviews, so protect it with required checks first"
	default:
		return err
	}
	return &hubGraphError{graph.Type, graph.Message + " (" + hint + ")"}
}

// hubMergeMethod checks the name of a way to merge; "" is merge.
func hubMergeMethod(method string) (string, error) {
	switch method {
	case "":
		return "merge", nil
	case "merge", "squash", "rebase":
		return method, nil
	}
	return "", fmt.Errorf("%w: there is no merge method %q (merge, squash or rebase)", ErrUnsupported, method)
}

func hubShort(id string) string { return id[:min(len(id), 12)] }
