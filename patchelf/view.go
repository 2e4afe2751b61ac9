package patchelf

import "debug/elf"

// ExecStack tells whether f asks for an executable stack, and whether it
// states it at all: without a PT_GNU_STACK the machine decides.
func (f *File) ExecStack() (executable, present bool) {
	i := f.segment(elf.PT_GNU_STACK)
	if i < 0 {
		return false, false
	}
	return f.phdrs[i].flags&uint32(elf.PF_X) != 0, true
}

// Companion tells whether f is a separate debug file: its headers are those of
// a program or library, but what they describe is not in it.
func (f *File) Companion() bool { return f.companion }
