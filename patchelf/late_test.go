package patchelf

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
)

// late says how a program-header table is moved to the end of a file, as
// tools do that add segments to what a linker made.
type late struct {
	slack    int    // spare zero entries behind the table
	identity bool   // the table's address equals its offset
	phdr     bool   // keep PT_PHDR, if there is one
	oddShoff bool   // the section headers follow at an odd offset
	pageEnd  bool   // the table ends where a page does
	behind   int    // bytes of nobody's before the table
	snug     bool   // the table directly follows, on the same page
	tail     int    // bytes of nobody's at the end of the file
	page     uint64 // alignment of the segment that holds the table; 0 is 4096
}

// apply moves the table of the ELF file b, fills the old one with 0xEE, and
// returns the new file.
func (l late) apply(tb testing.TB, b []byte) []byte {
	tb.Helper()
	f, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		tb.Fatal(err)
	}
	ps := slices.Clone(f.phdrs)
	if !l.phdr {
		ps = slices.DeleteFunc(ps, func(p phdr) bool { return elf.ProgType(p.kind) == elf.PT_PHDR })
	}
	highest := uint64(0)
	for _, p := range ps {
		if p.load() {
			highest = max(highest, p.vend())
		}
	}
	size := uint64((len(ps) + 1 + l.slack) * f.phdrSize())
	out := append(slices.Clone(b), make([]byte, l.behind)...)
	page := max(l.page, 4096)
	off := up(uint64(len(out)), 4096)
	if l.snug {
		off = up(uint64(len(out)), 8)
	}
	if l.pageEnd {
		off += 4096 - size
	}
	vaddr := up(highest, page) + off%page
	if l.identity {
		base := ps[slices.IndexFunc(ps, func(p phdr) bool { return p.load() })].vaddr // 0, or the image base
		off = max(off, up(vaddr, page)-base)
		vaddr = base + off
	}
	load := phdr{kind: uint32(elf.PT_LOAD), flags: uint32(elf.PF_R), off: off, vaddr: vaddr, paddr: vaddr, filesz: size, memsz: size, alignment: page}
	ps = append(ps, load)
	for i := range ps {
		if p := &ps[i]; elf.ProgType(p.kind) == elf.PT_PHDR {
			p.off, p.vaddr, p.paddr, p.filesz, p.memsz = off, vaddr, vaddr, size, size
		}
	}
	out = append(out, make([]byte, off+size-uint64(len(out)))...)
	copy(out[off:], f.putPhdrs(ps))
	for i := range f.phnum * f.phdrSize() {
		out[f.phoff+uint64(i)] = 0xEE
	}
	f.put(out[24+f.word():], off)
	f.order.PutUint16(out[24+3*f.word()+8:], uint16(len(ps)))
	if l.oddShoff {
		out = append(out, make([]byte, 1+len(out)%2)...)
		f.put(out[24+2*f.word():], uint64(len(out)))
		out = append(out, b[f.shoff:f.shoff+uint64(f.shnum*f.shdrSize())]...)
	}
	return append(out, bytes.Repeat([]byte("tail"), l.tail/4)...)
}

// byteFile is a file in memory.
type byteFile []byte

func (b byteFile) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// TestLateProgramHeaders: files whose table is at the end, as kernel packs
// leave them, run after the edit, or are refused untouched where there is no
// room for what would have to be added.
func TestLateProgramHeaders(t *testing.T) {
	shapes := map[string]late{
		"slack":          {slack: 4, phdr: true, oddShoff: true},
		"slack-identity": {slack: 2, phdr: true, identity: true, oddShoff: true},
		"slack-eof":      {slack: 3, phdr: true},
		"slack-nophdr":   {slack: 2, oddShoff: true},
		"noslack":        {phdr: true, oddShoff: true},
		"noslack-eof":    {phdr: true},
		"pageend":        {slack: 1, phdr: true, pageEnd: true, oddShoff: true},
		"blob":           {slack: 1, phdr: true, behind: 12345, oddShoff: true},
	}
	for _, v := range variants() {
		if v.path != "" && v.path != "/o/p" || strings.Contains(v.name, "page") {
			continue
		}
		for name, shape := range shapes {
			if !v.lib && !shape.phdr && strings.Contains(v.name, "pie") {
				continue // a PIE does not start without PT_PHDR
			}
			t.Run(v.name+"/"+name, func(t *testing.T) {
				b, err := os.ReadFile(v.make(t))
				if err != nil {
					t.Fatal(err)
				}
				lateEdits(t, v, shape, put(t, "late", shape.apply(t, b)))
			})
		}
	}
}

func lateEdits(t *testing.T, v variant, shape late, path string) {
	deps := shop.deps(t)
	if code, out := runs(t, path, v.lib); code < 0 || code > 127 || strings.Contains(out, "segment") {
		t.Skipf("does not load before the edit either: %d %s", code, out)
	}
	before, _ := os.ReadFile(path)
	for _, p := range []string{longPath + ":" + deps, deps, longPath + ":" + longPath + ":" + deps} {
		res, err := EditPath(path, Edit{RunPath: ptr(p), Tag: RPath})
		var refused *RefusedError
		if errors.As(err, &refused) && shape.slack == 0 {
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Fatal("refused, but changed")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if code, out := runs(t, path, v.lib); code != 46 {
			t.Fatalf("%s: exit %d: %s", res.How, code, out)
		}
		clean(t, path)
		before, _ = os.ReadFile(path)
	}
}

// TestBigFile: an edit reads and writes as little of a file of gigabytes as
// of a small one.
func TestBigFile(t *testing.T) {
	b, err := os.ReadFile(variantOf(t, "bfd-pie-4").make(t))
	if err != nil {
		t.Fatal(err)
	}
	const hole = 5 << 30
	g, err := Parse(byteFile(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	r := &counted{}
	path := put(t, "big", b)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sections := b[g.shoff : g.shoff+uint64(g.shnum*64)]
	if _, err := f.WriteAt(sections, hole); err != nil { // the section headers at 5 GiB
		t.Fatal(err)
	}
	var word [8]byte
	g.put(word[:], hole)
	if _, err := f.WriteAt(word[:], 40); err != nil {
		t.Fatal(err)
	}
	r.f = f
	h, err := Parse(r, hole+int64(len(sections)))
	if err != nil {
		t.Fatal(err)
	}
	if r.n > 64<<10 {
		t.Errorf("Parse read %d bytes", r.n)
	}
	if _, err := h.Section(".comment"); err != nil {
		t.Error(err)
	}
	r.n = 0
	p, err := h.Plan(Edit{RunPath: ptr(longPath + ":" + shop.deps(t))})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(f); err != nil {
		t.Fatal(err)
	}
	if r.n > 256<<10 || p.Written() > 64<<10 {
		t.Errorf("the edit read %d and wrote %d bytes", r.n, p.Written())
	}
	f.Close()
	if code, out := runs(t, path, false); code != 46 {
		t.Errorf("exit %d: %s", code, out)
	}
}

// counted counts the bytes read.
type counted struct {
	f io.ReaderAt
	n int
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.f.ReadAt(p, off)
	c.n += n
	return n, err
}

func ExampleFile_Path() {
	f := &File{RunPath: ptr("$ORIGIN/../lib")}
	fmt.Println(f.Path())
	// Output: $ORIGIN/../lib DT_RUNPATH
}
