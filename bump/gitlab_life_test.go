package bump

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/gitlabtest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// synced tells GitLab's stand-in, which has no git, where git's branches are.
type synced struct {
	u    *upstream
	site *gitlabtest.Server
	p    *gitlabtest.Project
}

func (s *synced) RoundTrip(r *http.Request) (*http.Response, error) {
	all := map[string]string{}
	for line := range strings.Lines(s.u.git(s.u.bare, "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads")) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[name] = id
	}
	s.site.Change(func() {
		s.p.Branches = all
		for _, m := range s.p.Requests {
			if m.State == "opened" && all[m.Source] != "" {
				m.SHA = all[m.Source]
			}
		}
	})
	return s.site.HTTP.RoundTrip(r)
}

// TestGitLabLife: opened, left alone, refreshed in place and closed, with a real
// git to push to.
func TestGitLabLife(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	root := filepath.Dir(filepath.Dir(u.bare))
	s := newForgeAt(t, u, "oauth2", root)
	path := filepath.Base(filepath.Dir(u.bare)) + "/up"
	site := gitlabtest.Start(t, "")
	bot := site.User("bot", "api")
	bot.Token = testToken
	p := site.Project(path, map[string]int{"bot": 40})
	through := &synced{u, site, p}
	repo := u.repo()
	repo.Forge, repo.URL, repo.API, repo.Base, repo.Labels = "gitlab", s.URL+"/"+path+".git", site.URL, "main", []string{"rocm"}
	repo.Token = secret.Source{Env: "FORGE_TOKEN"}
	o := u.options()
	var argv string
	o.Env, argv = forgeEnv(t, s, testToken)
	o.Open = func(ctx context.Context, c forge.Config) (forge.Forge, error) {
		c.HTTP = through
		return forge.Open(ctx, c)
	}
	run := func(version, action string) *Result {
		t.Helper()
		r, err := Run(t.Context(), repo, night(version), o)
		if err != nil || r.Action != action {
			t.Fatalf("%s: %+v, %v", version, r, err)
		}
		mustNotLeak(t, "the result", strings.Join(append(r.Actions, r.Message, r.URL, r.Body), "\n"))
		return r
	}
	first := run(newVersion, ActionOpened)
	if m := p.Requests[0]; len(p.Requests) != 1 || m.Source != first.Branch || m.SHA != u.tip(first.Branch) || m.Labels[0] != "rocm" || !strings.Contains(m.Body, newVersion) {
		t.Errorf("%+v", m)
	}
	run(newVersion, ActionNone)
	next := strings.Replace(newVersion, "0930", "1001", 1)
	run(next, ActionUpdated)
	if m := p.Requests[0]; len(p.Requests) != 1 || m.SHA != u.tip(first.Branch) || !strings.Contains(m.Title+m.Body, next) {
		t.Errorf("%+v", m)
	}
	// Somebody brings it to the base by hand.
	u.git(u.bare, "update-ref", "refs/heads/main", u.tip(first.Branch))
	run(next, ActionClosed)
	if m := p.Requests[0]; m.State != "closed" || len(m.Notes) != 1 || p.Branches[first.Branch] != "" && u.git(u.bare, "for-each-ref", "refs/heads/"+first.Branch) != "" {
		t.Errorf("%+v", m)
	}
	run(next, ActionNone)
	mustNotLeak(t, "an argument", readText(t, argv))
}
