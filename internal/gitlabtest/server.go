package gitlabtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is the stand-in. Its exported fields are set before it is asked, or
// under Change.
type Server struct {
	URL  string // of the site, with the relative root
	Page int    // how many entries a page has at most
	HTTP http.RoundTripper

	mu       sync.Mutex
	users    []*User
	projects []*Project
	next     int64
	asked    []string
}

// User is an account, and its token.
type User struct {
	ID     int64
	Name   string
	Token  string
	Scopes []string
}

// Project is a project, with all that is in it.
type Project struct {
	ID           int64
	Path         string // with its groups
	Members      map[string]int
	Archived     bool
	NeedPipeline bool   // Pipelines must succeed
	MergeMethod  string // merge, rebase_merge or ff
	NoRequests   bool
	ForkOf       int64
	Importing    int               // how many times it is looked at before it is filled
	Branches     map[string]string // name to commit
	Requests     []*Request
	Issues       []*Issue
	Pipelines    []*Pipeline
}

// Request is a merge request.
type Request struct {
	IID                                     int64
	Title, Body, State, Source, Target, SHA string
	SourceProject                           int64
	Author                                  *User
	Labels                                  []string
	Assignees, Reviewers                    []int64
	Conflicts, AutoMerge                    bool
	Notes                                   []*Note
	Created                                 time.Time
	Squashed                                bool
}

// Note is a note of a merge request.
type Note struct {
	ID     int64
	Author *User
	Body   string
	System bool
}

// Issue is an issue.
type Issue struct {
	IID                int64
	Title, Body, State string
	Author             *User
	Labels             []string
}

// Pipeline is a pipeline.
type Pipeline struct {
	ID                  int64
	SHA, Status, Source string
	Failed              []string // jobs
}

// Start starts a stand-in below the path root, which may be empty, and ends it
// with the test.
func Start(t testing.TB, root string) *Server {
	t.Helper()
	s := &Server{Page: 3, next: 100}
	ts := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.serve(w, r, root)
	}))
	t.Cleanup(ts.Close)
	s.URL, s.HTTP = ts.URL+root, ts.Client().Transport
	return s
}

// Change does something to what the server keeps.
func (s *Server) Change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Asked returns what was asked, method and path, and forgets it.
func (s *Server) Asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *Server) id() int64 {
	s.next++
	return s.next
}

// User makes an account.
func (s *Server) User(name string, scopes ...string) *User {
	u := &User{ID: s.id(), Name: name, Token: "glpat-" + name, Scopes: scopes}
	s.users = append(s.users, u)
	return u
}

// Project makes a project with a branch main.
func (s *Server) Project(path string, members map[string]int) *Project {
	p := &Project{ID: s.id(), Path: path, Members: members, MergeMethod: "merge", Branches: map[string]string{"main": strings.Repeat("0", 40)}}
	s.projects = append(s.projects, p)
	return p
}

func (s *Server) userID(id int64) *User {
	for _, u := range s.users {
		if u.ID == id {
			return u
		}
	}
	return nil
}

// fault is an answer that is no success.
type fault struct {
	status int
	body   any
}

func refuse(status int, message string) *fault {
	return &fault{status, map[string]any{"message": message}}
}

func notFound(what string) *fault { return refuse(404, "404 "+what+" Not Found") }

// request is one request as the parts of the server see it.
type request struct {
	*http.Request
	who  *User
	in   map[string]any
	path []string // below api/v4, unescaped
}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, root string) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), root+"/api/v4/")
	s.asked = append(s.asked, r.Method+" "+path)
	q := request{Request: r}
	if !ok {
		s.answer(w, r, nil, notFound("Path"))
		return
	}
	for part := range strings.SplitSeq(path, "/") {
		plain, err := url.PathUnescape(part)
		if err != nil {
			s.answer(w, r, nil, refuse(400, "bad path"))
			return
		}
		q.path = append(q.path, plain)
	}
	if r.Body != nil && r.Method != http.MethodGet {
		_ = json.NewDecoder(r.Body).Decode(&q.in) // none is none
	}
	out, err := s.authorize(&q)
	if err == nil {
		out, err = s.route(q)
	}
	s.answer(w, r, out, err)
}

// authorize finds out who asks.
func (s *Server) authorize(q *request) (any, *fault) {
	token := strings.TrimPrefix(q.Header.Get("Authorization"), "Bearer ")
	if job := q.Header.Get("Job-Token"); job != "" {
		// A job's token reads its project and does little else.
		if q.Method == http.MethodGet && len(q.path) == 2 {
			q.who = &User{Name: "job"}
			return nil, nil
		}
		return nil, refuse(403, "403 Forbidden")
	}
	for _, u := range s.users {
		if u.Token == token {
			q.who = u
		}
	}
	if q.who == nil {
		return nil, refuse(401, "401 Unauthorized")
	}
	if !slices.Contains(q.who.Scopes, "api") && (q.Method != http.MethodGet || !slices.Contains(q.who.Scopes, "read_api")) {
		return nil, &fault{403, map[string]any{
			"error": "insufficient_scope", "error_description": "The request requires higher privileges than provided by the access token.", "scope": "api",
		}}
	}
	return nil, nil
}

// route finds what is asked for.
func (s *Server) route(q request) (any, *fault) {
	switch q.path[0] {
	case "user":
		return map[string]any{"id": q.who.ID, "username": q.who.Name, "email": q.who.Name + "@example.org"}, nil
	case "personal_access_tokens":
		return map[string]any{"id": 1, "scopes": q.who.Scopes}, nil
	case "users":
		var list []any
		for _, u := range s.users {
			if strings.EqualFold(u.Name, q.URL.Query().Get("username")) {
				list = append(list, s.person(u))
			}
		}
		return list, nil
	case "projects":
		if len(q.path) > 1 {
			return s.project(q)
		}
	}
	return nil, notFound("Path")
}

// answer writes JSON, of a list one page with GitLab's headers.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, out any, err *fault) {
	w.Header().Set("Content-Type", "application/json")
	status := http.StatusOK
	switch {
	case err != nil:
		status, out = err.status, err.body
	case r.Method == http.MethodPost:
		status = http.StatusCreated
	}
	if text, ok := out.(string); ok {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, text)
		return
	}
	if list, ok := out.([]any); ok {
		out = s.onePage(w, r, list)
	}
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(out)
}

func (s *Server) onePage(w http.ResponseWriter, r *http.Request, list []any) []any {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	page = max(page, 1)
	from := min((page-1)*s.Page, len(list))
	to := min(from+s.Page, len(list))
	w.Header().Set("X-Page", strconv.Itoa(page))
	w.Header().Set("X-Next-Page", "")
	if to < len(list) {
		w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
	}
	return append([]any{}, list[from:to]...)
}

func (s *Server) person(u *User) any {
	if u == nil {
		return nil
	}
	return map[string]any{"id": u.ID, "username": u.Name}
}

func (s *Server) people(ids []int64) []any {
	list := []any{}
	for _, id := range ids {
		if u := s.userID(id); u != nil {
			list = append(list, s.person(u))
		}
	}
	return list
}
