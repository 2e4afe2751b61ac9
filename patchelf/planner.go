package patchelf

import (
	"debug/elf"
	"slices"
)

// planner works an edit out on copies of the headers. What differs from the
// file at the end becomes the writes of a Plan.
type planner struct {
	f        *File
	phdrs    []phdr
	shdrs    []shdr
	dyns     []dyn // all of PT_DYNAMIC that is usable, DT_NULLs included
	owners   []owner
	was      []shdr // section headers as they are
	size     int64  // of the file, as it becomes
	refs     *refs
	writes   []write
	how      []string
	newDyn   []byte // content of the dynamic section where it moves
	newShdrs []byte // the section headers where they move
	moved    []move // sections whose address changed, for their symbols
}

func newPlanner(f *File) (*planner, error) {
	p := &planner{f: f, phdrs: slices.Clone(f.phdrs), size: f.size}
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
func (p *planner) edit(w wanted) error {
	var blobs []blob
	if !w.noInterp {
		b, err := p.setInterp(w.interp)
		if err != nil {
			return err
		}
		blobs = append(blobs, b...)
	}
	if !w.leave {
		b, err := p.setPath(w)
		if err != nil {
			return err
		}
		blobs = append(blobs, b...)
	}
	if len(blobs) == 0 {
		return nil
	}
	return p.placeBlobs(blobs)
}

// setPath edits the run path: its string, then its entry.
func (p *planner) setPath(w wanted) ([]blob, error) {
	path, tag := p.f.Path()
	own := uint64(none)
	if tag != 0 {
		own, _ = p.f.dynValue(tag.dyn())
	}
	idx := own
	var blobs []blob
	if w.tag == 0 || path != w.path || tag == 0 {
		var err error
		if idx, blobs, err = p.setString(w, own); err != nil {
			return nil, err
		}
	}
	added, err := p.setEntry(w.tag, tag, idx)
	return append(added, blobs...), err
}

// setString puts the run path of w into the string table in place of the one
// at own, and wipes those that are left without a reference.
func (p *planner) setString(w wanted, own uint64) (uint64, []blob, error) {
	f := p.f
	old, err := p.readTable()
	if err != nil {
		return 0, nil, err
	}
	p.refs = p.collectRefs()
	t := &strtab{old: old, data: slices.Clone(old), refs: p.refs}
	idx, n := uint64(none), uint64(0)
	if w.tag != 0 {
		idx, n = t.place(w.path, own), uint64(len(w.path)+1)
	}
	for _, d := range f.dyns {
		if d.is(elf.DT_RPATH) || d.is(elf.DT_RUNPATH) {
			t.wipe(d.val, idx, n)
		}
	}
	if f.strSize+maxGrowth < uint64(len(t.data)) {
		return 0, nil, refuse("the string table would grow by more than %d bytes", maxGrowth)
	}
	blobs, err := p.storeTable(t)
	return idx, blobs, err
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
	if b[0] != 0 || b[len(b)-1] != 0 {
		return nil, refuse("its string table does not start and end with NUL")
	}
	return b, nil
}

// storeTable writes the table back: in place where what was added fits behind
// it, else whole, as a blob that is yet to be placed.
func (p *planner) storeTable(t *strtab) ([]blob, error) {
	f, extra := p.f, uint64(len(t.data)-len(t.old))
	fits := extra == 0
	if !fits {
		var err error
		if fits, err = p.extendTable(extra); err != nil {
			return nil, err
		}
	}
	if !fits {
		p.note("string table moved")
		return []blob{{data: t.data, alignment: 1, tail: true, place: func(off, addr uint64) error {
			return p.moveTable(off, addr, uint64(len(t.data)))
		}}}, nil
	}
	p.note("string in place")
	p.storeDiff(t)
	if extra > 0 {
		return nil, p.moveTable(f.strOff, f.strAddr, uint64(len(t.data)))
	}
	return nil, nil
}

// storeDiff writes the bytes of the table that change: the new string before
// the dynamic section refers to it, wiped ones after it does not any more.
func (p *planner) storeDiff(t *strtab) {
	if w := t.wrote; w.lo < w.hi {
		p.put(stepStrings, p.f.strOff+w.lo, t.data[w.lo:w.hi])
	}
	for _, w := range t.wiped {
		p.put(stepWipe, p.f.strOff+w.lo, t.data[w.lo:w.hi])
	}
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
