package patchelf

import (
	"debug/elf"
	"slices"
)

// nameTag tells whether a tag names a string that edits change.
func nameTag(d dyn) bool {
	return d.is(elf.DT_NEEDED) || d.is(elf.DT_SONAME) || d.is(elf.DT_RPATH) || d.is(elf.DT_RUNPATH)
}

// requests lists the strings that items need, and the references that change.
func (p *planner) requests(items []item) (reqs []request, changing []change) {
	index := map[string]int{}
	kept := map[int]int{}
	for _, it := range items {
		if it.from >= 0 {
			kept[it.from] = -1
		}
		if !it.named {
			continue
		}
		id, known := index[it.text]
		if !known {
			id = len(reqs)
			index[it.text] = id
			reqs = append(reqs, request{text: it.text, own: none, entry: true})
		}
		if it.from >= 0 {
			kept[it.from] = id
			was := p.f.dyns[it.from]
			if reqs[id].own == none {
				reqs[id].own, reqs[id].entry = was.val, was.tag != it.d.tag
			}
		}
	}
	for i, d := range p.f.dyns {
		if id, stays := kept[i]; nameTag(d) && (!stays || id >= 0) {
			changing = append(changing, change{d.val, id})
			if !stays {
				changing[len(changing)-1].id = -1
			}
		}
	}
	for i := range p.verns {
		v := &p.verns[i]
		if id, ok := index[v.now]; ok && v.now != "" {
			reqs[id].pinned, reqs[id].entry = true, false
			changing = append(changing, change{v.file, id})
		} else if v.gone {
			changing = append(changing, change{v.file, -1})
		}
	}
	return reqs, changing
}

// setStrings places the strings that items name, and gives the items their
// offsets. It returns the offset of each, and what stores the table.
func (p *planner) setStrings(items []item) (map[string]uint64, func() ([]blob, error), error) {
	reqs, changing := p.requests(items)
	if len(changing) == 0 && len(reqs) == 0 {
		return nil, func() ([]blob, error) { return nil, nil }, nil
	}
	old, err := p.readTable()
	if err != nil {
		return nil, nil, err
	}
	p.refs = p.collectRefs(items)
	if err := p.mend(old); err != nil {
		return nil, nil, err
	}
	t, at := p.placeAll(old, reqs, changing, false)
	fits := len(t.data) == len(old)
	if !fits {
		if fits, err = p.extendTable(uint64(len(t.data) - len(old))); err != nil {
			return nil, nil, err
		}
	}
	if !fits {
		t, at = p.placeAll(old, reqs, changing, true)
	}
	if uint64(len(t.data)) > p.f.strSize+maxGrowth {
		return nil, nil, refuse("the string table would grow by more than %d bytes", maxGrowth)
	}
	for i := range items {
		if items[i].named {
			items[i].d.val = at[items[i].text]
		}
	}
	return at, func() ([]blob, error) { return p.storeTable(t) }, nil
}

func (p *planner) placeAll(old []byte, reqs []request, changing []change, copied bool) (*strtab, map[string]uint64) {
	t := &strtab{old: old, data: slices.Clone(old), off: p.f.strOff, refs: p.refs.clone(), changing: changing, copied: copied}
	at := map[string]uint64{}
	for id, r := range reqs {
		at[r.text] = t.place(id, r)
	}
	return t, at
}

// storeTable writes the table back: in place, or whole, as a blob that is yet
// to be placed. In a copy nothing that was there changes before the dynamic
// section has turned to it and to the new strings.
func (p *planner) storeTable(t *strtab) ([]blob, error) {
	dead := t.dead()
	if t.copied {
		p.note("string table moved")
		return []blob{{data: t.data, alignment: 1, tail: true, place: func(off, addr uint64) error {
			p.wipe(off, dead)
			return p.moveTable(off, addr, uint64(len(t.data)))
		}}}, nil
	}
	if len(t.fresh)+len(t.over) > 0 {
		p.note("string in place")
	}
	base := p.f.strOff
	p.put(stepTail, base+p.torn, t.old[p.torn:])
	for _, s := range t.fresh {
		p.put(stepTail, base+s.lo, t.data[s.lo:s.hi])
	}
	for _, s := range t.over {
		p.overwrite(base, t.data, s)
	}
	p.wipe(base, dead)
	if len(t.data) > len(t.old) {
		p.sizeFirst = len(t.over) > 0
		return nil, p.moveTable(base, p.f.strAddr, uint64(len(t.data)))
	}
	return nil, nil
}

// overwrite writes a string over the one it replaces: what lies behind the end
// of the old one first, where nobody looks yet.
func (p *planner) overwrite(base uint64, data []byte, s over) {
	seen := min(s.hi, s.was+1)
	if seen < s.hi {
		p.put(stepTail, base+seen, data[seen:s.hi])
	}
	p.put(stepSwitch, base+s.lo, data[s.lo:seen])
}

func (p *planner) wipe(base uint64, dead []span) {
	for _, s := range dead {
		p.put(stepWipe, base+s.lo, make([]byte, s.hi-s.lo))
	}
}

// crowded tells whether so many entries change that they do so at once, in a
// copy, rather than one by one.
func (p *planner) crowded(items []item) bool {
	n := max(0, len(p.f.dyns)-len(items))
	for i, it := range items {
		if i >= len(p.f.dyns) || it.d != p.f.dyns[i] {
			n++
		}
	}
	return n > maxWrites/4
}

// splits tells whether items cannot replace the dynamic section by writes of
// which each leaves a file that loads: where it spans two pages, and both
// libraries and the versions of them change.
func (p *planner) splits(items []item) bool {
	if !p.crosses(p.f.dynOff, p.f.dynOff+uint64(len(p.dyns)*p.f.dynSize())) {
		return false
	}
	return p.crowded(items) || p.vernMoves || p.lost() > 0 && p.lost() == len(p.verns)
}
