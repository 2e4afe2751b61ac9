package patchelf

import (
	"bytes"
	"debug/elf"
	"slices"
)

// finishDyns writes what changes of the dynamic section: at once where that is
// inside one page, else entry by entry.
func (p *planner) finishDyns() {
	before := append(slices.Clone(p.f.dyns), make([]dyn, p.f.dynTail)...)
	if p.newDyn != nil {
		copy(p.newDyn, p.f.putDyns(p.dyns))
		return
	}
	if p.sizeFirst {
		p.tableWords(before)
	}
	first, last := p.dynDiff(before, p.dyns)
	if first >= last {
		return
	}
	lo, hi := p.f.dynOff+uint64(first), p.f.dynOff+uint64(last)
	if !p.crosses(lo, hi) {
		p.put(stepDynamic, lo, p.f.putDyns(p.dyns)[first:last])
		return
	}
	p.stepwise(before)
}

// crosses tells whether [lo, hi) of the file is in two pages.
func (p *planner) crosses(lo, hi uint64) bool {
	if p.pageEdge != 0 {
		return lo < p.pageEdge && p.pageEdge < hi
	}
	return lo/pageBytes != (hi-1)/pageBytes
}

// dynDiff is the range of bytes, by words, in which two dynamic sections of
// the same length differ.
func (p *planner) dynDiff(before, after []dyn) (first, last int) {
	a, b, w := p.f.putDyns(before), p.f.putDyns(after), p.f.word()
	first = len(a)
	for i := 0; i < len(a); i += w {
		if !bytes.Equal(a[i:i+w], b[i:i+w]) {
			first, last = min(first, i), i+w
		}
	}
	return first, last
}

// stepwise changes a dynamic section that spans two pages. The new string
// table, in which the old strings are too, comes first. Then entries are
// taken out, from the first on, and then put in, from the last on, so that at
// each moment an entry may be there twice but none is missing.
func (p *planner) stepwise(now []dyn) {
	p.tableWords(now)
	less := make([]dyn, 0, len(now))
	for i, it := range p.entries {
		if it.from >= 0 {
			less = append(less, p.dyns[i])
		}
	}
	less = append(less, make([]dyn, len(now)-len(less))...)
	for i := range now {
		p.putDyn(i, now[i], less[i])
	}
	for i := len(now) - 1; i >= 0; i-- {
		p.putDyn(i, less[i], p.dyns[i])
	}
}

// tableWords writes where the string table is and how long, ahead of the rest.
func (p *planner) tableWords(now []dyn) {
	for i := range now {
		if d := &now[i]; d.is(elf.DT_STRTAB) || d.is(elf.DT_STRSZ) {
			for _, e := range p.dyns {
				if e.tag == d.tag && e.val != d.val {
					d.val = e.val
					b := make([]byte, p.f.word())
					p.f.put(b, d.val)
					p.put(stepTable, p.f.dynOff+uint64(i*p.f.dynSize()+p.f.word()), b)
				}
			}
		}
	}
}

// putDyn writes one entry. One that lies in two pages has no meaning while it
// is half written.
func (p *planner) putDyn(i int, was, is dyn) {
	if was == is {
		return
	}
	const unknown = 0x6000000c // below DT_LOOS, where nothing is defined
	off, b, w := p.f.dynOff+uint64(i*p.f.dynSize()), p.f.putDyns([]dyn{is}), uint64(p.f.word())
	switch {
	case !p.crosses(off, off+2*w):
		p.put(stepDynamic, off, b)
		return
	case was.tag == is.tag:
		p.put(stepDynamic, off+w, b[w:])
		return
	case was.val == is.val:
		p.put(stepDynamic, off, b[:w])
		return
	}
	if was.tag != 0 && !(runPathTag(was) && runPathTag(is)) {
		p.put(stepDynamic, off, p.f.putDyns([]dyn{{tag: unknown}})[:w])
	}
	p.put(stepDynamic, off+w, b[w:])
	p.put(stepDynamic, off, b[:w])
}

// runPathTag tells whether d is a run path: one with the new string under the
// old tag is right enough.
func runPathTag(d dyn) bool { return d.is(elf.DT_RPATH) || d.is(elf.DT_RUNPATH) }
