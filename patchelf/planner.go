package patchelf

import (
	"bytes"
	"debug/elf"
	"slices"
)

// planner works an edit out on copies of the headers. What differs from the
// file at the end becomes the writes of a Plan.
type planner struct {
	f         *File
	phdrs     []phdr
	shdrs     []shdr
	dyns      []dyn  // all of PT_DYNAMIC that is usable, DT_NULLs included
	entries   []item // what dyns is made of
	owners    []owner
	was       []shdr // section headers as they are
	size      int64  // of the file, as it becomes
	refs      *refs  // to strings, of what does not change
	torn      uint64 // end of the last whole string of the string table
	verns     []vern // records of needed versions, where some change
	vernMoves bool
	sizeFirst bool // DT_STRSZ grows before a string that sticks out is written
	writes    []write
	how       []string
	newDyn    []byte // content of the dynamic section where it moves
	newShdrs  []byte // the section headers where they move
	newPhdrs  []byte // the program headers where they move, and spare room
	phoff     uint64 // where the program headers are
	borrowed  int    // index of the entry that a new segment takes meanwhile, or -1
	moved     []move // sections whose address changed, for their symbols
	ousted    []span // of the file: what lay there has moved
	pageEdge  uint64 // where a test wants pages to meet
	old       bool   // program headers may go where old kernels do not find them
}

func newPlanner(f *File) (*planner, error) {
	p := &planner{f: f, phdrs: slices.Clone(f.phdrs), size: f.size, phoff: f.phoff, borrowed: -1}
	err := f.eachShdr(maxShdrs, func(_ int, s shdr) bool {
		p.was = append(p.was, s)
		return true
	})
	if err != nil {
		return nil, err
	}
	p.shdrs = slices.Clone(p.was)
	p.owners = ownersOf(f, p.was)
	p.dyns = append(slices.Clone(f.dyns), make([]dyn, f.dynTail)...)
	return p, nil
}

func (p *planner) note(s string) { p.how = append(p.how, s) }

// edit changes the copies to what is wanted, and places what has no room.
func (p *planner) edit(w *wanted) error {
	p.old = w.moveHeaders
	var blobs []blob
	if !w.noInterp {
		b, err := p.setInterp(w.interp)
		if err != nil {
			return err
		}
		blobs = append(blobs, b...)
	}
	if w.dynamic() {
		b, err := p.setDynamic(w)
		if err != nil {
			return err
		}
		blobs = append(blobs, b...)
	}
	if len(blobs) > 0 {
		if err := p.placeBlobs(blobs); err != nil {
			return err
		}
	}
	if w.stack != nil {
		return p.setStack(*w.stack)
	}
	return nil
}

// setDynamic edits the dynamic section and the strings that it names.
func (p *planner) setDynamic(w *wanted) ([]blob, error) {
	if err := p.readVerneeds(w); err != nil {
		return nil, err
	}
	items := p.wantedItems(w)
	table, store, err := p.setStrings(items)
	if err != nil {
		return nil, err
	}
	vers, err := p.setVersions(table)
	if err != nil {
		return nil, err
	}
	entries, err := p.setEntries(items)
	if err != nil {
		return nil, err
	}
	p.noteEntries()
	strings, err := store()
	return append(append(entries, vers...), strings...), err
}

// noteEntries says what became of entries.
func (p *planner) noteEntries() {
	left := map[int]bool{}
	for _, it := range p.entries {
		tag := elf.DynTag(it.d.tag)
		if it.from < 0 {
			p.note(tag.String() + " added")
			continue
		}
		left[it.from] = true
		switch was := p.f.dyns[it.from]; {
		case elf.DynTag(was.tag) != tag:
			p.note(elf.DynTag(was.tag).String() + " to " + tag.String())
		case tag == elf.DT_FLAGS_1 && was.val != it.d.val:
			p.note("DT_FLAGS_1 set")
		}
	}
	for i, d := range p.f.dyns {
		if !left[i] {
			p.note(elf.DynTag(d.tag).String() + " removed")
		}
	}
}

const (
	maxStrtab = 256 << 20 // bytes of a string table that is edited
	maxGrowth = 4 << 20
)

func (p *planner) readTable() ([]byte, error) {
	f := p.f
	if f.strSize == 0 || f.strSize > maxStrtab {
		return nil, refuse("its string table has %d bytes", f.strSize)
	}
	b, err := f.read("DT_STRTAB", f.strOff, f.strSize)
	if err != nil {
		return nil, err
	}
	if b[0] != 0 {
		return nil, refuse("its string table does not start with NUL")
	}
	p.torn = uint64(bytes.LastIndexByte(b, 0) + 1)
	return b, nil
}

// mend clears what an edit that was killed has left at the end of the string
// table b: the beginning of a string that was to reach beyond it, which
// nothing refers to yet. In a table that moves, only the copy is cleared.
func (p *planner) mend(b []byte) error {
	end := uint64(len(b))
	if p.torn == end {
		return nil
	}
	if p.refs.any(p.torn, end) {
		return refuse("its string table does not end with NUL")
	}
	clear(b[p.torn:])
	return nil
}

// moveTable makes the dynamic section and the section headers say where the
// string table is.
func (p *planner) moveTable(off, addr, size uint64) error {
	for i := range p.dyns {
		switch d := &p.dyns[i]; {
		case d.is(elf.DT_STRTAB) && d.val == p.f.strAddr:
			d.val = addr
		case d.is(elf.DT_STRSZ):
			d.val = size
		}
	}
	for i := range p.shdrs {
		s := &p.shdrs[i]
		if elf.SectionType(s.kind) == elf.SHT_STRTAB && s.alloc() && p.was[i].addr == p.f.strAddr {
			p.moveSection(i, off, addr)
			s.size = size
		}
	}
	return nil
}

// moveSection gives a section a new place and notes that its symbols move.
func (p *planner) moveSection(i int, off, addr uint64) {
	s := &p.shdrs[i]
	if s.addr != addr {
		p.moved = append(p.moved, move{section: i, delta: addr - s.addr})
	}
	s.off, s.addr = off, addr
}

// extendTable makes room for extra bytes directly behind the string table.
func (p *planner) extendTable(extra uint64) (bool, error) {
	lo := p.f.strOff + p.f.strSize
	i := p.covering(p.f.strOff, lo)
	if i < 0 {
		return false, nil
	}
	end := p.phdrs[i].end()
	inside := min(extra, end-lo)
	if inside > 0 && !p.gapInside(lo, lo+inside) {
		return false, nil
	}
	beyond := extra - inside
	if beyond == 0 {
		return true, nil
	}
	room, err := p.room(i, beyond)
	if err != nil || room < beyond {
		return false, err
	}
	p.extend(i, beyond)
	return true, nil
}

// extend makes PT_LOAD i longer by n bytes; room said that it may be.
func (p *planner) extend(i int, n uint64) {
	s := &p.phdrs[i]
	s.filesz += n
	s.memsz += n
	p.size = max(p.size, int64(s.end()))
}

// gapInside tells whether [lo, hi), inside a PT_LOAD, is padding: zero and in
// no section. Without section headers that cannot be known.
func (p *planner) gapInside(lo, hi uint64) bool {
	if len(p.was) == 0 || p.owned(lo, hi, isLoad) {
		return false
	}
	n, err := p.zeros(lo, hi-lo)
	return err == nil && n == hi-lo
}
