package patchelf

import (
	"bytes"
)

// strtab is the dynamic string table while a string is placed in it. old is
// as it is in the file; data is what it becomes. Offsets of existing strings
// never change: symbols and versions refer to them.
type strtab struct {
	old, data []byte
	refs      *refs
	wrote     span
	wiped     []span
}

// span is a range of the table.
type span struct{ lo, hi uint64 }

// none is the offset of no string.
const none = ^uint64(0)

// place puts s into the table, in place of the string at own (none if there
// is no such string), and returns its offset. The table may become longer.
func (t *strtab) place(s string, own uint64) uint64 {
	need := append([]byte(s), 0)
	if i := bytes.Index(t.data, need); i >= 0 {
		return uint64(i)
	}
	if at, ok := t.ownSlot(uint64(len(need)), own); ok {
		return t.write(at, need)
	}
	if at, ok := t.gap(uint64(len(need))); ok {
		return t.write(at, need)
	}
	return t.write(t.tail(), need)
}

func (t *strtab) write(at uint64, b []byte) uint64 {
	if end := at + uint64(len(b)); end > uint64(len(t.data)) {
		t.data = append(t.data, make([]byte, end-uint64(len(t.data)))...)
	}
	copy(t.data[at:], b)
	t.wrote = span{at, at + uint64(len(b))}
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

// exclusive tells whether nothing else refers to the string at own or to any
// part of the longer string that it may be the tail of.
func (t *strtab) exclusive(own uint64) bool {
	if own >= uint64(len(t.old)) {
		return false
	}
	lo, hi := t.bounds(own)
	return !t.refs.any(lo, hi+1)
}

// ownSlot is where need bytes fit over the string at own and the unreferenced
// NULs around it. At the end of the table, it may stick out.
func (t *strtab) ownSlot(need, own uint64) (uint64, bool) {
	if own == none || !t.exclusive(own) {
		return 0, false
	}
	size := uint64(len(t.old))
	lo := own
	for lo >= 2 && t.old[lo-1] == 0 && t.old[lo-2] == 0 && !t.refs.any(lo-1, lo) {
		lo--
	}
	if lo > 0 && t.old[lo-1] != 0 {
		lo = own // the tail of a longer string: keep what is before
	}
	_, hi := t.bounds(own)
	for hi < size && t.old[hi] == 0 && !t.refs.any(hi, hi+1) {
		hi++
	}
	if hi < size && need > hi-lo {
		return 0, false
	}
	return lo, true
}

// gap finds a run of need+1 NULs that nothing refers to but for the first,
// which ends the string before it.
func (t *strtab) gap(need uint64) (uint64, bool) {
	run := make([]byte, need+1)
	for from := 0; ; {
		i := bytes.Index(t.old[from:], run)
		if i < 0 {
			return 0, false
		}
		at := uint64(from+i) + 1
		if !t.refs.known {
			return 0, false
		}
		last, used := t.refs.last(at, at+need)
		if !used {
			return at, true
		}
		from = int(last)
	}
}

// tail is where a string is appended: over the spare NULs at the end.
func (t *strtab) tail() uint64 {
	at := uint64(len(t.old))
	for at >= 2 && t.old[at-1] == 0 && t.old[at-2] == 0 && !t.refs.any(at-1, at) {
		at--
	}
	return at
}

// wipe zeroes the string at own where nothing refers to it any more, but not
// [keep, keep+n), which the new string takes.
func (t *strtab) wipe(own, keep, n uint64) {
	if own == 0 || own == none || !t.exclusive(own) {
		return
	}
	_, hi := t.bounds(own)
	for _, w := range []span{{own, min(hi, keep)}, {max(own, keep+n), hi}} {
		if keep == none {
			w = span{own, hi}
		}
		if w.lo < w.hi {
			clear(t.data[w.lo:w.hi])
			t.wiped = append(t.wiped, w)
		}
	}
}
