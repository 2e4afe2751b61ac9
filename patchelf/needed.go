package patchelf

import (
	"debug/elf"
	"slices"
)

// wantNeeded resolves what an Edit says of libraries: first those that go,
// then other names, then those that come.
func (f *File) wantNeeded(e Edit, w *wanted) {
	have := map[string]bool{}
	for _, old := range f.Needed {
		n := name{old: old, now: old, gone: slices.Contains(e.RemoveNeeded, old)}
		if now, ok := e.ReplaceNeeded[old]; ok && !n.gone {
			n.now = now
		}
		w.renames = w.renames || n.gone || n.now != old
		have[n.now] = have[n.now] || !n.gone
		w.needed = append(w.needed, n)
	}
	for _, s := range e.AddNeeded {
		if !have[s] {
			have[s], w.renames = true, true
			w.added = append(w.added, s)
		}
	}
}

// names is what shall be needed.
func (w *wanted) names() []string {
	out := slices.Clone(w.added)
	for _, n := range w.needed {
		if !n.gone {
			out = append(out, n.now)
		}
	}
	return out
}

// neededItems gives the DT_NEEDED entries their names, drops those that go,
// and puts the new ones before the first.
func (w *wanted) neededItems(items []item) []item {
	if !w.renames {
		return items
	}
	k, first := 0, -1
	var out []item
	for _, it := range items {
		if !it.d.is(elf.DT_NEEDED) {
			out = append(out, it)
			continue
		}
		n := w.needed[k]
		k++
		if first < 0 {
			first = len(out)
		}
		if n.now != n.old {
			it.name(n.now)
		}
		if !n.gone {
			out = append(out, it)
		}
	}
	var more []item
	for _, s := range w.added {
		more = append(more, newItem(elf.DT_NEEDED, s))
	}
	return slices.Insert(out, max(first, 0), more...)
}

// vern is a record of the versions that are needed of one library: Elf_Verneed.
type vern struct {
	off       uint64 // in the file
	file      uint64 // its name, in the string table
	raw       []byte // the 16 bytes
	next      uint64 // file offset of the next record, 0 for none
	end       uint64 // of it and what hangs on it
	ndx       []uint16
	lib       string
	gone      bool
	now       string // its new name, or ""
	auxOffset uint64
}

// readVerneeds reads the records, and says for each what becomes of it.
func (p *planner) readVerneeds(w *wanted) error {
	if !w.renames {
		return nil
	}
	left := map[string]bool{}
	for _, s := range w.names() {
		left[s] = true
	}
	fate := map[string]name{}
	for _, n := range w.needed {
		if n.gone && !left[n.old] || n.now != n.old {
			fate[n.old] = n
		}
	}
	if len(fate) == 0 {
		return nil
	}
	vs, ok := p.verneeds()
	if !ok {
		return refuse("it is not known which versions it needs: its DT_VERNEED is damaged")
	}
	for i := range vs {
		v := &vs[i]
		if n, changes := fate[v.lib]; changes {
			v.gone = n.gone
			if !n.gone {
				v.now = n.now
			}
		}
	}
	p.verns = vs
	return nil
}

// verneeds walks DT_VERNEED. No record may come before the one that leads to
// it: that ends every walk.
func (p *planner) verneeds() ([]vern, bool) {
	var vs []vern
	u16, u32 := p.f.order.Uint16, p.f.order.Uint32
	at, left, present, ok := p.table(elf.DT_VERNEED)
	if !present || !ok {
		return nil, ok
	}
	end := at + left
	names := &window{f: p.f}
	for len(vs) < maxVers {
		b, err := p.f.read("DT_VERNEED", at, 16)
		if err != nil || at+16 > end {
			return nil, false
		}
		v := vern{off: at, file: uint64(u32(b[4:])), raw: b, end: at + 16, auxOffset: uint64(u32(b[8:]))}
		if v.lib, err = names.text("DT_VERNEED", v.file); err != nil {
			return nil, false
		}
		aux := at + v.auxOffset
		for range u16(b[2:]) {
			a, err := p.f.read("DT_VERNEED", aux, 16)
			if err != nil || aux+16 > end || aux < at || len(v.ndx) > maxVers {
				return nil, false
			}
			v.ndx, v.end = append(v.ndx, u16(a[6:])&0x7fff), max(v.end, aux+16)
			step := uint64(u32(a[12:]))
			if aux += step; step == 0 {
				break
			}
		}
		step := uint64(u32(b[12:]))
		if step != 0 {
			v.next = at + step
		}
		vs = append(vs, v)
		if at = v.next; step == 0 {
			return vs, true
		}
	}
	return nil, false
}
