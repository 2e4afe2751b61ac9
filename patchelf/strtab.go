package patchelf

import "bytes"

// pageBytes is the smallest page of any machine that is supported. A write
// inside one page is made whole or not at all; a killed one may end between
// two.
const pageBytes = 4096

// strtab is the dynamic string table while strings are placed in it. old is
// as it is in the file; data is what it becomes, but for the dead spans, which
// are cleared last. Offsets of existing strings never change: symbols and
// versions refer to them.
type strtab struct {
	old, data []byte
	off       uint64 // of the table in the file: where its pages are
	refs      *refs  // of what does not change, and of what was placed
	changing  []change
	marked    *refs // what changing refers to, once it is asked for
	copied    bool  // the table gets a new place: what is in it stays as it is

	fresh    []span // written where no string was
	over     []over
	leftover []span // of strings that were overwritten by shorter ones
}

// change is a reference that the edit changes: to the string at `at`, by the
// request id, or -1 where the reference goes.
type change struct {
	at uint64
	id int
}

// request is a string that the edit needs in the table.
type request struct {
	text   string
	own    uint64 // the string that it replaces, or none
	pinned bool   // a version refers to it too, and would have to move
	entry  bool   // its entry in the dynamic section changes in any case
}

// span is a range of the table.
type span struct{ lo, hi uint64 }

// over is a string written over the one that it replaces, which ended at was.
type over struct {
	span
	was uint64
}

// none is the offset of no string.
const none = ^uint64(0)

// place puts the string of request id into the table and returns its offset.
// The table may become longer. A string that is in use is overwritten only
// where that is one write inside one page, and only by what replaces it.
func (t *strtab) place(id int, r request) uint64 {
	need := append([]byte(r.text), 0)
	end, own := t.ownSlot(uint64(len(need)), r.own, id)
	if at := bytes.Index(t.data, need); at >= 0 && !(own && (r.pinned || uint64(at) >= r.own && uint64(at) < end)) {
		t.refs.add(uint64(at))
		return uint64(at)
	}
	if own && !r.entry {
		return t.overwrite(r.own, end, need)
	}
	if at, ok := t.gap(uint64(len(need))); ok {
		return t.write(at, need)
	}
	if own {
		return t.overwrite(r.own, end, need)
	}
	return t.write(t.tail(), need)
}

func (t *strtab) fill(at uint64, b []byte) span {
	if end := at + uint64(len(b)); end > uint64(len(t.data)) {
		t.data = append(t.data, make([]byte, end-uint64(len(t.data)))...)
	}
	copy(t.data[at:], b)
	t.refs.add(at)
	return span{at, at + uint64(len(b))}
}

func (t *strtab) write(at uint64, b []byte) uint64 {
	t.fresh = append(t.fresh, t.fill(at, b))
	return at
}

func (t *strtab) overwrite(at, was uint64, b []byte) uint64 {
	s := t.fill(at, b)
	t.over = append(t.over, over{s, was})
	if s.hi < was {
		t.leftover = append(t.leftover, span{s.hi, was})
	}
	return at
}

// bounds returns the extent of the string that holds the byte at: from behind
// the NUL before it to its own NUL, exclusive.
func (t *strtab) bounds(at uint64) (lo, hi uint64) {
	lo = uint64(bytes.LastIndexByte(t.old[:at], 0) + 1)
	n := bytes.IndexByte(t.old[at:], 0)
	if n < 0 {
		return lo, uint64(len(t.old))
	}
	return lo, at + uint64(n)
}

// exclusive tells whether nothing but request id refers to the string at own,
// nor to any part of the longer string that it may be the tail of.
func (t *strtab) exclusive(own uint64, id int) bool {
	if own >= uint64(len(t.old)) {
		return false
	}
	lo, hi := t.bounds(own)
	if t.refs.any(lo, hi+1) {
		return false
	}
	for _, c := range t.changing {
		if c.at >= lo && c.at <= hi && (c.id != id || c.at != own) {
			return false
		}
	}
	return true
}

// ownSlot tells whether need bytes fit over the string at own, which ends at
// end, and the unreferenced NULs behind it, in one write inside one page. At
// the end of the table they may stick out.
func (t *strtab) ownSlot(need, own uint64, id int) (end uint64, ok bool) {
	if own == none || t.copied || !t.exclusive(own, id) {
		return 0, false
	}
	_, hi := t.bounds(own)
	size, room := uint64(len(t.data)), hi
	for room < min(size, own+need) && t.data[room] == 0 {
		if _, used := t.lastRef(room, room+1); used {
			break
		}
		room++
	}
	if room < size && need > room-own {
		return hi, false
	}
	return hi, t.onePage(own, own+need) || t.onePage(own, hi+1)
}

func (t *strtab) onePage(lo, hi uint64) bool {
	return (t.off+lo)/pageBytes == (t.off+hi-1)/pageBytes
}

// gap finds a run of need+1 NULs that nothing refers to but for the first,
// which ends the string before it.
func (t *strtab) gap(need uint64) (uint64, bool) {
	if !t.refs.known {
		return 0, false
	}
	pair := []byte{0, 0} // of which strings next to each other have none
	for from := uint64(0); from < uint64(len(t.data)); {
		i := bytes.Index(t.data[from:], pair)
		if i < 0 {
			break
		}
		at := from + uint64(i) + 1
		n := uint64(1)
		for n < need && at+n < uint64(len(t.data)) && t.data[at+n] == 0 {
			n++
		}
		if n < need {
			from = at + n
			continue
		}
		last, used := t.lastRef(at, at+n)
		switch {
		case !used:
			return at, true
		default:
			from = last
		}
	}
	return 0, false
}

// lastRef is the highest offset in [lo, hi) that is referred to, also by what
// is going to change: until it has, it counts.
func (t *strtab) lastRef(lo, hi uint64) (uint64, bool) {
	last, used := t.refs.last(lo, hi)
	if at, changes := t.busy().last(lo, hi); changes && (!used || at > last) {
		return at, true
	}
	return last, used
}

// busy is the set of what changing refers to.
func (t *strtab) busy() *refs {
	if t.marked == nil {
		size := uint64(len(t.old))
		t.marked = &refs{bits: make([]uint64, size/64+1), size: size}
		for _, c := range t.changing {
			t.marked.add(c.at)
		}
	}
	return t.marked
}

// tail is where a string is appended: over the spare NULs at the end.
func (t *strtab) tail() uint64 {
	at := uint64(len(t.data))
	for at >= 2 && t.data[at-1] == 0 && t.data[at-2] == 0 && t.refs.known {
		if _, used := t.lastRef(at-1, at); used {
			break
		}
		at--
	}
	return at
}

// dead lists the bytes of strings that nothing refers to once the edit is
// made. They are cleared: what is no longer said shall not be found, and there
// is room for what is said next.
func (t *strtab) dead() []span {
	spans, seen := t.leftover, map[uint64]bool{}
	for _, c := range t.changing {
		if seen[c.at] || c.at == 0 || c.at >= uint64(len(t.old)) || !t.refs.known {
			continue
		}
		seen[c.at] = true
		if lo, hi := t.bounds(c.at); !t.refs.any(lo, c.at) {
			spans = append(spans, span{c.at, hi})
		}
	}
	var out []span
	for _, s := range spans {
		if at, used := t.refs.first(s.lo, s.hi); used {
			s.hi = at
		}
		if s.lo < s.hi {
			out = append(out, s)
		}
	}
	return out
}
