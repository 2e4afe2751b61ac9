package hostpkg

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// tool puts a script in the place of a package tool.
func tool(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestOwners(t *testing.T) {
	for name, c := range map[string]struct{ tool, script, want string }{
		"dpkg":            {"dpkg", `[ "$1" = -S ] && echo "diversion by x from: $2" && echo "rocm-core, rocm-dev:amd64: $2"`, "rocm-core, rocm-dev:amd64"},
		"dpkg of another": {"dpkg", `echo "rocm-core: $2.d"`, ""},
		"rpm":             {"rpm", `[ "$1 $2" = "-qf --queryformat" ] && printf "rocm-core\nrocm-core\n"`, "rocm-core"},
		"rpm, nobody's":   {"rpm", `echo "file $4 is not owned by any package"; exit 1`, ""},
		"pacman":          {"pacman", `[ "$1" = -Qoq ] && echo rocm-core`, "rocm-core"},
		"many":            {"pacman", "seq 100", "1, 10, 100, 11 and others"},
		"hostile":         {"pacman", `printf 'a\033[2J\n'`, `a\x1b[2J`},
		"endless":         {"pacman", `yes`, ""},
		"a child stays":   {"rpm", `sleep 9 & echo rocm`, ""},
		"hangs":           {"pacman", `exec sleep 60`, ""},
		"none":            {"apk", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			tool(t, dir, c.tool, c.script)
			start := time.Now()
			got := Owners{Dirs: []string{dir}, Timeout: 500 * time.Millisecond}.Of(context.Background(), "/opt/rocm/")
			if got != c.want || time.Since(start) > 5*time.Second {
				t.Errorf("%q after %s, want %q", got, time.Since(start), c.want)
			}
		})
	}
}

// AMD's /opt/rocm is a link that nobody owns: it is whose its target is.
func TestOwnersOfWhatALinkLeadsTo(t *testing.T) {
	dir := t.TempDir()
	tool(t, dir, "dpkg", `case $2 in */rocm-6.4.0) echo "rocm-core: $2";; *) exit 1;; esac`)
	link := filepath.Join(dir, "rocm")
	if err := os.Mkdir(link+"-6.4.0", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("rocm-6.4.0", link); err != nil {
		t.Fatal(err)
	}
	o := Owners{Dirs: []string{dir}}
	if got := o.Of(context.Background(), link); got != "rocm-core" {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{"opt/rocm", "", "/o*"} {
		if got := o.Of(context.Background(), bad); got != "" {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

// The machine's own dpkg, where there is one.
func TestOwnersOfThisMachine(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("no dpkg here (Debian's package dpkg)")
	}
	if got := (Owners{}).Of(context.Background(), "/usr/bin/dpkg"); got != "dpkg" {
		t.Errorf("%q", got)
	}
	if got := (Owners{}).Of(context.Background(), filepath.Join(t.TempDir(), "none")); got != "" {
		t.Errorf("%q", got)
	}
}

func FuzzReadDpkg(f *testing.F) {
	f.Add("a, b:amd64: /opt/rocm\ndiversion by x from: /opt/rocm\n")
	f.Fuzz(func(t *testing.T, text string) {
		if s := inWords(append(readDpkg(text, "/opt/rocm"), readLines(text, "")...)); strings.ContainsAny(s, "\n\x1b") || len(s) > 1000 {
			t.Errorf("%q gives %q", text, s)
		}
	})
}

func ExampleOwners_Of() {
	fmt.Println(Owners{Dirs: []string{}}.Of(context.Background(), "/opt/rocm") == "")
	// Output: true
}
