package patchelf

import "debug/elf"

func (f *File) wantStack(e Edit, w *wanted) {
	if e.ExecStack == nil {
		return
	}
	if is, present := f.ExecStack(); !present || is != *e.ExecStack {
		w.stack = e.ExecStack
	}
}

// setStack sets or clears PF_X of PT_GNU_STACK: four bytes, and nothing else.
// Where the header is missing it is added, if there is room for it without
// moving anything.
func (p *planner) setStack(executable bool) error {
	i := p.indexOf(elf.PT_GNU_STACK)
	if i < 0 {
		return p.addStack(executable)
	}
	if executable {
		p.phdrs[i].flags |= uint32(elf.PF_X)
		p.note("executable stack set")
	} else {
		p.phdrs[i].flags &^= uint32(elf.PF_X)
		p.note("executable stack cleared")
	}
	return nil
}

func (p *planner) addStack(executable bool) error {
	s, ok := p.freeSlot()
	if !ok {
		return refuse("it has no PT_GNU_STACK, and no room to add one")
	}
	h := phdr{kind: uint32(elf.PT_GNU_STACK), flags: uint32(elf.PF_R | elf.PF_W), alignment: 16}
	if executable {
		h.flags |= uint32(elf.PF_X)
	}
	p.note("PT_GNU_STACK added (" + s.how + ")")
	p.insert(s, h)
	return nil
}
