package githubtest

import (
	"fmt"
	"strings"
	"time"
)

// object is a JSON object.
type object = map[string]any

func node(kind string, id int64) string { return fmt.Sprintf("%s_%d", kind, id) }

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}

// addresses adds KEY_url for each of keys.
func addresses(to object, base string, keys ...string) {
	for _, key := range keys {
		to[key+"_url"] = base + "/" + key
	}
}

func (s *Server) userBody(u *user) any {
	if u == nil {
		return nil
	}
	at := s.URL + "/users/" + strings.NewReplacer("[", "%5B", "]", "%5D").Replace(u.login)
	o := object{
		"id": u.id, "node_id": node("U", u.id), "login": u.login, "type": u.kind, "site_admin": false,
		"gravatar_id": "", "avatar_url": s.URL + "/avatars/1", "html_url": at, "url": at,
	}
	addresses(o, at, "events", "followers", "following", "gists", "organizations", "received_events", "repos", "starred", "subscriptions")
	return o
}

func (s *Server) fullUser(u *user) object {
	o, _ := s.userBody(u).(object)
	for _, key := range []string{"bio", "blog", "company", "email", "hireable", "location", "name"} {
		o[key] = nil
	}
	for _, key := range []string{"followers", "following", "public_gists", "public_repos"} {
		o[key] = 0
	}
	o["created_at"], o["updated_at"] = stamp(time.Unix(1, 0)), stamp(time.Unix(1, 0))
	return o
}

func (r *Repo) api() string { return r.s.URL + "/repos/" + r.full() }

// body is the repository as a part of other answers, and minimal and full at
// once.
func (r *Repo) body(who *actor) object {
	at := r.api()
	o := object{
		"id": r.id, "node_id": node("R", r.id), "name": r.name, "full_name": r.full(), "owner": r.s.userBody(r.owner),
		"private": r.private, "fork": r.of != nil, "description": nil, "homepage": nil, "language": nil, "license": nil, "mirror_url": nil,
		"url": at, "html_url": r.s.URL + "/" + r.full(), "clone_url": r.s.URL + "/" + r.full() + ".git", "git_url": "git://test/" + r.full() + ".git",
		"ssh_url": "git@test:" + r.full() + ".git", "svn_url": at, "default_branch": "main", "visibility": "public",
		"archived": r.archived, "disabled": false, "allow_auto_merge": r.autoMerge,
		"issue_comment_url": at + "/c", "issue_events_url": at + "/e", "git_commits_url": at + "/gc", "git_refs_url": at + "/gr", "git_tags_url": at + "/gt",
		"created_at": stamp(time.Unix(1, 0)), "updated_at": stamp(time.Unix(1, 0)), "pushed_at": stamp(time.Unix(1, 0)),
		"permissions": object{"admin": r.may(who, "admin"), "push": r.may(who, "push"), "pull": r.may(who, "pull")},
	}
	if r.private {
		o["visibility"] = "private"
	}
	addresses(o, at, "archive", "assignees", "blobs", "branches", "collaborators", "comments", "commits", "compare", "contents", "contributors",
		"deployments", "downloads", "events", "forks", "hooks", "issues", "keys", "labels", "languages", "merges", "milestones", "notifications",
		"pulls", "releases", "stargazers", "statuses", "subscribers", "subscription", "tags", "teams", "trees")
	for _, key := range []string{"forks", "forks_count", "open_issues", "open_issues_count", "size", "stargazers_count", "watchers", "watchers_count", "network_count", "subscribers_count"} {
		o[key] = 0
	}
	for _, key := range []string{"projects", "wiki", "pages", "discussions", "downloads"} {
		o["has_"+key] = false
	}
	o["has_issues"] = !r.noIssues
	return o
}

func (r *Repo) labelBody(name string) object {
	id := r.labels[name]
	return object{"id": id, "node_id": node("LA", id), "url": r.api() + "/labels/x", "name": name, "description": "", "color": "ededed", "default": false}
}

func (r *Repo) labelBodies(i *item) []any {
	all := []any{}
	for _, l := range i.labels {
		all = append(all, r.labelBody(l))
	}
	return all
}

func (s *Server) people(logins []string) []any {
	all := []any{}
	for _, login := range logins {
		if u := s.users[strings.ToLower(login)]; u != nil {
			all = append(all, s.userBody(u))
		}
	}
	return all
}

func (i *item) state() string {
	if i.open {
		return "open"
	}
	return "closed"
}

func (r *Repo) issueBody(i *item) object {
	at := fmt.Sprintf("%s/issues/%d", r.api(), i.number)
	o := object{
		"id": i.id, "node_id": node("I", i.id), "number": i.number, "title": i.title, "body": i.body, "state": i.state(), "locked": false,
		"user": r.s.userBody(i.author), "assignee": nil, "assignees": r.s.people(i.assignees), "milestone": nil, "labels": r.labelBodies(i),
		"comments": len(i.comments), "created_at": stamp(i.created), "updated_at": stamp(i.updated), "closed_at": stamp(i.ended),
		"url": at, "html_url": at, "repository_url": r.api(), "author_association": "NONE",
	}
	addresses(o, at, "comments", "events", "labels")
	if i.pull != nil {
		p := fmt.Sprintf("%s/pulls/%d", r.api(), i.number)
		o["pull_request"] = object{"url": p, "html_url": p, "diff_url": p, "patch_url": p}
	}
	return o
}

func (r *Repo) commentBody(i *item, c *comment) object {
	at := fmt.Sprintf("%s/issues/comments/%d", r.api(), c.id)
	return object{
		"id": c.id, "node_id": node("IC", c.id), "url": at, "html_url": at, "issue_url": fmt.Sprintf("%s/issues/%d", r.api(), i.number),
		"body": c.body, "user": r.s.userBody(c.author), "created_at": stamp(c.created), "updated_at": stamp(c.created), "author_association": "NONE",
	}
}

// pullBody is a pull request; whole is how it is answered with alone.
func (r *Repo) pullBody(i *item, who *actor, whole bool) object {
	p := i.pull
	at := fmt.Sprintf("%s/pulls/%d", r.api(), i.number)
	o := r.issueBody(i)
	delete(o, "pull_request")
	o["node_id"], o["url"], o["html_url"] = node("PR", i.id), at, at
	o["issue_url"], o["diff_url"], o["patch_url"] = at, at+".diff", at+".patch"
	o["comments_url"], o["commits_url"], o["statuses_url"] = at+"/comments", at+"/commits", r.api()+"/statuses/"+p.sha
	o["review_comment_url"], o["review_comments_url"] = at+"/rc", at+"/rcs"
	links := object{}
	for _, key := range []string{"comments", "commits", "statuses", "html", "issue", "review_comments", "review_comment", "self"} {
		links[key] = object{"href": at + "/" + key}
	}
	o["_links"], o["draft"] = links, p.draft
	o["base"] = object{"label": r.owner.login + ":" + p.base, "ref": p.base, "sha": r.tip(p.base), "repo": r.body(who), "user": r.s.userBody(r.owner)}
	o["head"] = object{"label": p.from.owner.login + ":" + p.head, "ref": p.head, "sha": p.sha, "repo": p.from.body(who), "user": r.s.userBody(p.from.owner)}
	o["requested_reviewers"], o["requested_teams"] = r.s.people(p.reviewers), []any{}
	o["merge_commit_sha"], o["merged_at"], o["auto_merge"] = nil, nil, nil
	if p.merged != nil {
		o["merge_commit_sha"], o["merged_at"] = p.commit, stamp(i.ended)
	}
	if p.auto != "" {
		o["auto_merge"] = object{"enabled_by": r.s.userBody(r.owner), "merge_method": p.auto, "commit_title": i.title, "commit_message": ""}
	}
	if whole {
		r.wholePull(o, i)
	}
	return o
}

// wholePull adds what listings lack.
func (r *Repo) wholePull(o object, i *item) {
	p := i.pull
	o["additions"], o["deletions"], o["changed_files"], o["commits"], o["review_comments"] = 1, 1, 1, 1, 0
	o["comments"], o["maintainer_can_modify"] = len(i.comments), p.maintainers
	o["merged"], o["merged_by"], o["rebaseable"] = p.merged != nil, r.s.userBody(p.merged), nil
	o["mergeable"], o["mergeable_state"] = nil, "unknown"
	if i.open {
		_, clean := r.net.merge(r.tip(p.base), p.sha)
		o["mergeable"], o["mergeable_state"] = clean, "clean"
		if !clean {
			o["mergeable_state"] = "dirty"
		}
	}
}
