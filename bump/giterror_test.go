package bump

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

func TestErrorsSayWhatToTry(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	empty := filepath.Join(t.TempDir(), "empty.git")
	u.git(u.work, "init", "-q", "--bare", empty)
	u.git(u.bare, "branch", "taken", "main")
	nothing := func(string) string { return "" }
	for _, tt := range []struct {
		name string
		edit func(*Repo, *Options)
		err  string
	}{
		{"no git", func(_ *Repo, o *Options) { o.Env = nothing }, "apt install git"},
		{"no repository", func(r *Repo, _ *Options) { r.URL = filepath.Join(empty, "none") }, "check the url"},
		{"empty repository", func(r *Repo, _ *Options) { r.URL = empty }, "an empty repository wants a first commit"},
		{"empty repository, base", func(r *Repo, _ *Options) { r.URL, r.Base = empty, "main" }, "an empty repository wants a first commit"},
		{"a branch in the way", func(r *Repo, _ *Options) { r.Branch = "taken/flake" }, "a branch of that name is in the way"},
		{"a checkout", func(r *Repo, _ *Options) { r.URL, r.Mode = u.work, modePush }, "push to a bare repository"},
		{"no base", func(r *Repo, _ *Options) { r.Base = "trunk" }, "there is no branch trunk"},
		{"base is the branch", func(r *Repo, _ *Options) { r.Branch = "main" }, "base and branch are both main"},
		{"bad branch", func(r *Repo, _ *Options) { r.Branch = "a..b" }, "not a name for a branch"},
		{"bad name", func(r *Repo, _ *Options) { r.Name = "../x" }, "read name"},
		{"bad forge", func(r *Repo, _ *Options) { r.Forge = "svn" }, "known: git, github, gitea, gitlab"},
		{"bad require", func(r *Repo, _ *Options) { r.Require = "some" }, "neither all nor available"},
		{"bad author", func(r *Repo, _ *Options) { r.Author = Author{"a\nb", "c"} }, "read author"},
		{"bad format", func(r *Repo, _ *Options) { r.Files[0].Format = "ini" }, "known: "},
		{"no token", func(r *Repo, _ *Options) {
			r.URL, r.Token = "https://127.0.0.1:1/a/b", secret.Source{Env: "NO_SUCH_TOKEN_HERE"}
		}, "NO_SUCH_TOKEN_HERE is not set, or empty (export it"},
		{"nobody listens", func(r *Repo, _ *Options) { r.URL = "https://127.0.0.1:1/a/b" }, "check the network"},
		{"ext", func(r *Repo, _ *Options) { r.URL = "ext::sh -c true" }, "read url"},
		{"http", func(r *Repo, _ *Options) { r.URL = "http://192.0.2.1/a" }, "http is for this machine only"},
		{"option", func(r *Repo, _ *Options) { r.URL = "--upload-pack=true" }, "read url"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo, o := u.repo(), u.options()
			tt.edit(&repo, &o)
			_, err := Run(context.Background(), repo, night(newVersion), o)
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q in it", err, tt.err)
			}
		})
	}
}

func TestCauseAndHint(t *testing.T) {
	for _, tt := range []struct{ printed, cause, hint string }{
		{"To x\n!\tabc:refs/heads/b\t[rejected] (stale info)\nDone\nerror: failed to push some refs to 'x'\n", "(stale info)", "run again"},
		{"git@h: Permission denied (publickey).\nfatal: Could not read from remote repository.\n", "Permission denied (publickey)", "authentication"},
		{"fatal: could not read Username for 'https://h': terminal prompts disabled\n", "could not read Username", "authentication"},
		{"remote: error: GH006: Protected branch update failed\n", "GH006", "rules refuse"},
		{"Host key verification failed.\nfatal: Could not read from remote repository.", "Could not read from remote", "known_hosts"},
		{"hint: nothing\nhm\n", "hm", ""},
	} {
		if got := causeOf(tt.printed); !strings.Contains(got, tt.cause) || strings.ContainsAny(got, "\n\t") {
			t.Errorf("cause of %q: %q", tt.printed, got)
		}
		if got := hintFor(tt.printed); !strings.Contains(got, tt.hint) || tt.hint == "" && got != "" {
			t.Errorf("hint for %q: %q", tt.printed, got)
		}
	}
}
