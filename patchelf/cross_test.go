//go:build heavy

package patchelf

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOtherMachines makes edits of everything, with the dynamic section moved,
// for machines of other sizes and byte orders, and runs what results.
func TestOtherMachines(t *testing.T) {
	for _, m := range []struct{ triple, qemu string }{
		{"mips-linux-gnu", "qemu-mips"}, {"s390x-linux-gnu", "qemu-s390x"}, {"powerpc64-linux-gnu", "qemu-ppc64"}, {"powerpc64le-linux-gnu", "qemu-ppc64le"},
		{"aarch64-linux-gnu", "qemu-aarch64"}, {"arm-linux-gnueabihf", "qemu-arm"}, {"i686-linux-gnu", "qemu-i386"}, {"riscv64-linux-gnu", "qemu-riscv64"},
	} {
		t.Run(m.triple, func(t *testing.T) {
			for _, tool := range []string{m.triple + "-gcc", m.qemu} {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("%s is missing (Debian: gcc-%s and qemu-user)", tool, m.triple)
				}
			}
			for _, kind := range []string{"-pie", "-no-pie"} {
				crossEdits(t, m.triple, m.qemu, kind)
			}
		})
	}
}

func crossEdits(t *testing.T, triple, qemu, kind string) {
	dir := t.TempDir()
	dep, prog := filepath.Join(dir, "libdep.so"), filepath.Join(dir, "prog")
	source := []byte("VER_1 { global: *; };")
	if err := os.WriteFile(filepath.Join(dir, "map"), source, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-Wl,-soname,libdep.so", "-Wl,--version-script=" + filepath.Join(dir, "map"), "-o", dep},
		{kind, map[string]string{"-pie": "-fPIE", "-no-pie": "-fno-pie"}[kind], "-o", prog, "-x", "none", dep},
	} {
		cmd := exec.Command(triple+"-gcc", append([]string{"-x", "c", "-"}, args...)...)
		cmd.Stdin = strings.NewReader(depSource)
		if slices.Contains(args, kind) {
			cmd.Stdin = strings.NewReader(progSource)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Symlink("libdep.so", filepath.Join(dir, "libdep-by-another-name.so.1")); err != nil {
		t.Fatal(err)
	}
	run := func(how string) {
		t.Helper()
		out, err := exec.Command(qemu, "-L", "/usr/"+triple, prog).CombinedOutput()
		if cmd := new(exec.ExitError); err == nil || !asExit(err, &cmd) || cmd.ExitCode() != 46 {
			t.Fatalf("%s %s: %v: %s", kind, how, err, out)
		}
	}
	many := []string{"libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2", "libanl.so.1"}
	for i, e := range []Edit{
		{RunPath: &dir},
		{RunPath: ptr(longPath + ":" + dir), Tag: RPath, ReplaceNeeded: map[string]string{"libdep.so": "libdep-by-another-name.so.1"}},
		{AddNeeded: many, DebugTag: true},
		{RemoveNeeded: many[1:], ReplaceNeeded: map[string]string{"libdep-by-another-name.so.1": "libdep.so"}},
		{RunPath: &dir, Tag: RunPath, Soname: ptr("program"), RemoveNeeded: many},
	} {
		res := mustEdit(t, prog, e)
		clean(t, prog)
		run(res.How)
		idempotent(t, prog, e)
		if i >= 3 && res.Growth != 0 {
			t.Errorf("%s: grew by %d", res.How, res.Growth)
		}
		checkRldMap(t, prog)
	}
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*to = e
	return ok
}

// checkRldMap checks that DT_MIPS_RLD_MAP_REL leads to .rld_map, which is
// where debuggers look.
func checkRldMap(t *testing.T, path string) {
	t.Helper()
	const rel, abs = 0x70000035, 0x70000016
	f := parsedAt(t, path)
	for i, d := range f.dyns {
		if d.tag != rel {
			continue
		}
		at := uint64(uint32(f.dynAddr + uint64(i*f.dynSize()) + d.val))
		found := false
		if err := f.eachShdr(maxShdrs, func(_ int, s shdr) bool {
			found = found || s.addr == at && s.size == uint64(f.word())
			return true
		}); err != nil || !found {
			t.Errorf("DT_MIPS_RLD_MAP_REL leads to %#x: %v", at, err)
		}
		for _, e := range f.dyns {
			if e.tag == abs && e.val != at {
				t.Errorf("DT_MIPS_RLD_MAP_REL leads to %#x, DT_MIPS_RLD_MAP to %#x", at, e.val)
			}
		}
	}
}
