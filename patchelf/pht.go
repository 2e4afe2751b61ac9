package patchelf

import (
	"debug/elf"
	"slices"
)

// sparePhdrs is how many entries more than it needs a program-header table
// gets that moves.
const sparePhdrs = 3

// maxHole bounds the hole that is left in a file so that the address of moved
// program headers is the one that old kernels compute from their offset.
const maxHole = 1 << 20

// phdrBlob moves the program headers, the last resort: strip and its kin
// destroy such files.
func (p *planner) phdrBlob() blob {
	n := (len(p.phdrs) + 1 + sparePhdrs) * p.f.phdrSize()
	p.newPhdrs = make([]byte, n)
	return blob{data: p.newPhdrs, alignment: 8, headers: true, place: func(off, addr uint64) error {
		p.phoff = off
		if i := p.indexOf(elf.PT_PHDR); i >= 0 {
			t := &p.phdrs[i]
			t.off, t.vaddr, t.paddr = off, addr, addr
		}
		return nil
	}}
}

// home is the offset and the address of a segment at the end of the file that
// holds the program headers. Kernels before 5.18 tell a program that they are
// at their offset plus what address and offset of the first PT_LOAD differ by,
// so that is where they go if it costs no more than maxHole.
func (p *planner) home(off, vaddr, page, highest uint64) (uint64, uint64, error) {
	if p.f.segment(elf.PT_INTERP) < 0 {
		p.note("program headers moved to the end")
		// glibc takes them to be where the first PT_LOAD maps their offset, with
		// the whole pages of its ends: no other may reach into their page.
		at := max(off, up(p.lastImage(), min(page, maxPage)))
		return at, vaddr - off%page + at%page, nil
	}
	delta, ok := firstDelta(p.f.phdrs)
	if ok && delta%page == 0 && highest >= delta {
		at := max(off, up(highest, page)+page-delta)
		if at-off <= maxHole {
			p.note("program headers moved to the end")
			return at, at + delta, nil
		}
	}
	if !p.old && checkAuxv(p.f) == "" {
		return 0, 0, refuse("there is no room for another program header, and kernels before 5.18 would not find moved ones")
	}
	p.note("program headers moved to the end, where kernels before 5.18 do not find them")
	return off, vaddr, nil
}

// maxPage is the largest page that Linux has on any machine.
const maxPage = 64 << 10

// lastImage is the end of the file image of the last PT_LOAD in the file.
func (p *planner) lastImage() uint64 {
	end := uint64(0)
	for i := range p.f.phdrs {
		if s := &p.f.phdrs[i]; s.load() {
			end = max(end, s.end())
		}
	}
	return end
}

// firstDelta is what address and offset of the first PT_LOAD differ by.
func firstDelta(phdrs []phdr) (uint64, bool) {
	i := slices.IndexFunc(phdrs, func(s phdr) bool { return s.load() })
	if i < 0 {
		return 0, false
	}
	return phdrs[i].vaddr - phdrs[i].off, true
}

// finishPhdrs writes the program headers, their number and their place: in
// one write where they are next to each other, as linkers put them.
func (p *planner) finishPhdrs() error {
	if slices.Equal(p.phdrs, p.f.phdrs) {
		return nil
	}
	table := p.f.putPhdrs(p.phdrs)
	at := uint64(24 + 3*p.f.word() + 8) // e_phnum
	b, err := p.f.read("ELF header", at, uint64(p.f.ehdrSize())-at)
	if err != nil {
		return err
	}
	p.f.order.PutUint16(b, uint16(len(p.phdrs)))
	switch {
	case p.newPhdrs != nil:
		copy(p.newPhdrs, table)
		return p.turnTable(at, b[:2])
	case len(p.phdrs) == len(p.f.phdrs):
		p.putPhdrRange(p.headerStep(), table)
	case p.f.LatePHDR():
		n := len(p.f.phdrs) * p.f.phdrSize()
		p.put(stepTail, p.f.phoff+uint64(n), table[n:])
		p.putLonger()
		p.put(p.headerStep(), at, b[:2])
		p.putPhdrRange(p.headerStep(), table[:n])
	default:
		p.put(p.headerStep(), at, append(b, table...))
	}
	return p.putBorrowed()
}

// turnTable makes the ELF header say where the program headers are and how
// many, in one write.
func (p *planner) turnTable(at uint64, count []byte) error {
	lo := uint64(24 + p.f.word()) // e_phoff
	b, err := p.f.read("ELF header", lo, at+2-lo)
	if err != nil {
		return err
	}
	p.f.put(b, p.phoff)
	copy(b[at-lo:], count)
	p.put(stepHeaders, lo, b)
	return nil
}

// putPhdrRange writes the entries of a table that differ from those that are
// there.
func (p *planner) putPhdrRange(s step, table []byte) {
	n := p.f.phdrSize()
	first, last := len(p.f.phdrs), 0
	for i := 0; i < len(p.f.phdrs) && (i+1)*n <= len(table); i++ {
		if p.phdrs[i] != p.f.phdrs[i] {
			first, last = min(first, i), i+1
		}
	}
	if first < last {
		p.put(s, p.f.phoff+uint64(first*n), table[first*n:last*n])
	}
}

// headerStep is when the program headers are written.
func (p *planner) headerStep() step {
	if p.borrowed >= 0 {
		return stepReturn
	}
	return stepHeaders
}

// borrow chooses an entry behind the last PT_LOAD, one that loaders can do
// without, for the time in which a table that the dynamic section finds has
// its new place already and the program headers do not have room yet.
func (p *planner) borrow() bool {
	last := 0
	for i := range p.f.phdrs {
		if p.f.phdrs[i].load() {
			last = i
		}
	}
	for _, kind := range []elf.ProgType{ptGNUProperty, elf.PT_NOTE, elf.PT_GNU_EH_FRAME, elf.PT_GNU_RELRO, elf.PT_GNU_STACK} {
		for i := last + 1; i < len(p.f.phdrs); i++ {
			if elf.ProgType(p.f.phdrs[i].kind) == kind {
				p.borrowed = i
				return true
			}
		}
	}
	return false
}

// putBorrowed writes the new PT_LOAD over the borrowed entry.
func (p *planner) putBorrowed() error {
	last := p.lastLoad()
	if p.borrowed < 0 || last < 0 {
		return nil
	}
	p.putLonger()
	p.put(stepBorrow, p.f.phoff+uint64(p.borrowed*p.f.phdrSize()), p.f.putPhdrs(p.phdrs[last:last+1]))
	return nil
}

// putLonger writes the headers that became longer, ahead of what turns to what
// they hold.
func (p *planner) putLonger() {
	size := uint64(p.f.phdrSize())
	for _, kind := range []elf.ProgType{elf.PT_LOAD, elf.PT_PHDR} {
		for i, s := range p.f.phdrs {
			k := slices.IndexFunc(p.phdrs, func(t phdr) bool { return t.kind == s.kind && t.vaddr == s.vaddr && t.off == s.off })
			if elf.ProgType(s.kind) == kind && k >= 0 && p.phdrs[k] != s {
				p.put(stepBorrow, p.f.phoff+uint64(i)*size, p.f.putPhdrs(p.phdrs[k:k+1]))
			}
		}
	}
}
