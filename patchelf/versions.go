package patchelf

import (
	"debug/elf"
	"slices"
)

// vernPut is a record of needed versions that is written.
type vernPut struct {
	off  uint64
	data []byte
}

// lost counts the records that go.
func (p *planner) lost() int {
	n := 0
	for i := range p.verns {
		if p.verns[i].gone {
			n++
		}
	}
	return n
}

// versionItems drops the entries of a table of needed versions of which
// nothing is left, and with it that of the symbols' versions, unless versions
// are defined.
func (p *planner) versionItems(items []item) []item {
	lost := p.lost()
	if lost == 0 {
		return items
	}
	if lost < len(p.verns) {
		if i := lastItem(items, elf.DT_VERNEEDNUM); i >= 0 && items[i].d.val >= uint64(lost) {
			items[i].d.val -= uint64(lost)
		}
		return items
	}
	_, defines := p.f.dynValue(elf.DT_VERDEF)
	return dropItems(items, func(i int) bool {
		d := items[i].d
		return d.is(elf.DT_VERNEED) || d.is(elf.DT_VERNEEDNUM) || d.is(elf.DT_VERSYM) && !defines
	})
}

// setVersions makes the records of needed versions follow the libraries that
// they are of. A loader that finds versions of a library that is not needed
// stops, so both change at once: by one string that both have, or else in a
// copy of the records that the dynamic section turns to.
func (p *planner) setVersions(place map[string]uint64) ([]blob, error) {
	if len(p.verns) == 0 {
		return nil, nil
	}
	if err := p.freeSymbols(); err != nil {
		return nil, err
	}
	for i := range p.verns {
		if v := &p.verns[i]; v.now != "" {
			at := place[v.now]
			p.vernMoves = p.vernMoves || at != v.file
			v.file = at
			p.f.order.PutUint32(v.raw[4:], uint32(at))
		}
	}
	puts := p.relink()
	for _, u := range puts {
		p.vernMoves = p.vernMoves || u.off/pageBytes != (u.off+15)/pageBytes
	}
	for i := range p.shdrs {
		if s := &p.shdrs[i]; elf.SectionType(s.kind) == elf.SHT_GNU_VERNEED && s.off == p.verns[0].off {
			s.info -= min(s.info, uint32(p.lost()))
		}
	}
	if p.vernMoves && p.lost() < len(p.verns) {
		return p.moveVersions(puts)
	}
	for _, u := range puts {
		p.put(stepSwitch, u.off, u.data)
	}
	return nil, nil
}

// relink takes records out of their list, by writes of which each leaves a
// list: the one before leads past them, or the first becomes a copy of the
// first that stays.
func (p *planner) relink() []vernPut {
	var stay []*vern
	for i := range p.verns {
		if v := &p.verns[i]; !v.gone {
			stay = append(stay, v)
		}
	}
	var puts []vernPut
	for i, v := range stay {
		at, raw, next := v.off, slices.Clone(v.raw), uint64(0)
		if i+1 < len(stay) {
			next = stay[i+1].off
		}
		first := p.verns[0].off
		if i == 0 && at != first {
			p.f.order.PutUint32(raw[8:], uint32(v.auxOffset+at-first))
			at = first
		} else if next == v.next {
			continue
		}
		step := uint64(0)
		if next != 0 {
			step = next - at
		}
		p.f.order.PutUint32(raw[12:], uint32(step))
		puts = append(puts, vernPut{at, raw})
	}
	return puts
}

// moveVersions makes a copy of the records, with puts, a blob.
func (p *planner) moveVersions(puts []vernPut) ([]blob, error) {
	lo, hi := p.verns[0].off, uint64(0)
	for i := range p.verns {
		hi = max(hi, p.verns[i].end)
	}
	if hi-lo > maxTable {
		return nil, refuse("its table of needed versions has %d bytes", hi-lo)
	}
	b, err := p.f.read("DT_VERNEED", lo, hi-lo)
	if err != nil {
		return nil, err
	}
	for i := range p.verns {
		copy(b[p.verns[i].off-lo:], p.verns[i].raw)
	}
	for _, u := range puts {
		copy(b[u.off-lo:], u.data)
	}
	p.note("needed versions moved")
	return []blob{{data: b, alignment: 8, place: func(off, addr uint64) error {
		for i := range p.dyns {
			if p.dyns[i].is(elf.DT_VERNEED) {
				p.dyns[i].val = addr
			}
		}
		for i := range p.shdrs {
			if elf.SectionType(p.was[i].kind) == elf.SHT_GNU_VERNEED && p.was[i].off == lo {
				p.moveSection(i, off, addr)
				p.shdrs[i].size = hi - lo
			}
		}
		return nil
	}}}, nil
}

// freeSymbols makes symbols of versions that go symbols without one. That
// comes first: a loader looks a symbol's version up without asking whether
// there is a record of it.
func (p *planner) freeSymbols() error {
	var gone []uint16
	for i := range p.verns {
		if p.verns[i].gone {
			gone = append(gone, p.verns[i].ndx...)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	off, left, present, ok := p.table(elf.DT_VERSYM)
	if !present {
		return nil
	}
	n, known := p.symbolCount()
	if !ok || !known || n > maxSyms || n > left/2 {
		return refuse("it is not known which symbols have the versions that go")
	}
	b, err := p.f.read("DT_VERSYM", off, n*2)
	if err != nil {
		return err
	}
	is := map[uint16]bool{}
	for _, g := range gone {
		is[g] = true
	}
	first, last := len(b), 0
	for k := 0; k < len(b); k += 2 {
		if is[p.f.order.Uint16(b[k:])&0x7fff] {
			p.f.order.PutUint16(b[k:], 1) // VER_NDX_GLOBAL
			first, last = min(first, k), k+2
		}
	}
	if first < last {
		p.note("symbols lost their version")
		p.put(stepTail, off+uint64(first), b[first:last])
	}
	return nil
}
