//go:build heavy

package patchelf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const heavy = true

// strippers: what is edited can be stripped with any tool, and runs after.
func (x *subject) strippers(t *testing.T) {
	t.Helper()
	for _, tool := range [][]string{{"strip"}, {"strip", "--strip-debug"}, {"objcopy", "--strip-unneeded"}, {"eu-strip"}, {"llvm-strip"}, {"llvm-objcopy", "--strip-all"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			t.Logf("%s is missing (Debian: binutils, elfutils, llvm)", tool[0])
			continue
		}
		b := x.bytes(t)
		if parsed(t, b).shnum == 0 {
			return // strippers go by sections
		}
		y := &subject{path: put(t, "stripped", b), lib: x.lib}
		if out, err := exec.Command(tool[0], append(tool[1:], y.path)...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%v: %v %s", tool, err, out)
		}
		if code, out := runs(t, y.path, y.lib); code != 46 {
			t.Errorf("%v: exit %d: %s", tool, code, out)
			keep(t, b, y.bytes(t))
		}
	}
}

// keep puts files where a developer looks at them: in $PATCHELF_KEEP.
func keep(t *testing.T, files ...[]byte) {
	dir := os.Getenv("PATCHELF_KEEP")
	for i, b := range files {
		if dir != "" {
			_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), i)), b, 0o755)
		}
	}
}

// debugger: gdb reads the file and its lines, and warns of nothing.
func (x *subject) debugger(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("gdb"); err != nil {
		t.Log("gdb is missing (Debian: gdb)")
		return
	}
	said := func(b []byte) []string {
		var out []string
		for _, line := range complaintsOf(put(t, "debugged", b), "gdb", "-q", "-nx", "-batch", "-ex", "info files", "-ex", "info line user_rpath") {
			if !strings.Contains(line, " - N") { // sections; where they are is not what this is about
				out = append(out, strings.ReplaceAll(line, x.path, "FILE"))
			}
		}
		return out
	}
	for i, line := range said(x.bytes(t)) {
		if lines := said(x.first); !slices.Contains(lines, line) && !strings.Contains(line, "/debugged") {
			t.Errorf("gdb, line %d: %q, before the edits %q", i, line, lines)
		}
	}
}
