package patchelf

import (
	"debug/elf"
	"slices"
)

// slot is where one more program header goes.
type slot struct {
	remove int    // index of the entry that makes way, or -1: the table grows
	moves  []blob // what lay behind the table
	how    string
}

const ptGNUProperty = elf.ProgType(0x6474e553)

// freeSlot finds room for one more program header that costs nothing.
func (p *planner) freeSlot() (slot, bool) {
	if i := p.indexOf(elf.PT_NULL); i >= 0 {
		return slot{remove: i, how: "over PT_NULL"}, true
	}
	lo, hi, grows := p.nextHeader()
	if grows && p.slack(lo, hi) {
		return slot{remove: -1, how: "behind the program headers"}, true
	}
	// A library's: loaders find the table by e_phoff.
	if i := p.indexOf(elf.PT_PHDR); i >= 0 && p.f.segment(elf.PT_INTERP) < 0 {
		return slot{remove: i, how: "over PT_PHDR"}, true
	}
	if i := p.doubledNote(); i >= 0 {
		return slot{remove: i, how: "over the PT_NOTE that PT_GNU_PROPERTY repeats"}, true
	}
	return slot{}, false
}

// nextHeader is where the table would grow to, and whether it may.
func (p *planner) nextHeader() (lo, hi uint64, grows bool) {
	n, size := uint64(len(p.phdrs)), uint64(p.f.phdrSize())
	return p.f.phoff + n*size, p.f.phoff + (n+1)*size, len(p.phdrs) == p.f.phnum && (n+1)*size <= 4096
}

// headerSlot finds room for one more program header, cheapest first. Moving
// the table is the last resort.
func (p *planner) headerSlot(blobs []blob) (slot, error) {
	if s, ok := p.freeSlot(); ok {
		return s, nil
	}
	lo, hi, grows := p.nextHeader()
	if grows {
		moves, ok, err := p.makeRoom(lo, hi, blobs)
		if err != nil {
			return slot{}, err
		}
		if ok {
			return slot{remove: -1, moves: moves, how: "notes behind the program headers moved"}, nil
		}
		if p.shdrsBehind(lo, hi) {
			return slot{remove: -1, moves: []blob{p.moveShdrs()}, how: "section headers behind the program headers moved"}, nil
		}
	}
	if self := p.indexOf(elf.PT_PHDR); self >= 0 && p.f.Type == elf.ET_EXEC { // its addresses are absolute: l_addr is 0
		return slot{remove: self, how: "over PT_PHDR"}, nil
	}
	if (hi - p.f.phoff) > 4096 {
		return slot{}, refuse("it has too many program headers for another")
	}
	return slot{remove: -1, moves: []blob{p.phdrBlob()}, how: "the last resort"}, nil
}

// doubledNote finds a PT_NOTE with the range of PT_GNU_PROPERTY, which is
// what loaders since glibc 2.32 and Linux 5.8 read.
func (p *planner) doubledNote() int {
	i := p.indexOf(ptGNUProperty)
	if i < 0 {
		return -1
	}
	prop := &p.phdrs[i]
	return slices.IndexFunc(p.phdrs, func(s phdr) bool {
		return elf.ProgType(s.kind) == elf.PT_NOTE && s.off == prop.off && s.vaddr == prop.vaddr && s.filesz == prop.filesz
	})
}

// slack tells whether [lo, hi) right behind the table is zero and nobody's,
// and sees to it that the segment that maps the table maps it too.
func (p *planner) slack(lo, hi uint64) bool {
	if lo == uint64(p.size) && lo == uint64(p.f.size) {
		return p.slackAtEnd(lo, hi)
	}
	if hi > uint64(p.f.size) || hi > p.lastOwned() && p.noPayload() != nil {
		return false
	}
	inTable := false
	mine := func(o *owner) bool {
		switch o.kind {
		case ownLoad:
			return o.lo <= p.f.phoff && o.hi >= lo
		case ownSegment:
			return elf.ProgType(p.f.phdrs[o.index].kind) == elf.PT_PHDR
		}
		return false
	}
	if i := p.f.segment(elf.PT_PHDR); i >= 0 {
		s := &p.f.phdrs[i]
		inTable = s.off == p.f.phoff && s.end() >= hi
	}
	if p.owned(lo, hi, mine) || (len(p.was) == 0 && !inTable) {
		return false
	}
	if n, err := p.zeros(lo, hi-lo); err != nil || n < hi-lo {
		return false
	}
	i := p.covering(p.f.phoff, lo)
	if i < 0 || p.phdrs[i].end() >= hi {
		return true
	}
	s := &p.phdrs[i]
	more := hi - s.end()
	if s.filesz != s.memsz || s.flags&uint32(elf.PF_W) != 0 || p.roomBelow(i) < more {
		return false
	}
	p.extend(i, more)
	return true
}

// slackAtEnd makes the file longer where the table is the last thing in it.
func (p *planner) slackAtEnd(lo, hi uint64) bool {
	i := p.covering(p.f.phoff, lo)
	if i < 0 || p.phdrs[i].end() != lo || p.phdrs[i].filesz != p.phdrs[i].memsz ||
		p.phdrs[i].flags&uint32(elf.PF_W) != 0 || p.roomBelow(i) < hi-lo {
		return false
	}
	p.extend(i, hi-lo)
	return true
}

// shdrsBehind tells whether the section headers, and nothing else, are in the
// way of [lo, hi) behind the table: Go's linker puts them there.
func (p *planner) shdrsBehind(lo, hi uint64) bool {
	others := func(o *owner) bool { return o.kind == ownLoad || o.kind == ownShdrs }
	if p.f.shnum == 0 || p.f.shoff < lo || p.f.shoff >= hi || p.owned(lo, hi, others) || !p.padding(lo, p.f.shoff) {
		return false
	}
	end := p.f.shoff + uint64(p.f.shnum*p.f.shdrSize())
	return p.covering(p.f.phoff, hi) >= 0 && (end >= hi || p.padding(end, hi))
}

// moveShdrs makes the section headers a blob. Nothing that loads needs them,
// so e_shoff may change as soon as they are in their new place.
func (p *planner) moveShdrs() blob {
	p.newShdrs = make([]byte, len(p.was)*p.f.shdrSize())
	return blob{data: p.newShdrs, alignment: 8, place: func(off, _ uint64) error {
		b := make([]byte, p.f.word())
		p.f.put(b, off)
		p.put(stepTail, uint64(24+2*p.f.word()), b)
		return nil
	}}
}

// insert puts a PT_LOAD right behind the last one, so that they stay
// ascending, and takes the entry that makes way out. In a table far from the
// ELF header it goes last, where it is not seen before e_phnum counts it.
func (p *planner) insert(s slot, load phdr) {
	if s.remove >= 0 {
		p.phdrs = slices.Delete(p.phdrs, s.remove, s.remove+1)
	}
	at := 0
	for i := range p.phdrs {
		if p.phdrs[i].load() {
			at = i + 1
		}
	}
	switch {
	case s.remove >= at:
		at = s.remove
	case s.remove < 0 && p.f.LatePHDR() && p.newPhdrs == nil:
		at = len(p.phdrs)
	}
	p.phdrs = slices.Insert(p.phdrs, at, load)
	if i := p.indexOf(elf.PT_PHDR); i >= 0 {
		t, n := &p.phdrs[i], uint64(len(p.phdrs)*p.f.phdrSize())
		t.filesz, t.memsz = max(t.filesz, n), max(t.memsz, n)
		if p.newPhdrs != nil {
			t.filesz, t.memsz = n, n
		}
	}
}
