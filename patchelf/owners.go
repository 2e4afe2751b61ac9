package patchelf

import (
	"debug/elf"
	"sort"
)

type ownerKind int

const (
	ownHeader  ownerKind = iota // the ELF header
	ownPhdrs                    // the program-header table
	ownShdrs                    // the section-header table
	ownSection                  // index: section
	ownSegment                  // index: program header, not a PT_LOAD
	ownLoad                     // index: program header, a PT_LOAD
)

// owner is a range of the file that a header speaks of.
type owner struct {
	lo, hi uint64
	kind   ownerKind
	index  int
}

// ownersOf lists what owns bytes of the file as it was parsed.
func ownersOf(f *File, shdrs []shdr) []owner {
	os := []owner{{0, uint64(f.ehdrSize()), ownHeader, 0}}
	os = append(os, owner{f.phoff, f.phoff + uint64(f.phnum*f.phdrSize()), ownPhdrs, 0})
	if f.shnum > 0 {
		os = append(os, owner{f.shoff, f.shoff + uint64(f.shnum*f.shdrSize()), ownShdrs, 0})
	}
	for i := range f.phdrs {
		p := &f.phdrs[i]
		if p.filesz == 0 {
			continue
		}
		kind := ownSegment
		if p.load() {
			kind = ownLoad
		}
		os = append(os, owner{p.off, p.end(), kind, i})
	}
	for i := range shdrs {
		if s := &shdrs[i]; s.inFile() && s.off+s.size > s.off {
			os = append(os, owner{s.off, s.off + s.size, ownSection, i})
		}
	}
	return os
}

// owned tells whether an owner that skip does not except overlaps [lo, hi).
func (p *planner) owned(lo, hi uint64, skip func(o *owner) bool) bool {
	for i := range p.owners {
		o := &p.owners[i]
		if o.lo < hi && lo < o.hi && !skip(o) {
			return true
		}
	}
	return false
}

func isLoad(o *owner) bool { return o.kind == ownLoad }

// lastOwned is the end of what the ELF headers speak of; what follows is an
// appended payload.
func (p *planner) lastOwned() uint64 {
	end := uint64(0)
	for i := range p.owners {
		end = max(end, p.owners[i].hi)
	}
	return end
}

// nextOwned is the start of the first owner behind off, or the file's end.
func (p *planner) nextOwned(off uint64) uint64 {
	next := uint64(p.f.size)
	for i := range p.owners {
		if o := &p.owners[i]; o.hi > off {
			next = min(next, max(o.lo, off))
		}
	}
	return next
}

// zeros counts the zero bytes at off, at most limit.
func (p *planner) zeros(off, limit uint64) (uint64, error) {
	for n := uint64(0); n < limit; {
		b, err := p.f.read("file", off+n, min(readChunk, limit-n))
		if err != nil {
			return 0, err
		}
		for i, c := range b {
			if c != 0 {
				return n + uint64(i), nil
			}
		}
		n += uint64(len(b))
	}
	return limit, nil
}

// covering returns the index of the PT_LOAD whose file image holds [lo, hi),
// in the working copy, or -1.
func (p *planner) covering(lo, hi uint64) int {
	for i := range p.phdrs {
		if s := &p.phdrs[i]; s.load() && s.off <= lo && hi <= s.end() {
			return i
		}
	}
	return -1
}

// pageSize is the alignment at which segments must not share a page: the
// largest that a PT_LOAD asks for, so that no machine's pages are larger.
func pageSize(phdrs []phdr) uint64 {
	a := uint64(4096)
	for i := range phdrs {
		if s := &phdrs[i]; s.load() && s.alignment&(s.alignment-1) == 0 {
			a = max(a, s.alignment)
		}
	}
	return a
}

// addressLimit is the address below which segments stay: half of what programs
// have on the least of the kernels, so that a library has room above it.
func (f *File) addressLimit() uint64 {
	switch {
	case !f.wide:
		return 1 << 31
	case f.Machine == elf.EM_IA_64: // its regions are numbered by the top three bits
		return 1 << 63
	}
	return 1 << 46
}

// roomBelow returns how many bytes PT_LOAD i can become longer before its end
// reaches the page of the next one in memory.
func (p *planner) roomBelow(i int) uint64 {
	end, page := p.phdrs[i].vend(), pageSize(p.phdrs)
	starts := []uint64{p.f.addressLimit()}
	for k := range p.phdrs {
		if s := &p.phdrs[k]; k != i && s.load() && s.vaddr >= p.phdrs[i].vaddr {
			starts = append(starts, s.vaddr&^(page-1))
		}
	}
	sort.Slice(starts, func(a, b int) bool { return starts[a] < starts[b] })
	if starts[0] <= end {
		return 0
	}
	return starts[0] - end
}

// plainRead tells whether PT_LOAD i is data without bss that nobody writes to:
// the only kind that is ever extended. The tail of the file that an earlier
// edit moved the dynamic section to is one too.
func (p *planner) plainRead(i int) bool {
	s := &p.phdrs[i]
	if !s.load() || s.filesz != s.memsz || s.filesz == 0 {
		return false
	}
	if s.flags == uint32(elf.PF_R) {
		return true
	}
	return s.flags == uint32(elf.PF_R|elf.PF_W) && p.atEnd(i) && p.f.dynAddr >= s.vaddr && p.f.dynAddr < s.vend() && !p.mapsInto(i)
}

// atEnd tells whether PT_LOAD i is the highest and the end of the file: where
// an earlier edit put what had no room.
func (p *planner) atEnd(i int) bool {
	s := &p.phdrs[i]
	return s.load() && s.filesz == s.memsz && s.end() == uint64(p.f.size) && s.end() == uint64(p.size) && p.lastLoad() == i
}

// mapsInto tells whether PT_LOAD i is one that a linker made for data.
func (p *planner) mapsInto(i int) bool {
	s := &p.phdrs[i]
	for k := range p.phdrs {
		switch t := &p.phdrs[k]; elf.ProgType(t.kind) {
		case elf.PT_GNU_RELRO, elf.PT_TLS:
			if t.vaddr < s.vend() && s.vaddr < t.vend() {
				return true
			}
		}
	}
	return false
}

// lastLoad is the index of the PT_LOAD with the highest address.
func (p *planner) lastLoad() int {
	last := -1
	for i := range p.phdrs {
		if s := &p.phdrs[i]; s.load() && (last < 0 || s.vaddr >= p.phdrs[last].vaddr) {
			last = i
		}
	}
	return last
}

// room returns how many bytes PT_LOAD i can be extended by in place: over
// zero bytes that nothing owns, or, where it is the tail of the file, by
// appending. limit bounds what is looked at.
func (p *planner) room(i int, limit uint64) (uint64, error) {
	if !p.plainRead(i) {
		return 0, nil
	}
	limit = min(limit, p.roomBelow(i))
	end := p.phdrs[i].end()
	if end >= uint64(p.f.size) {
		if end != uint64(p.size) {
			return 0, nil // appended behind already, by the same plan
		}
		return limit, nil
	}
	next := p.nextOwned(end)
	if next == uint64(p.f.size) {
		return 0, nil // a payload, or padding that the next tool may count on
	}
	return p.zeros(end, min(limit, next-end))
}
