package smoke

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/cage"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// Everything that the corpus has passes, in both environments, and what it does
// not have is not passed.
func TestCorpusPasses(t *testing.T) {
	rep := runChecks(t, corpus(t), Options{})
	want(t, rep,
		"rocminfo empty passed", "rocminfo hostile passed",
		"hipconfig empty passed", "hipconfig hostile passed",
		"clang empty passed", "clang hostile passed",
		"amdclang++ empty passed", "amdclang++ hostile passed",
		"hipcc empty passed", "hipcc hostile passed",
		"device-code gfx1030 empty passed", "device-code gfx1030 hostile passed",
		"opencl gfx1030 empty passed", "opencl gfx1030 hostile passed",
		"hip-clang empty passed", "hip-clang hostile passed", "hip-clang-run empty passed",
		"hip-hipcc empty passed", "hip-hipcc hostile passed", "hip-hipcc-run empty passed",
		"hip-load empty passed", "hip-load hostile passed",
		"hiprtc gfx1030 empty passed", "hiprtc gfx1030 hostile passed",
	)
	if rep.From != "manifest.json" || rep.Cage == "" || rep.Counts.Passed != len(rep.Checks) {
		t.Errorf("%s: %q in a cage of %q: %+v", rep.Dir, rep.From, rep.Cage, rep.Counts)
	}
}

// A bare tree is known by AMD's own list of targets, and has no wrappers.
func TestBareTree(t *testing.T) {
	rep := runChecks(t, filepath.Join(corpus(t), "opt/rocm"), Options{Environments: []string{Empty}}, "rocminfo", "hipcc", "device-code")
	want(t, rep, "rocminfo empty passed", "hipcc empty passed", "device-code gfx1030 empty passed", "device-code gfx1036 empty passed")
}

// Each break is found, by the checks that it concerns.
func TestBreaks(t *testing.T) {
	const llvm, lib = "opt/rocm/lib/llvm/", "opt/rocm/lib/"
	for _, tt := range []struct {
		name   string
		what   func(t *testing.T, dir string)
		env    string
		want   []string // without the environment
		detail string   // of the first that is not passed
	}{
		{"device libraries lost", remove(llvm + "amdgcn/bitcode"), Empty, []string{"device-code gfx1030 failed", "opencl gfx1030 failed", "hiprtc gfx1030 passed"}, "cannot find ROCm device library"},
		{"the link amdgcn lost", remove("opt/rocm/amdgcn"), Empty, []string{"device-code gfx1030 failed"}, "cannot find ROCm device library"},
		{"device library of the target lost", remove(llvm + "amdgcn/bitcode/oclc_isa_version_1030.bc"), Empty, []string{"device-code gfx1030 failed"}, "device library"},
		{"device library of another target", func(t *testing.T, dir string) {
			b, err := os.ReadFile(filepath.Join(dir, llvm, "amdgcn/bitcode/oclc_isa_version_906.bc"))
			must(t, err)
			replace(t, filepath.Join(dir, llvm, "amdgcn/bitcode/oclc_isa_version_1030.bc"), string(b))
		}, Empty, []string{"device-code gfx1030 failed"}, "the_device_library_is_of_another_target"},
		{"device library that is garbage", write(llvm+"amdgcn/bitcode/ocml.bc", "BC\xc0\xdegarbage"), Empty, []string{"device-code gfx1030 failed"}, "error"},
		{"configuration that leads elsewhere", write(llvm+"bin/rocm.cfg", "--rocm-path=/opt/rocm-of-the-builder\n"), Empty, []string{"clang passed", "device-code gfx1030 failed"}, "cannot find ROCm device library"},
		{"configuration that follows the user's ROCm", write(llvm+"bin/rocm.cfg", "-frtlib-add-rpath\n"), Hostile, []string{"device-code gfx1030 failed"}, ""},
		{"configuration that hides the machine's headers", write(llvm+"bin/rocm.cfg", "--sysroot=/nonexistent\n"), Empty, []string{"hip-clang failed", "hip-clang-run not-run"}, "not found"},
		{"configuration with an unknown flag", write(llvm+"bin/clang++.cfg", "--no-such-flag\n"), Empty, []string{"hip-clang failed", "hip-clang-run not-run"}, "no-such-flag"},
		{"clang cut off", truncate(llvm + "bin/clang"), Empty, []string{"clang failed", "device-code gfx1030 failed"}, ""},
		{"clang of no bytes", write(llvm+"bin/clang", ""), Empty, []string{"clang failed"}, ""},
		{"the compiler's library cut off", truncate(llvm + "lib/libclang-cpp.so.16"), Empty, []string{"clang failed"}, ""},
		{"the linker for devices lost", remove(llvm + "bin/lld"), Empty, []string{"device-code gfx1030 failed", "hip-load failed"}, ""},
		{"comgr lost", func(t *testing.T, dir string) {
			for _, name := range glob(t, dir, lib+"libamd_comgr.so*") {
				must(t, os.Remove(name))
			}
		}, Empty, []string{"hip-load passed", "hiprtc gfx1030 failed"}, "hiprtc"},
		{"comgr of another make", func(t *testing.T, dir string) { // the same name, and none of its symbols
			replace(t, glob(t, dir, lib+"libamd_comgr.so.2.*")[0], string(decoyLibrary()))
		}, Empty, []string{"hip-load passed", "hiprtc gfx1030 failed"}, ""},
		{"a run path that yields to LD_LIBRARY_PATH", runPath(lib + "libamdhip64.so"), Hostile, []string{"rocminfo passed", "hip-load failed", "hiprtc gfx1030 failed"}, "with another ROCm in LD_LIBRARY_PATH"},
		{"the same with no other ROCm", runPath(lib + "libamdhip64.so"), Empty, []string{"hip-load passed", "hiprtc gfx1030 passed"}, ""},
		{"a program whose run path yields", runPath("opt/rocm/bin/rocminfo"), Hostile, []string{"rocminfo failed"}, "with another ROCm in LD_LIBRARY_PATH"},
		{"the HSA runtime cut off", truncate(lib + "libhsa-runtime64.so.1"), Empty, []string{"rocminfo failed", "hip-load failed"}, "the loader says"},
		{"a wrapper that follows the user's ROCm", write("bin/hipcc", "#!/bin/sh\nexec \"${ROCM_PATH:-${0%/*}/../opt/rocm}/bin/hipcc\" \"$@\"\n"), Hostile, []string{"hipcc failed"}, "a program of the other ROCm was used (a program"},
		{"a header of HIP lost", remove("opt/rocm/include/hip/hip_runtime_api.h"), Empty, []string{"hip-clang failed", "hip-clang-run not-run"}, "hip_runtime_api.h"},
		{"a program that crashes", write("bin/rocminfo", "#!/bin/sh\nkill -SEGV $$\n"), Empty, []string{"rocminfo failed"}, "SIGSEGV"},
		{"a program that says nothing", write("bin/rocminfo", "#!/bin/sh\n"), Empty, []string{"rocminfo failed"}, "nothing of what it is known to say"},
		{"a program without its interpreter", write("opt/rocm/bin/hipconfig", "#!/opt/python/cp312/bin/python3\n"), Empty, []string{"hipconfig failed"}, "/opt/python"},
		{"a program without an interpreter that can be installed", write("opt/rocm/bin/hipconfig", "#!/usr/bin/python3.99\n"), Empty, []string{"hipconfig not-there"}, "install it"},
		{"a program for env without its interpreter", write("opt/rocm/bin/hipconfig", "#!/usr/bin/env -S ruby99 -w\n"), Empty, []string{"hipconfig not-there"}, "ruby99"},
		{"a version that depends on HIP_PATH", write("bin/hipconfig", "#!/bin/sh\necho 7.${HIP_PATH:+6}1\n"), "", []string{"hipconfig passed", "hipconfig failed"}, "something else"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := clone(t)
			tt.what(t, dir)
			var o Options
			if tt.env != "" {
				o.Environments = []string{tt.env}
			}
			for _, line := range tt.want {
				o.only = append(o.only, strings.Fields(line)[0])
			}
			rep := runChecks(t, dir, o)
			for i := range rep.Checks {
				rep.Checks[i].Environment = ""
			}
			want(t, rep, tt.want...)
			for _, c := range rep.Checks {
				if c.Status != Passed {
					if !strings.Contains(c.Detail, tt.detail) {
						t.Errorf("%s: %q does not say %q", c.Name, c.Detail, tt.detail)
					}
					break
				}
			}
		})
	}
}

// What does not end is ended, with all that it started. Once is enough to tell.
func TestHang(t *testing.T) {
	dir := clone(t)
	replace(t, filepath.Join(dir, "bin/rocminfo"), "#!/bin/sh\ntrap '' TERM\nsleep 1000 &\nsleep 1000\n")
	rep := runChecks(t, dir, Options{Timeout: time.Second}, "rocminfo")
	want(t, rep, "rocminfo empty failed")
	if d := rep.Checks[0].Detail; !strings.Contains(d, "did not end within 1s") {
		t.Error(d)
	}
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	if len(names) == 0 {
		t.Fatalf("there is no %s", pattern)
	}
	return names
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		file := filepath.Join(dir, name)
		_, err := os.Lstat(file)
		must(t, err)
		must(t, os.RemoveAll(file))
	}
}

func write(name, content string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		file := filepath.Join(dir, name)
		_, err := os.Stat(file)
		must(t, err)
		replace(t, file, content)
	}
}

func truncate(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		file := own(t, filepath.Join(dir, name))
		fi, err := os.Stat(file)
		must(t, err)
		must(t, os.Truncate(file, fi.Size()/2))
	}
}

// runPath turns DT_RPATH into DT_RUNPATH.
func runPath(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		file := own(t, filepath.Join(dir, name))
		_, err := patchelf.EditPathFunc(file, func(f *patchelf.File) (patchelf.Edit, error) {
			path, tag := f.Path()
			if tag != patchelf.RPath {
				t.Errorf("%s has no DT_RPATH", name)
			}
			return patchelf.Edit{RunPath: &path, Tag: patchelf.RunPath}, nil
		}, nil)
		must(t, err)
	}
}

// That the runtime says no device is what is proven, not that it says something.
func TestOtherErrorsOfHIP(t *testing.T) {
	dir := clone(t)
	preload := filepath.Join(dir, "opt/rocm/lib/preload.so")
	compileC(t, "hip.c", preload, "count")
	runner := runnerFunc(func(ctx context.Context, c cage.Command) (*cage.Result, error) {
		if filepath.Base(c.Path) == "hello" {
			c.Env = append(c.Env, "LD_PRELOAD="+preload)
		}
		return cage.Run(ctx, c)
	})
	rep := runChecks(t, dir, Options{Environments: []string{Empty}, Runner: runner}, "hip-clang", "hip-clang-run")
	want(t, rep, "hip-clang empty passed", "hip-clang-run empty failed")
	for _, fault := range []string{"count", "silent"} {
		rep := runChecks(t, standIn(t, fault, "absent"), Options{Environments: []string{Empty}}, "hip-load")
		want(t, rep, "hip-load empty failed")
	}
	dir = clone(t)
	compileC(t, "hip.c", filepath.Join(dir, "opt/rocm/lib/libhiprtc.so"), "")
	rep = runChecks(t, dir, Options{Environments: []string{Empty}}, "hiprtc")
	want(t, rep, "hiprtc gfx1030 empty failed")
}

// The other kind of cage does too, where this kernel has it; where it does not,
// nothing is run.
func TestEitherCage(t *testing.T) {
	for _, kind := range []string{cage.Namespaces, cage.Landlock} {
		runner := runnerFunc(func(ctx context.Context, c cage.Command) (*cage.Result, error) {
			c.Only = kind
			return cage.Run(ctx, c)
		})
		rep := runChecks(t, corpus(t), Options{Runner: runner, Environments: []string{Empty}}, "rocminfo", "hip-clang", "hip-clang-run", "hip-load")
		if rep.Cage == "" {
			want(t, rep, "rocminfo empty not-run", "hip-clang empty not-run", "hip-clang-run empty not-run", "hip-load empty not-run")
			continue
		}
		if rep.Cage != kind {
			t.Errorf("a cage of %s, not %s", rep.Cage, kind)
		}
		want(t, rep, "rocminfo empty passed", "hip-clang empty passed", "hip-clang-run empty passed", "hip-load empty passed")
	}
}

// On a machine without the headers of C++, what needs them is not there, and
// what does not need them passes.
func TestNoHeaders(t *testing.T) {
	runner := runnerFunc(func(ctx context.Context, c cage.Command) (*cage.Result, error) {
		if slices.Contains(c.Args, "host.cpp") || slices.Contains(c.Args, "hello.hip") {
			c.Args = append([]string{"--sysroot=/nonexistent"}, c.Args...)
		}
		return cage.Run(ctx, c)
	})
	rep := runChecks(t, corpus(t), Options{Runner: runner, Environments: []string{Empty}}, "device-code", "hip-clang", "hip-clang-run", "hip-load")
	want(t, rep, "device-code gfx1030 empty passed", "hip-clang empty not-there", "hip-clang-run empty not-there", "hip-load empty passed")
	if d := rep.Checks[1].Detail; !strings.Contains(d, "apt install g++") {
		t.Error(d)
	}
}

// A program that names the place where the tree will be is right, also while an
// older ROCm is there, and is run with the libraries of the tree; one that names
// another ROCm is not.
func TestRunPathOfPrograms(t *testing.T) {
	dir, final := clone(t), filepath.Join(t.TempDir(), "current")
	replace(t, filepath.Join(final, "opt/rocm/lib/libamdhip64.so.5"), "the night before")
	replace(t, filepath.Join(dir, "opt/rocm/lib/llvm/bin/rocm.cfg"), "--rocm-path='<CFGDIR>/../../..'\n-Wl,-rpath,"+final+"/opt/rocm/lib\n")
	o := Options{Environments: []string{Empty}, FinalPrefix: final, Runner: &compiled{}, only: []string{"hip-clang", "hip-clang-run"}}
	right := []string{"hip-clang empty passed", "hip-clang-run empty passed"}
	rep := runChecks(t, dir, o)
	want(t, rep, right...)
	if d := rep.Checks[0].Detail; !strings.Contains(d, "its run path is "+final+"/opt/rocm/lib") {
		t.Error(d)
	}

	o.FinalPrefix = ""
	rep = runChecks(t, dir, o)
	want(t, rep, "hip-clang empty failed", "hip-clang-run empty not-run")
	if d := rep.Checks[0].Detail; !strings.Contains(d, "of another ROCm: "+final) {
		t.Error(d)
	}

	// A prefix says itself where it will be.
	replace(t, filepath.Join(dir, "etc/ld.so.conf.d/rocm-nightly.conf"), final+"/opt/rocm/lib\n")
	want(t, runChecks(t, dir, o), right...)

	// One that names a generation dies with it.
	lib := filepath.Join(dir, "opt/rocm/lib")
	replace(t, filepath.Join(dir, "opt/rocm/lib/llvm/bin/rocm.cfg"), "--rocm-path='<CFGDIR>/../../..'\n-Wl,-rpath,"+lib+"\n")
	again := &compiled{}
	o.Runner = again
	rep = runChecks(t, dir, o)
	want(t, rep, "hip-clang empty failed", "hip-clang-run empty not-run")
	if d := rep.Checks[0].Detail; !strings.Contains(d, lib+", and not "+final) {
		t.Error(d)
	}

	// And one that is where it stays is run by its own run path.
	replace(t, filepath.Join(dir, "etc/ld.so.conf.d/rocm-nightly.conf"), lib+"\n")
	seen := 0
	o.Runner = runnerFunc(func(ctx context.Context, c cage.Command) (*cage.Result, error) {
		if filepath.Base(c.Path) == "hello" {
			seen++
			if len(c.Env) > 0 {
				t.Errorf("run with %q", c.Env)
			}
		}
		return again.Run(ctx, c)
	})
	want(t, runChecks(t, dir, o), right...)
	if seen != 1 {
		t.Errorf("run %d times", seen)
	}
}

// A tree that is named by a link has that name inside, too.
func TestThroughALink(t *testing.T) {
	dir := clone(t)
	link := filepath.Join(t.TempDir(), "rocm")
	must(t, os.Symlink(dir, link))
	replace(t, filepath.Join(dir, "bin/hipconfig"), "#!/bin/sh\nexec "+link+"/opt/rocm/bin/hipconfig \"$@\"\n")
	want(t, runChecks(t, link, Options{Environments: []string{Empty}}, "rocminfo", "hipconfig"), "rocminfo empty passed", "hipconfig empty passed")
}

// The tree is read-only, what runs is nobody who may do anything, and it finds
// neither the files nor the variables of who started it.
func TestWhatRunsIsCaged(t *testing.T) {
	dir := clone(t)
	secret := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(secret, []byte("open sesame"), 0o644))
	t.Setenv("ROCM_NIGHTLY_TOKEN", "open sesame")
	replace(t, filepath.Join(dir, "bin/rocminfo"), `#!/bin/sh
echo "ROCk module is NOT loaded"
[ "$(id -u)" != 0 ] || [ "$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)" = 0000000000000000 ] || exit 127
[ -z "$ROCM_NIGHTLY_TOKEN" ] || exit 127
if cat `+secret+`; then exit 127; fi
if : >"${0%/*}/planted"; then exit 127; fi
: >"$HOME/mine" || exit 127
exit 1
`)
	rep := runChecks(t, dir, Options{Environments: []string{Empty}}, "rocminfo")
	want(t, rep, "rocminfo empty passed")
	if _, err := os.Lstat(filepath.Join(dir, "bin/planted")); err == nil {
		t.Error("it wrote to the tree")
	}
}
