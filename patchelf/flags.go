package patchelf

import "debug/elf"

// flagItems sets bits of the last DT_FLAGS_1, which is the one that loaders
// take, or adds one.
func (w *wanted) flagItems(items []item) []item {
	if w.flags1 == 0 {
		return items
	}
	if i := lastItem(items, elf.DT_FLAGS_1); i >= 0 {
		items[i].d.val |= w.flags1
		return items
	}
	return append(items, item{d: dyn{uint64(elf.DT_FLAGS_1), w.flags1}, from: -1})
}

// debugItems adds the entry that a loader fills for debuggers.
func (w *wanted) debugItems(items []item) []item {
	if i := lastItem(items, elf.DT_DEBUG); i >= 0 {
		items[i].keep = w.keeps
	}
	if !w.debug {
		return items
	}
	return append(items, item{d: dyn{uint64(elf.DT_DEBUG), 0}, from: -1, keep: true})
}
