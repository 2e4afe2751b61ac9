package patchelf

import "debug/elf"

// maxCompanion is how many section headers Parse looks at to tell a separate
// debug file: 16 KiB of them. Only where the content makes no sense either are
// all looked at.
const maxCompanion = 256

// readCompanion finds out whether this is a separate debug file: its program
// headers describe another file, and sections at the addresses of PT_DYNAMIC
// and PT_INTERP, or of the entry point where there are none, are NOBITS.
func (f *File) readCompanion() error { return f.lookHollow(maxCompanion) }

// hollow is readCompanion with all section headers.
func (f *File) hollow() bool {
	return f.shnum > maxCompanion && f.lookHollow(maxShdrs) == nil && f.companion
}

// lookHollow judges by the first section that has an address in question.
// .tbss is no such section: it has an address but no room there.
func (f *File) lookHollow(limit int) error {
	at, starts := f.contentAddrs()
	if len(at) == 0 {
		return nil
	}
	return f.eachShdr(limit, func(_ int, s shdr) bool {
		if s.size == 0 || !s.alloc() || s.flags&uint64(elf.SHF_TLS) != 0 {
			return true
		}
		for _, addr := range at {
			if addr == s.addr || !starts && addr-s.addr < s.size {
				f.companion = elf.SectionType(s.kind) == elf.SHT_NOBITS
				return false
			}
		}
		return true
	})
}

// contentAddrs returns the addresses at which the file, unless it is a separate
// debug file, has content, and whether a section starts there.
func (f *File) contentAddrs() (at []uint64, starts bool) {
	for _, kind := range []elf.ProgType{elf.PT_INTERP, elf.PT_DYNAMIC} {
		if i := f.segment(kind); i >= 0 {
			at = append(at, f.phdrs[i].vaddr)
		}
	}
	if len(at) == 0 && len(f.phdrs) > 0 && f.Entry != 0 {
		return []uint64{f.Entry}, false
	}
	return at, true
}
