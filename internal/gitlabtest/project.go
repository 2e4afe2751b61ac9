package gitlabtest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// developer is the role that may push and merge.
const developer = 30

// project answers what is asked of /projects/ID.
func (s *Server) project(q request) (any, *fault) {
	p := s.find(q.path[1])
	if p == nil {
		return nil, notFound("Project")
	}
	level := p.Members[q.who.Name]
	if p.Archived && q.Method != http.MethodGet {
		return nil, refuse(403, "403 Forbidden - project is archived")
	}
	if len(q.path) == 2 {
		return s.showProject(p, level), nil
	}
	if q.Method != http.MethodGet && level < developer && q.path[2] != "fork" && q.path[2] != "issues" {
		return nil, refuse(403, "403 Forbidden")
	}
	switch q.path[2] {
	case "fork":
		return s.fork(q, p)
	case "forks":
		var list []any
		for _, f := range s.projects {
			if f.ForkOf == p.ID {
				list = append(list, s.showProject(f, f.Members[q.who.Name]))
			}
		}
		return list, nil
	case "merge_requests":
		return s.requests(q, p)
	case "issues":
		return s.issues(q, p)
	case "pipelines":
		return s.pipelines(q, p)
	}
	return nil, notFound("Path")
}

func (s *Server) find(id string) *Project {
	for _, p := range s.projects {
		if strings.EqualFold(p.Path, id) || strconv.FormatInt(p.ID, 10) == id {
			return p
		}
	}
	return nil
}

func (s *Server) showProject(p *Project, level int) any {
	access := "enabled"
	if p.NoRequests {
		access = "disabled"
	}
	out := map[string]any{
		"id": p.ID, "path_with_namespace": p.Path, "default_branch": "main", "web_url": s.URL + "/" + p.Path, "http_url_to_repo": s.URL + "/" + p.Path + ".git",
		"archived": p.Archived, "merge_requests_access_level": access, "issues_access_level": "enabled", "merge_method": p.MergeMethod,
		"only_allow_merge_if_pipeline_succeeds": p.NeedPipeline, "import_status": "finished",
		"permissions": map[string]any{"project_access": nil, "group_access": map[string]any{"access_level": level}},
	}
	if p.Importing > 0 {
		p.Importing--
		out["import_status"] = "scheduled"
	}
	return out
}

func (s *Server) fork(q request, p *Project) (any, *fault) {
	space, _ := q.in["namespace_path"].(string)
	if space != q.who.Name {
		return nil, refuse(404, "404 Target Namespace Not Found")
	}
	path := space + p.Path[strings.LastIndexByte(p.Path, '/'):]
	if s.find(path) != nil {
		return nil, &fault{409, map[string]any{"message": []string{"Project namespace name has already been taken", "Path has already been taken"}}}
	}
	f := s.Project(path, map[string]int{q.who.Name: 50})
	f.ForkOf, f.Importing = p.ID, 2
	return s.showProject(f, 50), nil
}

func (s *Server) pipelines(q request, p *Project) (any, *fault) {
	list := []any{}
	if len(q.path) == 5 { // /pipelines/ID/jobs
		for _, one := range p.Pipelines {
			if strconv.FormatInt(one.ID, 10) == q.path[3] {
				for _, name := range one.Failed {
					list = append(list, map[string]any{"id": s.id(), "name": name, "status": "failed"})
				}
			}
		}
		return list, nil
	}
	for _, one := range slices.Backward(p.Pipelines) {
		if one.SHA == q.URL.Query().Get("sha") {
			list = append(list, map[string]any{"id": one.ID, "status": one.Status, "source": one.Source, "sha": one.SHA})
		}
	}
	return list, nil
}

// Pipe adds a pipeline, which is the newest.
func (s *Server) Pipe(p *Project, sha, source, status string, failed ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Pipelines = append(p.Pipelines, &Pipeline{ID: s.id(), SHA: sha, Source: source, Status: status, Failed: failed})
}

func (s *Server) issues(q request, p *Project) (any, *fault) {
	if len(q.path) == 4 {
		for _, i := range p.Issues {
			if strconv.FormatInt(i.IID, 10) == q.path[3] {
				set(q.in, "title", &i.Title)
				set(q.in, "description", &i.Body)
				i.State = after(q.in, i.State)
				return s.showIssue(p, i), nil
			}
		}
		return nil, notFound("Issue")
	}
	if q.Method == http.MethodPost {
		i := &Issue{IID: int64(len(p.Issues) + 1), State: "opened", Author: q.who, Labels: words(q.in["labels"])}
		set(q.in, "title", &i.Title)
		set(q.in, "description", &i.Body)
		p.Issues = append(p.Issues, i)
		return s.showIssue(p, i), nil
	}
	list := []any{}
	for _, i := range slices.Backward(p.Issues) {
		mine := q.URL.Query().Get("scope") != "created_by_me" || i.Author == q.who
		if state := q.URL.Query().Get("state"); mine && (state == "" || state == i.State) {
			list = append(list, s.showIssue(p, i))
		}
	}
	return list, nil
}

func (s *Server) showIssue(p *Project, i *Issue) any {
	return map[string]any{
		"iid": i.IID, "title": i.Title, "description": i.Body, "state": i.State, "author": s.person(i.Author), "labels": append([]string{}, i.Labels...),
		"web_url": fmt.Sprintf("%s/%s/-/issues/%d", s.URL, p.Path, i.IID), "updated_at": time.Unix(1, 0).UTC(),
	}
}

// set takes over a field of what came in.
func set(in map[string]any, name string, to *string) {
	if v, ok := in[name].(string); ok {
		*to = v
	}
}

// after returns the state that state_event leads to.
func after(in map[string]any, state string) string {
	switch in["state_event"] {
	case "close":
		return "closed"
	case "reopen":
		return "opened"
	}
	return state
}

// words reads a list that is written with commas.
func words(v any) []string {
	text, _ := v.(string)
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
