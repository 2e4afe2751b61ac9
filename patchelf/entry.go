package patchelf

import (
	"debug/elf"
	"slices"
)

// setEntry makes the entry with tag want (0: none) hold idx, and removes the
// other run path entries. had is the tag that is in force now.
func (p *planner) setEntry(want, had Tag, idx uint64) ([]blob, error) {
	keep := -1
	if want != 0 && had != 0 {
		for i, d := range p.dyns { // the last one counts
			if d.is(had.dyn()) {
				keep = i
			}
		}
	}
	if keep >= 0 {
		p.dyns[keep] = dyn{uint64(want.dyn()), idx}
	}
	for i := len(p.dyns) - 1; i >= 0; i-- {
		if d := p.dyns[i]; i != keep && (d.is(elf.DT_RPATH) || d.is(elf.DT_RUNPATH)) {
			p.removeEntry(i)
			if i < keep {
				keep--
			}
		}
	}
	switch {
	case keep >= 0 && want != had:
		p.note(had.String() + " to " + want.String())
	case keep >= 0:
	case want == 0:
		p.note(had.String() + " removed")
	default:
		return p.addEntry(dyn{uint64(want.dyn()), idx})
	}
	return nil, nil
}

// removeEntry closes the gap that entry i leaves: a DT_NULL there would end
// the section.
func (p *planner) removeEntry(i int) {
	const mipsRldMapRel = 0x70000035 // relative to the entry's own address
	p.dyns = append(slices.Delete(p.dyns, i, i+1), dyn{})
	if p.f.Machine != elf.EM_MIPS {
		return
	}
	for k := i; k < len(p.dyns); k++ {
		if p.dyns[k].tag == mipsRldMapRel {
			p.dyns[k].val += uint64(p.f.dynSize())
		}
	}
}

// addEntry puts d into the first spare DT_NULL, or else over an entry that
// says nothing. Where there is neither, the dynamic section moves.
func (p *planner) addEntry(d dyn) ([]blob, error) {
	n := len(p.f.dyns)
	if len(p.dyns) > n+1 && (n+2)*p.f.dynSize() <= int(p.dynRoom()) {
		p.dyns[n] = d
		p.note(elf.DynTag(d.tag).String() + " added")
		return nil, nil
	}
	for i, old := range p.dyns[:n] {
		if p.idle(old) {
			p.dyns[i] = d
			p.note(elf.DynTag(d.tag).String() + " in place of " + elf.DynTag(old.tag).String())
			return nil, nil
		}
	}
	return p.moveDynamic(d)
}

// spareDyns is how many DT_NULLs a dynamic section that moves gets, as many as
// GNU ld leaves.
const spareDyns = 5

// moveDynamic makes a longer dynamic section, with d, in a segment of its own.
// What finds it by PT_DYNAMIC follows; a loader and a program that relocates
// itself find it by the symbol _DYNAMIC, and are refused.
func (p *planner) moveDynamic(d dyn) ([]blob, error) {
	const hint = ": link it with a run path, or with spare entries"
	if p.f.Machine != elf.EM_X86_64 || (p.f.segment(elf.PT_INTERP) < 0 && len(p.f.Needed) == 0) {
		return nil, refuse("its dynamic section has no spare entry and cannot move" + hint)
	}
	p.dyns = append(slices.Clone(p.dyns[:len(p.f.dyns)]), d)
	p.dyns = append(p.dyns, make([]dyn, spareDyns+1)...)
	size := len(p.dyns) * p.f.dynSize()
	p.newDyn = make([]byte, size)
	p.note("dynamic section moved")
	return []blob{{data: p.newDyn, alignment: 16, writable: true, place: func(off, addr uint64) error {
		s := &p.phdrs[p.indexOf(elf.PT_DYNAMIC)]
		s.off, s.vaddr, s.paddr, s.filesz, s.memsz = off, addr, addr, uint64(size), uint64(size)
		for i := range p.was {
			if elf.SectionType(p.was[i].kind) == elf.SHT_DYNAMIC && p.was[i].addr == p.f.dynAddr {
				p.moveSection(i, off, addr)
				p.shdrs[i].size = uint64(size)
			}
		}
		return nil
	}}}, nil
}

// dynRoom is how many bytes the dynamic section may take: no more than its
// section header says, where there is one.
func (p *planner) dynRoom() uint64 {
	for i := range p.was {
		if s := &p.was[i]; elf.SectionType(s.kind) == elf.SHT_DYNAMIC && s.addr == p.f.dynAddr {
			return min(s.size, p.f.dynLen)
		}
	}
	return p.f.dynLen
}

// idle tells whether nothing changes for a loader when an entry goes: the
// debugger's slot in a library (it is used in the program alone), hints, flags
// that are 0, and old forms of flags that DT_FLAGS repeats.
func (p *planner) idle(d dyn) bool {
	flags, _ := p.f.dynValue(elf.DT_FLAGS)
	has := func(f elf.DynFlag) bool { return flags&uint64(f) != 0 }
	switch elf.DynTag(d.tag) {
	case elf.DT_DEBUG:
		return p.f.segment(elf.PT_INTERP) < 0 && p.f.Type == elf.ET_DYN
	case elf.DT_RELACOUNT, elf.DT_RELCOUNT:
		return true
	case elf.DT_FLAGS, elf.DT_FLAGS_1:
		return d.val == 0
	case elf.DT_BIND_NOW:
		return has(elf.DF_BIND_NOW)
	case elf.DT_SYMBOLIC:
		return has(elf.DF_SYMBOLIC)
	case elf.DT_TEXTREL:
		return has(elf.DF_TEXTREL)
	}
	return false
}
