package patchelf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Programs exit with 46 only if libdep.so is found and sound.
const (
	depSource  = `int dep_value = 40; int dep(int x) { return dep_value + x; }`
	userSource = `extern int dep(int); static int (*volatile p)(int) = dep; int user_rpath(void) { return p(6); } const char *user_name = "user";`
	progSource = `extern int dep(int); static int (*p)(int) = dep; char zeros[70000]; int main(void) { return p(6) + zeros[69999]; }`
	loadSource = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
int main(int c, char **v) {
	void *h = dlopen(v[1], RTLD_NOW);
	if (!h) { puts(dlerror()); return 1; }
	int (*f)(void) = (int (*)(void))dlsym(h, "user_rpath");
	return f ? f() : 2;
}`
)

// workshop builds fixtures with the machine's own linkers, each once.
type workshop struct {
	dir   string
	mu    sync.Mutex
	built map[string]string
}

var shop workshop

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "patchelf-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shop = workshop{dir: dir, built: map[string]string{}}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// deps is the directory of libdep.so.
func (w *workshop) deps(tb testing.TB) string {
	return filepath.Dir(w.build(tb, "deps/libdep.so", depSource, "-shared", "-fPIC", "-Wl,-soname,libdep.so"))
}

// build compiles source into name with args, once.
func (w *workshop) build(tb testing.TB, name, source string, args ...string) string {
	tb.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := exec.LookPath("gcc"); err != nil {
		tb.Skip("gcc is missing (Debian: gcc)")
	}
	if path, ok := w.built[name]; ok {
		return path
	}
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tb.Fatal(err)
	}
	if source != "" {
		args = append([]string{"-g", "-x", "c", "-", "-x", "none"}, args...)
	}
	cmd := exec.Command("gcc", append([]string{"-o", path}, args...)...)
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("gcc %v: %v\n%s", args, err, out)
	}
	w.built[name] = path
	return path
}

// variant is one way to link a fixture.
type variant struct {
	name string
	lib  bool
	path string // run path at link time
	args []string
}

// variants are all ways to link that this machine has linkers for.
func variants() []variant {
	var vs []variant
	for _, linker := range []string{"bfd", "gold", "lld"} {
		if _, err := exec.LookPath("ld." + linker); err != nil && linker != "bfd" {
			if linker != "lld" || exec.Command("ld.lld-16", "--version").Run() != nil {
				continue
			}
			linker = "lld-16"
		}
		for _, kind := range []string{"pie", "exec", "lib"} {
			for _, path := range []string{"", "/o/p", "/nowhere/first:/nowhere/second/a/b/c"} {
				v := variant{name: fmt.Sprintf("%s-%s-%d", linker, kind, len(path)), lib: kind == "lib", path: path}
				if strings.HasPrefix(linker, "lld") {
					v.args = append(v.args, "-B"+filepath.Join(shop.dir, "lld"))
					v.args = append(v.args, "-fuse-ld=lld")
				} else {
					v.args = append(v.args, "-fuse-ld="+linker)
				}
				v.args = append(v.args, map[string][]string{"pie": {"-pie", "-fPIE"}, "exec": {"-no-pie"}, "lib": {"-shared", "-fPIC"}}[kind]...)
				if path != "" {
					v.args = append(v.args, "-Wl,-rpath,"+path)
				}
				vs = append(vs, v)
				if path == "" && linker == "bfd" {
					for _, extra := range []struct{ name, arg string }{
						{"noseparate", "-Wl,-z,noseparate-code"}, {"nobuildid", "-Wl,--build-id=none"}, {"page64k", "-Wl,-z,max-page-size=65536"},
						{"page2m", "-Wl,-z,max-page-size=0x200000,-z,noseparate-code"}, {"sysv", "-Wl,--hash-style=sysv,-z,now"},
					} {
						vs = append(vs, variant{name: v.name + "-" + extra.name, lib: v.lib, args: append(append([]string{}, v.args...), extra.arg)})
					}
				}
			}
		}
	}
	return vs
}

// variantOf is the variant of GNU ld of that name.
func variantOf(tb testing.TB, name string) variant {
	for _, v := range variants() {
		if v.name == name {
			return v
		}
	}
	tb.Fatal("no variant " + name)
	return variant{}
}

// make links the variant.
func (v variant) make(tb testing.TB) string {
	tb.Helper()
	deps := shop.deps(tb)
	if err := os.MkdirAll(filepath.Join(shop.dir, "lld"), 0o755); err != nil {
		tb.Fatal(err)
	}
	if lld, err := exec.LookPath("ld.lld-16"); err == nil {
		_ = os.Symlink(lld, filepath.Join(shop.dir, "lld", "ld.lld"))
	}
	object := shop.object(tb, "prog", progSource, v.args)
	if v.lib {
		object = shop.object(tb, "user", userSource, v.args)
	}
	return shop.build(tb, v.name, "", append(append([]string{object}, v.args...), "-Wl,--enable-new-dtags", "-L"+deps, "-ldep")...)
}

// object compiles a source once for programs at fixed addresses and once for
// others.
func (w *workshop) object(tb testing.TB, name, source string, args []string) string {
	if slices.Contains(args, "-no-pie") {
		return w.build(tb, name+"-fixed.o", source, "-c", "-fno-pie")
	}
	return w.build(tb, name+"-pic.o", source, "-c", "-fPIC")
}

// copyOf puts a copy of path into a directory of the test.
func copyOf(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return put(tb, filepath.Base(path), b)
}

func put(tb testing.TB, name string, b []byte) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(out, b, 0o755); err != nil {
		tb.Fatal(err)
	}
	return out
}

// runs runs a program, or loads a library, and returns its exit status and
// output. 46 means that it works and found libdep.so.
func runs(tb testing.TB, path string, lib bool) (int, string) {
	tb.Helper()
	cmd := exec.Command(path)
	if lib {
		cmd = exec.Command(shop.build(tb, "loader", loadSource, "-ldl"), path)
	}
	cmd.Env = []string{"LD_BIND_NOW=1"}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ETXTBSY) {
		return runs(tb, path, lib) // a test beside this one forked while the file was open
	}
	if cmd.ProcessState == nil {
		return -1, fmt.Sprint("did not start: ", err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// clean checks that readelf has nothing to complain about.
func clean(tb testing.TB, path string) {
	tb.Helper()
	if _, err := exec.LookPath("readelf"); err != nil {
		return
	}
	var stderr bytes.Buffer
	cmd := exec.Command("readelf", "-lWdSV", path)
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		tb.Errorf("readelf: %v\n%s", err, stderr.String())
	}
}

// lint returns what eu-elflint says, without addresses, or nothing if it is
// not installed.
func lint(path string) []string {
	if _, err := exec.LookPath("eu-elflint"); err != nil {
		return nil
	}
	out, _ := exec.Command("eu-elflint", "--gnu-ld", path).CombinedOutput()
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func mustEdit(tb testing.TB, path string, e Edit) Result {
	tb.Helper()
	res, err := EditPath(path, e)
	if err != nil {
		tb.Fatalf("edit %s: %v", filepath.Base(path), err)
	}
	return res
}

func ptr(s string) *string { return &s }
