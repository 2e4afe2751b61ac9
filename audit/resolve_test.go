package audit_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/audit"
)

// lab compiles libraries and a program that needs them.
type lab struct {
	t   *testing.T
	dir string
}

func newLab(t *testing.T) lab {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is missing: apt install gcc")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return lab{t, dir}
}

func (l lab) gcc(args ...string) {
	l.t.Helper()
	cmd := exec.Command("gcc", append([]string{"-x", "c", "/dev/null", "-x", "none"}, args...)...)
	cmd.Dir = l.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("gcc %q: %v\n%s", args, err, out)
	}
}

func (l lab) library(name string, args ...string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Join(l.dir, filepath.Dir(name)), 0o755); err != nil {
		l.t.Fatal(err)
	}
	l.gcc(append([]string{"-shared", "-fPIC", "-Wl,--no-as-needed,-soname," + filepath.Base(name), "-o", name}, args...)...)
}

func (l lab) program(name string, args ...string) string {
	l.t.Helper()
	src := filepath.Join(l.dir, "main.c")
	if err := os.WriteFile(src, []byte("int main(void){return 0;}\n"), 0o644); err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.Command("gcc", append([]string{src, "-Wl,--no-as-needed", "-o", filepath.Join(l.dir, name)}, args...)...)
	cmd.Dir = l.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("gcc: %v\n%s", err, out)
	}
	return filepath.Join(l.dir, name)
}

func (l lab) at(name string) string { return filepath.Join(l.dir, name) }

// twoROCms is a program that finds its HIP in ours by DT_RUNPATH, whose comgr a
// foreign LD_LIBRARY_PATH can swap.
func twoROCms(t *testing.T, tags string) (lab, string) {
	l := newLab(t)
	for _, root := range []string{"ours", "theirs"} {
		l.library(root + "/lib/libamd_comgr.so.3")
		l.library(root+"/lib/libamdhip64.so.7", "-Wl,"+tags+",-rpath,$ORIGIN", l.at(root+"/lib/libamd_comgr.so.3"))
	}
	return l, l.program("prog", "-Wl,"+tags+",-rpath,$ORIGIN/ours/lib", "ours/lib/libamdhip64.so.7")
}

func resolve(t *testing.T, file string, env audit.LoadEnv) map[string]audit.Loaded {
	t.Helper()
	all, err := audit.NewResolver(env).Resolve(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	if all[0].Why != audit.WhyProgram {
		t.Errorf("the first is %+v", all[0])
	}
	by := map[string]audit.Loaded{}
	for _, l := range all {
		by[l.Name] = l
	}
	return by
}

func TestResolveSaysWhy(t *testing.T) {
	for _, c := range []struct{ name, tags, path, hip, comgr string }{
		{"runpath", "--enable-new-dtags", "", "ours DT_RUNPATH", "ours DT_RUNPATH"},
		{"runpath is displaced", "--enable-new-dtags", "theirs/lib", "theirs LD_LIBRARY_PATH", "theirs LD_LIBRARY_PATH"},
		{"rpath is not", "--disable-new-dtags", "theirs/lib", "ours DT_RPATH", "ours DT_RPATH"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, prog := twoROCms(t, c.tags)
			env := audit.LoadEnv{}
			if c.path != "" {
				env.LibraryPath = l.at(c.path)
			}
			got := resolve(t, prog, env)
			for lib, want := range map[string]string{"libamdhip64.so.7": c.hip, "libamd_comgr.so.3": c.comgr} {
				root, why, _ := strings.Cut(want, " ")
				if g := got[lib]; g.Path != l.at(root+"/lib/"+lib) || g.Why != why {
					t.Errorf("%s: %+v", lib, g)
				}
			}
			sameAsLoader(t, prog, env.LibraryPath, got)
		})
	}
}

// sameAsLoader compares with ld.so --list, for every library.
func sameAsLoader(t *testing.T, prog, libraryPath string, got map[string]audit.Loaded) {
	t.Helper()
	cmd := exec.Command("/lib64/ld-linux-x86-64.so.2", "--list", prog)
	cmd.Env = []string{"LD_LIBRARY_PATH=" + libraryPath}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\t(\S+) => (\S+) `).FindAllStringSubmatch(string(out), -1)
	if len(found) < 3 {
		t.Fatalf("ld.so lists %s", out)
	}
	for _, m := range found {
		real, err := filepath.EvalSymlinks(m[2])
		if err != nil {
			t.Fatal(err)
		}
		if got[m[1]].Path != real {
			t.Errorf("%s: %+v, ld.so takes %s", m[1], got[m[1]], real)
		}
	}
}

// HIP opens comgr by name: its own run path leads there, unless a program has
// mapped another before.
func TestResolveFollowsWhatIsOpened(t *testing.T) {
	l := newLab(t)
	l.library("ours/lib/libamd_comgr.so.3")
	l.library("ours/lib/libamdhip64.so.7", "-Wl,--enable-new-dtags,-rpath,$ORIGIN")
	prog := l.program("prog", "-Wl,-rpath,$ORIGIN/ours/lib", "ours/lib/libamdhip64.so.7")
	opens := func(soname string) []string {
		if soname == "libamdhip64.so.7" {
			return []string{"libamd_comgr.so.3", "libnowhere.so.1"}
		}
		return nil
	}
	got := resolve(t, prog, audit.LoadEnv{Opens: opens})
	if c := got["libamd_comgr.so.3"]; !c.Opened || c.Why != audit.WhyRunPath || c.By != l.at("ours/lib/libamdhip64.so.7") {
		t.Errorf("comgr: %+v", c)
	}
	if _, ok := got["libnowhere.so.1"]; ok {
		t.Error("what dlopen does not find is reported")
	}
}

func TestResolveCacheAndPreload(t *testing.T) {
	l := newLab(t)
	l.library("a/libneeded.so.1")
	l.library("b/libpre.so")
	prog := l.program("prog", "a/libneeded.so.1")
	missing := resolve(t, prog, audit.LoadEnv{})["libneeded.so.1"]
	if missing.Path != "" || missing.By != prog {
		t.Errorf("missing: %+v", missing)
	}
	env := audit.LoadEnv{Preload: l.at("b/libpre.so") + ":/nowhere.so", Cache: func(name string) []string {
		return []string{"/nowhere/" + name, l.at("a/" + name)}
	}}
	got := resolve(t, prog, env)
	if n := got["libneeded.so.1"]; n.Why != audit.WhyCache || n.Path != l.at("a/libneeded.so.1") {
		t.Errorf("cache: %+v", n)
	}
	if n := got[l.at("b/libpre.so")]; n.Why != audit.WhyPreload {
		t.Errorf("preload: %+v", got)
	}
}

func TestResolveRefuses(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{script, dir, filepath.Join(dir, "nothing"), "/dev/null"} {
		if _, err := audit.NewResolver(audit.LoadEnv{}).Resolve(context.Background(), name); err == nil {
			t.Errorf("%s was resolved", name)
		}
	}
}

// Which libc would sh take, and why?
func ExampleResolver_Resolve() {
	all, err := audit.NewResolver(audit.LoadEnv{LibraryPath: "/nowhere"}).Resolve(context.Background(), "/bin/sh")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range all {
		if l.Name == "libc.so.6" {
			fmt.Println(l.Name, l.Why)
		}
	}
	// Output: libc.so.6 default
}
