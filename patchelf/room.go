package patchelf

import (
	"cmp"
	"debug/elf"
	"slices"
)

// group is a run of bytes that moves as a whole.
type group struct {
	lo, hi, alignment uint64
	interp            bool
	tag               elf.DynTag // of a table that the dynamic section finds, or 0
}

const (
	maxNote  = 16 << 10 // bytes of a note that moves
	maxTable = 1 << 20  // bytes of a hash or symbol table that moves
)

// tables lists the hash tables and the symbol table: only the dynamic section
// says where they are, and only section headers how long.
func (p *planner) tables() []group {
	var gs []group
	for i := range p.was {
		s := &p.was[i]
		tag := elf.DynTag(0)
		switch elf.SectionType(s.kind) {
		case elf.SHT_HASH:
			tag = elf.DT_HASH
		case elf.SHT_GNU_HASH:
			tag = elf.DT_GNU_HASH
		case elf.SHT_DYNSYM:
			tag = elf.DT_SYMTAB
		}
		if addr, ok := p.f.dynValue(tag); tag != 0 && ok && addr == s.addr && s.inFile() && s.size <= maxTable {
			gs = append(gs, group{lo: s.off, hi: s.off + s.size, alignment: 8, tag: tag})
		}
	}
	return gs
}

// groups lists what may move: the interpreter, the notes and the tables,
// overlapping ones joined, by offset.
func (p *planner) groups() []group {
	gs := p.tables()
	for i := range p.f.phdrs {
		s := &p.f.phdrs[i]
		switch elf.ProgType(s.kind) {
		case elf.PT_INTERP, elf.PT_NOTE, ptGNUProperty:
			if s.filesz == 0 || s.filesz > maxNote || s.filesz != s.memsz || s.alignment > 64 || s.alignment&(s.alignment-1) != 0 {
				continue
			}
			gs = append(gs, group{lo: s.off, hi: s.end(), alignment: max(s.alignment, 1), interp: elf.ProgType(s.kind) == elf.PT_INTERP})
		}
	}
	slices.SortStableFunc(gs, func(a, b group) int { return cmp.Compare(a.lo, b.lo) })
	var out []group
	for _, g := range gs {
		if n := len(out); n > 0 && g.lo < out[n-1].hi {
			o := &out[n-1]
			o.tag = 0 // a table that overlaps another is not understood, and stays
			o.hi, o.alignment, o.interp = max(o.hi, g.hi), max(o.alignment, g.alignment), o.interp && g.interp
			continue
		}
		out = append(out, g)
	}
	return out
}

// makeRoom moves the interpreter, the notes and the tables that lie directly behind the
// table, as few as free [lo, hi).
func (p *planner) makeRoom(lo, hi uint64, blobs []blob) ([]blob, bool, error) {
	var moves []blob
	taken := []group{}
	at := lo
	for _, g := range p.groups() {
		if at >= hi || g.lo < at || g.lo-at >= 16 {
			continue
		}
		if !p.padding(at, g.lo) || !p.movable(g) || !p.portable(g) {
			break
		}
		taken = append(taken, g)
		at = g.hi
	}
	if at < hi && (at == lo || !p.padding(at, hi)) {
		return nil, false, nil
	}
	if i := p.covering(p.f.phoff, hi); i < 0 {
		return nil, false, nil
	}
	found := slices.ContainsFunc(taken, func(g group) bool { return g.tag != 0 })
	if found && p.newDyn == nil && !p.borrow() {
		return nil, false, nil
	}
	for _, g := range taken {
		p.ousted = append(p.ousted, span{g.lo, g.hi})
		if g.interp && slices.ContainsFunc(blobs, func(b blob) bool { return b.interp }) {
			continue // it is being replaced
		}
		b, err := p.f.read("note", g.lo, g.hi-g.lo)
		if err != nil {
			return nil, false, err
		}
		moves = append(moves, blob{data: b, alignment: g.alignment, place: func(off, addr uint64) error {
			if !g.interp && g.tag == 0 {
				p.f.rebase(b, addr-p.addressOf(g.lo))
			}
			return p.moveGroup(g, off, addr)
		}})
	}
	return moves, true, nil
}

// padding tells whether [lo, hi) is zero and in no header's range.
func (p *planner) padding(lo, hi uint64) bool {
	if p.owned(lo, hi, isLoad) || hi > uint64(p.f.size) {
		return false
	}
	if len(p.was) == 0 && hi-lo >= 16 {
		return false
	}
	n, err := p.zeros(lo, hi-lo)
	return err == nil && n == hi-lo
}

// crashpad is the owner of a note that holds the distance from its content to
// the structure that a crash handler reads (a word, signed).
const crashpad = "Crashpad\x00"

// noteOwners are those whose notes mean the same at another address, or are
// rebased. Others may hold distances from where they are.
var noteOwners = []string{crashpad, "GNU\x00", "Go\x00\x00", "FDO\x00", "Android\x00", "FreeBSD\x00", "NetBSD\x00", "OpenBSD\x00", "DragonFly\x00", "LLVM\x00"}

// portable tells whether notes may move: the interpreter and tables may.
func (p *planner) portable(g group) bool {
	if g.interp || g.tag != 0 {
		return true
	}
	b, err := p.f.read("note", g.lo, g.hi-g.lo)
	if err != nil {
		return false
	}
	return p.f.eachNote(b, func(owner string, _ []byte) bool { return slices.Contains(noteOwners, owner) })
}

// eachNote calls fn for the owner and the content of each note in b, until it
// says no or a note does not end in b. It tells whether all were seen.
func (f *File) eachNote(b []byte, fn func(owner string, desc []byte) bool) bool {
	for len(b) >= 12 {
		name, desc := uint64(f.order.Uint32(b)), uint64(f.order.Uint32(b[4:]))
		if name == 0 && desc == 0 {
			b = b[4:] // padding
			continue
		}
		at := 12 + up(name, 4)
		if at > uint64(len(b)) || desc > uint64(len(b))-at || !fn(string(b[12:12+name]), b[at:at+desc]) {
			return false
		}
		b = b[min(at+up(desc, 4), uint64(len(b))):]
	}
	return true
}

// rebase corrects the distances in notes that move by delta.
func (f *File) rebase(b []byte, delta uint64) {
	f.eachNote(b, func(owner string, desc []byte) bool {
		if owner == crashpad && len(desc) == f.word() {
			f.put(desc, f.get(desc)-delta)
		}
		return true
	})
}

// addressOf is where the byte at off of the file is mapped.
func (p *planner) addressOf(off uint64) uint64 {
	if i := p.covering(off, off+1); i >= 0 {
		return p.phdrs[i].vaddr + off - p.phdrs[i].off
	}
	return off
}

// movable tells whether everything that owns bytes of g lies wholly in it and
// is a note, the interpreter or the one table it is, and whether the dynamic
// section knows no other table in it.
func (p *planner) movable(g group) bool {
	for i := range p.owners {
		o := &p.owners[i]
		if o.lo >= g.hi || o.hi <= g.lo || o.kind == ownLoad {
			continue
		}
		if o.lo < g.lo || o.hi > g.hi || (o.kind != ownSegment && o.kind != ownSection) {
			return false
		}
		if o.kind == ownSection && elf.SectionType(p.was[o.index].kind) != elf.SHT_NOTE && !g.interp && g.tag == 0 {
			return false
		}
	}
	for _, d := range p.f.dyns {
		tag := elf.DynTag(d.tag)
		off, _, ok := fileOffset(p.f.phdrs, d.val)
		if ok && off >= g.lo && off < g.hi && isAddress(tag) && (g.tag != tag || off != g.lo) {
			return false
		}
	}
	return true
}

// isAddress tells whether the value of a tag is an address.
func isAddress(t elf.DynTag) bool {
	switch t {
	case elf.DT_PLTGOT, elf.DT_HASH, elf.DT_STRTAB, elf.DT_SYMTAB, elf.DT_RELA, elf.DT_INIT, elf.DT_FINI, elf.DT_REL,
		elf.DT_JMPREL, elf.DT_INIT_ARRAY, elf.DT_FINI_ARRAY, elf.DT_PREINIT_ARRAY, elf.DT_SYMTAB_SHNDX,
		elf.DT_VERSYM, elf.DT_VERDEF, elf.DT_VERNEED, 36: // DT_RELR
		return true
	}
	return t >= elf.DT_ADDRRNGLO && t <= elf.DT_ADDRRNGHI
}

// moveGroup makes the headers say where g is now.
func (p *planner) moveGroup(g group, off, addr uint64) error {
	for i := range p.dyns {
		if d := &p.dyns[i]; g.tag != 0 && d.is(g.tag) {
			d.val = addr
		}
	}
	for i := range p.phdrs {
		s := &p.phdrs[i]
		if s.load() || s.filesz == 0 || s.off < g.lo || s.end() > g.hi {
			continue
		}
		d := s.off - g.lo
		s.paddr += addr + d - s.vaddr
		s.off, s.vaddr = off+d, addr+d
	}
	for i := range p.was {
		if s := &p.was[i]; s.inFile() && s.off >= g.lo && s.off+s.size <= g.hi {
			p.moveSection(i, off+s.off-g.lo, addr+s.off-g.lo)
		}
	}
	return nil
}
