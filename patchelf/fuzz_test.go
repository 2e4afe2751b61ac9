package patchelf

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// seeds are small files of every linker, one with a late table, and stubs.
func seeds(f *testing.F) [][]byte {
	out := [][]byte{nil, []byte("\x7fELF"), append([]byte("\x7fELF\x01\x02\x01"), make([]byte, 64)...)}
	for i, v := range variants() {
		b, err := os.ReadFile(v.make(f))
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, b)
		if i < 4 {
			out = append(out, late{slack: 1, phdr: true, oddShoff: true}.apply(f, b))
		}
	}
	return out
}

// FuzzParse: any bytes are parsed or refused, and never cost much memory.
func FuzzParse(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := Parse(byteFile(b), int64(len(b)))
		if err != nil {
			var format *FormatError
			if !errors.Is(err, ErrNotELF) && !errors.As(err, &format) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		_ = g.Facts()
		_, _ = g.Section(".comment")
	})
}

// FuzzEdit: what a plan makes parses, says what was asked for, keeps every
// other name, and is final: the same edit again has nothing to do.
func FuzzEdit(f *testing.F) {
	for i, b := range seeds(f) {
		f.Add(b, longPath, i%4, "")
		f.Add(b, "x", (i+1)%4, "/lib/ld.so")
	}
	f.Fuzz(func(t *testing.T, b []byte, path string, tag int, interp string) {
		g, err := Parse(byteFile(b), int64(len(b)))
		if err != nil {
			return
		}
		e := Edit{RunPath: &path, Tag: Tag(tag), Interp: interp}
		if tag == 3 {
			e.RunPath, e.Tag = nil, RPath
		}
		p, err := g.Plan(e)
		if err != nil {
			var refused *RefusedError
			var format *FormatError
			if !errors.As(err, &refused) && !errors.As(err, &format) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		checkPlan(t, g, p, e, b)
	})
}

func checkPlan(t *testing.T, g *File, p *Plan, e Edit, b []byte) {
	t.Helper()
	m := &memory{bytes.Clone(b)}
	if err := p.Apply(m); err != nil {
		t.Fatal(err)
	}
	h, err := Parse(m, int64(len(m.b)))
	if err != nil {
		t.Fatalf("%v: %v", p, err)
	}
	if int64(len(m.b))-int64(len(b)) != p.Growth() {
		t.Fatalf("%v: grew by %d, not %d", p, len(m.b)-len(b), p.Growth())
	}
	got, _ := h.Path()
	if e.RunPath != nil && got != *e.RunPath {
		t.Fatalf("%v: run path %q, not %q", p, got, *e.RunPath)
	}
	if len(h.Needed) != len(g.Needed) || h.Soname != g.Soname {
		t.Fatalf("%v: %v became %v", p, g.Facts(), h.Facts())
	}
	again, err := h.Plan(e)
	if err != nil || !again.Empty() {
		t.Fatalf("%v: the same edit again: %v, %v", p, again, err)
	}
}

// memory is a file in memory that can be written.
type memory struct{ b []byte }

func (m *memory) ReadAt(p []byte, off int64) (int, error) { return byteFile(m.b).ReadAt(p, off) }

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if end := off + int64(len(p)); end > int64(len(m.b)) {
		m.b = append(m.b, make([]byte, end-int64(len(m.b)))...)
	}
	return copy(m.b[off:], p), nil
}

// BenchmarkSetRunPath edits a small file and one of 100 MiB to and fro.
func BenchmarkSetRunPath(b *testing.B) {
	for name, size := range map[string]int64{"small": 0, "100MiB": 100 << 20} {
		b.Run(name, func(b *testing.B) {
			path := copyOf(b, variantOf(b, "bfd-pie-0").make(b))
			if size > 0 {
				sparse(b, path, size)
			}
			paths := []*string{ptr(longPath), ptr("/s")}
			for i := 0; b.Loop(); i++ {
				if _, err := EditPath(path, Edit{RunPath: paths[i%2]}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sparse puts a hole before the section headers of the file at path.
func sparse(b *testing.B, path string, size int64) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Stat()
	g, err := Parse(f, info.Size())
	if err != nil {
		b.Fatal(err)
	}
	table, err := g.read("section headers", g.shoff, uint64(g.shnum*g.shdrSize()))
	if err != nil {
		b.Fatal(err)
	}
	var word [8]byte
	g.put(word[:], uint64(size))
	for _, w := range []struct {
		b  []byte
		at int64
	}{{table, size}, {word[:], 40}} {
		if _, err := unix.Pwrite(int(f.Fd()), w.b, w.at); err != nil {
			b.Fatal(err)
		}
	}
}
