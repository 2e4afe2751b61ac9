package bump_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/giteatest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// lives is a real Gitea on which requests are opened and come to their end.
type lives struct {
	site     *giteatest.Server
	ann, bot giteatest.User // who owns the repositories; who may write to them
	bob      giteatest.User // who may read them
}

func newLives(t *testing.T) *lives {
	t.Helper()
	l := &lives{site: giteatest.Start(t)}
	l.ann, l.bot, l.bob = l.site.User(t, "ann"), l.site.User(t, "bot"), l.site.User(t, "bob")
	return l
}

// pinned is a file that pins nothing yet, for each target.
func pinned(targets ...string) string {
	var b strings.Builder
	b.WriteString("# Where ROCm comes from.\n{\n")
	for _, t := range targets {
		fmt.Fprintf(&b, "  %s = {\n    version = \"10.1.0a20260901\"; # the one we run\n    url = \"https://nightly.example.org/old-%s.tar.gz\";\n    hash = \"sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\";\n  };\n", t, t)
	}
	b.WriteString("}\n")
	return b.String()
}

// night is what a target's tarball of the night of day n of October is.
func night(n int, target string) bump.Pin {
	version := fmt.Sprintf("10.2.0a202610%02d", n)
	name := "therock-dist-linux-" + target + "-" + version + ".tar.gz"
	sum := sha256.Sum256([]byte(name))
	return bump.Pin{
		Version: version, Name: name, URL: "https://nightly.example.org/tarball/" + name, Size: 1 << 30, Date: fmt.Sprintf("2026-10-%02d", n),
		Hex: hex.EncodeToString(sum[:]), SRI: "sha256-" + base64.StdEncoding.EncodeToString(sum[:]), Family: target, Target: target, Channel: "nightly",
	}
}

// subject is one repository and the bump that is configured for it.
type subject struct {
	*lives
	repo giteatest.Repo
	bump bump.Repo
	as   giteatest.User
}

// begin makes a repository of ann's that holds files, to which the bot may
// write, and a bump of its targets.
func (l *lives) begin(t *testing.T, name string, targets ...string) *subject {
	t.Helper()
	s := &subject{lives: l, as: l.bot, repo: l.ann.Repo(t, "ann", name, map[string]string{"rocm.nix": pinned(targets...)})}
	l.ann.Let(t, s.repo, l.bot, "write")
	s.bump = bump.Repo{
		Name: name, Forge: "gitea", URL: s.repo.URL, Base: "main", Token: secret.Source{Env: "BOT_TOKEN"},
		Files: pins("rocm.nix", targets...), Config: "config.yaml, bump " + name,
	}
	return s
}

func pins(path string, targets ...string) (files []bump.File) {
	for _, t := range targets {
		files = append(files, bump.File{Path: path, Format: "nix", Target: t, Set: map[string]string{
			t + ".version": "{{.Version}}", t + ".url": "{{.URL}}", t + ".hash": "{{.SRI}}",
		}})
	}
	return files
}

// options trust the site and act as somebody.
func (s *subject) options(through http.RoundTripper) bump.Options {
	return bump.Options{
		Env: func(name string) string {
			switch name {
			case "PATH", "HOME":
				return os.Getenv(name)
			case "GIT_SSL_CAINFO":
				return s.site.CA
			case "BOT_TOKEN":
				return s.as.Token
			}
			return ""
		},
		Open: func(ctx context.Context, c forge.Config) (forge.Forge, error) {
			c.HTTP = through
			return forge.Open(ctx, c)
		},
	}
}

// run bumps to the night n of all targets.
func (s *subject) run(t *testing.T, n int, change ...func(*bump.Repo, *bump.Options)) (*bump.Result, error) {
	t.Helper()
	set := map[string]bump.Pin{}
	for _, f := range s.bump.Files {
		set[f.Target] = night(n, f.Target)
	}
	return s.runPins(t, set, change...)
}

func (s *subject) runPins(t *testing.T, set map[string]bump.Pin, change ...func(*bump.Repo, *bump.Options)) (*bump.Result, error) {
	t.Helper()
	repo, o := s.bump, s.options(s.site.HTTP)
	o.WorkDir = t.TempDir()
	o.Proofs = map[string]body.Proof{}
	for target, p := range set {
		o.Proofs[target] = body.Proof{Target: target, Pin: p, Against: []string{"its size", "its trailer"}}
	}
	for _, c := range change {
		c(&repo, &o)
	}
	return bump.Run(t.Context(), repo, set, o)
}

// must runs and wants an action.
func (s *subject) must(t *testing.T, n int, action string, change ...func(*bump.Repo, *bump.Options)) *bump.Result {
	t.Helper()
	r, err := s.run(t, n, change...)
	if err != nil {
		t.Fatalf("night %d: %v", n, err)
	}
	if r.Action != action {
		t.Fatalf("night %d: %s, want %s: %s %q", n, r.Action, action, r.Message, r.Actions)
	}
	return r
}

// only returns the one open request, which the bot opened from one branch.
func (s *subject) only(t *testing.T) giteatest.Pull {
	t.Helper()
	list := s.ann.Pulls(t, s.repo, "open")
	if len(list) != 1 {
		t.Fatalf("%d requests are open: %+v", len(list), list)
	}
	return list[0]
}

// holds checks that the branch is one commit on top of the base, whose file
// pins the night n of each target and is otherwise as it was.
func (s *subject) holds(t *testing.T, branch, path string, n int, targets ...string) {
	t.Helper()
	want := pinned(targets...)
	for _, target := range targets {
		p := night(n, target)
		want = strings.Replace(want, "10.1.0a20260901", p.Version, 1)
		want = strings.Replace(want, "https://nightly.example.org/old-"+target+".tar.gz", p.URL, 1)
		want = strings.Replace(want, "sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", p.SRI, 1)
	}
	if got := s.ann.File(t, s.repo, branch, path); got != want {
		t.Errorf("%s on %s:\n%s\nwant\n%s", path, branch, got, want)
	}
	var commit struct {
		Parents []struct {
			SHA string `json:"sha"`
		} `json:"parents"`
	}
	s.ann.Call(t, 200, "GET", s.repo.API()+"/git/commits/"+s.ann.Tip(t, s.repo, branch), nil, &commit)
	if main := s.ann.Tip(t, s.repo, "main"); len(commit.Parents) != 1 || commit.Parents[0].SHA != main {
		t.Errorf("%s is on %v, not on main at %s", branch, commit.Parents, main)
	}
}

// comments returns what the bot has said on a request.
func (s *subject) comments(t *testing.T, number int64) (texts []string) {
	t.Helper()
	var list []struct {
		Body string `json:"body"`
		User struct {
			Login string `json:"login"`
		} `json:"user"`
	}
	s.ann.Call(t, 200, "GET", fmt.Sprintf("%s/issues/%d/comments", s.repo.API(), number), nil, &list)
	for _, c := range list {
		if c.User.Login == s.as.Name {
			texts = append(texts, c.Body)
		}
	}
	return texts
}

// tick ticks the boxes of a kind in a text, as a person does with the mouse.
func tick(t *testing.T, text, box string) string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^(\s*[-*] )\[ \](.*` + box + `.*)$`)
	if !line.MatchString(text) {
		t.Fatalf("there is no box %s in:\n%s", box, text)
	}
	return line.ReplaceAllString(text, "$1[x]$2")
}

const branchOf = "rocm-nightly/"
