package githubtest

import (
	"encoding/base64"
	"net/http"
	"regexp"
	"strings"
	"time"
)

func (r *Repo) refBody(branch, sha string) object {
	return object{"ref": "refs/heads/" + branch, "node_id": node("REF", r.id), "url": r.api() + "/git/refs/heads/x",
		"object": object{"type": "commit", "sha": sha, "url": r.api() + "/git/commits/" + sha}}
}

// branch is the branch that the path names after heads/.
func (c *call) branch() string { return strings.TrimPrefix(c.r.PathValue("ref"), "heads/") }

func getRef(c *call) (answer, *refusal) {
	if len(c.repo.refs) == 0 {
		return no(refuse(http.StatusConflict, "Git Repository is empty."))
	}
	sha := c.repo.tip(c.branch())
	if sha == "" {
		return no(notFound())
	}
	return ok(c.repo.refBody(c.branch(), sha))
}

// mayPush refuses who may not push to a branch.
func (c *call) mayPush(branch string) *refusal {
	if bad := c.mayWrite("contents"); bad != nil {
		return bad
	}
	if reason := c.repo.protected[branch]; reason != "" {
		return refuse(http.StatusUnprocessableEntity, "%s", reason)
	}
	return nil
}

func postRef(c *call) (answer, *refusal) {
	var asked struct{ Ref, SHA string }
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	branch, isBranch := strings.CutPrefix(asked.Ref, "refs/heads/")
	if bad := c.mayPush(branch); bad != nil {
		return no(bad)
	}
	switch {
	case !isBranch:
		return no(refuse(http.StatusUnprocessableEntity, "Reference name must start with 'refs/' and contain at least two slashes"))
	case c.repo.tip(branch) != "":
		return no(refuse(http.StatusUnprocessableEntity, "Reference already exists"))
	case c.repo.net.kind(asked.SHA) != "commit":
		return no(refuse(http.StatusUnprocessableEntity, "Object does not exist"))
	}
	c.repo.set(branch, asked.SHA)
	return made(c.repo.refBody(branch, asked.SHA))
}

func patchRef(c *call) (answer, *refusal) {
	var asked struct {
		SHA   string
		Force bool
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	branch := c.branch()
	if bad := c.mayPush(branch); bad != nil {
		return no(bad)
	}
	at := c.repo.tip(branch)
	switch {
	case at == "":
		return no(refuse(http.StatusUnprocessableEntity, "Reference does not exist"))
	case c.repo.net.kind(asked.SHA) != "commit":
		return no(refuse(http.StatusUnprocessableEntity, "Object does not exist"))
	case !asked.Force && c.repo.net.line("merge-base", at, asked.SHA) != at:
		return no(refuse(http.StatusUnprocessableEntity, "Update is not a fast forward"))
	}
	c.repo.set(branch, asked.SHA)
	return ok(c.repo.refBody(branch, asked.SHA))
}

func deleteRef(c *call) (answer, *refusal) {
	if bad := c.mayPush(c.branch()); bad != nil {
		return no(bad)
	}
	if c.repo.tip(c.branch()) == "" {
		return no(refuse(http.StatusUnprocessableEntity, "Reference does not exist"))
	}
	c.repo.set(c.branch(), "")
	return answer{http.StatusNoContent, nil}, nil
}

func (s signature) body() object {
	return object{"name": s.Name, "email": s.Email, "date": stamp(s.Date)}
}

// gitCommitBody is a commit as an object of git's. Those that the server has
// made for a bot without an author are said to be signed.
func (r *Repo) gitCommitBody(i *commitInfo) object {
	at := r.api() + "/git/commits/" + i.id
	parents := []any{}
	for _, p := range i.parents {
		parents = append(parents, object{"sha": p, "url": r.api() + "/git/commits/" + p, "html_url": r.api() + "/commit/" + p})
	}
	signed := i.committer.Email == "noreply@github.com"
	reason := "unsigned"
	if signed {
		reason = "valid"
	}
	return object{
		"sha": i.id, "node_id": node("C", r.id), "url": at, "html_url": at, "author": i.author.body(), "committer": i.committer.body(),
		"message": i.message, "tree": object{"sha": i.tree, "url": r.api() + "/git/trees/" + i.tree}, "parents": parents,
		"verification": object{"verified": signed, "reason": reason, "signature": nil, "payload": nil, "verified_at": nil},
	}
}

func getGitCommit(c *call) (answer, *refusal) {
	i, bad := c.repo.net.look(c.r.PathValue("sha"))
	if bad != nil {
		return no(bad)
	}
	return ok(c.repo.gitCommitBody(i))
}

func postGitCommit(c *call) (answer, *refusal) {
	var asked struct {
		Message, Tree     string
		Parents           []string
		Author, Committer *signature
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	if bad := c.mayWrite("contents"); bad != nil {
		return no(bad)
	}
	if c.repo.net.kind(asked.Tree) != "tree" {
		return no(refuse(http.StatusUnprocessableEntity, "Tree SHA does not exist"))
	}
	for _, p := range asked.Parents {
		if c.repo.net.kind(p) != "commit" {
			return no(refuse(http.StatusUnprocessableEntity, "Parent SHA does not exist or is not a commit object"))
		}
	}
	author := c.who.user.signature()
	committer := author
	switch {
	case asked.Author != nil:
		author, committer = *asked.Author, *asked.Author
	case c.who.bot:
		committer = signature{"GitHub", "noreply@github.com", author.Date}
	}
	if asked.Committer != nil {
		committer = *asked.Committer
	}
	id, err := c.repo.net.commit(asked.Tree, asked.Parents, asked.Message, author, committer)
	if err != nil {
		return no(refuse(http.StatusUnprocessableEntity, "%v", err))
	}
	i, bad := c.repo.net.look(id)
	if bad != nil {
		return no(bad)
	}
	return made(c.repo.gitCommitBody(i))
}

var numbered = regexp.MustCompile(`^(\d+)\+(.+)@users\.noreply\.github\.com$`)

// account finds whose address an author has.
func (s *Server) account(a signature) *user {
	if m := numbered.FindStringSubmatch(a.Email); m != nil {
		return s.users[strings.ToLower(m[2])]
	}
	return nil
}

func (c *call) commitBody(sha string) (object, *refusal) {
	i, bad := c.repo.net.look(sha)
	if bad != nil {
		return nil, bad
	}
	inner := c.repo.gitCommitBody(i)
	at := c.repo.api() + "/commits/" + sha
	return object{
		"sha": sha, "node_id": inner["node_id"], "url": at, "html_url": at, "comments_url": at + "/comments", "parents": inner["parents"],
		"author": c.s.userBody(c.s.account(i.author)), "committer": c.s.userBody(c.s.account(i.committer)),
		"commit": object{
			"author": inner["author"], "committer": inner["committer"], "message": i.message, "tree": inner["tree"],
			"url": at, "comment_count": 0, "verification": inner["verification"],
		},
	}, nil
}

func getCommit(c *call) (answer, *refusal) {
	body, bad := c.commitBody(c.r.PathValue("sha"))
	if bad != nil {
		return no(bad)
	}
	return ok(body)
}

func (r *Repo) treeBody(id string, recursive bool) (object, *refusal) {
	entries, err := r.net.list(id, recursive)
	if err != nil {
		return nil, notFound()
	}
	all := []any{}
	for _, e := range entries {
		o := object{"path": e.path, "mode": e.mode, "type": e.kind, "sha": e.id, "url": r.api() + "/git/" + e.kind + "s/" + e.id}
		if e.kind == "blob" {
			o["size"] = e.size
		}
		all = append(all, o)
	}
	return object{"sha": id, "url": r.api() + "/git/trees/" + id, "tree": all, "truncated": false}, nil
}

func getTree(c *call) (answer, *refusal) {
	body, bad := c.repo.treeBody(c.r.PathValue("sha"), c.r.URL.Query().Get("recursive") != "")
	if bad != nil {
		return no(bad)
	}
	return ok(body)
}

func postTree(c *call) (answer, *refusal) {
	var asked struct {
		BaseTree string `json:"base_tree"`
		Tree     []struct {
			Path, Mode   string
			SHA, Content *string
		}
	}
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	if bad := c.mayWrite("contents"); bad != nil {
		return no(bad)
	}
	if asked.BaseTree != "" && c.repo.net.kind(asked.BaseTree) == "" {
		return no(refuse(http.StatusNotFound, "Not Found"))
	}
	var changes []change
	for _, e := range asked.Tree {
		to := change{path: e.Path, mode: e.Mode}
		switch {
		case e.Content != nil:
			id, err := c.repo.net.blob([]byte(*e.Content))
			if err != nil {
				return no(refuse(http.StatusUnprocessableEntity, "%v", err))
			}
			to.id = id
		case e.SHA != nil:
			to.id = *e.SHA
		}
		changes = append(changes, to)
	}
	id, err := c.repo.net.tree(asked.BaseTree, changes)
	if err != nil {
		return no(refuse(http.StatusUnprocessableEntity, "GitRPC::BadObjectState"))
	}
	body, bad := c.repo.treeBody(id, false)
	if bad != nil {
		return no(bad)
	}
	return made(body)
}

func getBlob(c *call) (answer, *refusal) {
	id := c.r.PathValue("sha")
	if c.repo.net.kind(id) != "blob" {
		return no(notFound())
	}
	text, err := c.repo.net.run(nil, nil, "cat-file", "blob", id)
	if err != nil {
		return no(notFound())
	}
	// In lines of 60 letters, as GitHub sends it.
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	var lines strings.Builder
	for len(encoded) > 0 {
		n := min(60, len(encoded))
		lines.WriteString(encoded[:n] + "\n")
		encoded = encoded[n:]
	}
	return ok(object{"sha": id, "node_id": node("B", c.repo.id), "url": c.repo.api() + "/git/blobs/" + id, "size": len(text), "content": lines.String(), "encoding": "base64"})
}

func postBlob(c *call) (answer, *refusal) {
	var asked struct{ Content, Encoding string }
	if bad := c.decode(&asked); bad != nil {
		return no(bad)
	}
	if bad := c.mayWrite("contents"); bad != nil {
		return no(bad)
	}
	text := []byte(asked.Content)
	if asked.Encoding == "base64" {
		var err error
		if text, err = base64.StdEncoding.DecodeString(asked.Content); err != nil {
			return no(refuse(http.StatusUnprocessableEntity, "content is not valid Base64"))
		}
	}
	id, err := c.repo.net.blob(text)
	if err != nil {
		return no(refuse(http.StatusUnprocessableEntity, "%v", err))
	}
	return made(object{"sha": id, "url": c.repo.api() + "/git/blobs/" + id})
}

func getBranch(c *call) (answer, *refusal) {
	branch := c.r.PathValue("branch")
	sha := c.repo.tip(branch)
	if sha == "" {
		return no(refuse(http.StatusNotFound, "Branch not found"))
	}
	commit, bad := c.commitBody(sha)
	if bad != nil {
		return no(bad)
	}
	required := c.repo.required[branch]
	level := "off"
	if len(required) > 0 {
		level = "non_admins"
	}
	contexts := append([]string{}, required...)
	at := c.repo.api() + "/branches/x"
	return ok(object{
		"name": branch, "commit": commit, "protected": len(required) > 0, "protection_url": at + "/protection", "_links": object{"html": at, "self": at},
		"protection": object{"enabled": len(required) > 0, "required_status_checks": object{"enforcement_level": level, "contexts": contexts, "checks": []any{}}},
	})
}

func getRules(c *call) (answer, *refusal) {
	all := []any{}
	if names := c.repo.rules[c.r.PathValue("branch")]; len(names) > 0 {
		checks := []any{}
		for _, name := range names {
			checks = append(checks, object{"context": name})
		}
		all = append(all, object{
			"type": "required_status_checks", "ruleset_id": 1, "ruleset_source": c.repo.full(), "ruleset_source_type": "Repository",
			"parameters": object{"required_status_checks": checks, "strict_required_status_checks_policy": false},
		})
	}
	return ok(all)
}

func getStatus(c *call) (answer, *refusal) {
	sha := c.r.PathValue("sha")
	newest := map[string]int{}
	all := []any{}
	for _, one := range c.repo.statuses[sha] {
		if one.conclusion != "" {
			continue
		}
		id := c.s.id()
		body := object{"id": id, "node_id": node("SC", id), "state": one.state, "context": one.name, "description": nil, "target_url": nil,
			"avatar_url": nil, "url": c.repo.api() + "/statuses/" + sha, "created_at": stamp(time.Unix(1, 0)), "updated_at": stamp(time.Unix(1, 0))}
		if at, known := newest[one.name]; known {
			all[at] = body
			continue
		}
		newest[one.name] = len(all)
		all = append(all, body)
	}
	at := c.repo.api() + "/commits/" + sha
	return ok(object{"state": "pending", "sha": sha, "total_count": len(all), "statuses": page(c, all), "repository": c.repo.body(c.who), "commit_url": at, "url": at + "/status"})
}

func getCheckRuns(c *call) (answer, *refusal) {
	sha := c.r.PathValue("sha")
	all := []any{}
	for _, one := range c.repo.statuses[sha] {
		if one.conclusion == "" {
			continue
		}
		id := c.s.id()
		body := object{"id": id, "node_id": node("CR", id), "head_sha": sha, "name": one.name, "url": c.repo.api() + "/check-runs/1", "html_url": nil, "details_url": nil,
			"external_id": "", "status": one.state, "conclusion": one.conclusion, "started_at": stamp(time.Unix(1, 0)), "completed_at": nil, "check_suite": object{"id": 1}, "app": nil,
			"pull_requests": []any{}, "output": object{"title": nil, "summary": nil, "text": nil, "annotations_count": 0, "annotations_url": c.repo.api() + "/a"}}
		if one.state != "completed" {
			body["conclusion"] = nil
		}
		all = append(all, body)
	}
	return ok(object{"total_count": len(all), "check_runs": page(c, all)})
}
