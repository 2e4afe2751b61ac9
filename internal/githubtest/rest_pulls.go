package githubtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// find is the issue or pull request that the path names.
func (c *call) find(pull bool) (*item, *refusal) {
	n, _ := strconv.Atoi(c.r.PathValue("n"))
	i := c.repo.item(n)
	if i == nil || pull && i.pull == nil {
		return nil, notFound()
	}
	return i, nil
}

func listPulls(c *call) (answer, *refusal) {
	q := c.r.URL.Query()
	all := []any{}
	for _, i := range c.repo.items {
		switch {
		case i.pull == nil,
			q.Get("state") != "all" && i.state() != orElse(q.Get("state"), "open"),
			q.Get("base") != "" && i.pull.base != q.Get("base"),
			q.Get("head") != "" && !strings.EqualFold(i.pull.from.owner.login+":"+i.pull.head, q.Get("head")):
			continue
		}
		all = append(all, c.repo.pullBody(i, c.who, false))
	}
	if q.Get("direction") != "asc" {
		slices.Reverse(all)
	}
	return ok(page(c, all))
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func postPull(c *call) (answer, *refusal) {
	var asked struct {
		Title, Body, Base, Head string
		HeadRepo                string `json:"head_repo"`
		Draft                   bool
		Maintainers             bool `json:"maintainer_can_modify"`
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	if bad := c.mayWrite("pull_requests"); bad != nil {
		return no(bad)
	}
	from, branch := c.repo, asked.Head
	if owner, rest, ok := strings.Cut(asked.Head, ":"); ok {
		branch = rest
		if !strings.EqualFold(owner, c.repo.owner.login) || asked.HeadRepo != "" {
			from = c.fork(owner, asked.HeadRepo)
		}
	}
	switch {
	case from == nil || from.tip(branch) == "":
		return no(invalid("PullRequest", "head", "invalid", ""))
	case c.repo.tip(asked.Base) == "":
		return no(invalid("PullRequest", "base", "invalid", ""))
	case len(asked.Body) > 65536:
		return no(invalid("PullRequest", "body", "custom", "body is too long (maximum is 65536 characters)"))
	case from.tip(branch) == c.repo.tip(asked.Base):
		return no(invalid("PullRequest", "", "custom", fmt.Sprintf("No commits between %s and %s", asked.Base, asked.Head)))
	}
	for _, i := range c.repo.items {
		if p := i.pull; p != nil && i.open && p.from == from && p.head == branch && p.base == asked.Base {
			return no(invalid("PullRequest", "", "custom", fmt.Sprintf("A pull request already exists for %s:%s.", from.owner.login, branch)))
		}
	}
	i := c.repo.newItem(c.who.user, asked.Title, asked.Body)
	i.pull = &pull{base: asked.Base, head: branch, from: from, sha: from.tip(branch), draft: asked.Draft, maintainers: asked.Maintainers}
	return made(c.repo.pullBody(i, c.who, true))
}

// fork finds owner's repository of this network.
func (c *call) fork(owner, name string) *Repo {
	for _, r := range c.s.repos {
		if r.net == c.repo.net && strings.EqualFold(r.owner.login, owner) && (name == "" || strings.EqualFold(r.name, name)) {
			return r
		}
	}
	return nil
}

func getPull(c *call) (answer, *refusal) {
	i, bad := c.find(true)
	if bad != nil {
		return no(bad)
	}
	if strings.Contains(c.r.Header.Get("Accept"), "diff") {
		base := c.repo.net.line("merge-base", c.repo.tip(i.pull.base), i.pull.sha)
		diff, err := c.repo.net.run(nil, nil, "diff", base, i.pull.sha)
		if err != nil {
			return no(refuse(http.StatusUnprocessableEntity, "%v", err))
		}
		c.w.Header().Set("Content-Type", "application/vnd.github.v3.diff; charset=utf-8")
		_, _ = c.w.Write([]byte(diff))
		return answer{}, nil
	}
	return ok(c.repo.pullBody(i, c.who, true))
}

// mayEdit refuses who is neither the author nor allowed to write.
func (c *call) mayEdit(i *item, name string) *refusal {
	if c.who.user == i.author && !c.repo.archived {
		return nil
	}
	return c.mayWrite(name)
}

func patchPull(c *call) (answer, *refusal) {
	var asked struct{ Title, Body, State, Base *string }
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	i, bad := c.find(true)
	if bad == nil {
		bad = c.mayEdit(i, "pull_requests")
	}
	if bad != nil {
		return no(bad)
	}
	if asked.State != nil && *asked.State == "open" && !i.open {
		if i.pull.merged != nil || i.pull.from.tip(i.pull.head) != i.pull.sha {
			return no(invalid("PullRequest", "state", "invalid", "state cannot be changed. The "+i.pull.head+" branch was force-pushed or recreated."))
		}
		i.open, i.ended = true, time.Time{}
	} else if asked.State != nil && *asked.State == "closed" && i.open {
		i.close()
	}
	i.set(asked.Title, asked.Body)
	if asked.Base != nil {
		if c.repo.tip(*asked.Base) == "" {
			return no(invalid("PullRequest", "base", "invalid", ""))
		}
		i.pull.base = *asked.Base
	}
	return ok(c.repo.pullBody(i, c.who, true))
}

func (i *item) set(title, body *string) {
	if title != nil {
		i.title = *title
	}
	if body != nil {
		i.body = *body
	}
	i.updated = time.Now()
}

func putMerge(c *call) (answer, *refusal) {
	var asked struct {
		SHA    string
		Method string `json:"merge_method"`
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	i, bad := c.find(true)
	if bad == nil {
		bad = c.mayWrite("contents")
	}
	switch {
	case bad != nil:
		return no(bad)
	case asked.SHA != "" && asked.SHA != i.pull.sha:
		return no(refuse(http.StatusConflict, "Head branch was modified. Review and try the merge again."))
	}
	if bad := c.repo.merge(i, c.who.user, orElse(asked.Method, "merge"), i.title); bad != nil {
		return no(bad)
	}
	return ok(object{"merged": true, "message": "Pull Request successfully merged", "sha": i.pull.commit})
}

// merge merges a pull request.
func (r *Repo) merge(i *item, who *user, method, message string) *refusal {
	p := i.pull
	if p == nil || !i.open {
		return refuse(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	}
	if p.draft {
		return refuse(http.StatusMethodNotAllowed, "Pull Request is still a draft")
	}
	base := r.tip(p.base)
	for _, name := range append(append([]string{}, r.required[p.base]...), r.rules[p.base]...) {
		if !r.passed(p.sha, name) {
			return refuse(http.StatusMethodNotAllowed, "Required status check %q is expected.", name)
		}
	}
	tree, clean := r.net.merge(base, p.sha)
	if !clean {
		return refuse(http.StatusMethodNotAllowed, "Pull Request has merge conflicts")
	}
	parents := []string{base, p.sha}
	if method != "merge" {
		parents = parents[:1]
	}
	commit, err := r.net.commit(tree, parents, message, who.signature(), who.signature())
	if err != nil {
		return refuse(http.StatusInternalServerError, "%v", err)
	}
	r.set(p.base, commit)
	i.close()
	p.merged, p.commit = who, commit
	return nil
}

func (r *Repo) passed(commit, name string) bool {
	good := false
	for _, one := range r.statuses[commit] {
		if one.name == name {
			good = one.state == "success" || one.conclusion == "success"
		}
	}
	return good
}

func postReviewers(c *call) (answer, *refusal) {
	var asked struct {
		Reviewers []string
		Teams     []string `json:"team_reviewers"`
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	i, bad := c.find(true)
	if bad == nil && !c.repo.may(c.who, "push") {
		bad = c.mayWrite("contents")
	}
	if bad != nil {
		return no(bad)
	}
	for _, login := range asked.Reviewers {
		if c.repo.permissions[strings.ToLower(login)] == "" {
			return no(refuse(http.StatusUnprocessableEntity, "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the %s repository.", c.repo.full()))
		}
		if strings.EqualFold(login, i.author.login) {
			return no(refuse(http.StatusUnprocessableEntity, "Review cannot be requested from pull request author."))
		}
	}
	if len(asked.Teams) > 0 && c.repo.owner.kind != "Organization" {
		return no(refuse(http.StatusUnprocessableEntity, "Could not resolve to a node with the global id of 'T_1'."))
	}
	for _, login := range append(asked.Reviewers, asked.Teams...) {
		if !has(i.pull.reviewers, login) {
			i.pull.reviewers = append(i.pull.reviewers, login)
		}
	}
	return made(c.repo.pullBody(i, c.who, false))
}

func listReviews(c *call) (answer, *refusal) {
	i, bad := c.find(true)
	if bad != nil {
		return no(bad)
	}
	at := c.repo.api() + "/pulls/" + strconv.Itoa(i.number)
	all := []any{}
	for _, login := range i.pull.reviewed {
		id := c.s.id()
		all = append(all, object{"id": id, "node_id": node("PRR", id), "user": c.s.userBody(c.s.users[strings.ToLower(login)]), "body": "", "state": "COMMENTED",
			"commit_id": i.pull.sha, "html_url": at, "pull_request_url": at, "_links": object{"html": object{"href": at}, "pull_request": object{"href": at}}, "author_association": "NONE"})
	}
	return ok(page(c, all))
}
