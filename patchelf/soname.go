package patchelf

import "debug/elf"

// wantSoname resolves Edit.Soname. A DT_SONAME that is there and empty is not
// the same as none, so the entry is looked for and not the name.
func (f *File) wantSoname(e Edit, w *wanted) {
	if e.Soname == nil {
		return
	}
	_, have := f.dynValue(elf.DT_SONAME)
	w.soname = *e.Soname
	w.setSoname = have != (w.soname != "") || w.soname != f.Soname
}

// sonameItems makes the last DT_SONAME, which is the one that loaders take, hold
// the name, and drops the others. Without a name all go.
func (w *wanted) sonameItems(items []item) []item {
	if !w.setSoname {
		return items
	}
	keep := lastItem(items, elf.DT_SONAME)
	if w.soname == "" {
		keep = -1
	} else if keep < 0 {
		return append(items, newItem(elf.DT_SONAME, w.soname))
	} else {
		items[keep].name(w.soname)
	}
	return dropItems(items, func(i int) bool { return i != keep && items[i].d.is(elf.DT_SONAME) })
}
