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
	"strconv"
	"strings"
	"testing"
)

// shape is what File says of a kind of file.
type shape struct {
	kind                               elf.Type
	dynamic, static, staticPIE, hollow bool
	interp                             bool
}

func shapeOf(f *File) shape {
	return shape{kind: f.Type, dynamic: f.Dynamic, static: f.Static(), staticPIE: f.StaticPIE(), hollow: f.Companion(), interp: f.Interp != ""}
}

var (
	shapeProgram   = shape{kind: elf.ET_DYN, dynamic: true, interp: true}
	shapeLibrary   = shape{kind: elf.ET_DYN, dynamic: true}
	shapeStatic    = shape{kind: elf.ET_EXEC, static: true}
	shapeStaticPIE = shape{kind: elf.ET_DYN, dynamic: true, static: true, staticPIE: true}
	shapeObject    = shape{kind: elf.ET_REL}
)

func wantShape(t *testing.T, path string, want shape) *File {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if got := shapeOf(f); got != want {
		t.Errorf("%s: %+v, not %+v", filepath.Base(path), got, want)
	}
	return f
}

// TestShapesOfLinkers: what compilers make is told apart.
func TestShapesOfLinkers(t *testing.T) {
	const source = "int main(void) { return 46; }"
	fixed := shapeProgram
	fixed.kind = elf.ET_EXEC
	for name, want := range map[string]shape{"bfd-pie-0": shapeProgram, "bfd-exec-0": fixed, "bfd-lib-4": shapeLibrary} {
		wantShape(t, variantOf(t, name).make(t), want)
	}
	wantShape(t, shop.build(t, "shape-static", source, "-static"), shapeStatic)
	wantShape(t, shop.build(t, "shape-static-pie", source, "-static-pie"), shapeStaticPIE)
	wantShape(t, shop.build(t, "shape.o", source, "-c"), shapeObject)
	module := shop.build(t, "shape.ko", `__attribute__((section(".modinfo"), used)) static const char license[] = "license=GPL"; int init_module(void) { return 0; }`, "-c", "-mcmodel=kernel", "-fno-pie")
	if c, err := wantShape(t, module, shapeObject).Section(".modinfo"); err != nil || string(c) != "license=GPL\x00" {
		t.Errorf("%q, %v", c, err)
	}
	self, err := os.Executable() // of Go's own linker, or of the C one where the tests use C
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	g, err := Parse(f, info.Size())
	if err != nil || g.Static() == g.Dynamic {
		t.Errorf("%v, %+v", err, shapeOf(g))
	}
	if note, err := g.Section(".note.go.buildid"); err != nil || len(note) == 0 {
		t.Errorf("%q, %v", note, err)
	}
	for _, loader := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-musl-x86_64.so.1"} {
		if _, err := os.Stat(loader); err == nil {
			wantShape(t, loader, shapeLibrary)
		}
	}
}

// TestShapesOfMusl: what is linked with another C library is told apart the
// same way.
func TestShapesOfMusl(t *testing.T) {
	musl, err := exec.LookPath("musl-gcc")
	if err != nil {
		t.Skip("musl-gcc is missing (Debian: musl-tools)")
	}
	fixed := shapeProgram
	fixed.kind = elf.ET_EXEC
	for _, c := range []struct {
		args []string
		want shape
	}{{[]string{"-static", "-no-pie"}, shapeStatic}, {[]string{"-pie", "-fPIE"}, shapeProgram}, {[]string{"-no-pie"}, fixed}, {[]string{"-shared", "-fPIC"}, shapeLibrary}} {
		path := filepath.Join(t.TempDir(), "musl")
		cmd := exec.Command(musl, append(c.args, "-x", "c", "-o", path, "-")...)
		cmd.Stdin = strings.NewReader("int main(void) { return 46; }")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if f := wantShape(t, path, c.want); f.Interp != "" && !strings.Contains(f.Interp, "musl") {
			t.Error(f.Interp)
		}
	}
}

// TestShapesOfOdds: and so is what linkers do not make here.
func TestShapesOfOdds(t *testing.T) {
	fixed := shapeProgram
	fixed.kind = elf.ET_EXEC
	packed := shapeStaticPIE
	packed.dynamic = false
	for name, want := range map[string]shape{
		"lib32be": shapeLibrary, "exec": fixed, "pie": shapeProgram, "static": shapeStatic, "packed": packed, "gpu": shapeLibrary,
		"hollow": {kind: elf.ET_DYN, hollow: true},
	} {
		if got := shapeOf(mustParse(t, oddFiles()[name].bytes())); got != want {
			t.Errorf("%s: %+v, not %+v", name, got, want)
		}
	}
	for _, c := range []struct {
		name string
		file odd
		pie  bool
	}{
		{"DF_1_PIE", odd{entries: []oddEntry{{tag: elf.DT_FLAGS_1, val: uint64(elf.DF_1_PIE)}}}, true},
		{"DT_DEBUG", odd{entries: []oddEntry{{tag: elf.DT_DEBUG}}}, true},
		{"DT_DEBUG and a name", odd{entries: []oddEntry{{tag: elf.DT_DEBUG}, {tag: elf.DT_SONAME, name: "ld.so"}}}, false},
		{"DT_DEBUG and a library", odd{entries: []oddEntry{{tag: elf.DT_DEBUG}, {tag: elf.DT_NEEDED, name: "libc.so"}}}, false},
		{"an entry point", odd{entry: oddBase + 8}, false},
	} {
		if f := mustParse(t, c.file.bytes()); f.StaticPIE() != c.pie || f.Static() != c.pie {
			t.Errorf("%s: %v", c.name, f.StaticPIE())
		}
	}
}

// TestSeparateDebugFiles: those of every tool are known for what they are,
// with many sections in front, too.
func TestSeparateDebugFiles(t *testing.T) {
	const source = "int main(void) { return 46; }"
	files := []string{variantOf(t, "bfd-pie-0").make(t), variantOf(t, "bfd-lib-4").make(t), variantOf(t, "bfd-exec-0").make(t),
		shop.build(t, "hollow-static", source, "-static"), shop.build(t, "hollow-static-pie", source, "-static-pie"), manySections(t)}
	for _, tool := range [][]string{{"objcopy", "--only-keep-debug", "IN", "OUT"}, {"eu-strip", "-f", "OUT", "IN"}} {
		if _, err := exec.LookPath(tool[0]); err != nil {
			t.Logf("%s is missing (Debian: binutils, elfutils)", tool[0])
			continue
		}
		for _, path := range files {
			in, out := copyOf(t, path), filepath.Join(t.TempDir(), "debug")
			args := strings.Split(strings.NewReplacer("IN", in, "OUT", out).Replace(strings.Join(tool[1:], "\t")), "\t")
			if b, err := exec.Command(tool[0], args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, b)
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if f := mustParse(t, b); !f.Companion() || f.Dynamic || f.Interp != "" || f.StaticPIE() {
				t.Errorf("%s %s: %+v", tool[0], filepath.Base(path), shapeOf(f))
			}
			whole, err := os.ReadFile(in)
			if err != nil {
				t.Fatal(err)
			}
			f, g := mustParse(t, b), mustParse(t, whole)
			if g.Companion() || f.Type == elf.ET_EXEC && f.Static() != g.Static() {
				t.Errorf("%s: %+v, and debug file %+v", filepath.Base(path), shapeOf(g), shapeOf(f))
			}
		}
	}
}

// manySections is a library with so many sections in front of the dynamic one
// that Parse does not look at them all.
func manySections(t *testing.T) string {
	var b strings.Builder
	for i := range 2 * maxCompanion {
		fmt.Fprintf(&b, "__attribute__((section(\"part%d\"))) int f%d(void) { return %d; }\n", i, i, i)
	}
	return shop.build(t, "many-sections.so", b.String(), "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libmany.so", "-g0")
}

// TestVDSO: the library that the kernel maps into every process has no file,
// and is read from memory.
func TestVDSO(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip("there is no /proc")
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(line, "[vdso]\n") {
			continue
		}
		from, to, _ := strings.Cut(strings.Fields(line)[0], "-")
		lo, err := strconv.ParseInt(from, 16, 64)
		hi, err2 := strconv.ParseInt(to, 16, 64)
		mem, err3 := os.Open("/proc/self/mem")
		if err := errors.Join(err, err2, err3); err != nil {
			t.Fatal(err)
		}
		defer mem.Close()
		b := make([]byte, hi-lo)
		if _, err := mem.ReadAt(b, lo); err != nil {
			t.Fatal(err)
		}
		f := mustParse(t, b)
		if got := shapeOf(f); got != shapeLibrary || !strings.HasPrefix(f.Soname, "linux-") {
			t.Errorf("%+v, %q", got, f.Soname)
		}
		return
	}
	t.Skip("this kernel maps no vDSO")
}

// TestCoreFiles: a core file may have more segments than e_phnum holds. None
// of them is of a program to load.
func TestCoreFiles(t *testing.T) {
	const segments = 70_000
	l := layout{order: binary.LittleEndian, wide: true}
	b := odd{kind: elf.ET_CORE, static: true, bare: true}.bytes()[:64]
	shoff := uint64(64 + segments*56)
	l.put(b[40:], shoff)
	for i, v := range []uint16{0xffff, 64, 1, 0} {
		l.order.PutUint16(b[56+2*i:], v)
	}
	ps := []phdr{{kind: uint32(elf.PT_NOTE), off: 1}}
	ps = append(ps, slices.Repeat([]phdr{{kind: uint32(elf.PT_LOAD), vaddr: 1 << 20}}, segments-1)...)
	b = append(b, l.putPhdrs(ps)...)
	zero := make([]byte, 64)
	l.putShdr(zero, shdr{info: segments})
	b = append(b, zero...)
	r := &counted{f: byteFile(b)}
	f, err := Parse(r, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if got := shapeOf(f); got != (shape{kind: elf.ET_CORE}) || f.Segments() != segments || r.n > 64<<10 {
		t.Errorf("%+v, %d segments, %d bytes read", got, f.Segments(), r.n)
	}
	var format *FormatError
	if _, err := Parse(byteFile(b[:shoff-1]), int64(shoff-1)); !errors.As(err, &format) || format.Field != "e_phnum" {
		t.Error(err)
	}
	var refused *RefusedError
	if _, err := f.Plan(Edit{RunPath: ptr("/x")}); !errors.As(err, &refused) {
		t.Error(err)
	}
}

// TestOtherTargets: objects for GPUs and for the kernel's virtual machine.
func TestOtherTargets(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		want    shape
		machine elf.Machine
	}{
		{"kernel.hsaco", []string{"--target=amdgcn-amd-amdhsa", "-mcpu=gfx1030", "-nogpulib", "-shared", "-fuse-ld=lld"}, shapeLibrary, machineAMDGPU},
		{"program.bpf.o", []string{"--target=bpf", "-c"}, shapeObject, elf.EM_BPF},
		{"arm.o", []string{"--target=armeb-none-eabi", "-c"}, shapeObject, elf.EM_ARM},
		{"sparc.o", []string{"--target=sparc64-linux", "-c"}, shapeObject, elf.EM_SPARCV9},
	} {
		t.Run(c.name, func(t *testing.T) {
			clang, err := exec.LookPath("clang-16")
			if err != nil {
				t.Skip("clang-16 is missing (Debian: clang-16, lld-16)")
			}
			path := filepath.Join(t.TempDir(), c.name)
			cmd := exec.Command(clang, append(c.args, "-x", "c", "-o", path, "-")...)
			cmd.Stdin = strings.NewReader("int answer(void) { return 46; }")
			if out, err := cmd.CombinedOutput(); bytes.Contains(out, []byte("o available targets")) || bytes.Contains(out, []byte("invalid linker name")) {
				t.Skip("clang-16 or lld lacks the target")
			} else if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if f := wantShape(t, path, c.want); f.Machine != c.machine {
				t.Errorf("%v", f.Machine)
			}
		})
	}
}
