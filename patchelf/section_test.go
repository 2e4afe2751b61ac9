package patchelf

import (
	"bytes"
	"errors"
	"testing"
)

// TestSectionHeadersDamaged: without a table of section headers that can be
// believed there are none, and all else is as it is.
func TestSectionHeadersDamaged(t *testing.T) {
	whole := odd{entries: oddEntries}.bytes()
	f := mustParse(t, whole)
	for name, c := range map[string]struct {
		at   uint64
		with []byte
	}{
		"e_shentsize": {58, []byte{63}}, "e_shoff": {40, []byte{0, 0, 0, 1}}, "e_shoff of the end": {40, []byte{byte(len(whole) - 1), byte((len(whole) - 1) >> 8)}},
		"e_shnum": {60, []byte{0xff, 0xfe}}, "cut": {0, nil},
	} {
		b := bytes.Clone(whole)
		copy(b[c.at:], c.with)
		if name == "cut" {
			b = b[:f.shoff+uint64(f.shnum*64)-1]
		}
		g := mustParse(t, b)
		wantOddNames(t, g)
		if _, err := g.Section(".text"); g.Sections() != 0 || !errors.Is(err, ErrNoSection) {
			t.Errorf("%s: %d, %v", name, g.Sections(), err)
		}
		var refused *RefusedError
		if _, err := g.Plan(Edit{RunPath: ptr(longPath)}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSectionsThatLie: a section that is not in the file, or not of a size that
// anyone needs, is an error that names it.
func TestSectionsThatLie(t *testing.T) {
	whole := odd{entries: oddEntries}.bytes()
	f := mustParse(t, whole)
	header := func(i int) uint64 { return f.shoff + uint64(i*64) }
	text := f.Sections() - 2
	for name, c := range map[string]struct {
		field string
		edit  func(s *shdr)
		index int
		size  int64
	}{
		"names elsewhere":  {"e_shstrndx", func(s *shdr) { s.off = 1 << 50 }, f.shstrndx, 0},
		"names too long":   {"e_shstrndx", func(s *shdr) { s.size = ^uint64(0) }, f.shstrndx, 0},
		"content at end":   {"section .text", func(s *shdr) { s.off = uint64(len(whole)) }, text, 0},
		"content wraps":    {"section .text", func(s *shdr) { s.off = ^uint64(0) }, text, 0},
		"content too much": {"section .text", func(s *shdr) { s.size = maxSection + 1 }, text, 1 << 30},
	} {
		b := bytes.Clone(whole)
		s := f.shdr(b[header(c.index):])
		c.edit(&s)
		f.putShdr(b[header(c.index):], s)
		h := &hole{size: max(c.size, int64(len(b))), pieces: map[int64][]byte{0: b}}
		g, err := Parse(h, h.size)
		if err != nil {
			t.Fatal(err)
		}
		var format *FormatError
		if _, err := g.Section(".text"); !errors.As(err, &format) || format.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := bytes.Clone(whole)
	s := f.shdr(b[header(text):])
	s.name = 1 << 30 // of no name: it is passed over
	f.putShdr(b[header(text):], s)
	if _, err := mustParse(t, b).Section(".text"); !errors.Is(err, ErrNoSection) {
		t.Error(err)
	}
}

// TestThreadLocalSectionsTakeNoRoom: .tbss has the address of what follows it,
// which does not make the file a separate debug file.
func TestThreadLocalSectionsTakeNoRoom(t *testing.T) {
	path := shop.build(t, "tbss.so", "__thread int room[9]; int *get(void) { return room; }", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libtbss.so")
	if f := wantShape(t, path, shapeLibrary); f.Soname != "libtbss.so" {
		t.Error(f.Soname)
	}
}
