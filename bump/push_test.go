package bump

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump/forge"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// masterOnly is a hook as strict as that of a place which takes one branch and
// no history that is rewritten.
const masterOnly = `#!/bin/sh
while read old new ref; do
	[ "$ref" = refs/heads/main ] || { echo "only main is taken" >&2; exit 1; }
	[ "$(git merge-base $old $new)" = "$old" ] || { echo "no fast-forward" >&2; exit 1; }
done
`

// TestModePushFastForwardsTheBase: no branch, no request.
func TestModePushFastForwardsTheBase(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	if err := os.WriteFile(filepath.Join(u.bare, "hooks/pre-receive"), []byte(masterOnly), 0o755); err != nil {
		t.Fatal(err)
	}
	repo := u.repo()
	repo.Mode = "push"
	before := u.tip("main")
	res := u.run(repo, night(n30))
	if !res.Pushed || res.Action != ActionPushed || res.Branch != "main" || u.git(u.bare, "rev-parse", "main^") != before || u.git(u.bare, "branch", "--list") != "* main" {
		t.Errorf("%+v", res)
	}
	if res = u.run(repo, night(n30)); res.Pushed || res.Changed {
		t.Errorf("again: %+v", res)
	}
	// The base moves between the look and the push, once.
	o, moved := u.options(), 0
	o.Event = func(e Event) {
		if e.Kind == "push" {
			if moved++; moved == 1 {
				u.git(u.work, "pull", "-q", "origin", "main")
				u.write("README", []byte("moved\n"))
				u.commit("meanwhile")
			}
		}
	}
	res, err := Run(context.Background(), repo, night(n31), o)
	if err != nil || !res.Pushed || moved != 2 || u.show("main:README") != "moved" || u.git(u.bare, "rev-list", "--count", "main") != "4" {
		t.Errorf("%+v, %v, %d pushes", res, err, moved)
	}
}

func TestForceRebuildsAPersonsBranch(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.git(u.work, "push", "-q", "origin", "main:refs/heads/"+branch)
	if _, err := u.try(u.repo(), n30); err == nil {
		t.Error("a branch without our trailer was taken")
	}
	o := u.options()
	o.Force = true
	if res, err := Run(context.Background(), u.repo(), night(n30), o); err != nil || !res.Pushed {
		t.Errorf("%+v, %v", res, err)
	}
}

// gitStand is a forge whose commits go by git: its requests are in memory, its
// branches in a bare repository.
func gitStand(t *testing.T, u *upstream) (*memForge, func(*Options), *time.Time) {
	now := time.Date(2026, 10, 1, 6, 0, 0, 0, time.UTC)
	f := newMemForge(&now, nil)
	return f, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Open = func(_ context.Context, c forge.Config) (forge.Forge, error) {
			if c.Owner != "me" || c.Name != "up" || !strings.HasPrefix(c.Web, "https://") {
				t.Errorf("%+v", c)
			}
			return noTrees{f}, nil
		}
	}, &now
}

// TestForgeWithGitForCommits pushes by https, as to Gitea and GitLab.
func TestForgeWithGitForCommits(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.git(filepath.Dir(u.bare), "clone", "-q", "--bare", u.bare, filepath.Join(filepath.Dir(u.bare), "me", "up.git"))
	u.bare = filepath.Join(filepath.Dir(u.bare), "me", "up.git")
	u.git(u.work, "remote", "set-url", "origin", u.bare)
	s := newForgeAt(t, u, "x-access-token", filepath.Dir(filepath.Dir(u.bare)))
	env, _ := forgeEnv(t, s, testToken)
	f, with, now := gitStand(t, u)
	f.name, f.info.Name = "up", "up"
	repo := u.repo()
	repo.Forge, repo.URL, repo.Token = "gitea", s.URL+"/me/up.git", secret.Source{Env: "FORGE_TOKEN"}
	run := func(version string) *Result {
		t.Helper()
		o := u.options()
		with(&o)
		o.Env = env
		res, err := Run(context.Background(), repo, night(version), o)
		if err != nil {
			t.Fatal(err)
		}
		*now = now.Add(3 * time.Hour)
		return res
	}
	if res := run(n30); res.Action != ActionOpened || u.tip(branch) != res.Commit {
		t.Errorf("%+v", res)
	}
	if res := run(n30); res.Action != ActionNone {
		t.Errorf("%+v", res)
	}
	u.write("README", []byte("elsewhere\n"))
	u.commit("elsewhere")
	if res := run(n30); res.Action != ActionNone {
		t.Errorf("only the base moved: %+v", res)
	}
	if res := run(n31); res.Action != ActionUpdated || u.git(u.bare, "rev-parse", branch+"^") != u.tip("main") {
		t.Errorf("%+v", res)
	}
	u.git(u.work, "fetch", "-q", "origin", branch)
	u.git(u.work, "merge", "-q", "--ff-only", "FETCH_HEAD")
	u.git(u.work, "push", "-q", "origin", "main")
	f.pulls[0].State = forge.Merged
	if res := run(n31); res.Action != ActionNone || u.git(u.bare, "branch", "--list", branch) != "" {
		t.Errorf("merged: %+v", res)
	}
}

func TestSSHCommand(t *testing.T) {
	dir := t.TempDir()
	key, hosts := filepath.Join(dir, "k"), filepath.Join(dir, "h")
	if err := errors.Join(os.WriteFile(key, []byte("KEY\n\n"), 0o600), os.WriteFile(hosts, []byte("host ssh-ed25519 AAAA\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	scratch := filepath.Join(dir, "it's 100% scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	repo := Repo{SSHKey: secret.Source{File: key}, KnownHosts: secret.Source{File: hosts}}
	got, err := sshCommand(repo, os.Getenv, scratch)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"'StrictHostKeyChecking=yes'", "'IdentitiesOnly=yes'", `'IdentityFile="` + dir + `/it'\''s 100%% scratch/ssh-key"'`, "'UserKnownHostsFile=", "'BatchMode=yes'"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	text, err := os.ReadFile(filepath.Join(scratch, "ssh-key"))
	info, statErr := os.Stat(filepath.Join(scratch, "ssh-key"))
	if err != nil || statErr != nil || string(text) != "KEY\n" || info.Mode() != 0o600 || strings.Contains(got, "KEY") {
		t.Errorf("%q, %v, %v", text, info, err)
	}
	if got, err := sshCommand(Repo{}, os.Getenv, scratch); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
