package githubtest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

func listIssues(c *call) (answer, *refusal) {
	q := c.r.URL.Query()
	if creator := q.Get("creator"); creator != "" && c.s.users[strings.ToLower(creator)] == nil {
		return no(invalid("Search", "creator", "invalid", ""))
	}
	all := []any{}
	for _, i := range c.repo.items {
		if q.Get("state") != "all" && i.state() != orElse(q.Get("state"), "open") ||
			q.Get("creator") != "" && !strings.EqualFold(i.author.login, q.Get("creator")) {
			continue
		}
		all = append(all, c.repo.issueBody(i))
	}
	if q.Get("direction") != "asc" {
		slices.Reverse(all)
	}
	return ok(page(c, all))
}

func postIssue(c *call) (answer, *refusal) {
	var asked struct {
		Title, Body string
		Labels      []string
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	if c.repo.noIssues {
		return no(refuse(http.StatusGone, "Issues are disabled for this repo"))
	}
	if bad := c.mayWrite("issues"); bad != nil {
		return no(bad)
	}
	i := c.repo.newItem(c.who.user, asked.Title, asked.Body)
	for _, l := range asked.Labels {
		c.repo.label(i, l)
	}
	return made(c.repo.issueBody(i))
}

func patchIssue(c *call) (answer, *refusal) {
	var asked struct{ Title, Body, State *string }
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	i, bad := c.find(false)
	if bad == nil {
		bad = c.mayEdit(i, "issues")
	}
	if bad != nil {
		return no(bad)
	}
	i.set(asked.Title, asked.Body)
	switch {
	case asked.State != nil && *asked.State == "closed":
		i.close()
	case asked.State != nil:
		i.open, i.ended = true, time.Time{}
	}
	return ok(c.repo.issueBody(i))
}

// canTriage is who may label and assign: those who may push.
func (c *call) canTriage() (*item, *refusal) {
	i, bad := c.find(false)
	if bad == nil && !c.repo.may(c.who, "push") {
		bad = c.mayWrite("contents")
	}
	return i, bad
}

func postLabels(c *call) (answer, *refusal) {
	var asked struct{ Labels []string }
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	i, bad := c.canTriage()
	if bad != nil {
		return no(bad)
	}
	for _, l := range asked.Labels {
		if len(l) > 50 {
			return no(invalid("Label", "name", "custom", "name is too long (maximum is 50 characters)"))
		}
		c.repo.label(i, l)
	}
	return ok(c.repo.labelBodies(i))
}

func deleteLabel(c *call) (answer, *refusal) {
	i, bad := c.canTriage()
	if bad != nil {
		return no(bad)
	}
	if !i.unlabel(c.r.PathValue("name")) {
		return no(refuse(http.StatusNotFound, "Label does not exist"))
	}
	return ok(c.repo.labelBodies(i))
}

// postAssignees leaves those out who have no access, without a word.
func postAssignees(c *call) (answer, *refusal) {
	var asked struct{ Assignees []string }
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	i, bad := c.canTriage()
	if bad != nil {
		return no(bad)
	}
	for _, login := range asked.Assignees {
		if c.repo.permissions[strings.ToLower(login)] != "" && !has(i.assignees, login) {
			i.assignees = append(i.assignees, login)
		}
	}
	return made(c.repo.issueBody(i))
}

func listComments(c *call) (answer, *refusal) {
	i, bad := c.find(false)
	if bad != nil {
		return no(bad)
	}
	all := []any{}
	for _, one := range i.comments {
		all = append(all, c.repo.commentBody(i, one))
	}
	return ok(page(c, all))
}

func postComment(c *call) (answer, *refusal) {
	var asked struct{ Body string }
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	i, bad := c.find(false)
	if bad == nil {
		bad = c.mayWrite("issues")
	}
	if bad != nil {
		return no(bad)
	}
	return made(c.repo.commentBody(i, c.repo.comment(i, c.who.user, asked.Body)))
}

func patchComment(c *call) (answer, *refusal) {
	var asked struct{ Body string }
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	id, _ := strconv.ParseInt(c.r.PathValue("id"), 10, 64)
	for _, i := range c.repo.items {
		for _, one := range i.comments {
			if one.id == id {
				if one.author != c.who.user && !c.repo.may(c.who, "push") {
					return no(refuse(http.StatusForbidden, "Must have admin rights to Repository."))
				}
				one.body = asked.Body
				return ok(c.repo.commentBody(i, one))
			}
		}
	}
	return no(notFound())
}
