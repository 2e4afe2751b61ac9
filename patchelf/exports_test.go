package patchelf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// exportSource has every kind of symbol that is, and that is not, for others.
const exportSource = `
__asm__(".symver old_impl, api@V1");
__asm__(".symver new_impl, api@@V2");
int old_impl(void) { return 1; }
int new_impl(void) { return 2; }
int plain(void) { return 3; }
int data = 4;
__thread int tls = 5;
int __attribute__((weak)) weak(void) { return 6; }
int __attribute__((visibility("hidden"))) hidden(void) { return 7; }
int __attribute__((visibility("protected"))) protected_one(void) { return 8; }
static int local(void) { return 9; }
int uses(void) { extern int elsewhere(void); return elsewhere() + local() + hidden(); }
`

const exportVersions = "V1 { global: api; plain; data; tls; weak; protected_one; local: *; };\nV2 { global: api; uses; } V1;\n"

// exportFixture is a library with versions; args are the linker's.
func exportFixture(tb testing.TB, name string, args ...string) string {
	tb.Helper()
	script := filepath.Join(tb.TempDir(), "versions")
	if err := os.WriteFile(script, []byte(exportVersions), 0o644); err != nil {
		tb.Fatal(err)
	}
	return shop.build(tb, name, exportSource, append([]string{"-shared", "-fPIC", "-Wl,--version-script=" + script, "-Wl,-soname,libexport.so.1"}, args...)...)
}

func exportsOf(tb testing.TB, path string) ([]Export, error) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	x, err := parseFile(f)
	if err != nil {
		tb.Fatal(err)
	}
	return x.Exports()
}

// text is a symbol as nm writes it.
func (e Export) text() string {
	switch {
	case e.Version == "":
		return e.Name
	case e.Hidden:
		return e.Name + "@" + e.Version
	}
	return e.Name + "@@" + e.Version
}

func TestExportsOfEachKind(t *testing.T) {
	for _, hash := range []string{"sysv", "gnu", "both"} {
		got, err := exportsOf(t, exportFixture(t, "export-"+hash+".so", "-Wl,--hash-style="+hash))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range got {
			names = append(names, e.text())
			if e.Weak != (e.Name == "weak") || (e.Kind == elf.STT_TLS) != (e.Name == "tls") || (e.Size == 4) != (e.Name == "data" || e.Name == "tls") {
				t.Errorf("%s: %+v", hash, e)
			}
		}
		slices.Sort(names)
		want := []string{"api@@V2", "api@V1", "data@@V1", "plain@@V1", "protected_one@@V1", "tls@@V1", "uses@@V2", "weak@@V1"}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %q", hash, names)
		}
	}
}

// Without section headers the hash tables tell how many symbols there are.
func TestExportsWithoutSections(t *testing.T) {
	for _, hash := range []string{"sysv", "gnu"} {
		b, err := os.ReadFile(exportFixture(t, "export-"+hash+".so", "-Wl,--hash-style="+hash))
		if err != nil {
			t.Fatal(err)
		}
		clear(b[40:48]) // e_shoff
		clear(b[58:64]) // e_shentsize, e_shnum, e_shstrndx
		x, err := Parse(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Exports(); err != nil || len(got) != 8 {
			t.Errorf("%s: %d symbols, %v", hash, len(got), err)
		}
	}
}

// Any library of this machine exports what nm says.
func TestExportsAgreeWithNm(t *testing.T) {
	nm, err := exec.LookPath("nm")
	if err != nil {
		t.Skip("nm is missing: install the package binutils")
	}
	libs, _ := filepath.Glob("/usr/lib/x86_64-linux-gnu/lib*.so.*")
	libs = append(libs, exportFixture(t, "export-gnu.so", "-Wl,--hash-style=gnu"), shop.build(t, "no-exports.so", "static int nothing;", "-shared", "-fPIC", "-nostdlib", "-Wl,--hash-style=gnu"))
	seen := 0
	for i, lib := range libs {
		fi, err := os.Lstat(lib)
		if err != nil || !fi.Mode().IsRegular() || fi.Size() > 4<<20 || i%20 != 0 && i < len(libs)-2 {
			continue
		}
		out, err := exec.Command(nm, "-D", "--defined-only", lib).Output()
		if err != nil {
			t.Fatalf("nm %s: %v", lib, err)
		}
		got, err := exportsOf(t, lib)
		if err != nil {
			t.Errorf("%s: %v", lib, err)
			continue
		}
		var ours []string
		for _, e := range got {
			ours = append(ours, e.text())
		}
		theirs := nmNames(string(out))
		slices.Sort(ours)
		if seen++; !slices.Equal(ours, theirs) {
			t.Errorf("%s: %d symbols, nm has %d; ours alone %.5q, theirs alone %.5q", lib, len(ours), len(theirs), without(ours, theirs), without(theirs, ours))
		}
	}
	if seen < 3 {
		t.Errorf("only %d libraries were compared", seen)
	}
}

func without(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// nmNames takes the output of nm -D apart: address, type, name.
func nmNames(out string) []string {
	var names []string
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		if f[1] == "A" && !strings.Contains(f[2], "@") {
			continue // the linker's marker of a version
		}
		if f[1] == strings.ToLower(f[1]) && !strings.Contains("uvwi", f[1]) {
			continue // local
		}
		names = append(names, f[2])
	}
	slices.Sort(names)
	return names
}

// Tables that lie are errors, and cost no more than the file has.
func TestExportsRefuseWhatMakesNoSense(t *testing.T) {
	good, err := os.ReadFile(exportFixture(t, "export-both.so", "-Wl,--hash-style=both"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tag   elf.DynTag
		val   uint64
		field string
	}{
		{elf.DT_SYMTAB, 1 << 40, "DT_SYMTAB"},
		{elf.DT_VERSYM, 1 << 40, "DT_VERSYM"},
		{elf.DT_VERDEF, 1 << 40, "DT_VERDEF"},
		{elf.DT_HASH, 1 << 40, "DT_SYMTAB"},
		{elf.DT_GNU_HASH, 1 << 40, "DT_SYMTAB"},
		{elf.DT_STRSZ, 1, "st_name"},
	} {
		b := slices.Clone(good)
		if !setDyn(t, b, c.tag, c.val) {
			t.Fatalf("there is no %v", c.tag)
		}
		x, err := Parse(bytes.NewReader(b), int64(len(b)))
		if err == nil {
			_, err = x.Exports()
		}
		var format *FormatError
		if !errors.As(err, &format) || format.Field != c.field && c.tag != elf.DT_STRSZ {
			t.Errorf("%v: %v", c.tag, err)
		}
	}
}

// setDyn changes an entry of the dynamic section of a 64-bit file.
func setDyn(tb testing.TB, b []byte, tag elf.DynTag, val uint64) bool {
	tb.Helper()
	x, err := Parse(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	for i, d := range x.dyns {
		if d.is(tag) {
			binary.LittleEndian.PutUint64(b[x.dynOff+uint64(16*i)+8:], val)
			return true
		}
	}
	return false
}

// FuzzExports: any bytes give symbols or a *FormatError.
func FuzzExports(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	for i, hash := range []string{"sysv", "gnu"} {
		b, err := os.ReadFile(exportFixture(f, fmt.Sprintf("export-fuzz%d.so", i), "-Wl,--hash-style="+hash))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Parse(byteFile(b), int64(len(b)))
		if err != nil {
			return
		}
		got, err := x.Exports()
		if err != nil {
			typed(t, err)
		}
		for _, e := range got {
			if e.Name == "" || strings.IndexByte(e.Name, 0) >= 0 || e.Hidden && e.Version == "" {
				t.Fatalf("%+v", e)
			}
		}
	})
}
