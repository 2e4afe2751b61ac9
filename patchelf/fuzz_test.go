package patchelf

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// seeds are small files of every shape and linker, and stubs.
func seeds(f *testing.F) [][]byte {
	out := [][]byte{nil, []byte("\x7fELF"), append([]byte("\x7fELF\x01\x02\x01"), make([]byte, 64)...)}
	files := oddFiles()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		out = append(out, files[name].bytes())
	}
	for i, v := range variants() {
		if v.path == "" && i > 0 {
			continue
		}
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

// FuzzParse: any bytes are parsed or refused, and never cost much memory or
// many reads.
func FuzzParse(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := &counted{f: byteFile(b)}
		g, err := Parse(r, int64(len(b)))
		if r.n > 4*len(b)+maxStrings {
			t.Fatalf("%d bytes read of %d", r.n, len(b))
		}
		if err != nil {
			typed(t, err)
			return
		}
		_, _, _ = g.Facts(), g.Static(), g.LatePHDR()
		if g.StaticPIE() && !g.Static() || g.Static() && g.Interp != "" || g.companion && g.Dynamic {
			t.Fatalf("%+v", shapeOf(g))
		}
		for _, d := range g.Strings {
			if strings.IndexByte(d.Value, 0) >= 0 {
				t.Fatalf("%q", d)
			}
		}
		for _, name := range []string{".comment", ".text"} {
			if c, err := g.Section(name); err != nil && !errors.Is(err, ErrNoSection) {
				typed(t, err)
			} else if len(c) > len(b) {
				t.Fatalf("%d bytes of %s", len(c), name)
			}
		}
	})
}

// typed checks that an error is one of those that the package promises, and
// says where or why.
func typed(t *testing.T, err error) {
	t.Helper()
	var format *FormatError
	var refused *RefusedError
	switch {
	case errors.Is(err, ErrNotELF):
	case errors.As(err, &format) && format.Field != "" && format.Reason != "":
	case errors.As(err, &refused) && refused.Reason != "":
	default:
		t.Fatalf("untyped error: %v", err)
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
