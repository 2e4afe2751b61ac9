package audit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// made caches ELF files by what they were made from, for all tests.
var made = struct {
	sync.Mutex
	dir   string
	files map[string][]byte
}{files: map[string][]byte{}}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	made.dir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// elfSpec is a real ELF file that the linker makes.
type elfSpec struct {
	soname, rpath, runpath, interp string
	needed                         []string
	program                        bool
	ref                            []byte   // content of .rocm_kpack_ref
	defines                        []string // versions of symbols
	uses                           []string // "libv.so.1 V_1.0": symbols of that version
	filter, auxiliary              string
}

// build links a file. DT_NEEDED are taken from the sonames of stubs.
func build(t testing.TB, s elfSpec) []byte {
	t.Helper()
	for _, tool := range []string{"gcc", "ld", "objcopy"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing: install the package gcc (with binutils)", tool)
		}
	}
	made.Lock()
	defer made.Unlock()
	return link0(t, s)
}

func link0(t testing.TB, s elfSpec) []byte {
	t.Helper()
	key := fmt.Sprintf("%+v", s)
	if b, ok := made.files[key]; ok {
		return b
	}
	empty := filepath.Join(made.dir, "empty.o")
	if _, err := os.Stat(empty); err != nil {
		src := filepath.Join(made.dir, "empty.c")
		write(t, src, "int audit_fixture;\n", 0o644)
		run(t, "gcc", "-fPIC", "-c", "-o", empty, src)
	}
	out := filepath.Join(made.dir, fmt.Sprintf("out%d", len(made.files)))
	args := []string{"-shared"}
	if s.program {
		if s.interp == "" {
			s.interp = "/lib64/ld-linux-x86-64.so.2"
		}
		args = []string{"-pie", "-e", "0", "-dynamic-linker", s.interp}
	}
	args = append(args, "--no-as-needed", "--hash-style=both", "-z", "noexecstack", "-o", out)
	switch {
	case s.rpath != "":
		args = append(args, "--disable-new-dtags", "-rpath", s.rpath)
	case s.runpath != "":
		args = append(args, "--enable-new-dtags", "-rpath", s.runpath)
	}
	if s.soname != "" {
		args = append(args, "-soname", s.soname)
	}
	if s.filter != "" {
		args = append(args, "-F", s.filter)
	}
	if s.auxiliary != "" {
		args = append(args, "-f", s.auxiliary)
	}
	args = append(args, empty)
	if len(s.defines) > 0 {
		args = append(args, symbols(t, s.defines, true), "--version-script", versionScript(t, s.defines))
	}
	used := map[string][]string{}
	for _, use := range s.uses {
		lib, version, _ := strings.Cut(use, " ")
		used[lib] = append(used[lib], version)
	}
	for _, lib := range slices.Sorted(maps.Keys(used)) {
		stub := filepath.Join(made.dir, fmt.Sprintf("stub-%x.so", fmt.Sprint(lib, used[lib])))
		if err := os.WriteFile(stub, link0(t, elfSpec{soname: lib, defines: used[lib]}), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, symbols(t, used[lib], false), stub)
	}
	for _, n := range s.needed {
		stub := filepath.Join(made.dir, fmt.Sprintf("stub-%x.so", n))
		if _, err := os.Stat(stub); err != nil {
			if err := os.WriteFile(stub, link0(t, elfSpec{soname: n}), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, stub)
	}
	run(t, "ld", args...)
	if s.ref != nil {
		ref := out + ".ref"
		write(t, ref, string(s.ref), 0o644)
		run(t, "objcopy", "--add-section", kpackSection+"="+ref, out)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	made.files[key] = b
	return b
}

// symbols compiles definitions of a symbol for each version, or uses of them.
func symbols(t testing.TB, versions []string, define bool) string {
	t.Helper()
	src := ""
	for _, v := range versions {
		if define {
			src += fmt.Sprintf("char sym_%s;\n", symbol(v))
		} else {
			src += fmt.Sprintf("extern char sym_%s; char *use_%[1]s = &sym_%[1]s;\n", symbol(v))
		}
	}
	out := filepath.Join(made.dir, fmt.Sprintf("obj-%x.o", sha256.Sum256([]byte(src))))
	if _, err := os.Stat(out); err != nil {
		write(t, out+".c", src, 0o644)
		run(t, "gcc", "-fPIC", "-c", "-o", out, out+".c")
	}
	return out
}

func versionScript(t testing.TB, versions []string) string {
	text := ""
	for _, v := range versions {
		text += fmt.Sprintf("%s { global: sym_%s; };\n", v, symbol(v))
	}
	out := filepath.Join(made.dir, fmt.Sprintf("map-%x", sha256.Sum256([]byte(text))))
	write(t, out, text, 0o644)
	return out
}

func symbol(version string) string { return strings.ReplaceAll(version, ".", "_") }

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func write(t testing.TB, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	os.Remove(name)
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

func symlink(t testing.TB, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	os.Remove(name)
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// fixture is a prefix in which everything is right.
type fixture struct {
	testing.TB
	dir  string // the prefix
	host string // the directory of the host's libraries
}

func (f *fixture) elf(name string, s elfSpec) {
	f.Helper()
	mode := os.FileMode(0o644)
	if s.program {
		mode = 0o755
	}
	write(f, f.path(name), string(build(f, s)), mode)
}

func (f *fixture) path(name string) string                  { return filepath.Join(f.dir, name) }
func (f *fixture) text(name, text string, mode os.FileMode) { write(f, f.path(name), text, mode) }
func (f *fixture) link(name, target string)                 { symlink(f, target, f.path(name)) }
func (f *fixture) hostLibrary(name string, s elfSpec) {
	write(f, filepath.Join(f.host, name), string(build(f, s)), 0o644)
}
func (f *fixture) remove(name string) {
	f.Helper()
	if err := os.RemoveAll(f.path(name)); err != nil {
		f.Fatal(err)
	}
}

// refTo is a section that names archives.
func refTo(paths ...string) []byte {
	var b bytes.Buffer
	b.WriteString("\x82\xb2kpack_search_paths")
	b.WriteByte(0x90 | byte(len(paths)))
	for _, p := range paths {
		b.WriteByte(0xd9)
		b.WriteByte(byte(len(p)))
		b.WriteString(p)
	}
	b.WriteString("\xabkernel_name\xa3k/k")
	return b.Bytes()
}

// archive is an archive of GPU code with nothing in it but a table of contents.
const archive = "KPAK\x01\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x80"

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{TB: t, dir: filepath.Join(t.TempDir(), "prefix"), host: t.TempDir()}
	const rocm = "opt/rocm/"
	f.hostLibrary("libhost.so.1", elfSpec{soname: "libhost.so.1"})
	f.elf(rocm+"bin/tool", elfSpec{program: true, needed: []string{"liba.so.1", "libhost.so.1"}, runpath: "$ORIGIN/../lib"})
	f.elf(rocm+"lib/liba.so.1.0", elfSpec{soname: "liba.so.1", needed: []string{"libb.so.1"}, runpath: "${ORIGIN}/sys"})
	f.link(rocm+"lib/liba.so.1", "liba.so.1.0")
	f.link(rocm+"lib/liba.so", "liba.so.1")
	f.elf(rocm+"lib/sys/libb.so.1", elfSpec{soname: "libb.so.1", needed: []string{"libhost.so.1"}})
	f.elf(rocm+"lib/libk.so.1", elfSpec{soname: "libk.so.1", ref: refTo("../.kpack/k_lib_@GFXARCH@.kpack")})
	f.text(rocm+".kpack/k_lib_gfx1151.kpack", archive, 0o644)
	f.text(rocm+".info/version", "10.2.0\n", 0o644)
	f.text(rocm+"lib/llvm/bin/clang", "#!/bin/sh\n", 0o755)
	for _, name := range []string{"ocml", "ockl", "oclc_isa_version_1151", "oclc_isa_version_1150"} {
		f.text(rocm+"lib/llvm/amdgcn/bitcode/"+name+".bc", "BC", 0o644)
	}
	f.text(rocm+"share/doc/hip/LICENSE.md", "as you like\n", 0o644)
	f.link("share/licenses/rocm-nightly/hip-LICENSE.md", "../../../opt/rocm/share/doc/hip/LICENSE.md")
	f.link(rocm+"llvm", "lib/llvm")
	f.link(rocm+"amdgcn", "lib/llvm/amdgcn")
	f.text(rocm+"bin/script", "#!/bin/sh\nexit 0\n", 0o755)
	f.text(rocm+"libexec/helper", "#!/usr/bin/env sh\nexit 0\n", 0o755)
	f.text(rocm+"lib/pkgconfig/x.pc", "prefix=${pcfiledir}/../..\n# see share/therock/x and https://x/therock\n", 0o644)
	f.text(rocm+"share/therock/therock_manifest.json", `{"rocm_package_version":"10.2.0a20260930","rocm_version":"10.2.0"}`, 0o644)
	list := ""
	for _, name := range []string{"script", "tool"} {
		text := "#!/bin/sh\n_rocm_nightly_root=${0%/*}/../opt/rocm\nexec \"$_rocm_nightly_root/bin/" + name + "\" \"$@\"\n"
		f.text("bin/"+name, text, 0o755)
		list += fmt.Sprintf(`{"path":"bin/%s","kind":"file","mode":"0755","size":%d,"sha256":"%x"}`+"\n", name, len(text), sha256.Sum256([]byte(text)))
	}
	f.text("files.jsonl", list, 0o644)
	for _, name := range []string{"lib", "libexec", ".kpack", ".info", "amdgcn", "llvm"} {
		f.link(name, "opt/rocm/"+name)
	}
	f.text("manifest.json", `{"schema":1,"version":"10.2.0a20260930","options":{"target":"gfx1151"}}`, 0o644)
	return f
}

// options make the audit independent of the host that the test runs on.
func (f *fixture) options() Options { return Options{HostLibDirs: []string{f.host}, Jobs: 2} }

func (f *fixture) audit(o Options) *Report {
	f.Helper()
	r, err := Run(context.Background(), f.dir, o)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// brief is what tests compare of the findings.
func brief(list []Finding) []string {
	out := []string{}
	for _, x := range list {
		s := x.Severity + " " + x.Rule + " " + x.Path
		if x.Subject != "" {
			s += " | " + x.Subject
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}
