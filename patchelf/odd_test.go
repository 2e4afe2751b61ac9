package patchelf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func mustParse(tb testing.TB, b []byte) *File {
	tb.Helper()
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// TestEveryClassOrderAndMachine: what File says does not depend on how the
// words are stored, and no machine is unknown.
func TestEveryClassOrderAndMachine(t *testing.T) {
	for _, machine := range []elf.Machine{elf.EM_386, elf.EM_X86_64, elf.EM_ARM, elf.EM_AARCH64, elf.EM_MIPS, elf.EM_PPC64, elf.EM_S390,
		elf.EM_SPARCV9, elf.EM_RISCV, elf.EM_LOONGARCH, elf.EM_BPF, elf.EM_ALPHA, machineAMDGPU, 0xffff} {
		for i := range 4 {
			o := odd{narrow: i&1 != 0, big: i&2 != 0, machine: machine, entries: oddEntries, bare: machine%2 != 0, late: machine%3 != 0, entry: 0x1234}
			b := o.bytes()
			b[elf.EI_OSABI], b[elf.EI_ABIVERSION] = byte(elf.ELFOSABI_FREEBSD), 7
			f := mustParse(t, b)
			wantClass, wantOrder := 64-32*b2i(o.narrow), binary.ByteOrder(binary.LittleEndian)
			if o.big {
				wantOrder = binary.BigEndian
			}
			if f.Class != wantClass || f.ByteOrder != wantOrder || f.Type != elf.ET_DYN || f.Machine != machine || f.OSABI != elf.ELFOSABI_FREEBSD || f.ABIVersion != 7 || f.Entry != 0x1234 {
				t.Errorf("%+v: %+v", o, f)
			}
			if f.LatePHDR() != o.late || f.Segments() != 3 || (f.Sections() == 0) != o.bare {
				t.Errorf("%+v: %v, %d, %d", o, f.LatePHDR(), f.Segments(), f.Sections())
			}
			wantOddNames(t, f)
		}
	}
}

// wantOddNames checks everything that oddEntries names.
func wantOddNames(t *testing.T, f *File) {
	t.Helper()
	want := []DynString{{elf.DT_CONFIG, "ld.cfg"}, {elf.DT_AUDIT, "audit.so"}, {elf.DT_DEPAUDIT, "depaudit.so"}, {elf.DT_FILTER, "filtee.so"},
		{elf.DT_AUXILIARY, "auxiliary.so"}, {elf.DT_USED, "used.so"}}
	switch {
	case !f.Dynamic, f.Soname != "libodd.so", !slices.Equal(f.Needed, []string{"libone.so.1", "libtwo.so.2"}):
		t.Errorf("%v, %q, %q", f.Dynamic, f.Soname, f.Needed)
	case f.RunPath == nil || *f.RunPath != "$ORIGIN/../lib" || f.RPath == nil || *f.RPath != "/old/path":
		t.Errorf("%v, %v", f.RunPath, f.RPath)
	case f.Flags != elf.DF_BIND_NOW|elf.DF_ORIGIN || f.Flags1 != elf.DF_1_NOW|elf.DF_1_NODELETE:
		t.Errorf("%v, %v", f.Flags, f.Flags1)
	case !slices.Equal(f.Strings, want):
		t.Errorf("%v", f.Strings)
	}
	if on, stated := f.ExecStack(); on || !stated {
		t.Errorf("stack %v, %v", on, stated)
	}
}

// TestNamesFarApart: names are found wherever they are in the table, however
// long, and where several entries share one or the tail of one.
func TestNamesFarApart(t *testing.T) {
	long := strings.Repeat("/a/long/path", 900)
	table := make([]byte, 600_000)
	put := func(at uint64, s string) uint64 { copy(table[at:], s); return at }
	entries := []oddEntry{
		{tag: elf.DT_NEEDED, val: put(500_000, "last.so")}, {tag: elf.DT_NEEDED, val: put(1, "first.so")}, {tag: elf.DT_NEEDED, val: put(200, "near.so")},
		{tag: elf.DT_RUNPATH, val: put(250_000, long)}, {tag: elf.DT_SONAME, val: 500_004}, {tag: elf.DT_NEEDED, val: 500_000},
		{tag: elf.DT_NEEDED, val: put(599_990, "very-end")}, {tag: elf.DT_NEEDED, val: 599_999},
	}
	f := mustParse(t, odd{entries: entries, strings: table}.bytes())
	if want := []string{"last.so", "first.so", "near.so", "last.so", "very-end", ""}; !slices.Equal(f.Needed, want) || f.Soname != ".so" || f.RunPath == nil || *f.RunPath != long {
		t.Errorf("%q, %q, %v", f.Needed, f.Soname, f.RunPath)
	}
}

// TestMalformedNamesTheField: what makes no sense is an error that says where.
func TestMalformedNamesTheField(t *testing.T) {
	whole := odd{entries: oddEntries, interp: "/lib/ld.so.1"}.bytes()
	f := mustParse(t, whole)
	segment := func(kind elf.ProgType, field int) uint64 { // of 8 bytes, behind type and flags
		return f.phoff + uint64(f.segment(kind)*56+8+8*field)
	}
	entry := func(tag elf.DynTag) uint64 {
		return f.dynOff + uint64(slices.IndexFunc(f.dyns, func(d dyn) bool { return d.is(tag) })*16)
	}
	for _, c := range []struct {
		field string
		at    uint64
		with  []byte
	}{
		{"EI_CLASS", 4, []byte{3}}, {"EI_CLASS", 4, []byte{0}}, {"EI_DATA", 5, []byte{9}}, {"EI_VERSION", 6, []byte{0}},
		{"e_phoff", 32, bytes.Repeat([]byte{0xff}, 8)}, {"e_phoff", 32, []byte{0xf0, 0xff, 0xff, 0x7f}}, {"e_phentsize", 54, []byte{55}},
		{"e_phoff", 56, []byte{0xfe, 0xff}}, {"e_phoff", 56, []byte{0xfe}}, {"e_phnum", 40, append(make([]byte, 14), 0x38, 0, 0xff, 0xff)},
		{"program header", segment(elf.PT_LOAD, 0), bytes.Repeat([]byte{0xff}, 8)}, {"program header", segment(elf.PT_LOAD, 4), bytes.Repeat([]byte{0xff}, 8)},
		{"PT_INTERP", segment(elf.PT_INTERP, 0), []byte{0, 0, 0, 9}},
		{"PT_DYNAMIC", segment(elf.PT_DYNAMIC, 3), []byte{32, 0}},
		{"DT_STRTAB", entry(elf.DT_STRTAB) + 8, []byte{0, 0, 0, 1}}, {"DT_STRTAB", entry(elf.DT_STRSZ) + 8, []byte{0, 0, 0, 1}},
		{"DT_NEEDED", entry(elf.DT_NEEDED) + 8, []byte{0, 0, 9}}, {"DT_SONAME", entry(elf.DT_SONAME) + 8, []byte{0, 0, 9}},
		{"DT_RPATH", entry(elf.DT_RPATH) + 8, []byte{0, 0, 9}}, {"DT_RUNPATH", entry(elf.DT_RUNPATH) + 8, []byte{0, 0, 9}},
		{"DT_AUDIT", entry(elf.DT_AUDIT) + 8, []byte{0, 0, 9}}, {"DT_USED", f.strOff + f.strSize - 1, []byte{'x'}},
		{"there is no DT_STRTAB", entry(elf.DT_STRTAB), []byte{0x15}},
	} {
		b := bytes.Clone(whole)
		copy(b[c.at:], c.with)
		_, err := Parse(byteFile(b), int64(len(b)))
		var format *FormatError
		if !errors.As(err, &format) || !strings.Contains(err.Error(), c.field) {
			t.Errorf("%s at %d: %v", c.field, c.at, err)
		}
	}
}

// TestTruncatedEverywhere: a file that is cut off at any byte is an error, or
// says what the whole one said.
func TestTruncatedEverywhere(t *testing.T) {
	for name, o := range oddFiles() {
		truncate(t, name, o.bytes(), 1)
	}
	for _, v := range []string{"bfd-pie-36", "bfd-lib-4", "bfd-exec-0"} {
		b, err := os.ReadFile(variantOf(t, v).make(t))
		if err != nil {
			t.Fatal(err)
		}
		truncate(t, v, b, 7)
		truncate(t, v, b[:1200], 1)
	}
}

func truncate(t *testing.T, name string, b []byte, step int) {
	whole, failed := Parse(byteFile(b), int64(len(b)))
	for n := 0; n < len(b); n += step {
		f, err := Parse(byteFile(b[:n]), int64(n))
		var format *FormatError
		switch {
		case n < elf.EI_NIDENT && !errors.Is(err, ErrNotELF), n >= elf.EI_NIDENT && errors.Is(err, ErrNotELF):
			t.Errorf("%s, %d bytes: %v", name, n, err)
		case err != nil && !errors.Is(err, ErrNotELF) && (!errors.As(err, &format) || format.Field == "" || format.Reason == ""):
			t.Errorf("%s, %d bytes: %v", name, n, err)
		case err == nil && failed == nil && !whole.companion && !sameNames(f, whole):
			t.Errorf("%s, %d bytes: %+v, whole %+v", name, n, f.Facts(), whole.Facts())
		}
		// The size may lie, too: it was taken before the file was cut.
		if _, err := Parse(byteFile(b[:n]), int64(len(b))); err != nil && !errors.As(err, &format) && !errors.Is(err, ErrNotELF) {
			t.Errorf("%s, %d bytes and more claimed: %v", name, n, err)
		}
	}
}

func sameNames(f, g *File) bool {
	return reflect.DeepEqual(f.Facts(), g.Facts()) && slices.Equal(f.Strings, g.Strings) && f.Flags == g.Flags && f.Flags1 == g.Flags1 && f.Static() == g.Static()
}

// TestOverlappingHeaders: tables that lie over each other are read as they
// are, and headers that are their own content end in an answer or an error.
func TestOverlappingHeaders(t *testing.T) {
	whole := odd{entries: oddEntries}.bytes()
	f := mustParse(t, whole)
	for at := uint64(0); at < uint64(len(whole)); at += 4 {
		for _, field := range []uint64{32, 40, f.phoff + 56 + 8, f.phoff + 56 + 16, f.dynOff + 8} {
			b := bytes.Clone(whole)
			f.put(b[field:], at)
			g, err := Parse(byteFile(b), int64(len(b)))
			var format *FormatError
			if err != nil && !errors.As(err, &format) {
				t.Fatalf("field at %d, value %d: %v", field, at, err)
			}
			if err == nil && field == 40 {
				if wantOddNames(t, g); t.Failed() {
					t.Fatalf("section headers at %d", at)
				}
			}
		}
	}
	// The program header starts inside the ELF header: its p_type is where
	// e_phentsize to e_shentsize are, which the 32-bit kernel never looks at.
	tiny := make([]byte, 84)
	copy(tiny, odd{narrow: true, kind: elf.ET_EXEC, machine: elf.EM_386, static: true, bare: true, entry: oddBase}.bytes()[:52])
	l := layout{order: binary.LittleEndian}
	l.put(tiny[28:], 44)
	l.putPhdr(tiny[44:], phdr{kind: 0x00010020, vaddr: oddBase, paddr: oddBase, memsz: 84, filesz: 84, flags: 5, alignment: 4096})
	l.order.PutUint16(tiny[42:], 32)
	l.order.PutUint16(tiny[44:], 1)
	if g := mustParse(t, tiny); g.Segments() != 1 || g.Dynamic || !g.Static() || g.phdrs[0].filesz != 84 {
		t.Errorf("%+v", g)
	}
}

// TestCountsInSectionZero: numbers of headers that do not fit into the ELF
// header are where the gABI puts them.
func TestCountsInSectionZero(t *testing.T) {
	for _, name := range []string{"xnum", "xnum32"} {
		b := oddFiles()[name].bytes()
		f := mustParse(t, b)
		wantOddNames(t, f)
		if f.Segments() != 3 || f.Sections() != 7 || f.shstrndx != 6 {
			t.Errorf("%d, %d, %d", f.Segments(), f.Sections(), f.shstrndx)
		}
		if c, err := f.Section(".text"); err != nil || string(c) != "code" {
			t.Errorf("%q, %v", c, err)
		}
	}
}

// TestManySections: an object with more sections than e_shnum holds, as
// compilers make of many templates.
func TestManySections(t *testing.T) {
	if _, err := exec.LookPath("as"); err != nil {
		t.Skip("as is missing (Debian: binutils)")
	}
	path := filepath.Join(t.TempDir(), "many.o")
	cmd := exec.Command("as", "-o", path, "-")
	cmd.Stdin = strings.NewReader(".altmacro\n.macro one n\n.section .many.\\n,\"a\"\n.long \\n\n.endm\n.set i,0\n.rept 66000\none %i\n.set i,i+1\n.endr\n.section .last\n.ascii \"found\"\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %.300s", err, out)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, _ := file.Stat()
	r := &counted{f: file}
	f, err := Parse(r, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	if f.Sections() < 66000 || f.Type != elf.ET_REL || r.n > 64<<10 {
		t.Errorf("%d sections, %v, %d bytes read", f.Sections(), f.Type, r.n)
	}
	for name, want := range map[string]string{".last": "found", ".many.65999": "\xcf\x01\x01\x00"} {
		if c, err := f.Section(name); err != nil || string(c) != want {
			t.Errorf("%s: %q, %v", name, c, err)
		}
	}
	if _, err := f.Section(".many"); !errors.Is(err, ErrNoSection) {
		t.Error(err)
	}
}
