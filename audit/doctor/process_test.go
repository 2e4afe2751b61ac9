package doctor_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/audit/doctor"
)

// lab compiles small programs and libraries of ROCm's names.
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

func (l lab) at(name string) string { return filepath.Join(l.dir, name) }

func (l lab) write(name, text string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(l.at(name)), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(l.at(name), []byte(text), 0o755); err != nil {
		l.t.Fatal(err)
	}
}

func (l lab) gcc(args ...string) {
	l.t.Helper()
	cmd := exec.Command("gcc", args...)
	cmd.Dir = l.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("gcc %q: %v\n%.2000s", args, err, out)
	}
}

func (l lab) library(name string, args ...string) {
	l.t.Helper()
	l.write(name+".c", "int x;\n")
	l.gcc(append([]string{"-shared", "-fPIC", name + ".c", "-Wl,--no-as-needed,-soname," + filepath.Base(name), "-o", name}, args...)...)
}

// rocm makes a ROCm of three libraries.
func (l lab) rocm(root, version string) {
	l.t.Helper()
	l.library(root + "/lib/libamd_comgr.so.3")
	l.library(root + "/lib/libhsa-runtime64.so.1")
	l.library(root+"/lib/libamdhip64.so.7", l.at(root+"/lib/libhsa-runtime64.so.1"), "-Wl,--enable-new-dtags,-rpath,$ORIGIN")
	l.write(root+"/.info/version", version+"\n")
}

// waiter is a program that opens what it is told, says so, and waits for its
// standard input to end.
const waiter = `#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
	for (int i = 1; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW)) { puts(dlerror()); return 1; }
	puts("ready");
	fflush(stdout);
	return getchar() == EOF ? 0 : 1;
}
`

func (l lab) waiter(args ...string) {
	l.t.Helper()
	l.write("waiter.c", waiter)
	l.gcc(append([]string{"waiter.c", "-o", "waiter", "-Wl,--no-as-needed,--enable-new-dtags", "-ldl"}, args...)...)
}

// start runs the program until the test ends.
func (l lab) start(env []string, args ...string) int {
	l.t.Helper()
	cmd := exec.Command(l.at("waiter"), args...)
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		l.t.Fatalf("the program says %q: %v", line, err)
	}
	return cmd.Process.Pid
}

func process(t *testing.T, pid int) *doctor.Report {
	t.Helper()
	r, err := doctor.Process(context.Background(), doctor.This(), doctor.Options{Table: table(t), Families: families}, pid)
	if err != nil {
		t.Fatal(err)
	}
	fits(t, r)
	return r
}

// findings are those of a check.
func findings(r *doctor.Report, check string) []doctor.Finding {
	var all []doctor.Finding
	for _, s := range r.Sections {
		for _, f := range s.Findings {
			if f.Check == check {
				all = append(all, f)
			}
		}
	}
	return all
}

func mapped(t *testing.T, r *doctor.Report, path string) doctor.Mapping {
	t.Helper()
	for _, m := range r.Mapped {
		if m.Path == path {
			return m
		}
	}
	t.Fatalf("%s is not among %+v", path, r.Mapped)
	return doctor.Mapping{}
}

func TestProcessWithTwoHIPs(t *testing.T) {
	l := newLab(t)
	l.rocm("ours", "10.2.0")
	l.rocm("theirs", "6.4.1")
	l.waiter("ours/lib/libamdhip64.so.7", "-Wl,-rpath,$ORIGIN/ours/lib")
	pid := l.start(nil, l.at("theirs/lib/libamdhip64.so.7"))
	r := process(t, pid)
	if f := findings(r, "process-mixed"); len(f) != 1 || f[0].Severity != doctor.Broken || !strings.Contains(f[0].Detail, l.at("theirs/lib/")) {
		t.Errorf("found %+v", f)
	}
	if r.OK() {
		t.Error("two ROCms in one process are right")
	}
	if m := mapped(t, r, l.at("ours/lib/libamdhip64.so.7")); m.Copy != l.at("ours") || !strings.Contains(m.Why, "DT_RUNPATH of "+l.at("waiter")) {
		t.Errorf("ours: %+v", m)
	}
	if m := mapped(t, r, l.at("theirs/lib/libamdhip64.so.7")); m.Copy != l.at("theirs") || !strings.Contains(m.Why, "dlopen") {
		t.Errorf("theirs: %+v", m)
	}
	if !slices.ContainsFunc(r.Copies, func(c doctor.Copy) bool { return c.Root == l.at("theirs") && c.Version == "6.4.1" }) {
		t.Errorf("copies: %+v", r.Copies)
	}
}

// The most instructive defect: HIP of one, comgr of another, by LD_LIBRARY_PATH.
func TestProcessWithDisplacedComgr(t *testing.T) {
	l := newLab(t)
	l.rocm("ours", "10.2.0")
	l.library("theirs/lib/libamd_comgr.so.3")
	l.library("module.so", l.at("ours/lib/libamdhip64.so.7"), l.at("ours/lib/libamd_comgr.so.3"), "-Wl,--enable-new-dtags,-rpath,$ORIGIN/ours/lib")
	l.waiter()
	pid := l.start([]string{"LD_LIBRARY_PATH=" + l.at("theirs/lib"), "LLVM_PATH=/opt/gone"}, l.at("module.so"))
	r := process(t, pid)
	if m := mapped(t, r, l.at("theirs/lib/libamd_comgr.so.3")); !strings.HasSuffix(m.Why, "LD_LIBRARY_PATH") || m.By != l.at("module.so") {
		t.Errorf("comgr: %+v", m)
	}
	f := findings(r, "process-mixed")
	if len(f) != 1 || !strings.Contains(f[0].Remedy[0], "unset LD_LIBRARY_PATH") {
		t.Errorf("found %+v", f)
	}
	// The variables are those of the process, not ours.
	if len(findings(r, "library-path")) != 1 || len(findings(r, "variable-llvm")) != 1 {
		t.Errorf("variables: %+v", r.Sections)
	}
}

func TestProcessOfOneROCm(t *testing.T) {
	l := newLab(t)
	l.rocm("ours", "10.2.0")
	l.waiter("ours/lib/libamdhip64.so.7", "-Wl,-rpath,$ORIGIN/ours/lib")
	pid := l.start(nil, l.at("ours/lib/libamd_comgr.so.3"))
	r := process(t, pid)
	if !r.OK() || r.Counts.Warning != 0 || len(r.Mapped) != 3 {
		t.Errorf("%+v", r)
	}
	if err := os.Rename(l.at("ours"), l.at("moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(l.at("moved/lib/libamd_comgr.so.3")); err != nil {
		t.Fatal(err)
	}
	r = process(t, pid)
	if f := findings(r, "process-deleted"); len(f) != 1 || !strings.Contains(f[0].Subject, "libamd_comgr") {
		t.Errorf("deleted: %+v", f)
	}
}

func TestProcessThatIsNone(t *testing.T) {
	_, err := doctor.Process(context.Background(), doctor.This(), doctor.Options{Table: table(t)}, 1<<30)
	if err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("%v", err)
	}
}

func command(t *testing.T, env []string, args ...string) (*doctor.Report, error) {
	t.Helper()
	s := doctor.This()
	s.Environ = env
	r, err := doctor.Command(context.Background(), s, doctor.Options{Table: table(t), Families: families}, args)
	if err == nil {
		fits(t, r)
	}
	return r, err
}

// A command is not started: this one would leave a file.
func TestCommand(t *testing.T) {
	l := newLab(t)
	l.rocm("ours", "10.2.0")
	l.rocm("theirs", "6.4.1")
	l.waiter("ours/lib/libamdhip64.so.7", "-Wl,-rpath,$ORIGIN/ours/lib")
	l.write("script", fmt.Sprintf("#!/usr/bin/env -S FOO=1 waiter\ntouch %s\n", l.at("started")))
	l.write("loop", "#!"+l.at("loop")+"\n")
	l.write("text", "nothing\n")

	r, err := command(t, []string{"PATH=" + l.dir}, "script", "--flag")
	if err != nil || !r.OK() {
		t.Fatalf("%+v %v", r, err)
	}
	// HIP opens its comgr when it is used; that is followed too.
	if m := mapped(t, r, l.at("ours/lib/libamd_comgr.so.3")); !strings.HasPrefix(m.Why, "opened by") || m.Process != 0 {
		t.Errorf("comgr: %+v", m)
	}
	r, err = command(t, []string{"LD_LIBRARY_PATH=" + l.at("theirs/lib")}, l.at("waiter"))
	if f := findings(r, "command-displaced"); err != nil || len(f) != 3 || !strings.Contains(f[0].Detail, l.at("ours/lib")) {
		t.Errorf("displaced: %+v %v", f, err)
	}
	if m := mapped(t, r, l.at("theirs/lib/libamdhip64.so.7")); !strings.HasSuffix(m.Why, "LD_LIBRARY_PATH") {
		t.Errorf("hip: %+v", m)
	}
	if err := os.Remove(l.at("ours/lib/libhsa-runtime64.so.1")); err != nil {
		t.Fatal(err)
	}
	r, err = command(t, nil, l.at("waiter"))
	if f := findings(r, "command-missing"); err != nil || len(f) != 1 || f[0].Subject != "libhsa-runtime64.so.1" || !strings.Contains(f[0].Remedy[0], "patchelf --add-rpath") {
		t.Errorf("missing: %+v %v", f, err)
	}
	for _, bad := range []string{l.at("loop"), l.at("text"), l.dir, "no-such-command", l.at("nothing")} {
		if _, err := command(t, []string{"PATH=" + l.dir}, bad); err == nil {
			t.Errorf("%s was looked at", bad)
		}
	}
	if _, err := os.Stat(l.at("started")); err == nil {
		t.Error("it was started")
	}
}
