package githubtest

import (
	"net/http"
	"regexp"
	"strings"
)

// operation finds what a GraphQL document asks for. The server knows no more of
// GraphQL than the operations below, each in one shape.
var operation = regexp.MustCompile(`^(query\{viewer\{login databaseId\}\}|mutation\(([^)]*)\)\{([a-zA-Z]+)\(input:\{([^}]*)\}\)\{pullRequest\{(?:isDraft|number)\}\}\})$`)

// inputs are the variables that the mutations take, and the types that GitHub's
// schema gives them.
var inputs = map[string]struct{ variables, input string }{
	"markPullRequestReadyForReview": {"$id:ID!", "pullRequestId:$id"},
	"convertPullRequestToDraft":     {"$id:ID!", "pullRequestId:$id"},
	"disablePullRequestAutoMerge":   {"$id:ID!", "pullRequestId:$id"},
	"enablePullRequestAutoMerge": {"$id:ID!,$method:PullRequestMergeMethod,$head:GitObjectID",
		"pullRequestId:$id,mergeMethod:$method,expectedHeadOid:$head"},
}

func graphError(kind, message string) (answer, *refusal) {
	return ok(object{"data": nil, "errors": []any{object{"type": kind, "message": message}}})
}

func graphql(c *call) (answer, *refusal) {
	var asked struct {
		Query     string
		Variables struct{ ID, Method, Head string }
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	found := operation.FindStringSubmatch(asked.Query)
	if found == nil {
		return no(refuse(http.StatusBadRequest, "the document is none that is known: %s", asked.Query))
	}
	if found[3] == "" {
		return ok(object{"data": object{"viewer": object{"login": c.who.user.login, "databaseId": c.who.user.id}}})
	}
	shape, known := inputs[found[3]]
	if !known || shape.variables != found[2] || shape.input != found[4] {
		return no(refuse(http.StatusBadRequest, "%s has not the variables of GitHub's schema", found[3]))
	}
	repo, i := c.s.pullByNode(asked.Variables.ID)
	switch {
	case i == nil:
		return graphError("NOT_FOUND", "Could not resolve to a node with the global id of '"+asked.Variables.ID+"'")
	case !repo.may(c.who, "push") && i.author != c.who.user:
		return graphError("FORBIDDEN", "Resource not accessible by personal access token")
	}
	switch found[3] {
	case "markPullRequestReadyForReview", "convertPullRequestToDraft":
		i.pull.draft = found[3] == "convertPullRequestToDraft"
	case "disablePullRequestAutoMerge":
		i.pull.auto = ""
	default:
		return repo.enableAutoMerge(i, strings.ToLower(asked.Variables.Method), asked.Variables.Head)
	}
	return ok(object{"data": object{found[3]: object{"pullRequest": object{"number": i.number}}}})
}

func (r *Repo) enableAutoMerge(i *item, method, head string) (answer, *refusal) {
	switch {
	case !r.autoMerge:
		return graphError("UNPROCESSABLE", "Auto merge is not allowed for this repository")
	case head != i.pull.sha:
		return graphError("UNPROCESSABLE", "Head sha does not match expectedHeadOid")
	case len(r.required[i.pull.base])+len(r.rules[i.pull.base]) == 0:
		return graphError("UNPROCESSABLE", "Pull request Pull request is in clean status")
	}
	i.pull.auto = method
	return ok(object{"data": object{"enablePullRequestAutoMerge": object{"pullRequest": object{"number": i.number}}}})
}

func (s *Server) pullByNode(id string) (*Repo, *item) {
	for _, r := range s.repos {
		for _, i := range r.items {
			if i.pull != nil && node("PR", i.id) == id {
				return r, i
			}
		}
	}
	return nil, nil
}
