//go:build heavy

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Two people make the release of one commit: from a clone and from an archive of the
// sources, in other directories, with other caches, locales, zones, umasks and
// settings of Go. What they publish has the same sums.
func TestTwoReleasesOfACommitAreEqual(t *testing.T) {
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	one, other := filepath.Join(t.TempDir(), "src"), filepath.Join(t.TempDir(), "somewhere", "else entirely")
	output(t, "git", "-c", "safe.directory="+top, "-c", "safe.directory="+top+"/.git", "clone", "-q", "--no-hardlinks", top, one)
	commit := output(t, "git", "-C", one, "log", "-1", "--format=%H")
	epoch := output(t, "git", "-C", one, "log", "-1", "--format=%ct")
	if err := os.MkdirAll(other, 0o700); err != nil {
		t.Fatal(err)
	}
	output(t, "sh", "-c", `git -C "$1" archive HEAD | tar -x -C "$2"`, "sh", one, other)
	make := func(dir, umask string, env ...string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", "umask "+umask+` && exec ./scripts/release.sh --version v1.2.3 --out "$PWD/dist"`)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), append(env, "GOCACHE="+t.TempDir())...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("release.sh in %s: %v\n%s", dir, err, out)
		}
		sums, err := os.ReadFile(filepath.Join(dir, "dist", "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(sums)
	}
	a := make(one, "022", "TZ=UTC", "LC_ALL=C")
	b := make(other, "077", "TZ=Pacific/Chatham", "LC_ALL=C.UTF-8", "GOAMD64=v3", "GOFLAGS=-v -tags=nothing", "COMMIT="+commit[:len(commit)-1], "SOURCE_DATE_EPOCH="+epoch[:len(epoch)-1])
	if a != b {
		t.Errorf("two releases of one commit differ:\n%s\n%s", a, b)
	}
}

// What Debian's own checker says, but for what is explained in the package.
func TestLintianHasNoErrors(t *testing.T) {
	need(t, "lintian")
	out, err := exec.Command("lintian", "--fail-on", "error,warning", "--allow-root", release(t).path(".deb")).CombinedOutput()
	if err != nil || strings.Contains(string(out), "E:") || strings.Contains(string(out), "W:") || strings.Contains(string(out), "unused-override") {
		t.Errorf("lintian: %v\n%s", err, out)
	}
}
