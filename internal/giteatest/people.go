package giteatest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"
)

const password = "correct-horse-9"

// User is somebody with an account.
type User struct {
	Name, Password string
	Token          string // for everything
	site           *Server
}

// Repo is a repository on the server.
type Repo struct {
	Owner, Name string
	URL         string // https address of git
	site        *Server
}

// Call asks the API for something as u, and fails the test unless the answer
// has the status want. in and out are JSON; nil is nothing.
func (u User) Call(t testing.TB, want int, method, path string, in, out any) {
	t.Helper()
	if status, text := u.Try(t, method, path, in, out); status != want {
		t.Fatalf("%s %s as %s: %d %s", method, path, u.Name, status, text)
	}
}

// Try asks the API for something as u.
func (u User) Try(t testing.TB, method, path string, in, out any) (status int, text string) {
	t.Helper()
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			t.Fatal(err)
		}
	}
	// A cleanup asks too, when the test's context has ended.
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, u.site.URL+"/api/v1"+path, &body)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(u.Name, u.Password)
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: u.site.HTTP, Timeout: time.Minute}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(data, out); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, data)
		}
	}
	return resp.StatusCode, string(data)
}

// Admin returns who may do everything.
func (s *Server) Admin() User { return s.admin }

// User makes an account.
func (s *Server) User(t testing.TB, name string) User {
	t.Helper()
	u := User{Name: name, Password: password, site: s}
	s.admin.Call(t, 201, "POST", "/admin/users", map[string]any{
		"username": name, "email": name + "@example.org", "password": password, "must_change_password": false,
	}, nil)
	u.Token = u.NewToken(t, "all", "all")
	return u
}

// NewToken makes a token of u with scopes.
func (u User) NewToken(t testing.TB, name string, scopes ...string) string {
	t.Helper()
	var made struct {
		SHA string `json:"sha1"`
	}
	u.Call(t, 201, "POST", "/users/"+u.Name+"/tokens", map[string]any{"name": name, "scopes": scopes}, &made)
	return made.SHA
}

// Org makes an organisation that u owns, with a team of members that may write.
func (u User) Org(t testing.TB, name, team string, members ...User) {
	t.Helper()
	u.Call(t, 201, "POST", "/orgs", map[string]any{"username": name}, nil)
	var made struct {
		ID int64 `json:"id"`
	}
	u.Call(t, 201, "POST", "/orgs/"+name+"/teams", map[string]any{
		"name": team, "permission": "write", "includes_all_repositories": true, "can_create_org_repo": true,
		"units": []string{"repo.code", "repo.issues", "repo.pulls"},
	}, &made)
	for _, m := range members {
		u.Call(t, 204, "PUT", fmt.Sprintf("/teams/%d/members/%s", made.ID, m.Name), nil, nil)
	}
}

// Repo makes a repository of u, or of the organisation owner, whose branch main
// holds files.
func (u User) Repo(t testing.TB, owner, name string, files map[string]string) Repo {
	t.Helper()
	at := "/orgs/" + owner + "/repos"
	if owner == u.Name {
		at = "/user/repos"
	}
	u.Call(t, 201, "POST", at, map[string]any{"name": name, "auto_init": true, "default_branch": "main"}, nil)
	r := Repo{Owner: owner, Name: name, URL: u.site.URL + "/" + owner + "/" + name + ".git", site: u.site}
	if len(files) > 0 {
		u.Commit(t, r, "main", "begin", files)
	}
	return r
}

// API is the path of the repository in the API.
func (r Repo) API() string { return "/repos/" + r.Owner + "/" + r.Name }

// Page is where people look at the repository.
func (r Repo) Page() string { return r.site.URL + "/" + r.Owner + "/" + r.Name }

// Let gives somebody a permission: read, write or admin.
func (u User) Let(t testing.TB, r Repo, somebody User, permission string) {
	t.Helper()
	u.Call(t, 204, "PUT", r.API()+"/collaborators/"+somebody.Name, map[string]any{"permission": permission}, nil)
}

// Commit makes one commit on a branch as a person does on the web page, and
// returns its id. The branch is made from main if there is none.
func (u User) Commit(t testing.TB, r Repo, branch, message string, files map[string]string) string {
	t.Helper()
	in := map[string]any{"message": message, "branch": branch}
	from := branch
	if branch != "main" && u.Tip(t, r, branch) == "" {
		from = "main"
		in["branch"], in["new_branch"] = from, branch
	}
	var changes []map[string]any
	for path, text := range files {
		change := map[string]any{"operation": "create", "path": path, "content": base64.StdEncoding.EncodeToString([]byte(text))}
		var old struct {
			SHA string `json:"sha"`
		}
		if status, _ := u.Try(t, "GET", r.API()+"/contents/"+path+"?ref="+url.QueryEscape(from), nil, &old); status == 200 {
			change["operation"], change["sha"] = "update", old.SHA
		}
		changes = append(changes, change)
	}
	in["files"] = changes
	var out struct {
		Commit struct {
			SHA string `json:"sha"`
		} `json:"commit"`
	}
	u.Call(t, 201, "POST", r.API()+"/contents", in, &out)
	return out.Commit.SHA
}

// Tip returns the commit that a branch is at, "" if there is no such branch.
func (u User) Tip(t testing.TB, r Repo, branch string) string {
	t.Helper()
	var out struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	switch status, text := u.Try(t, "GET", r.API()+"/branches/"+url.PathEscape(branch), nil, &out); status {
	case 200:
		return out.Commit.ID
	case 404:
		return ""
	default:
		t.Fatalf("branch %s: %d %s", branch, status, text)
		return ""
	}
}

// File returns what a file holds on a branch or at a commit.
func (u User) File(t testing.TB, r Repo, ref, path string) string {
	t.Helper()
	status, text := u.Try(t, "GET", r.API()+"/raw/"+path+"?ref="+url.QueryEscape(ref), nil, nil)
	if status != 200 {
		t.Fatalf("read %s at %s: %d %s", path, ref, status, text)
	}
	return text
}

// Pull is a pull request as the API shows it.
type Pull struct {
	Number int64  `json:"number"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	State  string `json:"state"`
	Merged bool   `json:"merged"`
	Draft  bool   `json:"draft"`
	Head   struct {
		Branch string `json:"label"`
		SHA    string `json:"sha"`
		Repo   struct {
			FullName string `json:"full_name"`
		} `json:"repo"`
	} `json:"head"`
	Labels []struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	} `json:"labels"`
	Assignees []struct {
		Login string `json:"login"`
	} `json:"assignees"`
	Reviewers []struct {
		Login string `json:"login"`
	} `json:"requested_reviewers"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

// Pulls returns the pull requests in a state: open, closed or all.
func (u User) Pulls(t testing.TB, r Repo, state string) (list []Pull) {
	t.Helper()
	for page := 1; ; page++ {
		var more []Pull
		u.Call(t, 200, "GET", fmt.Sprintf("%s/pulls?page=%d&state=%s", r.API(), page, state), nil, &more)
		if len(more) == 0 {
			return list
		}
		list = append(list, more...)
	}
}

// SetPull closes a pull request or opens it again.
func (u User) SetPull(t testing.TB, r Repo, number int64, state string) {
	t.Helper()
	u.Call(t, 201, "PATCH", fmt.Sprintf("%s/pulls/%d", r.API(), number), map[string]any{"state": state}, nil)
}

// Merge merges a pull request as a person does.
func (u User) Merge(t testing.TB, r Repo, number int64) {
	t.Helper()
	u.MergeAs(t, r, number, "merge")
}

// MergeAs merges a pull request in a way of Gitea's: merge, squash, rebase or
// rebase-merge. Gitea looks for conflicts first, in its own time.
func (u User) MergeAs(t testing.TB, r Repo, number int64, way string) {
	t.Helper()
	for try := 0; ; try++ {
		status, text := u.Try(t, "POST", fmt.Sprintf("%s/pulls/%d/merge", r.API(), number), map[string]any{"Do": way}, nil)
		if status == 200 {
			return
		}
		if status != 405 || try == 50 {
			t.Fatalf("merge #%d: %d %s", number, status, text)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
}
