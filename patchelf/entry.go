package patchelf

import (
	"debug/elf"
	"slices"
)

// item is an entry of the dynamic section as it shall be.
type item struct {
	d     dyn
	from  int    // its index in File.dyns, -1 for a new one
	text  string // what it shall name
	named bool   // its value becomes the place of text in the string table
	keep  bool   // it is not to make way for others
}

func (it *item) name(s string) { it.text, it.named = s, true }

func newItem(tag elf.DynTag, s string) item {
	return item{d: dyn{tag: uint64(tag)}, from: -1, text: s, named: true}
}

func lastItem(items []item, tag elf.DynTag) int {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].d.is(tag) {
			return i
		}
	}
	return -1
}

func dropItems(items []item, gone func(i int) bool) []item {
	var out []item
	for i := range items {
		if !gone(i) {
			out = append(out, items[i])
		}
	}
	return out
}

// wantedItems is the dynamic section as w wants it, without its DT_NULLs.
func (p *planner) wantedItems(w *wanted) []item {
	items := make([]item, len(p.f.dyns))
	for i, d := range p.f.dyns {
		items[i] = item{d: d, from: i}
	}
	items = w.pathItems(items, p.f)
	items = w.sonameItems(items)
	items = w.flagItems(items)
	items = w.debugItems(items)
	items = p.versionItems(items)
	return w.neededItems(items)
}

// pathItems makes the last entry of the run path that is in force hold the one
// wanted, and drops the others.
func (w *wanted) pathItems(items []item, f *File) []item {
	if w.leave {
		return items
	}
	path, had := f.Path()
	keep := -1
	if w.tag != 0 && had != 0 {
		keep = lastItem(items, had.dyn())
	}
	if keep >= 0 {
		items[keep].d.tag = uint64(w.tag.dyn())
		if path != w.path {
			items[keep].name(w.path)
		}
	}
	items = dropItems(items, func(i int) bool {
		return i != keep && (items[i].d.is(elf.DT_RPATH) || items[i].d.is(elf.DT_RUNPATH))
	})
	if w.tag != 0 && keep < 0 {
		items = append(items, newItem(w.tag.dyn(), w.path))
	}
	return items
}

// setEntries makes the dynamic section hold items: where it is, in its spare
// DT_NULLs and in place of entries that say nothing, or else in a new place.
func (p *planner) setEntries(items []item) ([]blob, error) {
	slots := len(p.dyns)
	room := min(slots, int(p.dynRoom()/uint64(p.f.dynSize())))
	for i := 0; i < len(items) && len(items)+1 > room; {
		if it := &items[i]; it.keep || it.named || !p.idle(it.d) {
			i++
			continue
		}
		items = slices.Delete(items, i, i+1)
	}
	p.entries = items
	if len(items)+1 > room || p.splits(items) {
		return p.moveDynamic(items)
	}
	p.dyns = make([]dyn, slots)
	for i, it := range items {
		p.dyns[i] = it.d
	}
	p.relative(items, p.f.dynAddr)
	return nil, nil
}

// relative keeps DT_MIPS_RLD_MAP_REL right, whose value counts from the
// address of the entry itself.
func (p *planner) relative(items []item, addr uint64) {
	const mipsRldMapRel = 0x70000035
	if p.f.Machine != elf.EM_MIPS {
		return
	}
	size := uint64(p.f.dynSize())
	for i, it := range items {
		if it.d.tag == mipsRldMapRel && it.from >= 0 {
			p.dyns[i].val = it.d.val + p.f.dynAddr + uint64(it.from)*size - addr - uint64(i)*size
		}
	}
}

// spareDyns is how many DT_NULLs a dynamic section that moves gets, as many as
// GNU ld leaves.
const spareDyns = 5

// moveDynamic makes a longer dynamic section in a segment of its own. What
// finds it by PT_DYNAMIC follows; a loader and a program that relocates itself
// find it by the symbol _DYNAMIC, and are refused.
func (p *planner) moveDynamic(items []item) ([]blob, error) {
	const hint = ": link it with a run path, or with spare entries"
	if p.f.segment(elf.PT_INTERP) < 0 && len(p.f.Needed) == 0 {
		return nil, refuse("its dynamic section has no spare entry and cannot move" + hint)
	}
	p.dyns = make([]dyn, len(items)+1+spareDyns)
	for i, it := range items {
		p.dyns[i] = it.d
	}
	size := len(p.dyns) * p.f.dynSize()
	p.newDyn = make([]byte, size)
	p.note("dynamic section moved")
	return []blob{{data: p.newDyn, alignment: 16, writable: true, place: func(off, addr uint64) error {
		s := &p.phdrs[p.indexOf(elf.PT_DYNAMIC)]
		s.off, s.vaddr, s.paddr, s.filesz, s.memsz = off, addr, addr, uint64(size), uint64(size)
		p.relative(items, addr)
		for i := range p.was {
			if elf.SectionType(p.was[i].kind) == elf.SHT_DYNAMIC && p.was[i].addr == p.f.dynAddr {
				p.moveSection(i, off, addr)
				p.shdrs[i].size = uint64(size)
				p.shdrs[i].flags |= uint64(elf.SHF_WRITE)
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
