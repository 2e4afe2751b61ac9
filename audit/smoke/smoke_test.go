package smoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
)

// nobody is a Runner that must not be asked.
func nobody(t *testing.T) Runner {
	return runnerFunc(func(_ context.Context, c cage.Command) (*cage.Result, error) {
		t.Errorf("%s %q was to be run", c.Path, c.Args)
		return nil, errors.New("not here")
	})
}

// bare makes a tree of the named files, each of them a script.
func bare(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(names, "share/therock/dist_info.json") {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(dir, "share/therock/dist_info.json"), []byte(`{"dist_amdgpu_targets": "gfx1030;gfx1036"}`), 0o644))
	must(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	return dir
}

// What a tree does not have is not there, said once, and nothing is run for it.
func TestNotThere(t *testing.T) {
	rep := runChecks(t, bare(t), Options{Runner: nobody(t)})
	for _, c := range rep.Checks {
		if c.Status != NotThere || c.Environment != Empty || c.Command != "" {
			t.Errorf("%+v", c)
		}
	}
	if len(rep.Checks) < 10 || rep.Counts.NotThere != len(rep.Checks) || !strings.Contains(rep.Summary(), "nothing was tried") {
		t.Errorf("%+v: %s", rep.Counts, rep.Summary())
	}
}

// Where there is no cage, nothing is passed and nothing failed, and each check
// says why.
func TestNoCage(t *testing.T) {
	dir := bare(t, "bin/rocminfo", "bin/hipconfig", "lib/llvm/bin/clang", "lib/llvm/bin/clang++", "lib/llvm/bin/ld.lld", "bin/hipcc", "lib/libamdhip64.so", "include/hip/hip_runtime.h")
	none := runnerFunc(func(context.Context, cage.Command) (*cage.Result, error) {
		return nil, &cage.NotRunError{Reason: "no namespaces here"}
	})
	rep := runChecks(t, dir, Options{Runner: none})
	run := 0
	for _, c := range rep.Checks {
		switch {
		case c.Status == NotRun && strings.Contains(c.Detail, "no namespaces here"):
			run++
		case c.Status != NotThere && c.Status != NotRun:
			t.Errorf("%+v", c)
		}
	}
	if run < 7 || rep.Cage != "" || rep.Counts.NotRun+rep.Counts.NotThere != len(rep.Checks) {
		t.Errorf("%d: %+v", run, rep)
	}
}

// Every command is bounded, shows the tree read-only, and in the empty
// environment has no variable at all.
func TestCommands(t *testing.T) {
	dir := bare(t, "bin/rocminfo")
	var seen []cage.Command
	runner := runnerFunc(func(_ context.Context, c cage.Command) (*cage.Result, error) {
		seen = append(seen, c)
		return &cage.Result{Stdout: []byte("ROCk module is NOT loaded\n"), ExitCode: 1, Kind: "test"}, nil
	})
	want(t, runChecks(t, dir, Options{Runner: runner}, "rocminfo"), "rocminfo empty passed", "rocminfo hostile passed")
	real, err := filepath.EvalSymlinks(dir)
	must(t, err)
	for i, c := range seen {
		if c.Timeout <= 0 || c.ReadOnly[0] != real || len(c.Devices) > 0 || c.Scratch == "" || !filepath.IsAbs(c.Path) {
			t.Errorf("%+v", c)
		}
		if (len(c.Env) == 0) != (i == 0) {
			t.Errorf("environment %d is %q", i, c.Env)
		}
	}
	for _, name := range []string{"LD_LIBRARY_PATH=", "LLVM_PATH=", "HIP_PATH=", "ROCM_PATH=", "HIP_CLANG_PATH="} {
		if !strings.Contains("\n"+strings.Join(seen[1].Env, "\n"), "\n"+name) {
			t.Errorf("%s is not in %q", name, seen[1].Env)
		}
	}
}

// The user of the cage can read what is made for it, and the decoy, whatever the
// umask.
func TestUmask(t *testing.T) {
	dir := bare(t, "lib/llvm/bin/clang++", "lib/libamd_comgr.so.3")
	defer syscall.Umask(syscall.Umask(0o077))
	looked := 0
	runner := runnerFunc(func(_ context.Context, c cage.Command) (*cage.Result, error) {
		for _, made := range append(c.ReadOnly[1:], filepath.Join(c.Scratch, "kernel.hip")) {
			must(t, filepath.WalkDir(made, func(name string, d fs.DirEntry, err error) error {
				must(t, err)
				fi, err := os.Stat(name)
				must(t, err)
				looked++
				if m := fi.Mode().Perm(); m&0o044 != 0o044 || d.IsDir() && m&0o011 != 0o011 {
					t.Errorf("%s has mode %o", name, m)
				}
				return nil
			}))
		}
		return &cage.Result{ExitCode: 1, Kind: "test"}, nil
	})
	if runChecks(t, dir, Options{Runner: runner}, "device-code"); looked < 20 {
		t.Errorf("looked at %d files", looked)
	}
}

// How a program ends, and what it says, makes the verdict.
func TestVerdicts(t *testing.T) {
	dir := bare(t, "bin/rocminfo")
	for _, tt := range []struct {
		res    cage.Result
		err    error
		env    string
		status string
		detail string
	}{
		{cage.Result{Stdout: []byte("\x1b[31mROCk module is NOT loaded, possibly no GPU devices\x1b[0m\n"), ExitCode: 1}, nil, Empty, Passed, "NOT loaded"},
		{cage.Result{Stderr: []byte("hsa_init Failed, possibly no supported GPU devices\n"), ExitCode: 1}, nil, Empty, Passed, ""},
		{cage.Result{Stdout: []byte("ROCk module version 6.12 is loaded\nUnable to open /dev/kfd read-write: No such file\n")}, nil, Empty, Passed, ""},
		{cage.Result{Stderr: []byte("rocminfo: error while loading shared libraries: libhsa-runtime64.so.1: cannot open shared object file: No such file or directory\n"), ExitCode: 127}, nil, Empty, Failed, "libhsa-runtime64.so.1"},
		{cage.Result{Stderr: []byte("rocminfo: symbol lookup error: rocminfo: undefined symbol: hsa_init\n"), ExitCode: 127}, nil, Empty, Failed, "undefined symbol"},
		{cage.Result{Stderr: []byte("rocminfo: /lib/libc.so.6: version `GLIBC_2.99' not found (required by rocminfo)\n"), ExitCode: 1}, nil, Empty, Failed, "GLIBC_2.99"},
		{cage.Result{ExitCode: 127}, nil, Empty, Failed, "127"},
		{cage.Result{ExitCode: -1, Signal: "SIGILL", Stdout: []byte("ROCk module is loaded\n")}, nil, Empty, Failed, "SIGILL"},
		{cage.Result{ExitCode: -1, TimedOut: true, Stdout: []byte("ROCk module is loaded\n")}, nil, Empty, Failed, "did not end"},
		{cage.Result{ExitCode: -1, Exceeded: "memory"}, nil, Empty, Failed, "memory"},
		{cage.Result{ExitCode: decoyStatus}, nil, Hostile, Failed, "a library or a program of the other ROCm"},
		{cage.Result{ExitCode: decoyStatus, Stderr: []byte("a program of another ROCm was run\n")}, nil, Hostile, Failed, "this tree has no wrappers"},
		{cage.Result{ExitCode: 0, Stdout: []byte("hello")}, nil, Empty, Failed, "nothing of what"},
		{cage.Result{}, &cage.StartError{Path: "rocminfo", Err: syscall.ENOENT}, Empty, Failed, "does not exist"},
		{cage.Result{}, &cage.StartError{Path: "rocminfo", Err: syscall.ENOEXEC}, Empty, Failed, "exec format"},
		{cage.Result{}, &cage.NotRunError{Reason: "nobody to become"}, Empty, NotRun, "nobody to become"},
		{cage.Result{}, errors.New("pipe: too many files"), Empty, NotRun, "too many files"},
	} {
		runner := runnerFunc(func(context.Context, cage.Command) (*cage.Result, error) { return &tt.res, tt.err })
		rep := runChecks(t, dir, Options{Runner: runner, Environments: []string{tt.env}}, "rocminfo")
		c := rep.Checks[0]
		if c.Status != tt.status || !strings.Contains(c.Detail, tt.detail) || strings.ContainsAny(c.Detail+c.Output, "\x1b") {
			t.Errorf("%+v, %v: %+v", tt.res, tt.err, c)
		}
	}
}

// A header of C++ is the machine's to have, one of the compiler's own the tree's.
func TestMissingHeaders(t *testing.T) {
	dir := bare(t, "lib/llvm/bin/clang", "lib/llvm/bin/clang++", "include/hip/hip_runtime.h")
	for header, status := range map[string]string{"cmath": NotThere, "stddef.h": Failed, "__stddef_size_t.h": Failed} {
		runner := runnerFunc(func(context.Context, cage.Command) (*cage.Result, error) {
			return &cage.Result{Stderr: []byte("host.cpp:3:10: fatal error: '" + header + "' file not found\n"), ExitCode: 1, Kind: "test"}, nil
		})
		rep := runChecks(t, dir, Options{Runner: runner, Environments: []string{Empty}}, "hip-clang")
		want(t, rep, "hip-clang empty "+status)
	}
}

// A library of the decoy ends what loads it, and a program that looks for a
// symbol in it says so: found out with the loader of this machine.
func TestDecoyLibrary(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "libamd_comgr.so.3"), decoyLibrary(), 0o755))
	cmd := exec.Command("/bin/true")
	cmd.Env = []string{"LD_PRELOAD=" + filepath.Join(dir, "libamd_comgr.so.3")}
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != decoyStatus {
		t.Errorf("a program that loads it: %v", err)
	}
	out, err := exec.Command("readelf", "-lhdW", filepath.Join(dir, "libamd_comgr.so.3")).CombinedOutput()
	if err != nil || bytes.Contains(bytes.ToLower(out), []byte("warning")) || bytes.Contains(out, []byte("Error")) {
		t.Errorf("readelf (Debian: apt install binutils): %v\n%s", err, out)
	}
}

// The checks that are reported are those that are listed, and a report is JSON.
func TestReport(t *testing.T) {
	listed := map[string]bool{}
	for _, k := range Checks() {
		listed[k.Name] = k.Proves != ""
	}
	rep := runChecks(t, bare(t), Options{Runner: nobody(t)})
	for _, c := range rep.Checks {
		if !listed[c.Name] {
			t.Errorf("%s is not listed", c.Name)
		}
	}
	b, err := json.Marshal(rep)
	must(t, err)
	var back Report
	must(t, json.Unmarshal(b, &back))
	if back.Schema != Schema || len(back.Checks) != len(rep.Checks) || back.From != "share/therock/dist_info.json" {
		t.Errorf("%s", b)
	}
	var table strings.Builder
	must(t, rep.Table(&table))
	if !strings.Contains(table.String(), "not there rocminfo: the tree has no bin/rocminfo\n") {
		t.Error(table.String())
	}
}

// What makes no sense is an error, and no check.
func TestRefusedOptions(t *testing.T) {
	dir := bare(t)
	for _, tt := range []struct {
		dir  string
		o    Options
		want string
	}{
		{dir, Options{Mode: "fast"}, "unknown mode"},
		{dir, Options{Environments: []string{"mine"}}, "unknown environment"},
		{dir, Options{Targets: []string{"gfx110X-all"}}, "no GPU target"},
		{t.TempDir(), Options{}, "not a ROCm tree"},
		{filepath.Join(dir, "nothing"), Options{}, "no such file"},
	} {
		_, err := Run(t.Context(), tt.dir, tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v does not say %q", err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
