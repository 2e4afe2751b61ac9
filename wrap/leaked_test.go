package wrap

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestLeakedPaths(t *testing.T) {
	const w = "/__w/rockrel/rockrel/build/third-party/sysdeps/linux/zlib/build/stage"
	tests := []struct{ name, path, in, want string }{
		{"pc of the sysdeps", "lib/rocm_sysdeps/lib/pkgconfig/zlib.pc",
			"prefix=" + w + "/lib/rocm_sysdeps\nexec_prefix=${prefix}\nlibdir=" + w + "/lib/rocm_sysdeps/lib\nName: zlib\nLibs: -L${libdir} -L" + w + "/lib/rocm_sysdeps/lib -lz\n",
			"prefix=${pcfiledir}/../..\nexec_prefix=${prefix}\nlibdir=${prefix}/lib\nName: zlib\nLibs: -L${libdir} -L${prefix}/lib -lz\n"},
		{"pc with a bare stage", "lib/rocm_sysdeps/lib/pkgconfig/libelf.pc", "prefix=" + w + "\n", "prefix=${pcfiledir}/../..\n"},
		{"pc with no stage", "lib/pkgconfig/a.pc", "prefix=/therock-build/x/\r\nlibdir=/therock-build/x/lib\r\n", "prefix=${pcfiledir}/../..\r\nlibdir=${prefix}/lib\r\n"},
		{"pc below a multiarch directory", "lib/x86_64-linux-gnu/pkgconfig/a.pc", "prefix=/therock/y", "prefix=${pcfiledir}/../../.."},
		{"pc of share", "share/pkgconfig/a.pc", "prefix = /__w/y\n", "prefix = ${pcfiledir}/../..\n"},
		{"pc of /opt/rocm", "lib/pkgconfig/hip.pc", "prefix=/opt/rocm-7.1.0\nincludedir=/opt/rocm-7.1.0/include\n", "prefix=${pcfiledir}/../..\nincludedir=${prefix}/include\n"},
		{"pc of /opt/rocm in the sysdeps", "lib/rocm_sysdeps/lib/pkgconfig/x.pc", "prefix=/opt/rocm\n", "prefix=${pcfiledir}/../../../..\n"},
		{"pc with no prefix", "lib/pkgconfig/a.pc", "Cflags: -I" + w + "/include -I/__w/elsewhere\n", "Cflags: -I${pcfiledir}/../../include -I/__w/elsewhere\n"},
		{"pc with a variable after the path", "lib/pkgconfig/a.pc", "x=/opt/rocm/${y}\n", "x=${pcfiledir}/../../${y}\n"},
		{"pc that is right", "lib/pkgconfig/a.pc", "prefix=${pcfiledir}/../..\n# was /__w/x/stage/lib\nDescription: for /opt/rocm\n", ""},
		{"pc of the host", "lib/pkgconfig/a.pc", "prefix=/usr\nx=/opt/rocmfoo\ny=/opt/rocm-llvm/lib\nz=a/opt/rocm\n", ""},
		{"pc with two prefixes", "lib/pkgconfig/a.pc", "prefix=/__w/a\nprefix=/__w/b\n", ""},
		{"pc outside pkgconfig", "share/x/a.pc", "prefix=/__w/a\n", ""},
		{"cmake", "lib/cmake/x/x-targets.cmake",
			"set_target_properties(x PROPERTIES\n  INTERFACE_INCLUDE_DIRECTORIES \"" + w + "/include;" + w + "/include/x\"\n)\n",
			"set_target_properties(x PROPERTIES\n  INTERFACE_INCLUDE_DIRECTORIES \"${CMAKE_CURRENT_LIST_DIR}/../../../include;${CMAKE_CURRENT_LIST_DIR}/../../../include/x\"\n)\n"},
		{"cmake hint", "lib/cmake/x.cmake", "find_package(hip HINTS /opt/rocm \"/opt/rocm/hip\")\n", ""},
		{"cmake comment", "lib/cmake/x.cmake", "# " + w + "/include\nset(x y) # " + w + "/lib\n", ""},
		{"cmake function", "lib/cmake/x.cmake", "function(f)\nset(x " + w + "/include)\nendfunction()\n", ""},
		{"cmake after a function", "lib/cmake/x.cmake", "macro(f)\nendmacro()\nset(x " + w + "/lib)\n", "macro(f)\nendmacro()\nset(x ${CMAKE_CURRENT_LIST_DIR}/..)\n"},
		{"cmake bracket", "lib/cmake/x.cmake", "set(x [[ " + w + "/include ]])\n", ""},
		{"cmake source path", "lib/cmake/x.cmake", "set(x /__w/rockrel/src/foo " + w + "/unknown)\n", ""},
		{"clang", "lib/llvm/bin/rocm.cfg", "--rocm-path='/opt/rocm'\n-L" + w + "/lib\n# /opt/rocm\n", "--rocm-path='<CFGDIR>/../../..'\n-L<CFGDIR>/../..\n# /opt/rocm\n"},
		{"clang that is right", "lib/llvm/bin/rocm.cfg", "--rocm-path='<CFGDIR>/../../..'\n", ""},
		{"other cfg", "share/x/rocm.cfg", "path=/opt/rocm\n", ""},
		{"config script", "bin/foo-config", "#!/bin/sh\nprefix=\"/__w/a/b\"\nlibdir=/__w/a/b/lib\nx=\"/__w/a/b\"\ny='/__w/a/b'\n", "#!/bin/sh\nprefix=" + selfPrefix + "\nlibdir=${prefix}/lib\nx=\"${prefix}\"\ny=\"${prefix}\"\n"},
		{"config script in single quotes", "bin/foo-config", "#!/bin/sh\nprefix='/opt/rocm'\nlibdir='/opt/rocm/lib'\nx='$prefix'\ny='/opt/rocm and'\nz='/opt/rocm/$x'\n", "#!/bin/sh\nprefix=" + selfPrefix + "\nlibdir=\"${prefix}/lib\"\nx='$prefix'\ny='/opt/rocm and'\nz='/opt/rocm/$x'\n"},
		{"config script installed elsewhere", "lib/llvm/bin/foo-config", "#!/bin/sh\nprefix=/opt/rocm\n", ""},
		{"config program", "bin/foo-config", "prefix=/opt/rocm\n", ""},
		{"binary", "lib/pkgconfig/a.pc", "prefix=/__w/x\x00", ""},
		{"libtool archive", "lib/x.la", "libdir='" + w + "/lib'\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want == "" {
				want = tt.in
			}
			s := NewScripts(ScriptOptions{})
			out, rules, err := s.Edit(tt.path, 0o644, []byte(tt.in))
			if err != nil || string(out) != want {
				t.Fatalf("got  %q, %v\nwant %q", out, err, want)
			}
			if fired := tt.want != ""; fired != (len(rules) == 1 && strings.HasPrefix(rules[0], "leaked-path-")) {
				t.Errorf("rules %q", rules)
			}
			if again, rules, _ := s.Edit(tt.path, 0o644, out); string(again) != want || len(rules) > 0 {
				t.Errorf("not idempotent: %q", again)
			}
		})
	}
}

// What the rules write means the same to the programs that read it.
func TestRewrittenFilesWork(t *testing.T) {
	base := filepath.Join(t.TempDir(), "moved here")
	s := NewScripts(ScriptOptions{})
	for name, text := range map[string]string{
		"lib/rocm_sysdeps/lib/pkgconfig/z.pc": "prefix=/__w/a/stage/lib/rocm_sysdeps\nincludedir=/__w/a/stage/lib/rocm_sysdeps/include\nName: z\nDescription: z\nVersion: 1\nCflags: -I${includedir}\n",
		"bin/z-config":                        "#!/bin/sh\nprefix=/__w/a\nlibdir=\"/__w/a/lib\"\necho \"$libdir\"\n",
	} {
		out, _, err := s.Edit(name, 0o755, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		p := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, out, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if out, code := run(t, exec.Command(filepath.Join(base, "bin/z-config"))); code != 0 || out != base+"/lib\n" {
		t.Errorf("z-config: %d %q", code, out)
	}
	pc, err := exec.LookPath("pkg-config")
	if err != nil {
		t.Skip("no pkg-config here: Debian has it in the package pkg-config")
	}
	cmd := exec.Command(pc, "--variable=includedir", "z")
	cmd.Env = []string{"PKG_CONFIG_PATH=" + base + "/lib/rocm_sysdeps/lib/pkgconfig"}
	out, code := run(t, cmd)
	if got := filepath.Clean(strings.ReplaceAll(strings.TrimSpace(out), `\`, "")); code != 0 || got != base+"/lib/rocm_sysdeps/include" {
		t.Errorf("pkg-config: %d %q", code, out)
	}
}
