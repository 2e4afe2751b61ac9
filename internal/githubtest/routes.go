package githubtest

import (
	"net/http"
	"strings"
)

// routes are the calls that the server knows, as patterns of net/http.
func (s *Server) routes() map[string]action {
	const repo = "/repos/{owner}/{repo}"
	return map[string]action{
		"POST /graphql": graphql,
		"GET /app":      getApp,
		"POST /app/installations/{id}/access_tokens":      postInstallationToken,
		"GET " + repo + "/installation":                   getInstallation,
		"GET /user":                                       getUser,
		"GET /users/{login}":                              getUserByLogin,
		"GET " + repo:                                     getRepo,
		"POST " + repo + "/forks":                         postFork,
		"POST " + repo + "/merge-upstream":                postMergeUpstream,
		"GET " + repo + "/branches/{branch...}":           getBranch,
		"GET " + repo + "/rules/branches/{branch...}":     getRules,
		"GET " + repo + "/commits/{sha}":                  getCommit,
		"GET " + repo + "/commits/{sha}/status":           getStatus,
		"GET " + repo + "/commits/{sha}/check-runs":       getCheckRuns,
		"GET " + repo + "/git/ref/{ref...}":               getRef,
		"POST " + repo + "/git/refs":                      postRef,
		"PATCH " + repo + "/git/refs/{ref...}":            patchRef,
		"DELETE " + repo + "/git/refs/{ref...}":           deleteRef,
		"GET " + repo + "/git/commits/{sha}":              getGitCommit,
		"POST " + repo + "/git/commits":                   postGitCommit,
		"GET " + repo + "/git/trees/{sha}":                getTree,
		"POST " + repo + "/git/trees":                     postTree,
		"GET " + repo + "/git/blobs/{sha}":                getBlob,
		"POST " + repo + "/git/blobs":                     postBlob,
		"GET " + repo + "/pulls":                          listPulls,
		"POST " + repo + "/pulls":                         postPull,
		"GET " + repo + "/pulls/{n}":                      getPull,
		"PATCH " + repo + "/pulls/{n}":                    patchPull,
		"PUT " + repo + "/pulls/{n}/merge":                putMerge,
		"POST " + repo + "/pulls/{n}/requested_reviewers": postReviewers,
		"GET " + repo + "/pulls/{n}/reviews":              listReviews,
		"GET " + repo + "/issues":                         listIssues,
		"POST " + repo + "/issues":                        postIssue,
		"PATCH " + repo + "/issues/{n}":                   patchIssue,
		"POST " + repo + "/issues/{n}/labels":             postLabels,
		"DELETE " + repo + "/issues/{n}/labels/{name}":    deleteLabel,
		"POST " + repo + "/issues/{n}/assignees":          postAssignees,
		"GET " + repo + "/issues/{n}/comments":            listComments,
		"POST " + repo + "/issues/{n}/comments":           postComment,
		"PATCH " + repo + "/issues/comments/{id}":         patchComment,
	}
}

func ok(body any) (answer, *refusal) { return answer{http.StatusOK, body}, nil }

func made(body any) (answer, *refusal) { return answer{http.StatusCreated, body}, nil }

func no(r *refusal) (answer, *refusal) { return answer{}, r }

func getUser(c *call) (answer, *refusal) {
	if c.who.bot {
		return no(refuse(http.StatusForbidden, "Resource not accessible by integration"))
	}
	return ok(c.s.fullUser(c.who.user))
}

func getUserByLogin(c *call) (answer, *refusal) {
	u := c.s.users[strings.ToLower(c.r.PathValue("login"))]
	if u == nil {
		return no(notFound())
	}
	return ok(c.s.fullUser(u))
}

func getRepo(c *call) (answer, *refusal) { return ok(c.repo.body(c.who)) }

// postFork makes a fork, which is there after a few requests only. One that is
// there already is the answer, whatever its name.
func postFork(c *call) (answer, *refusal) {
	var asked struct {
		Organization string `json:"organization"`
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	if c.who.bot {
		return no(refuse(http.StatusForbidden, "Resource not accessible by integration"))
	}
	owner := c.who.user
	if asked.Organization != "" {
		if owner = c.s.users[strings.ToLower(asked.Organization)]; owner == nil || owner.kind != "Organization" {
			return no(invalid("Fork", "organization", "invalid", "'"+asked.Organization+"' is not an organization"))
		}
	}
	for _, r := range c.s.repos {
		if r.of == c.repo && r.owner == owner {
			return answer{http.StatusAccepted, r.body(c.who)}, nil
		}
	}
	name := c.repo.name
	for c.s.repos[strings.ToLower(owner.login+"/"+name)] != nil {
		name += "-1"
	}
	fork := c.s.add(owner, name, c.repo.net)
	fork.of, fork.readyAt = c.repo, 2
	fork.permissions[strings.ToLower(c.who.user.login)] = "admin"
	fork.set("main", c.repo.tip("main"))
	return answer{http.StatusAccepted, fork.body(c.who)}, nil
}

func postMergeUpstream(c *call) (answer, *refusal) {
	var asked struct {
		Branch string `json:"branch"`
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	if bad := c.mayWrite("contents"); bad != nil {
		return no(bad)
	}
	if c.repo.of == nil {
		return no(refuse(http.StatusUnprocessableEntity, "The repository is not a fork"))
	}
	c.repo.set(asked.Branch, c.repo.of.tip(asked.Branch))
	return ok(object{"message": "Successfully fetched and fast-forwarded", "merge_type": "fast-forward", "base_branch": c.repo.of.owner.login + ":" + asked.Branch})
}
