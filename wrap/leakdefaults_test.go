package wrap

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tree is where a shell script in bin/ finds its tree.
const shellTree = `$(CDPATH= cd -P -- "$(dirname -- "$(readlink -f -- "$0")")/.." && pwd -P)`

func TestLeakedDefaults(t *testing.T) {
	const stage = "/__w/rockrel/rockrel/build/stage"
	const sh, py, pl = "#!/bin/bash\n", "#!/usr/bin/env python3\nimport os\n", "#!/usr/bin/perl\n"
	const pyTree = "os.path.dirname(os.path.dirname(os.path.realpath(__file__)))"
	tests := []struct{ name, path, in, want string }{
		{"cmake variable", "lib/cmake/x/x-config.cmake", "set(ROCM_PATH \"/opt/rocm\" CACHE PATH \"where ROCm is\")\n", "set(ROCM_PATH \"${CMAKE_CURRENT_LIST_DIR}/../../..\" CACHE PATH \"where ROCm is\")\n"},
		{"cmake variable below", "lib/cmake/x.cmake", "  SET( rocm_bin /opt/rocm-7.1.0/bin ) # x\n", "  SET( rocm_bin ${CMAKE_CURRENT_LIST_DIR}/../../bin ) # x\n"},
		{"cmake property", "lib/cmake/x.cmake", "set_target_properties(x PROPERTIES\n  INTERFACE_INCLUDE_DIRECTORIES \"/opt/rocm/include;${X}\"\n  IMPORTED_LOCATION_RELEASE \"/opt/rocm/lib/libx.so\")\n",
			"set_target_properties(x PROPERTIES\n  INTERFACE_INCLUDE_DIRECTORIES \"${CMAKE_CURRENT_LIST_DIR}/../../include;${X}\"\n  IMPORTED_LOCATION_RELEASE \"${CMAKE_CURRENT_LIST_DIR}/../libx.so\")\n"},
		{"cmake property in a condition", "lib/cmake/x.cmake", "  INTERFACE_LINK_DIRECTORIES \"$<BUILD_INTERFACE:/opt/rocm/lib>\"\n", "  INTERFACE_LINK_DIRECTORIES \"$<BUILD_INTERFACE:${CMAKE_CURRENT_LIST_DIR}/..>\"\n"},
		{"cmake hints", "lib/cmake/x.cmake", "find_path(H hsa/hsa.h PATHS ${ROCM_PATH}/include /opt/rocm/include)\nfind_package(hip PATHS \"/opt/rocm\")\nlist(APPEND CMAKE_PREFIX_PATH /opt/rocm)\n", ""},
		{"cmake list of guesses", "lib/cmake/x.cmake", "set(SEARCH /usr /opt/rocm)\nset(A \"/usr;${B};/opt/rocm\")\n", ""},
		{"cmake of no tree", "lib/cmake/x.cmake", "set(A /opt/rocm/hip)\nset(B /opt/rocmfoo)\nset(C \"x /opt/rocm\")\n", ""},
		{"cmake macro", "lib/cmake/FindHIP.cmake", "macro(m)\n set(HIP_CLANG_PATH \"/opt/rocm/llvm/bin\")\nendmacro()\n", ""},
		{"libtool", "lib/liba.la", "dependency_libs=' -L" + stage + "/lib -L/usr/lib " + stage + "/lib/libb.la " + stage + "/lib/other/libc.la -R" + stage + "/lib /usr/lib/libm.la -lz'\nlibdir='" + stage + "/lib'\n",
			"dependency_libs=' -L/usr/lib -lb " + stage + "/lib/other/libc.la /usr/lib/libm.la -lz'\nlibdir='" + stage + "/lib'\n"},
		{"libtool, nothing left", "lib/liba.la", "dependency_libs=' -L/opt/rocm/lib'\r\n", "dependency_libs=''\r\n"},
		{"libtool that is right", "lib/liba.la", "# " + stage + "\ndependency_libs='  -lb   -L/usr/lib'\ndlname='/__w/x'\n", ""},
		{"libtool of a stage unknown", "lib/liba.la", "dependency_libs=' -L/__w/build/lib /__w/build/lib/libb.la'\n", ""},
		{"shell", "bin/x", sh + "ROCM_PATH=${ROCM_PATH:-/opt/rocm}\n", sh + "ROCM_PATH=\"${ROCM_PATH:-" + shellTree + "}\"\n"},
		{"shell, quoted and exported", "bin/x", sh + "\texport BIN=\"${ROCM_HOME-/opt/rocm-7.2/bin}\" \n", sh + "\texport BIN=\"${ROCM_HOME-" + shellTree + "/bin}\" \n"},
		{"shell, quoted within", "bin/x", sh + "ROCM_PATH=${ROCM_PATH:-\"/opt/rocm\"}\n: ${HIP_PATH:='/opt/rocm'}\n",
			sh + "ROCM_PATH=\"${ROCM_PATH:-" + shellTree + "}\"\n: \"${HIP_PATH:=" + shellTree + "}\"\n"},
		{"shell, other assignments", "bin/x", sh + "ROCM_PATH='/opt/rocm'\nf() {\n\tlocal r=${ROCM_PATH:-/opt/rocm}\n}\nreadonly HIP_PATH=/opt/rocm\n",
			sh + "ROCM_PATH=\"" + shellTree + "\"\nf() {\n\tlocal r=\"${ROCM_PATH:-" + shellTree + "}\"\n}\nreadonly HIP_PATH=\"" + shellTree + "\"\n"},
		{"shell, quoted twice", "bin/x", sh + "A=\"${ROCM_PATH:-\"/opt/rocm\"}\"\nA=${ROCM_PATH:-\"/opt/rocm'}\nA=${ROCM_PATH:-\"/opt/rocm/hip\"}\n", ""},
		{"shell, by assignment", "libexec/a/x.sh", sh + ": ${HIP_PATH:=/opt/rocm/}\nROCM_DIR=/opt/rocm\n",
			sh + ": \"${HIP_PATH:=" + strings.ReplaceAll(shellTree, "/..", "/../..") + "/}\"\nROCM_DIR=\"" + strings.ReplaceAll(shellTree, "/..", "/../..") + "\"\n"},
		{"shell, other words", "bin/x", sh + "A=/opt/rocm\nROCM_PATH='/opt/rocm'}\nROCM_PATH=/opt/rocm ./x\necho ${ROCM_PATH:-/opt/rocm}\n# ROCM_PATH=/opt/rocm\nROCM_PATH=${ROCM_PATH:-/opt/rocm\nROCM_PATH=\"/opt/rocm\nROCM_PATH=/opt/rocm/hip\n", ""},
		{"shell with a here-document", "bin/x", sh + "cat <<E\nROCM_PATH=/opt/rocm\nE\n", ""},
		{"shell text", "bin/x", sh + "# don't\nusage=\"say \\\"x\\\"\nROCM_PATH=/opt/rocm\n\"\necho 'and\nROCM_PATH=/opt/rocm\n'\nROCM_PATH=/opt/rocm\n",
			sh + "# don't\nusage=\"say \\\"x\\\"\nROCM_PATH=/opt/rocm\n\"\necho 'and\nROCM_PATH=/opt/rocm\n'\nROCM_PATH=\"" + shellTree + "\"\n"},
		{"no shell", "bin/x", "ROCM_PATH=/opt/rocm\n", ""},
		{"python", "bin/x", py + "p = os.environ.get(\"ROCM_PATH\", \"/opt/rocm\")\nq = os.getenv('HIP_PATH', '/opt/rocm/lib') + x\n", py + "p = os.environ.get(\"ROCM_PATH\", " + pyTree + ")\nq = os.getenv('HIP_PATH', os.path.join(" + pyTree + ", \"lib\")) + x\n"},
		{"python module", "lib/x/y.py", "import os\nos.getenv(\"ROCM_PATH\", \"/opt/rocm\")\n", "import os\nos.getenv(\"ROCM_PATH\", os.path.dirname(" + pyTree + "))\n"},
		{"python, other words", "bin/x.py", "# os.getenv(\"ROCM_PATH\", \"/opt/rocm\")\n\"\"\"\nos.getenv(\"ROCM_PATH\", \"/opt/rocm\")\n\"\"\"\nos.getenv(\"X\", \"/opt/rocm\")\nself.os.getenv(\"ROCM_PATH\", \"/opt/rocm\")\nos.getenv(\"ROCM_PATH\", \"/opt/rocm/\")\nos.getenv(\"ROCM_PATH\", \"/opt/rocm/hip\")\nx = \"/opt/rocm\"\n", ""},
		{"perl of hipcc", "bin/hipvars.pm", "    $ROCM_PATH=$ENV{'ROCM_PATH'} // \"/opt/rocm\";\n", "    $ROCM_PATH=$ENV{'ROCM_PATH'} // do { require Cwd; require File::Basename; Cwd::abs_path(File::Basename::dirname(Cwd::abs_path(__FILE__)) . \"/..\") };\n"},
		{"perl, other words", "bin/x.pl", pl + "=pod\n $x = $ENV{ROCM_PATH} // \"/opt/rocm\";\n=cut\n# $ENV{ROCM_PATH} // \"/opt/rocm\";\nprint \"/opt/rocm\";\n$ENV{ROCM_PATH} // \"/opt/rocm/hip\";\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { checkLeak(t, tt.path, 0o755, tt.in, tt.want) })
	}
	t.Run("shell that is only read", func(t *testing.T) { checkLeak(t, "bin/x", 0o644, sh+"ROCM_PATH=/opt/rocm\n", "") })
}

// checkLeak edits a file once by the leak rules and again; want "" is no change.
func checkLeak(t *testing.T, name string, mode fs.FileMode, in, want string) {
	t.Helper()
	fired := want != ""
	if !fired {
		want = in
	}
	s := NewScripts(ScriptOptions{})
	out, rules, err := s.Edit(name, mode, []byte(in))
	if err != nil || string(out) != want {
		t.Fatalf("got  %q, %v\nwant %q", out, err, want)
	}
	if fired != (len(rules) == 1 && strings.HasPrefix(rules[0], "leaked-path-")) {
		t.Errorf("rules %q", rules)
	}
	if again, rules, _ := s.Edit(name, mode, out); string(again) != want || len(rules) > 0 {
		t.Errorf("not idempotent: %q", again)
	}
}

// Whatever a file is made of, a second pass changes nothing.
func TestLeakRulesAreIdempotent(t *testing.T) {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{
		"#!/bin/sh", "#!/usr/bin/perl", "#!/usr/bin/env python3", "prefix=/opt/rocm", "prefix=/__w/a/stage/lib", "libdir=/opt/rocm/lib",
		"set(A /opt/rocm)", "set(A \"/__w/b/stage/lib\")", "  IMPORTED_LOCATION \"/opt/rocm/lib/x;/__w/s/stage/include\"", "function(f)", "endfunction()",
		"dependency_libs=' -L/__w/s/stage/lib -R/__w/x /__w/s/stage/lib/libq.la -lx'", "ROCM_PATH=${ROCM_PATH:-/opt/rocm}", "A=${ROCM_PATH:-'/opt/rocm'}", "local ROCM_PATH='/opt/rocm'", ": ${ROCM_PATH:=/opt/rocm/lib}",
		"x = os.getenv('ROCM_PATH', '/opt/rocm')", "$x = $ENV{ROCM_PATH} || '/opt/rocm';", "-L/opt/rocm/lib,/therock/stage/lib", "\"\"\"", "=pod", "# /opt/rocm", "",
	}), 0, 8)
	name := rapid.SampledFrom([]string{"bin/x", "lib/x.la", "lib/pkgconfig/x.pc", "lib/cmake/x.cmake", "bin/x-config", "lib/llvm/bin/x.cfg", "a/b/c.py", "bin/x.pm", "x.sh"})
	rapid.Check(t, func(rt *rapid.T) {
		file, text := name.Draw(rt, "name"), strings.Join(lines.Draw(rt, "lines"), rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end"))
		s := NewScripts(ScriptOptions{})
		once, _, err := s.Edit(file, 0o755, []byte(text))
		if err != nil {
			rt.Fatal(err)
		}
		if twice, rules, err := s.Edit(file, 0o755, once); err != nil || string(twice) != string(once) || len(rules) > 0 {
			rt.Fatalf("%s: %q became\n%q and then\n%q by %v, %v", file, text, once, twice, rules, err)
		}
	})
}

// The real readers of each format find the tree where it lies.
func TestRewrittenDefaultsWork(t *testing.T) {
	base := filepath.Join(t.TempDir(), "moved here")
	for _, tt := range []struct{ tool, pkg, name, text, want string }{
		{"sh", "dash", "bin/a", "#!/bin/sh\nexport ROCM_PATH=${ROCM_PATH:-/opt/rocm}\n: ${HIP_PATH:=/opt/rocm/lib}\necho \"$ROCM_PATH $HIP_PATH\"\n", "BASE BASE/lib\n"},
		{"sh", "dash", "libexec/x/deep/a", "#!/bin/sh\nROCM_PATH=/opt/rocm\necho \"$ROCM_PATH\"\n", "BASE\n"},
		{"sh", "dash", "bin/q", "#!/bin/sh\nROCM_PATH=${ROCM_PATH:-\"/opt/rocm\"}\necho \"$ROCM_PATH\"\n", "BASE\n"},
		{"bash", "bash", "bin/b", "#!/bin/bash\nset -eu\nX=\"${ROCM_DIR:-/opt/rocm/bin}\"\necho \"$X\"\n", "BASE/bin\n"},
		{"python3", "python3-minimal", "bin/c", "#!/usr/bin/env python3\nimport os\nprint(os.environ.get(\"ROCM_PATH\", \"/opt/rocm\"))\nprint(os.getenv('ROCM_PATH', '/opt/rocm/lib'))\n", "BASE\nBASE/lib\n"},
		{"perl", "perl-base", "bin/d", "#!/usr/bin/perl\nuse strict; use warnings; my $p;\n$p=$ENV{'ROCM_PATH'} // \"/opt/rocm\";\nprint \"$p\\n\";\n", "BASE\n"},
		{"cmake", "cmake", "lib/cmake/x/e.cmake", "set(ROCM_PATH \"/opt/rocm\" CACHE PATH \"\")\nget_filename_component(P \"${ROCM_PATH}\" ABSOLUTE)\nmessage(\"${P}\")\n", "BASE\n"},
	} {
		t.Run(tt.tool+" "+path.Base(tt.name), func(t *testing.T) {
			tool, err := exec.LookPath(tt.tool)
			if err != nil {
				t.Skip("no " + tt.tool + " here: Debian has it in the package " + tt.pkg)
			}
			out, rules, err := NewScripts(ScriptOptions{}).Edit(tt.name, 0o755, []byte(tt.text))
			p := filepath.Join(base, tt.name)
			if err := errors.Join(err, os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, out, 0o755)); err != nil || len(rules) != 1 {
				t.Fatal(rules, err)
			}
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(p, link); err != nil {
				t.Fatal(err)
			}
			names := []string{p, link}
			args := []string(nil)
			if tt.tool == "cmake" {
				args, names = []string{"-P"}, names[:1] // a .cmake file is not read through links
			}
			for _, name := range names {
				cmd := exec.Command(tool, append(args, name)...)
				cmd.Env, cmd.Dir = []string{"CDPATH=/usr:/", "PATH=" + os.Getenv("PATH")}, "/usr"
				if got, code := run(t, cmd); code != 0 || got != strings.ReplaceAll(tt.want, "BASE", base) {
					t.Errorf("%s: %d %q\n%s", name, code, got, out)
				}
			}
		})
	}
}

// libtool links with an archive whose neighbours are named -lNAME, and puts no
// builder's directory into the program.
func TestLibtoolReadsTheArchive(t *testing.T) {
	for tool, pkg := range map[string]string{"libtool": "libtool-bin", "gcc": "gcc", "readelf": "binutils"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool + " here: Debian has it in the package " + pkg)
		}
	}
	base := filepath.Join(t.TempDir(), "lib")
	la := func(name, deps string) string {
		return "# lib" + name + ".la - a libtool library file\n# Generated by libtool\ndlname='lib" + name + ".so'\nlibrary_names='lib" + name + ".so'\nold_library=''\n" +
			"dependency_libs='" + deps + "'\ninstalled=yes\nshouldnotlink=no\ndlopen=''\ndlpreopen=''\nlibdir='/__w/s/stage/lib'\n"
	}
	one, _, err := NewScripts(ScriptOptions{}).Edit("lib/libone.la", 0o755, []byte(la("one", " -L/__w/s/stage/lib -R/__w/s/stage/lib /__w/s/stage/lib/libtwo.la")))
	if err := errors.Join(err, os.Mkdir(base, 0o755)); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"libone.la": string(one), "libtwo.la": la("two", ""), "two.c": "int two(void){return 2;}\n", "one.c": "int two(void); int one(void){return two();}\n", "m.c": "int one(void); int main(void){return one();}\n"} {
		overwriteNew(t, filepath.Join(base, name), text)
	}
	for _, line := range []string{
		"gcc -shared -fPIC -o libtwo.so two.c", "gcc -shared -fPIC -o libone.so one.c -L. -ltwo", "gcc -c m.c",
		"libtool --tag=CC --mode=link gcc -o m m.o libone.la",
	} {
		words := strings.Fields(line)
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = base
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	if out, err := exec.Command("readelf", "-d", filepath.Join(base, "m")).CombinedOutput(); err == nil && strings.Contains(string(out), "__w") {
		t.Errorf("%s", out)
	}
}
