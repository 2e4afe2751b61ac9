package gitlabtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// requests answers what is asked of /projects/ID/merge_requests.
func (s *Server) requests(q request, p *Project) (any, *fault) {
	if len(q.path) == 3 {
		if q.Method == http.MethodPost {
			return s.open(q, p)
		}
		return s.listRequests(q, p), nil
	}
	var m *Request
	for _, one := range p.Requests {
		if strconv.FormatInt(one.IID, 10) == q.path[3] {
			m = one
		}
	}
	if m == nil {
		return nil, notFound("Merge Request")
	}
	if len(q.path) == 4 {
		if q.Method == http.MethodPut {
			return s.edit(q, p, m)
		}
		return s.showRequest(p, m), nil
	}
	switch q.path[4] {
	case "merge":
		return s.merge(q, p, m)
	case "cancel_merge_when_pipeline_succeeds":
		m.AutoMerge = false
		return s.showRequest(p, m), nil
	case "raw_diffs":
		return "diff --git a/flake.nix b/flake.nix\n-1\n+2\n", nil
	case "notes":
		return s.notes(q, m)
	}
	return nil, notFound("Path")
}

func (s *Server) listRequests(q request, p *Project) any {
	v := q.URL.Query()
	list := []any{}
	for _, m := range slices.Backward(p.Requests) {
		if (v.Get("state") == "all" || v.Get("state") == m.State) && (v.Get("source_branch") == "" || v.Get("source_branch") == m.Source) &&
			(v.Get("target_branch") == "" || v.Get("target_branch") == m.Target) {
			list = append(list, s.showRequest(p, m))
		}
	}
	return list
}

// open opens a merge request from p, at p or at the project that it names.
func (s *Server) open(q request, p *Project) (any, *fault) {
	target := p
	if id, ok := q.in["target_project_id"].(float64); ok {
		if target = s.find(strconv.FormatInt(int64(id), 10)); target == nil {
			return nil, notFound("Project")
		}
	}
	m := &Request{State: "opened", SourceProject: p.ID, Author: q.who, Created: time.Unix(int64(1000+len(target.Requests)), 0).UTC()}
	set(q.in, "title", &m.Title)
	set(q.in, "description", &m.Body)
	set(q.in, "source_branch", &m.Source)
	set(q.in, "target_branch", &m.Target)
	if target.NoRequests {
		return nil, refuse(403, "403 Forbidden")
	}
	if m.SHA = p.Branches[m.Source]; m.SHA == "" || target.Branches[m.Target] == "" {
		return nil, &fault{400, map[string]any{"message": map[string]any{"base": []string{"source or target branch does not exist"}}}}
	}
	for _, one := range target.Requests {
		if one.State == "opened" && one.Source == m.Source && one.Target == m.Target && one.SourceProject == p.ID {
			return nil, &fault{409, map[string]any{"message": []string{fmt.Sprintf("Another open merge request already exists for this source branch: !%d", one.IID)}}}
		}
	}
	m.IID = int64(len(target.Requests) + 1)
	target.Requests = append(target.Requests, m)
	return s.showRequest(target, m), nil
}

func (s *Server) edit(q request, p *Project, m *Request) (any, *fault) {
	if len(q.in) == 0 {
		return nil, &fault{400, map[string]any{"error": "title, description, ... are missing, at least one parameter must be provided"}}
	}
	if m.State == "merged" && q.in["state_event"] != nil {
		return nil, refuse(422, "422 Unprocessable Entity")
	}
	set(q.in, "title", &m.Title)
	set(q.in, "description", &m.Body)
	set(q.in, "target_branch", &m.Target)
	m.State = after(q.in, m.State)
	for _, l := range words(q.in["add_labels"]) {
		if !slices.Contains(m.Labels, l) {
			m.Labels = append(m.Labels, l)
		}
	}
	gone := words(q.in["remove_labels"])
	m.Labels = slices.DeleteFunc(m.Labels, func(l string) bool { return slices.Contains(gone, l) })
	for name, to := range map[string]*[]int64{"assignee_ids": &m.Assignees, "reviewer_ids": &m.Reviewers} {
		if list, ok := q.in[name].([]any); ok {
			*to = nil
			for _, id := range list {
				n, _ := id.(float64)
				*to = append(*to, int64(n))
			}
		}
	}
	return s.showRequest(p, m), nil
}

func (s *Server) merge(q request, p *Project, m *Request) (any, *fault) {
	sha, _ := q.in["sha"].(string)
	passed := false
	for _, one := range p.Pipelines {
		if one.SHA == m.SHA {
			passed = one.Status == "success"
		}
	}
	switch {
	case m.State != "opened" || strings.HasPrefix(m.Title, "Draft:"):
		return nil, refuse(405, "405 Method Not Allowed")
	case sha != "" && sha != m.SHA:
		return nil, refuse(409, "SHA does not match HEAD of source branch: "+m.SHA)
	case m.Conflicts:
		return nil, refuse(422, "Branch cannot be merged")
	case p.Members[q.who.Name] < developer+10:
		return nil, refuse(401, "401 Unauthorized")
	}
	if q.in["auto_merge"] == true && !passed {
		m.AutoMerge = true
		return s.showRequest(p, m), nil
	}
	if p.NeedPipeline && !passed {
		return nil, refuse(405, "405 Method Not Allowed")
	}
	m.State, m.Squashed = "merged", q.in["squash"] == true
	return s.showRequest(p, m), nil
}

func (s *Server) notes(q request, m *Request) (any, *fault) {
	if len(q.path) == 6 {
		for _, n := range m.Notes {
			if strconv.FormatInt(n.ID, 10) == q.path[5] && q.Method == http.MethodPut {
				set(q.in, "body", &n.Body)
				return s.showNote(n), nil
			}
		}
		return nil, notFound("Note")
	}
	if q.Method == http.MethodPost {
		n := &Note{ID: s.id(), Author: q.who}
		set(q.in, "body", &n.Body)
		m.Notes = append(m.Notes, n)
		return s.showNote(n), nil
	}
	list := []any{}
	for _, n := range m.Notes {
		list = append(list, s.showNote(n))
	}
	return list, nil
}

func (s *Server) showNote(n *Note) any {
	return map[string]any{"id": n.ID, "author": s.person(n.Author), "body": n.Body, "system": n.System, "created_at": time.Unix(5, 0).UTC()}
}

func (s *Server) showRequest(p *Project, m *Request) any {
	out := map[string]any{
		"id": 1000*p.ID + m.IID, "iid": m.IID, "project_id": p.ID, "title": m.Title, "description": m.Body, "state": m.State,
		"source_branch": m.Source, "target_branch": m.Target, "source_project_id": m.SourceProject, "target_project_id": p.ID, "sha": m.SHA,
		"author": s.person(m.Author), "labels": append([]string{}, m.Labels...), "assignees": s.people(m.Assignees), "reviewers": s.people(m.Reviewers),
		"draft": strings.HasPrefix(m.Title, "Draft:"), "has_conflicts": m.Conflicts, "merge_when_pipeline_succeeds": m.AutoMerge,
		"web_url": fmt.Sprintf("%s/%s/-/merge_requests/%d", s.URL, p.Path, m.IID), "created_at": m.Created, "updated_at": m.Created,
	}
	switch m.State {
	case "merged":
		out["merged_at"], out["merge_user"], out["merge_commit_sha"] = m.Created.Add(time.Hour), s.person(m.Author), strings.Repeat("e", 40)
	case "closed":
		out["closed_at"] = m.Created.Add(time.Hour)
	}
	return out
}
