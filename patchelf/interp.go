package patchelf

import "debug/elf"

// setInterp sets PT_INTERP: over the old one where it fits, else as a blob.
// The kernel wants the last byte of the segment to be NUL, so the segment is
// exactly as long as the string.
func (p *planner) setInterp(path string) ([]blob, error) {
	i := p.f.segment(elf.PT_INTERP)
	s := &p.phdrs[i]
	old, need := s.filesz, uint64(len(path)+1)
	if _, _, ok := fileOffset(p.f.phdrs, s.vaddr); !ok {
		return nil, refuse("its PT_INTERP is not in a PT_LOAD")
	}
	if old > 4096 {
		return nil, refuse("its PT_INTERP is longer than a path")
	}
	if !p.interpOwn(s.off+uint64(len(p.f.Interp)+1), s) {
		return nil, refuse("its PT_INTERP is longer than the path in it, over bytes that are not its own")
	}
	b := append([]byte(path), 0)
	onePage := s.off/pageBytes == (s.off+max(old, need)-1)/pageBytes
	if !onePage || need > old && !p.interpFits(s.off+old, s.off+need) {
		p.note("interpreter moved")
		return []blob{{data: b, alignment: 1, interp: true, place: func(off, addr uint64) error {
			p.setInterpRange(off, addr, need)
			return nil
		}}}, nil
	}
	p.note("interpreter in place")
	step := stepSwitch // longer: the new length ends in a NUL with the old string too
	if need < old {
		step = stepTail // shorter: the old length ends in a NUL with the new string too
		b = append(b, make([]byte, old-need)...)
		if len(p.was) == 0 {
			need = old // nothing else tells that the room behind it is free for the next one
		}
	}
	p.put(step, s.off, b)
	p.setInterpRange(s.off, s.vaddr, need)
	return nil, nil
}

// interpOwn tells whether what PT_INTERP covers from lo on, behind its string,
// is padding.
func (p *planner) interpOwn(lo uint64, s *phdr) bool {
	if lo >= s.end() {
		return true
	}
	if p.owned(lo, s.end(), func(o *owner) bool { return isLoad(o) || o.lo == s.off && o.hi == s.end() }) {
		return false
	}
	n, err := p.zeros(lo, s.end()-lo)
	return err == nil && n == s.end()-lo
}

// interpFits tells whether [lo, hi) behind the interpreter is padding of the
// same PT_LOAD.
func (p *planner) interpFits(lo, hi uint64) bool {
	s := &p.f.phdrs[p.f.segment(elf.PT_INTERP)]
	return p.covering(s.off, hi) >= 0 && p.gapInside(lo, hi)
}

// setInterpRange makes the headers say where the interpreter is.
func (p *planner) setInterpRange(off, addr, size uint64) {
	i := p.f.segment(elf.PT_INTERP)
	was := p.f.phdrs[i]
	s := &p.phdrs[p.indexOf(elf.PT_INTERP)]
	s.paddr += addr - s.vaddr
	s.off, s.vaddr, s.filesz, s.memsz = off, addr, size, size
	for k := range p.shdrs {
		if elf.SectionType(p.was[k].kind) == elf.SHT_PROGBITS && p.was[k].alloc() && p.was[k].addr == was.vaddr && p.was[k].size == was.filesz {
			p.moveSection(k, off, addr)
			p.shdrs[k].size = size
		}
	}
}

// indexOf finds the first program header of a kind in the working copy.
func (p *planner) indexOf(kind elf.ProgType) int {
	for i := range p.phdrs {
		if elf.ProgType(p.phdrs[i].kind) == kind {
			return i
		}
	}
	return -1
}
