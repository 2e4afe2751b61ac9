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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	symverLib = `
int old_one(void) { return 1; }
int new_one(void) { return 2; }
int spare(void) { return 3; }`
	symverScript = `DEMO_1.0 { global: old_one; local: *; }; DEMO_1.1 { global: new_one; } DEMO_1.0; DEMO_2.0 { global: spare; } DEMO_1.1;`
	symverProg   = `
extern int old_one(void), new_one(void);
extern int spare(void) __attribute__((weak));
int main(void) { return old_one() + new_one() + (spare ? spare() : 0); }`
)

// symverFixture builds a library that defines versions, and a program that needs
// them, one weakly.
func symverFixture(tb testing.TB) (lib, prog string) {
	tb.Helper()
	script := filepath.Join(tb.TempDir(), "versions")
	if err := os.WriteFile(script, []byte(symverScript), 0o644); err != nil {
		tb.Fatal(err)
	}
	lib = shop.build(tb, "symver/libversioned.so", symverLib, "-shared", "-fPIC", "-Wl,-soname,libversioned.so", "-Wl,--version-script="+script)
	prog = shop.build(tb, "symver/versioner", symverProg, lib)
	return lib, weakened(tb, prog, "DEMO_2.0")
}

// weakened is a copy of a program in which one version is needed weakly, as
// some linkers say of one that only weak symbols have.
func weakened(tb testing.TB, prog, version string) string {
	tb.Helper()
	b, err := os.ReadFile(prog)
	if err != nil {
		tb.Fatal(err)
	}
	f := parsePath(tb, prog)
	name := bytes.Index(b[f.strOff:], []byte("\x00"+version+"\x00"))
	if name < 0 {
		tb.Fatalf("no name %s", version)
	}
	var record [8]byte // {name, next}, the end of a record of 16 bytes
	binary.LittleEndian.PutUint32(record[:], uint32(name+1))
	at := bytes.Index(b, record[:4])
	for at >= 0 && binary.LittleEndian.Uint32(b[at-8:]) != sysvHash(version) {
		more := bytes.Index(b[at+1:], record[:4])
		if more < 0 {
			tb.Fatalf("no record of %s", version)
		}
		at += 1 + more
	}
	b[at-4] |= verFlgWeak
	return put(tb, filepath.Base(prog), b)
}

// sysvHash is the hash of a version's name (gABI, figure 5-13).
func sysvHash(s string) uint32 {
	h := uint32(0)
	for i := range len(s) {
		h = h<<4 + uint32(s[i])
		g := h & 0xf0000000
		h = h&^g ^ g>>24
	}
	return h
}

func parsePath(tb testing.TB, path string) *File {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return f
}

func TestVersionNeedsAndDefs(t *testing.T) {
	lib, prog := symverFixture(t)
	defs, err := parsePath(t, lib).VersionDefs()
	if err != nil {
		t.Fatal(err)
	}
	want := []VersionDef{{"libversioned.so", 1, true}, {"DEMO_1.0", 2, false}, {"DEMO_1.1", 3, false}, {"DEMO_2.0", 4, false}}
	if !slices.Equal(defs, want) {
		t.Errorf("defines %v, want %v", defs, want)
	}
	f := parsePath(t, prog)
	for range 2 { // what one call costs is not charged to the next
		needs, err := f.VersionNeeds()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(needs, func(n VersionNeed) bool { return n.File == "libversioned.so" })
		if i < 0 || len(needs) < 2 {
			t.Fatalf("needs %v", needs)
		}
		weak := map[string]bool{}
		for _, r := range needs[i].Versions {
			weak[r.Name] = r.Weak
		}
		if fmt.Sprint(weak) != "map[DEMO_1.0:false DEMO_1.1:false DEMO_2.0:true]" {
			t.Errorf("needs %v", weak)
		}
	}
	if f.stringBytes > len(f.Interp)+200 {
		t.Errorf("%d bytes charged to the file", f.stringBytes)
	}
	if defs, err := f.VersionDefs(); defs != nil || err != nil {
		t.Errorf("a program defines %v, %v", defs, err)
	}
}

// symverOf is what readelf -V says, in its order.
func symverOf(t *testing.T, path string) (needs []VersionNeed, defs []VersionDef) {
	t.Helper()
	cmd := exec.Command("readelf", "-V", "-W", path)
	cmd.Env = []string{"LC_ALL=C"}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("readelf: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if m := readelfFile.FindStringSubmatch(line); m != nil {
			needs = append(needs, VersionNeed{File: m[1]})
		} else if m := readelfNeed.FindStringSubmatch(line); m != nil {
			n := &needs[len(needs)-1]
			n.Versions = append(n.Versions, VersionRef{m[1], index(t, m[3]), strings.Contains(m[2], "WEAK")})
		} else if m := readelfDef.FindStringSubmatch(line); m != nil {
			defs = append(defs, VersionDef{m[3], index(t, m[2]), strings.Contains(m[1], "BASE")})
		}
	}
	return needs, defs
}

var (
	readelfFile = regexp.MustCompile(`Version: 1\s+File: (\S+)\s+Cnt:`)
	readelfNeed = regexp.MustCompile(`^\s+0x\w+:\s+Name: (\S+)\s+Flags: (.*?)\s+Version: (\d+)`)
	readelfDef  = regexp.MustCompile(`Rev: 1\s+Flags: (.*?)\s+Index: (\d+)\s+Cnt: \d+\s+Name: (\S+)`)
)

func index(t *testing.T, s string) uint16 {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(n)
}

// TestVersionsAsReadelf compares with readelf, on this machine's own files.
func TestVersionsAsReadelf(t *testing.T) {
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("readelf is missing (Debian: binutils)")
	}
	lib, prog := symverFixture(t)
	paths := []string{lib, prog}
	for _, glob := range []string{"/usr/lib/x86_64-linux-gnu/lib[mps]*.so.*", "/usr/lib/x86_64-linux-gnu/lib*[a-z+].so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/[bg]*"} {
		names, _ := filepath.Glob(glob)
		paths = append(paths, names[:min(len(names), 40)]...)
	}
	needs, defs := 0, 0
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f, err := Parse(byteFile(b), int64(len(b)))
		if err != nil {
			continue
		}
		n, errN := f.VersionNeeds()
		d, errD := f.VersionDefs()
		wantN, wantD := symverOf(t, path)
		if errN != nil || errD != nil || fmt.Sprint(n) != fmt.Sprint(wantN) || !slices.Equal(d, wantD) {
			t.Errorf("%s: needs %v, defines %v, %v %v; readelf: %v, %v", path, n, d, errN, errD, wantN, wantD)
		}
		needs, defs = needs+len(n), defs+len(d)
	}
	if needs < 20 || defs < 100 {
		t.Errorf("%d needs and %d definitions compared", needs, defs)
	}
}

// fileOffsetOf is where a table of the dynamic section is in a file.
func fileOffsetOf(t *testing.T, f *File, tag elf.DynTag) uint64 {
	t.Helper()
	addr, _ := f.dynValue(tag)
	off, _, ok := fileOffset(f.phdrs, addr)
	if !ok {
		t.Fatalf("no %v", tag)
	}
	return off
}

// TestDamagedVersions: whatever a record says, the answer is an error or some
// versions.
func TestDamagedVersions(t *testing.T) {
	lib, prog := symverFixture(t)
	for _, c := range []struct {
		name, path string
		tag        elf.DynTag
		at         uint64 // of a word in the first record
		value      uint32
		field      string // of the error, "" for none
	}{
		{"the next record is far away", prog, elf.DT_VERNEED, 12, 0x7fffffff, "DT_VERNEED"},
		{"its versions are far away", prog, elf.DT_VERNEED, 8, 0xffffffff, "DT_VERNEED"},
		{"its name is far away", prog, elf.DT_VERNEED, 4, 0xfffffff0, "DT_VERNEED"},
		{"the next record is itself", prog, elf.DT_VERNEED, 12, 0, ""},
		{"the next record is inside it", prog, elf.DT_VERNEED, 12, 1, "DT_VERNEED"},
		{"the next definition is far away", lib, elf.DT_VERDEF, 16, 0x7fffffff, "DT_VERDEF"},
		{"its name's record is far away", lib, elf.DT_VERDEF, 12, 0xfffffff8, "DT_VERDEF"},
		{"it is the last", lib, elf.DT_VERDEF, 16, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := os.ReadFile(c.path)
			if err != nil {
				t.Fatal(err)
			}
			off := fileOffsetOf(t, parsePath(t, c.path), c.tag)
			binary.LittleEndian.PutUint32(b[off+c.at:], c.value)
			f, err := Parse(byteFile(b), int64(len(b)))
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.VersionNeeds()
			if c.tag == elf.DT_VERDEF {
				_, err = f.VersionDefs()
			}
			var format *FormatError
			if got := errors.As(err, &format); got != (c.field != "") || got && !strings.Contains(format.Field, strings.TrimPrefix(c.field, "DT_")) {
				t.Errorf("%v, want an error of %q", err, c.field)
			}
		})
	}
}

// FuzzSymver: any bytes give versions or a *FormatError, and never many.
func FuzzSymver(f *testing.F) {
	lib, prog := symverFixture(f)
	for _, path := range []string{lib, prog} {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(seeds(f)[3])
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := Parse(byteFile(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, x := range g.Health() {
			if x.Rule == "" || x.Detail == "" {
				t.Fatalf("%+v", x)
			}
		}
		needs, err := g.VersionNeeds()
		if err != nil {
			typed(t, err)
		}
		n := 0
		for _, need := range needs {
			n += 1 + len(need.Versions)
		}
		defs, err := g.VersionDefs()
		if err != nil {
			typed(t, err)
		}
		if n > maxSymvers || len(defs) > maxSymvers {
			t.Fatalf("%d and %d versions of %d bytes", n, len(defs), len(b))
		}
	})
}
