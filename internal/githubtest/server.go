package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a GitHub of its own. Its methods may be called at any time, from any
// goroutine; they fail the test when something is wrong with how they are used.
type Server struct {
	URL string // of the API, without a slash at its end

	t     testing.TB
	dir   string // of the git repositories
	mu    sync.Mutex
	last  int64 // id that was given last
	users map[string]*user
	// tokens holds who acts, by token.
	tokens map[string]*actor
	apps   map[int64]*app
	repos  map[string]*Repo
	faults []*Fault
	log    []Request
}

// Request is a request that the server was sent.
type Request struct{ Method, Path string }

type user struct {
	id    int64
	login string
	kind  string // User, Organization or Bot
}

// actor is who a token stands for.
type actor struct {
	user   *user
	scopes []string // of a classic token; nil if it is none
	bot    bool     // of an installation
	perms  map[string]string
}

// New starts a server, which ends with the test. The test is skipped where git
// is missing.
func New(t testing.TB) *Server {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing")
	}
	dir, err := os.MkdirTemp("", "githubtest")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		t: t, dir: dir, users: map[string]*user{}, tokens: map[string]*actor{}, apps: map[int64]*app{}, repos: map[string]*Repo{},
	}
	server := httptest.NewServer(s.handler())
	s.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		_ = os.RemoveAll(dir)
	})
	s.user("github-actions[bot]", "Bot")
	return s
}

func (s *Server) id() int64 {
	s.last++
	return s.last
}

func (s *Server) user(login, kind string) *user {
	if u := s.users[strings.ToLower(login)]; u != nil {
		return u
	}
	u := &user{s.id(), login, kind}
	s.users[strings.ToLower(login)] = u
	return u
}

// User adds a person, unless there is one of that name, and returns a new
// fine-grained token of theirs.
func (s *Server) User(login string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := fmt.Sprintf("github_pat_%s_%08d", login, s.id())
	s.tokens[token] = &actor{user: s.user(login, "User")}
	return token
}

// Organization adds an organisation.
func (s *Server) Organization(login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user(login, "Organization")
}

// ClassicToken adds a person, unless there is one of that name, and returns a
// new classic token of theirs with scopes.
func (s *Server) ClassicToken(login string, scopes ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := fmt.Sprintf("ghp_%s%08d", login, s.id())
	s.tokens[token] = &actor{user: s.user(login, "User"), scopes: append([]string{}, scopes...)}
	return token
}

// ActionsToken returns a token as GitHub Actions gives to a workflow.
func (s *Server) ActionsToken() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := fmt.Sprintf("ghs_actions%08d", s.id())
	s.tokens[token] = &actor{user: s.users["github-actions[bot]"], bot: true,
		perms: map[string]string{"contents": "write", "pull_requests": "write", "issues": "write"}}
	return token
}

// Revoke makes a token unknown.
func (s *Server) Revoke(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, token)
}

// Requests returns what the server was sent so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.log...)
}

// call is one request, with what it acts on.
type call struct {
	s    *Server
	r    *http.Request
	w    http.ResponseWriter
	who  *actor
	repo *Repo
}

// refusal is an answer that is no success.
type refusal struct {
	status  int
	message string
	errors  []any
	header  map[string]string
}

func refuse(status int, format string, args ...any) *refusal {
	return &refusal{status: status, message: fmt.Sprintf(format, args...)}
}

// invalid is GitHub's answer to what it cannot do with what it was sent.
func invalid(resource, field, code, message string) *refusal {
	one := map[string]any{"resource": resource, "field": field, "code": code}
	if message != "" {
		one["message"] = message
	}
	return &refusal{status: http.StatusUnprocessableEntity, message: "Validation Failed", errors: []any{one}}
}

func notFound() *refusal { return refuse(http.StatusNotFound, "Not Found") }

// answer is the outcome of a call: a status and what is to be its JSON.
type answer struct {
	status int
	body   any
}

type action func(*call) (answer, *refusal)

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, a := range s.routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, a) })
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.log = append(s.log, Request{r.Method, r.URL.Path})
		fault := s.fault(r)
		s.mu.Unlock()
		if fault == nil {
			mux.ServeHTTP(w, r)
			return
		}
		if fault.Done { // and nobody hears of it
			mux.ServeHTTP(httptest.NewRecorder(), r)
		}
		fault.answer(w, r)
	})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, a action) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &call{s: s, r: r, w: w}
	w.Header().Set("X-Github-Request-Id", fmt.Sprintf("TEST:%d", s.id()))
	w.Header().Set("X-Ratelimit-Limit", "5000")
	w.Header().Set("X-Ratelimit-Remaining", "4999")
	w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10))
	no := c.admit()
	var yes answer
	if no == nil {
		yes, no = a(c)
	}
	if no != nil {
		c.send(no)
		return
	}
	if yes.body == nil {
		if yes.status != 0 { // else it is written already
			w.WriteHeader(yes.status)
		}
		return
	}
	write(w, yes.status, yes.body)
}

// admit finds out who calls, and whether they may see the repository.
func (c *call) admit() *refusal {
	token := strings.TrimPrefix(strings.TrimPrefix(c.r.Header.Get("Authorization"), "Bearer "), "token ")
	if strings.Count(token, ".") == 2 {
		return c.admitApp(token)
	}
	c.who = c.s.tokens[token]
	if c.who == nil {
		return refuse(http.StatusUnauthorized, "Bad credentials")
	}
	if c.who.scopes != nil {
		c.w.Header().Set("X-Oauth-Scopes", strings.Join(c.who.scopes, ", "))
		c.w.Header().Set("X-Accepted-Oauth-Scopes", "repo")
	}
	if c.r.PathValue("owner") == "" {
		return nil
	}
	c.repo = c.s.repos[strings.ToLower(c.r.PathValue("owner")+"/"+c.r.PathValue("repo"))]
	if c.repo == nil || !c.repo.ready() || c.repo.private && !c.repo.may(c.who, "pull") {
		return notFound()
	}
	return nil
}

// mayWrite refuses who lacks a permission to change what a name like contents
// stands for.
func (c *call) mayWrite(name string) *refusal {
	if c.repo.archived {
		return refuse(http.StatusForbidden, "Repository was archived so is read-only.")
	}
	// Whoever sees a repository may open pull requests and issues there.
	if c.repo.may(c.who, "push") || name != "contents" && !c.who.bot && c.r.Method == http.MethodPost {
		return nil
	}
	message := "Resource not accessible by personal access token"
	if c.who.bot {
		message = "Resource not accessible by integration"
	}
	no := refuse(http.StatusForbidden, "%s", message)
	if c.who.scopes == nil {
		no.header = map[string]string{"X-Accepted-Github-Permissions": name + "=write"}
	}
	return no
}

func (c *call) send(no *refusal) {
	for key, value := range no.header {
		c.w.Header().Set(key, value)
	}
	body := map[string]any{"message": no.message, "documentation_url": "https://docs.github.com/rest"}
	if no.errors != nil {
		body["errors"] = no.errors
	}
	if no.status == http.StatusNotFound || no.status == http.StatusUnauthorized {
		body["status"] = strconv.Itoa(no.status)
	}
	write(c.w, no.status, body)
}

func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// decode reads the request's JSON.
func (c *call) decode(into any) *refusal {
	if err := json.NewDecoder(c.r.Body).Decode(into); err != nil {
		return refuse(http.StatusBadRequest, "Problems parsing JSON")
	}
	return nil
}

// page cuts a listing as the query asks, and says where the next page is.
func page[T any](c *call, all []T) []T {
	size, _ := strconv.Atoi(c.r.URL.Query().Get("per_page"))
	if size <= 0 {
		size = 30
	}
	size = min(size, 100)
	number, _ := strconv.Atoi(c.r.URL.Query().Get("page"))
	number = max(number, 1)
	from := min((number-1)*size, len(all))
	to := min(from+size, len(all))
	if to < len(all) {
		u := *c.r.URL
		q := u.Query()
		q.Set("page", strconv.Itoa(number+1))
		u.RawQuery = q.Encode()
		c.w.Header().Set("Link", fmt.Sprintf(`<%s%s>; rel="next"`, c.s.URL, u.String()))
	}
	return all[from:to]
}
