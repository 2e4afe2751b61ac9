package demo

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// unpacked makes a night and unpacks it with tar, as whoever trusts it would.
func unpacked(t *testing.T, o NightOptions) (tree, tarball string) {
	t.Helper()
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("no tar (Debian: tar)")
	}
	dir := t.TempDir()
	tarball, err := Night(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	tree = filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "xzf", tarball, "-C", tree).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v %s", err, out)
	}
	return tree, tarball
}

// repaired runs a program of a tree with the libraries that a repair would
// make it find.
func repaired(t *testing.T, tree string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(tree, command[0]), command[1:]...)
	cmd.Env = []string{"LD_LIBRARY_PATH=" + tree + "/lib:" + tree + "/lib/rocm_sysdeps/lib", "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v %s", command, err, out)
	}
	return string(out)
}

func TestNightOfCompiledPrograms(t *testing.T) {
	if _, err := findCompiler(""); err != nil {
		t.Skip(err.Error() + " (Debian: gcc libc6-dev)")
	}
	const version = "10.2.0a20260930"
	tree, tarball := unpacked(t, NightOptions{Version: version, Compiler: "cc"})
	if want := "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"; filepath.Base(tarball) != want {
		t.Errorf("named %s, want %s", filepath.Base(tarball), want)
	}
	hello := exec.CommandContext(t.Context(), filepath.Join(tree, "bin/rocm-hello"))
	if out, err := hello.CombinedOutput(); err == nil {
		t.Errorf("rocm-hello starts before anything is repaired: %s", out)
	}
	if got := repaired(t, tree, "bin/rocm-version"); got != version+"\n" {
		t.Errorf("rocm-version: %q", got)
	}
	if got := repaired(t, tree, "bin/rocm-hello"); !strings.HasPrefix(got, "hello from ROCm "+version+", kernels for gfx1151: ") {
		t.Errorf("rocm-hello: %q", got)
	}
	if err := os.RemoveAll(filepath.Join(tree, ".kpack")); err != nil {
		t.Fatal(err)
	}
	hello = exec.CommandContext(t.Context(), filepath.Join(tree, "bin/rocm-hello"))
	hello.Env = []string{"LD_LIBRARY_PATH=" + tree + "/lib/rocm_sysdeps/lib"}
	if out, err := hello.CombinedOutput(); err == nil {
		t.Errorf("rocm-hello does not miss its kernels: %s", out)
	}
}

func TestNightWithoutCompiler(t *testing.T) {
	tree, _ := unpacked(t, NightOptions{Version: "10.2.0a20260930", Family: "multiarch", Compiler: "none"})
	for _, command := range Programs() {
		if got := repaired(t, tree, command...); got == "" {
			t.Errorf("%v prints nothing", command)
		}
	}
}

func TestNightHoldsTheTraps(t *testing.T) {
	dir := t.TempDir()
	date := time.Date(2026, 9, 30, 3, 4, 5, 0, time.UTC)
	path, err := Night(t.Context(), dir, NightOptions{Version: "10.2.0a20260930", Family: "gfx110X-all", Date: date, Compiler: "none"})
	if err != nil {
		t.Fatal(err)
	}
	tarball, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(date) {
		t.Errorf("time of the file: %v, want %v", info.ModTime(), date)
	}
	type trap struct {
		name string
		kind byte
		mode int64
		link string
	}
	traps := []trap{
		{"./", '5', 0o775, ""},
		{"./.info/version", '0', 0o644, ""},
		{"./.kpack/demo_lib_gfx1100.kpack", '0', 0o644, ""},
		{"./.kpack/demo_lib_gfx1101.kpack", '0', 0o644, ""},
		{"./bin/amdclang", '2', 0o777, "../lib/llvm/bin/amdclang"},
		{"./lib/", '5', 0o775, ""},
		{"./lib/libfoo.so", '2', 0o777, stage + "/lib/libfoo.so.1"},
		{"./lib/libfoo.so.1.0.0", '1', 0o755, "./lib/libfoo.so.1"},
		{"./lib/hipblaslt/library/gfx1100/" + tensileName("gfx1100"), '0', 0o644, ""},
		{"./libexec/rocm/helper", '0', 0o4755, ""},
		{"./share/doc/rocm/sources", '2', 0o777, "/therock/src/rocm-systems"},
		{"./share/rocm/read-only.json", '0', 0o444, ""},
	}
	found := make(map[string]bool)
	longest := 0
	for _, h := range members(t, tarball) {
		longest = max(longest, len(h.Name))
		for _, w := range traps {
			if h.Name != w.name {
				continue
			}
			found[h.Name] = true
			if h.Typeflag != w.kind || h.Mode != w.mode || h.Linkname != w.link {
				t.Errorf("%s: %c %o %q, want %c %o %q", h.Name, h.Typeflag, h.Mode, h.Linkname, w.kind, w.mode, w.link)
			}
		}
	}
	for _, w := range traps {
		if !found[w.name] {
			t.Errorf("no %s", w.name)
		}
	}
	if longest <= 255 {
		t.Errorf("the longest name has %d bytes", longest)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left beside the tarball: %v %v", entries, err)
	}
}

func TestNightIsTheSameTwice(t *testing.T) {
	var first []byte
	for range 2 {
		path, err := Night(t.Context(), t.TempDir(), NightOptions{Version: "10.2.0a20260930"})
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, b) {
			t.Error("two nights of one version differ")
		}
		first = b
	}
}

func TestNightRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, o := range []NightOptions{
		{},
		{Version: "tonight"},
		{Version: "10.2.0"}, // no date in it, and none given
		{Version: "10.2.0a20260930", Family: "../gfx1151"},
		{Version: "10.2.0a20260930", Family: "gfx1151-tests"},
		{Version: "10.2.0a20260930", Compiler: "no-such-compiler"},
	} {
		if path, err := Night(t.Context(), dir, o); err == nil {
			t.Errorf("%+v: made %s", o, path)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Night(ended, dir, NightOptions{Version: "10.2.0a20260930"}); err == nil {
		t.Error("made a night although the context had ended")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}
