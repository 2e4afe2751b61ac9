package patchelf

import "debug/elf"

// kernels: the address of the program headers that kernels before 5.18
// compute, that later ones do, and that PT_PHDR states are one, where they
// were; and the table is loaded whole.
func (h *holding) kernels() {
	for page := uint64(4096); page <= 65536; page *= 4 {
		if page <= pageSize(h.f.phdrs) && loaderFinds(h.f, page) && !loaderFinds(h.g, page) {
			h.fail("with pages of %d the loader finds the program headers in a PT_LOAD that does not hold them", page)
		}
	}
	if h.f.segment(elf.PT_INTERP) < 0 {
		return // the kernel tells it of programs only
	}
	oldWas, newWas, saidWas := auxPhdr(h.f)
	oldIs, newIs, saidIs := auxPhdr(h.g)
	switch {
	case newIs == 0 && newWas != 0:
		h.fail("no PT_LOAD holds the program headers")
	case oldWas == newWas && oldIs != newIs && !h.edit.MoveHeaders:
		h.fail("AT_PHDR: %#x on kernels before 5.18, %#x on later ones", oldIs, newIs)
	case saidWas == newWas && saidIs != newIs && saidIs != 0:
		h.fail("AT_PHDR: PT_PHDR says %#x, the kernel %#x", saidIs, newIs)
	case h.f.Type == elf.ET_DYN && saidWas != 0 && saidIs == 0:
		h.fail("PT_PHDR is gone from a PIE")
	}
}

// loaderFinds tells whether a loader finds the program headers of a library.
// glibc takes, where there is no PT_PHDR, the first PT_LOAD whose pages hold
// them, and what lies behind p_filesz on those pages may be bss.
func loaderFinds(f *File, page uint64) bool {
	end := f.phoff + uint64(f.phnum*f.phdrSize())
	if f.segment(elf.PT_PHDR) >= 0 {
		return true
	}
	for _, p := range f.phdrs {
		if p.load() && p.off&^(page-1) <= f.phoff && end <= up(p.end(), page) {
			return p.off <= f.phoff && end <= p.end() || p.flags&uint32(elf.PF_W) == 0 && p.filesz == p.memsz
		}
	}
	return true // it reads them into memory of its own
}

// auxPhdr is AT_PHDR without the load bias: first PT_LOAD's address less its
// offset plus e_phoff before Linux 5.18, by the PT_LOAD that holds the table
// since; and as PT_PHDR has it, or 0.
func auxPhdr(f *File) (old, since, said uint64) {
	first := true
	end := f.phoff + uint64(f.phnum*f.phdrSize())
	for _, p := range f.phdrs {
		switch {
		case elf.ProgType(p.kind) == elf.PT_PHDR:
			said = p.vaddr
		case !p.load():
			continue
		}
		if first && p.load() {
			first, old = false, p.vaddr-p.off+f.phoff
		}
		if p.load() && since == 0 && p.off <= f.phoff && end <= p.end() {
			since = p.vaddr + f.phoff - p.off
		}
	}
	return old, since, said
}
