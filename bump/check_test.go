package bump

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

func (u *upstream) try(repo Repo, version string) (*Result, error) {
	return Run(context.Background(), repo, night(version), u.options())
}

// TestChecksGateThePush runs them for real, in a checkout with the edit.
func TestChecksGateThePush(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	repo := u.repo()
	repo.Check = [][]string{{"sh", "-c", "echo looking; grep -q " + n30 + " flake.nix && echo no such luck >&2 && exit 3"}}
	_, err := u.try(repo, n30)
	var check *CheckError
	if !errors.As(err, &check) || !strings.Contains(check.Tail, "looking\nno such luck") || !strings.Contains(err.Error(), "nothing was pushed") {
		t.Fatalf("got %v", err)
	}
	if got := u.git(u.bare, "branch", "--list", "rocm-nightly/*"); got != "" {
		t.Errorf("pushed %s", got)
	}
	repo.Check = [][]string{{"true"}, {"sh", "-c", "test ! -e .git && test $ROCM_NIGHTLY_BUMP_NEW = " + n30 + " && test \"$ROCM_NIGHTLY_BUMP_FILES\" = flake.nix"}}
	if res, err := u.try(repo, n30); err != nil || !res.Pushed {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestChecksSeeNoTokenAndEndInTime(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	out := filepath.Join(t.TempDir(), "env")
	repo := u.repo()
	repo.Check = [][]string{{"sh", "-c", "env >" + out}}
	o := u.options()
	o.Env = func(name string) string {
		if name == "PATH" {
			return os.Getenv("PATH")
		}
		return "planted-" + name
	}
	if _, err := Run(context.Background(), repo, night(n30), o); err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile(out)
	if err != nil || strings.Contains(string(env), "planted") || !strings.Contains(string(env), "ROCM_NIGHTLY_BUMP_NAME=flake") {
		t.Errorf("%v:\n%s", err, env)
	}
	repo.Check, repo.CheckTimeout = [][]string{{"sh", "-c", "sleep 1000 & sleep 1000"}}, 50*time.Millisecond
	_, err = u.try(repo, n31)
	var check *CheckError
	if !errors.As(err, &check) || check.Timeout != repo.CheckTimeout {
		t.Errorf("got %v", err)
	}
}

// TestChecksFindNoKey: the copy that ssh is given lies beside the checkout, and
// is away while commands run.
func TestChecksFindNoKey(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	dir := t.TempDir()
	key, out := filepath.Join(dir, "key"), filepath.Join(dir, "found")
	if err := os.WriteFile(key, []byte("planted\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	repo := u.repo()
	repo.SSHKey = secret.Source{File: key}
	repo.Check = [][]string{{"sh", "-c", "ls ../.. >" + out + "; grep -rl planted ../.. >>" + out + "; true"}}
	res, err := u.try(repo, n30)
	if err != nil || !res.Pushed {
		t.Fatalf("%+v, %v", res, err)
	}
	found, err := os.ReadFile(out)
	if err != nil || !strings.Contains(string(found), "repo.git") || strings.Contains(string(found), keyCopy) {
		t.Errorf("%v: %s", err, found)
	}
}

// TestChecksLeaveNothingRunning: neither in the background nor in a session of
// its own, and what it leaves is no failure.
func TestChecksLeaveNothingRunning(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is missing: apt install util-linux")
	}
	u := newUpstream(t)
	pids := filepath.Join(t.TempDir(), "pids")
	repo := u.repo()
	repo.Check = [][]string{{"sh", "-c", "sleep 1000 & echo $! >" + pids + "; setsid -f sh -c 'echo $$ >>" + pids + "; exec sleep 1000'; until test $(wc -l <" + pids + ") = 2; do sleep 0.05; done"}}
	if res, err := u.try(repo, n30); err != nil || !res.Pushed {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, pid := range strings.Fields(readText(t, pids)) {
		// Whoever has been killed is nobody's child here and may not be reaped yet.
		if stat := readText(t, "/proc/"+pid+"/stat"); stat != "" && !strings.Contains(stat, ") Z ") && strings.Contains(stat, "(sleep)") {
			t.Errorf("%s lives on: %s", pid, stat)
		}
	}
}

// TestCheckoutHoldsNoWayOut: links that lead outside become files, and nothing
// that the repository says of filters counts.
func TestCheckoutHoldsNoWayOut(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	for name, target := range map[string]string{"passwd": "/etc/passwd", "up": "../../x", "sub/in": "../README", "dir": "sub"} {
		if err := os.Symlink(target, filepath.Join(u.work, name)); err != nil {
			t.Fatal(err)
		}
	}
	u.write("caf\xe9", []byte("Latin-1\n"))
	u.write("run.sh", []byte("#!/bin/sh\n"))
	u.write(".gitattributes", []byte("* text eol=crlf filter=evil ident\nREADME export-ignore\n"))
	if err := os.Chmod(filepath.Join(u.work, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	u.git(u.work, "config", "core.autocrlf", "false")
	u.commit("links")
	repo := u.repo()
	repo.Check = [][]string{{"sh", "-c", "test ! -L passwd && test -f passwd && test ! -L up && test -L sub/in && test -L dir && test -x run.sh && test -f README && test -f caf* && ! grep -q $(printf '\\r') flake.nix"}}
	if _, err := u.try(repo, n30); err != nil {
		t.Error(err)
	}
	for target, inside := range map[string]bool{"x/../b": false, "./../b": true, "..//b/./c": true, "../b": true, "b": true, "../../b": false, "/b": false, "": false, "../x/../../b": false, ".": true} {
		if staysInside("a/l", target) != inside {
			t.Errorf("%q: %v", target, !inside)
		}
	}
}

// TestLinksLeadNoWayOutTogether: a link that goes up behind the name of another
// link leads further up than its text says.
func TestLinksLeadNoWayOutTogether(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	const deep = "a/b/c/d/e/f/g/h/i/j"
	if err := errors.Join(
		os.MkdirAll(filepath.Join(u.work, deep), 0o755),
		os.Symlink(strings.Repeat("../", 9)+"..", filepath.Join(u.work, deep, "up")),
		os.Symlink(deep+"/up"+strings.Repeat("/..", 10), filepath.Join(u.work, "out")),
	); err != nil {
		t.Fatal(err)
	}
	u.commit("links")
	repo := u.repo()
	repo.Check = [][]string{{"sh", "-c", "test -L " + deep + "/up && test -f " + deep + "/up/README && test ! -L out && test ! -e out/etc"}}
	if _, err := u.try(repo, n30); err != nil {
		t.Error(err)
	}
}

func TestCheckEntry(t *testing.T) {
	for name, ok := range map[string]bool{"a/b": true, ".gitignore": true, "../a": false, "/a": false, "a/.git/x": false, ".GIT": false, "a//b": false, "": false, "a\xff": true, "./a": false, "a/..": false, "a/": false, ".": false} {
		if err := checkEntry(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
