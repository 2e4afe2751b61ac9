//go:build heavy

package patchelf

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// machine is a foreign one, with Debian's cross compiler and qemu-user.
type machine struct {
	triple, qemu string
}

// machines are little and big endian, of 32 and 64 bits, with pages of 4 KiB
// and of 64 KiB, and with DT_MIPS_RLD_MAP_REL.
var machines = []machine{
	{triple: "i686-linux-gnu", qemu: "qemu-i386"},
	{triple: "arm-linux-gnueabihf", qemu: "qemu-arm"},
	{triple: "aarch64-linux-gnu", qemu: "qemu-aarch64"},
	{triple: "riscv64-linux-gnu", qemu: "qemu-riscv64"},
	{triple: "s390x-linux-gnu", qemu: "qemu-s390x"},
	{triple: "powerpc-linux-gnu", qemu: "qemu-ppc"},
	{triple: "mips-linux-gnu", qemu: "qemu-mips"},
}

// build compiles and links for m.
func (m machine) build(tb testing.TB, out string, args ...string) string {
	tb.Helper()
	if out, err := exec.Command(m.triple+"-gcc", append([]string{"-O1", "-g", "-o", out}, args...)...).CombinedOutput(); err != nil {
		tb.Fatalf("%s-gcc %v: %v\n%s", m.triple, args, err, out)
	}
	return out
}

func (m machine) missing() string {
	if _, err := exec.LookPath(m.triple + "-gcc"); err != nil {
		return "gcc-" + m.triple + " and the libc6-dev of its architecture"
	}
	if _, err := exec.LookPath(m.qemu); err != nil {
		return "qemu-user"
	}
	return ""
}

// run is the exit status of a program, or of the loading of a library.
func (m machine) run(loader, path string, lib bool) (int, string) {
	args := []string{"-L", "/usr/" + m.triple, "-E", "LD_BIND_NOW=1", path}
	if lib {
		args = append(args[:4:4], loader, path)
	}
	cmd := exec.Command(m.qemu, args...)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.ETXTBSY) {
		return m.run(loader, path, lib)
	}
	if cmd.ProcessState == nil {
		return -1, err.Error()
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// TestMatrixCross edits programs and libraries of other machines, of both byte
// orders and sizes of words, and runs them.
func TestMatrixCross(t *testing.T) {
	for _, m := range machines {
		t.Run(m.triple, func(t *testing.T) {
			if s := m.missing(); s != "" {
				t.Skip("not installed (Debian: " + s + ")")
			}
			crossMachine(t, m)
		})
	}
}

func crossMachine(t *testing.T, m machine) {
	dir := t.TempDir()
	script := put(t, "versions", []byte("DEP_1 { global: dep; local: *; };\n"))
	source := put(t, "dep.c", []byte("static int value = 40; int dep(int x) { return value + x; }\n"))
	for _, name := range []string{"libdep.so", "libother.so", "libextra.so"} {
		m.build(t, filepath.Join(dir, name), source, "-shared", "-fPIC", "-Wl,-soname,"+name, "-Wl,--version-script,"+script)
	}
	loader := m.build(t, filepath.Join(dir, "loader"), put(t, "loader.c", []byte(loadSource)), "-ldl")
	for kind, flags := range map[string][]string{
		"pie":  {"-pie", "-fPIE", "-DMAIN"},
		"exec": {"-no-pie", "-fno-pie", "-DMAIN"},
		"lib":  {"-shared", "-fPIC", "-Wl,-soname,libself.so"},
	} {
		for _, o := range []option{
			{name: "plain"}, {name: "runpath", args: []string{"-Wl,-rpath,/nowhere/first"}}, {name: "tight", after: dropSpares},
			{name: "nosections", after: dropSections}, {name: "page64k", args: []string{"-Wl,-z,max-page-size=65536"}},
			{name: "noseparate", args: []string{"-Wl,-z,noseparate-code", "-Wl,--build-id=none", "-Wl,-z,now"}},
		} {
			args := append(append(append([]string{"testdata/matrix/self.c"}, flags...), o.args...), "-L"+dir, "-ldep")
			path := m.build(t, filepath.Join(dir, kind+"-"+o.name), args...)
			t.Run(kind+"-"+o.name, func(t *testing.T) {
				b := (&subject{path: path}).bytes(t)
				if o.after != nil {
					b = o.after(t, b)
				}
				m.edits(t, put(t, "subject", b), dir, loader, kind == "lib")
			})
			t.Run(kind+"-"+o.name+"-late", func(t *testing.T) {
				if o.after != nil {
					return
				}
				b := late{slack: 2, phdr: true, identity: true, oddShoff: kind == "lib"}.apply(t, (&subject{path: path}).bytes(t))
				m.edits(t, put(t, "subject", b), dir, loader, kind == "lib")
			})
		}
	}
}

// edits makes edits one after the other and runs the file after each.
func (m machine) edits(t *testing.T, path, deps, loader string, lib bool) {
	off := false
	x := &subject{path: path, lib: lib}
	x.read, x.linted = x.readelf(), x.lint()
	start, _ := m.run(loader, path, lib)
	interp := parsed(t, x.bytes(t)).Interp
	for _, k := range []task{
		{name: "long run path", edit: Edit{RunPath: ptr(strings.Repeat(longPath, 3) + ":" + deps), Tag: RunPath}},
		{name: "short run path", edit: Edit{RunPath: ptr(deps), Tag: RPath}},
		{name: "interpreter", edit: Edit{Interp: "/lib/../" + strings.Repeat("./", 40) + interp}, programs: true},
		{name: "replace needed", edit: Edit{ReplaceNeeded: map[string]string{"libdep.so": "libother.so"}}},
		{name: "add needed", edit: Edit{AddNeeded: []string{"libextra.so"}}},
		{name: "soname and stack", edit: Edit{Soname: ptr("libanother-name.so.2"), ExecStack: &off}},
		{name: "remove", edit: Edit{RunPath: ptr(""), RemoveNeeded: []string{"libextra.so"}}, fails: true},
		{name: "several", edit: Edit{RunPath: ptr(longPath + ":" + deps), ReplaceNeeded: map[string]string{"libother.so": "libdep.so"}, AddNeeded: []string{"libextra.so"}}},
	} {
		if k.programs && lib {
			continue
		}
		before := x.bytes(t)
		res, err := EditPath(path, k.edit)
		if err != nil {
			t.Fatalf("%s: %v (before: exit %d)", k.name, err, start)
		}
		after := x.bytes(t)
		for _, broken := range held(before, after, k.edit) {
			t.Errorf("%s (%s): %s", k.name, res.How, broken)
		}
		if again, err := EditPath(path, k.edit); err != nil || again.Changed || !bytes.Equal(after, x.bytes(t)) {
			t.Errorf("%s (%s): again: %v %v", k.name, res.How, again, err)
		}
		if code, out := m.run(loader, path, lib); (code == 46) == k.fails || code < 0 || code > 127 {
			t.Fatalf("%s (%s): exit %d: %s", k.name, res.How, code, out)
		}
		if said := news(x.read, x.readelf()); len(said) > 0 {
			t.Errorf("%s (%s): readelf: %q", k.name, res.How, said)
		}
	}
	if said := news(x.linted, x.lint()); len(said) > 0 {
		t.Errorf("eu-elflint: %q", said)
	}
}
