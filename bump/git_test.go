package bump

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gitEnvironment is an environment for the test's own git that no file of the
// machine has a say in.
func gitEnvironment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
		"GIT_AUTHOR_DATE=@1000000000 +0000", "GIT_COMMITTER_DATE=@1000000000 +0000",
	}
}

// upstream is a bare repository with a clone of it to work in, as a packager
// has them.
type upstream struct {
	t    *testing.T
	bare string
	work string
}

func newUpstream(t *testing.T, initArgs ...string) *upstream {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is missing: apt install git")
	}
	dir := t.TempDir()
	u := &upstream{t, filepath.Join(dir, "up.git"), filepath.Join(dir, "work")}
	u.git(dir, append([]string{"init", "-q", "--bare", "-b", "main"}, append(initArgs, u.bare)...)...)
	u.git(dir, append([]string{"init", "-q", "-b", "main"}, append(initArgs, u.work)...)...)
	u.git(u.work, "remote", "add", "origin", u.bare)
	u.write("flake.nix", fixture(t, "flake.nix"))
	u.write("sub/pins.nix", fixture(t, "pins.nix"))
	u.write("README", []byte("one\r\ntwo\n"))
	u.commit("first")
	return u
}

func (u *upstream) git(dir string, args ...string) string {
	u.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = dir, gitEnvironment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (u *upstream) write(name string, data []byte) {
	u.t.Helper()
	path := filepath.Join(u.work, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o644)); err != nil {
		u.t.Fatal(err)
	}
}

// commit commits what is in the work tree and pushes the current branch.
func (u *upstream) commit(message string) {
	u.t.Helper()
	u.git(u.work, "add", "-A")
	u.git(u.work, "commit", "-q", "-m", message)
	u.git(u.work, "push", "-q", "origin", "HEAD")
}

func (u *upstream) tip(branch string) string {
	u.t.Helper()
	return u.git(u.bare, "rev-parse", "--verify", "refs/heads/"+branch)
}

func (u *upstream) show(rev string) string {
	u.t.Helper()
	return u.git(u.bare, "show", rev)
}

func (u *upstream) repo() Repo {
	return Repo{Name: "flake", URL: u.bare, Files: []File{{
		Path: "flake.nix", Target: "gfx1151", Set: map[string]string{"version": "{{.Version}}", "srcHash": "{{.SRI}}"}, Fetches: fetches,
	}}}
}

// fetches is what the pins of night are fetched from.
const fetches = "https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-{{.Family}}-{{.Version}}.tar.gz"

func night(version string) map[string]Pin {
	return map[string]Pin{"gfx1151": {
		Version: version, URL: "https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-gfx1151-" + version + ".tar.gz", SRI: newSRI, Hex: newHex, Nix32: newNix32,
		Size: 13_000_000_000, Date: "2026-09-30", Family: "gfx1151", Target: "gfx1151", Channel: "nightly", Name: "therock-dist-linux-gfx1151-" + version + ".tar.gz",
	}}
}

func (u *upstream) options() Options {
	return Options{
		WorkDir: u.t.TempDir(), Env: os.Getenv,
		Now: func() time.Time { return time.Unix(1_790_000_000, 0) },
	}
}

func (u *upstream) run(repo Repo, pins map[string]Pin) *Result {
	u.t.Helper()
	o := u.options()
	res, err := Run(context.Background(), repo, pins, o)
	if err != nil {
		u.t.Fatal(err)
	}
	if left, _ := os.ReadDir(o.WorkDir); len(left) != 0 {
		u.t.Errorf("left behind in the scratch directory: %v", left)
	}
	return res
}

const branch = "rocm-nightly/flake"

// TestLifeOfABump walks one branch through the nights.
func TestLifeOfABump(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	main := u.tip("main")

	first := u.run(u.repo(), night("10.2.0a20260929"))
	if !first.Changed || !first.Pushed || first.Commit != u.tip(branch) || first.Base != "main" || first.Branch != branch {
		t.Fatalf("first: %+v", first)
	}
	if first.Title != "rocm: 10.2.0a20260928 -> 10.2.0a20260929 (gfx1151)" {
		t.Errorf("title %q", first.Title)
	}
	if got := u.git(u.bare, "log", "--format=%P %an <%ae> %cn <%ce> %ad", "--date=unix", "-1", branch); got != main+" rocm-nightly <rocm-nightly@localhost> rocm-nightly <rocm-nightly@localhost> 1790000000" {
		t.Errorf("commit %s", got)
	}
	if got := u.git(u.bare, "diff", "--numstat", "main", branch); got != "2\t2\tflake.nix" {
		t.Errorf("diff %s", got)
	}
	for _, want := range []string{"10.2.0a20260928", newSRI, newHex, "13000000000 bytes", "https://nightly.repo.amd.com/rocm/core/tarball/therock-dist-linux-gfx1151-10.2.0a20260929.tar.gz", trailer} {
		if body := u.git(u.bare, "log", "--format=%b", "-1", branch); !strings.Contains(body, want) {
			t.Errorf("%q is not in the body:\n%s", want, body)
		}
	}

	if again := u.run(u.repo(), night("10.2.0a20260929")); !again.Changed || again.Pushed || again.Commit != first.Commit {
		t.Errorf("again: %+v", again)
	}

	newer := u.run(u.repo(), night("10.2.0a20260930"))
	if !newer.Pushed || newer.Commit == first.Commit || u.tip(branch) != newer.Commit {
		t.Errorf("newer: %+v", newer)
	}
	if n := u.git(u.bare, "rev-list", "--count", "main.."+branch); n != "1" {
		t.Errorf("%s commits on the branch, want 1", n)
	}

	u.write("README", []byte("three\n"))
	u.commit("the base moves on")
	moved := u.run(u.repo(), night("10.2.0a20260930"))
	if !moved.Pushed || u.git(u.bare, "rev-parse", branch+"^") != u.tip("main") {
		t.Errorf("moved: %+v", moved)
	}

	u.git(u.work, "fetch", "-q", "origin", branch)
	u.git(u.work, "merge", "-q", "--ff-only", "FETCH_HEAD")
	u.git(u.work, "push", "-q", "origin", "main")
	if done := u.run(u.repo(), night("10.2.0a20260930")); done.Changed || done.Pushed || done.Diff != "" {
		t.Errorf("merged: %+v", done)
	}
	if got := u.show("main:README"); got != "three" {
		t.Errorf("README %q", got)
	}
}

func TestHumanCommitsWin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		commit func(u *upstream)
	}{
		{"a commit on top", func(u *upstream) { u.git(u.work, "commit", "-q", "--allow-empty", "-m", "fix") }},
		{"amended", func(u *upstream) { u.git(u.work, "commit", "-q", "--amend", "--no-edit", "--allow-empty") }},
		{"our name without our trailer", func(u *upstream) {
			u.git(u.work, "-c", "user.name=x", "commit", "-q", "--amend", "--allow-empty", "--author=rocm-nightly <rocm-nightly@localhost>", "-m", "Rocm-Nightly: bump but not alone")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u := newUpstream(t)
			u.run(u.repo(), night("10.2.0a20260929"))
			u.git(u.work, "fetch", "-q", "origin", branch)
			u.git(u.work, "checkout", "-q", "-b", branch, "FETCH_HEAD")
			tt.commit(u)
			u.git(u.work, "push", "-q", "-f", "origin", branch)
			theirs := u.tip(branch)
			_, err := Run(context.Background(), u.repo(), night("10.2.0a20260930"), u.options())
			var human *HumanCommitsError
			if !errors.As(err, &human) || human.Commit != theirs || !strings.Contains(human.By, "ada@example.org") {
				t.Errorf("got %v", err)
			}
			if u.tip(branch) != theirs {
				t.Error("the human's commit is gone")
			}
		})
	}
}

func TestDryRunPushesNothing(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	o := u.options()
	o.DryRun = true
	res, err := Run(context.Background(), u.repo(), night("10.2.0a20260930"), o)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Changed || res.Pushed || res.Commit != "" || u.git(u.bare, "branch", "--list", "rocm-nightly/*") != "" {
		t.Errorf("%+v", res)
	}
	for _, line := range []string{"--- a/flake.nix", `-      version = "10.2.0a20260928"; # bumped by a robot`, `+      version = "10.2.0a20260930"; # bumped by a robot`} {
		if !strings.Contains(res.Diff, line+"\n") {
			t.Errorf("%q is not in the diff:\n%s", line, res.Diff)
		}
	}
}

func TestPushReplacesOnlyWhatWasLookedAt(t *testing.T) {
	t.Parallel()
	for _, there := range []bool{true, false} {
		u := newUpstream(t)
		if there {
			u.run(u.repo(), night("10.2.0a20260929"))
		}
		o := u.options()
		o.Event = func(e Event) {
			if e.Kind == "push" {
				u.git(u.work, "push", "-q", "-f", "origin", "main:refs/heads/"+branch)
			}
		}
		_, err := Run(context.Background(), u.repo(), night("10.2.0a20260930"), o)
		var gitErr *GitError
		if !errors.As(err, &gitErr) || gitErr.Verb != "push" || !strings.Contains(err.Error(), "run again") {
			t.Errorf("branch there %v: got %v", there, err)
		}
		if u.tip(branch) != u.tip("main") {
			t.Errorf("branch there %v: the push went over a commit that was never looked at", there)
		}
	}
}

// TestServerRulesAreExplained has the server refuse, as a protected branch
// does.
func TestServerRulesAreExplained(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	hook := "#!/bin/sh\necho 'only \033[1mreviewed\033[0m work' >&2\nexit 1\n"
	if err := errors.Join(os.MkdirAll(filepath.Join(u.bare, "hooks"), 0o755), os.WriteFile(filepath.Join(u.bare, "hooks/pre-receive"), []byte(hook), 0o755)); err != nil {
		t.Fatal(err)
	}
	_, err := Run(context.Background(), u.repo(), night(newVersion), u.options())
	if err == nil || !strings.Contains(err.Error(), "reviewed") || !strings.Contains(err.Error(), "the server's rules") || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("got %q", err)
	}
}

func TestSeveralFilesAndTargets(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	repo := u.repo()
	repo.Base, repo.Branch, repo.Author = "main", "bots/rocm", Author{"Bot", "bot@example.org"}
	repo.Files = append(repo.Files,
		File{Path: "sub/pins.nix", Target: "gfx1151", Set: map[string]string{"gfx1151.version": "{{.Version}}", "gfx1151.sha256": "{{.Nix32}}"}, Fetches: fetches},
		File{Path: "sub/pins.nix", Target: "gfx110X-all", Set: map[string]string{`"gfx110X-all".version`: "{{.Version}}", `"gfx110X-all".sha256`: "{{.Hex}}"}, Fetches: fetches},
	)
	pins := night("10.2.0a20260930")

	if res := u.run(repo, pins); res.Changed || len(res.Waiting) != 1 || res.Waiting[0] != "gfx110X-all" {
		t.Errorf("all: %+v", res)
	}
	repo.Require = "available"
	if res := u.run(repo, pins); !res.Pushed || len(res.Skipped) != 1 || len(res.Edits) != 4 || !strings.Contains(res.Body, "Left as they are") {
		t.Errorf("available: %+v", res)
	}
	pins["gfx110X-all"] = pins["gfx1151"]
	p := pins["gfx110X-all"]
	p.Target = ""
	pins["gfx110X-all"] = p
	repo.Require = "all"
	res := u.run(repo, pins)
	if !res.Pushed || len(res.Edits) != 6 || res.Title != "rocm: 10.2.0a20260930 (gfx110X-all, gfx1151)" {
		t.Errorf("all there: %+v", res)
	}
	if got := u.git(u.bare, "log", "--format=%an <%ae>", "-1", "bots/rocm"); got != "Bot <bot@example.org>" {
		t.Errorf("author %s", got)
	}
	if res := u.run(Repo{Name: "none", URL: u.bare, Require: "available", Files: u.repo().Files}, nil); res.Changed || len(res.Skipped) != 1 {
		t.Errorf("no pins: %+v", res)
	}
}

func TestRefusedEditsPushNothing(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	if err := os.Symlink("/etc", filepath.Join(u.work, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("flake.nix", filepath.Join(u.work, "link.nix")); err != nil {
		t.Fatal(err)
	}
	u.commit("links")
	for _, tt := range []struct{ name, path, key, text, err string }{
		{"two matches", "sub/pins.nix", "version", "{{.Version}}", "sub/pins.nix: 3 bindings match, at 4:3 (pins.gfx1151.version)"},
		{"other hash", "flake.nix", "srcHash", "{{.Hex}}", `flake.nix:12:18: the value is an SRI hash`},
		{"no such field", "flake.nix", "version", "{{.Versoin}}", "expand template of version for flake.nix"},
		{"bad template", "flake.nix", "version", "{{", "expand template of version for flake.nix: template: version:1: unclosed action"},
		{"empty value", "flake.nix", "version", "{{if false}}x{{end}}", "gives an empty value"},
		{"endless value", "flake.nix", "version", "{{range 1000000}}xxxxxxxxxxxxxxxx{{end}}", "longer than"},
		{"no such file", "none.nix", "version", "{{.Version}}", "no such file on branch main"},
		{"symlink", "link.nix", "version", "{{.Version}}", "it is a symlink, not a regular file"},
		{"through a symlink", "out/passwd", "version", "{{.Version}}", "no such file on branch main"},
		{"directory", "sub", "version", "{{.Version}}", "it is a directory"},
		{"parent", "../flake.nix", "version", "{{.Version}}", "not a relative path"},
		{"absolute", "/etc/passwd", "version", "{{.Version}}", "not a relative path"},
		{"unclean", "sub/./pins.nix", "version", "{{.Version}}", "not a relative path"},
		{"git", ".git/config", "version", "{{.Version}}", "files of .git are not edited"},
		{"git by another name", "sub/.GIT/config", "version", "{{.Version}}", "files of .git are not edited"},
		{"magic", ":(top)flake.nix", "version", "{{.Version}}", "not a relative path"},
		{"glob", "*.nix", "version", "{{.Version}}", "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repo := u.repo()
			repo.Files = []File{{Path: tt.path, Target: "gfx1151", Set: map[string]string{tt.key: tt.text}, Fetches: fetches}}
			_, err := Run(context.Background(), repo, night(newVersion), u.options())
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %v, want %q in it", err, tt.err)
			}
		})
	}
	if got := u.git(u.bare, "branch", "--list", "rocm-nightly/*"); got != "" {
		t.Errorf("pushed %s", got)
	}
}

// TestEveryOtherByteStays holds what a checkout would change: line ends and
// filters.
func TestEveryOtherByteStays(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	src := []byte("# \xff\r\n{ version = \"1\";\r\n}\r\n")
	u.git(u.work, "config", "core.autocrlf", "false")
	u.write("crlf.nix", src)
	u.commit("a file with CR LF")
	u.write(".gitattributes", []byte("*.nix text eol=lf filter=evil ident\n"))
	u.commit("attributes")
	stored := []byte(u.git(u.bare, "cat-file", "-p", "main:crlf.nix"))
	repo := u.repo()
	repo.Files = []File{{Path: "crlf.nix", Set: map[string]string{"version": "{{.Version}}"}, Fetches: fetches}}
	u.run(repo, night("2"))
	want := bytes.Replace(stored, []byte(`"1"`), []byte(`"2"`), 1)
	if got := u.git(u.bare, "cat-file", "-p", branch+":crlf.nix"); got != string(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSHA256Repository(t *testing.T) {
	t.Parallel()
	u := newUpstream(t, "--object-format=sha256")
	if res := u.run(u.repo(), night(newVersion)); !res.Pushed || len(res.Commit) != 64 {
		t.Errorf("%+v", res)
	}
}

// TestHostHooksDoNotRun plants hooks everywhere that a git of the host would
// find them.
func TestHostHooksDoNotRun(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	home := t.TempDir()
	ran := filepath.Join(home, "ran")
	hooks := filepath.Join(home, "template", "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pre-push", "post-checkout", "reference-transaction", "post-index-change"} {
		if err := os.WriteFile(filepath.Join(hooks, name), []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config := "[init]\n\ttemplateDir = " + filepath.Dir(hooks) + "\n[core]\n\thooksPath = " + hooks + "\n"
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	o := u.options()
	o.Env = func(name string) string {
		switch name {
		case "HOME":
			return home
		case "GIT_TEMPLATE_DIR":
			return filepath.Dir(hooks)
		case "GIT_CONFIG_GLOBAL":
			return filepath.Join(home, ".gitconfig")
		}
		return os.Getenv(name)
	}
	if _, err := Run(context.Background(), u.repo(), night(newVersion), o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook of the host ran")
	}
}

func TestCancelKillsGitAndItsChildren(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	dir := t.TempDir()
	alive, never := filepath.Join(dir, "alive"), filepath.Join(dir, "never")
	if err := exec.Command("mkfifo", alive, never).Run(); err != nil {
		t.Fatal(err)
	}
	repo, o := u.repo(), u.options()
	repo.URL = "ssh://example.invalid/a/b"
	// In place of ssh: holds a pipe open, says so, and waits for ever.
	o.Env = func(name string) string {
		if name == "GIT_SSH_COMMAND" {
			return "sh -c 'exec 9>" + alive + "; echo up >&9; read x <" + never + "'"
		}
		return os.Getenv(name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dead := make(chan error, 1)
	go func() {
		f, err := os.Open(alive)
		if err == nil {
			_, err = f.Read(make([]byte, 3))
			cancel()
			// The end of the pipe is the end of who held it.
			_, rest := io.Copy(io.Discard, f)
			err = errors.Join(err, rest, f.Close())
		}
		dead <- err
	}()
	if _, err := Run(ctx, repo, night(newVersion), o); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	select {
	case err := <-dead:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("what git started is still alive")
	}
}
