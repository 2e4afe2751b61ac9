package patchelf

import (
	"strings"
	"testing"
)

// TestStringsAcrossPages: a string is overwritten only where what a loader
// sees changes inside one page; otherwise it goes elsewhere.
func TestStringsAcrossPages(t *testing.T) {
	const own = 1
	table := "\x00/old/path\x00" + strings.Repeat("\x00", 30) + "symbol\x00"
	for _, c := range []struct {
		name, text string
		edge       uint64 // where a page ends, in the table
		at         uint64
	}{
		{"one page", "/new/longer/path", 4000, own},
		{"the old one ends before the edge", "/new/longer/path", 12, own},
		{"the new one ends before the edge", "/new", 7, own},
		{"both cross the edge", "/new/longer/path", 6, 11},
		{"a tail of the old one", "path", 4000, own},
		{"a tail of the old one, across the edge", "d/path", 6, 4},
		{"a tail of another", "bol", 4000, 44},
	} {
		r := &refs{bits: make([]uint64, len(table)/64+1), size: uint64(len(table)), known: true}
		r.add(0)
		r.add(41)
		s := &strtab{old: []byte(table), data: []byte(table), off: pageBytes - c.edge, refs: r, changing: []change{{own, 0}}}
		if at := s.place(0, request{text: c.text, own: own}); at != c.at {
			t.Errorf("%s: at %d, not at %d", c.name, at, c.at)
		}
		if len(s.data) != len(table) {
			t.Errorf("%s: the table grew", c.name)
		}
		for _, o := range s.over {
			seen := min(o.hi, o.was+1)
			if lo, hi := s.off+o.lo, s.off+seen; lo/pageBytes != (hi-1)/pageBytes {
				t.Errorf("%s: what is seen changes in two pages", c.name)
			}
		}
	}
}

// TestChangingStringsAreInUse: until an entry has turned to its new name, the
// old one counts, and what several entries say is no one's own.
func TestChangingStringsAreInUse(t *testing.T) {
	table := "\x00libfoo\x00\x00\x00\x00\x00\x00\x00\x00\x00end\x00"
	r := &refs{bits: make([]uint64, 1), size: uint64(len(table)), known: true}
	r.add(0)
	s := &strtab{old: []byte(table), data: []byte(table), refs: r, changing: []change{{1, 0}, {1, 1}, {4, -1}}}
	a, b := s.place(0, request{text: "bar", own: 1}), s.place(1, request{text: "baz", own: 1})
	if a == 1 || b == 1 || a == b || string(s.data[1:7]) != "libfoo" {
		t.Errorf("%d, %d: %q", a, b, s.data)
	}
	if dead := s.dead(); len(dead) != 2 {
		t.Errorf("%v", dead)
	}
}
