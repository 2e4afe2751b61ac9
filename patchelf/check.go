package patchelf

import (
	"debug/elf"
	"fmt"
)

// verdict is a rule and how a file breaks it ("" if it does not).
type verdict struct{ rule, broken string }

// check judges a file by the rules of the gABI and of loaders. Linkers' own
// output breaks some of them at times: an edit must not break more.
func check(f *File) []verdict {
	return append(byItself(f), verdict{"versions are needed of libraries that are needed", checkVersions(f)})
}

// byItself judges what needs no other file of the process.
func byItself(f *File) []verdict {
	return append(structure(f), verdict{"section headers agree with the dynamic section", checkSections(f)})
}

const ruleDynamic = "the dynamic section is writable and ends"

// structure judges what loaders see, at any time.
func structure(f *File) []verdict {
	return []verdict{
		{"PT_LOADs ascend and share no page", checkOrder(f)},
		{"PT_LOADs are congruent and in the file", checkLoads(f)},
		{"program headers are loaded where PT_PHDR says", checkTable(f)},
		{"PT_DYNAMIC, PT_INTERP, PT_NOTE and others map to their offsets", checkMapped(f)},
		{ruleDynamic, checkDynamic(f)},
		{"the interpreter ends in NUL", checkInterp(f)},
	}
}

// checkAuxv models AT_PHDR. Kernels since 5.18 find the PT_LOAD that holds the
// table; older ones add its offset to where the first PT_LOAD is. A library
// has none.
func checkAuxv(f *File) string {
	delta, ok := firstDelta(f.phdrs)
	if f.segment(elf.PT_INTERP) < 0 || !ok {
		return ""
	}
	for i := range f.phdrs {
		if s := &f.phdrs[i]; s.load() && s.off <= f.phoff && f.phoff < s.end() {
			if s.vaddr-s.off != delta {
				return fmt.Sprintf("they are at %#x, not at %#x", s.vaddr-s.off+f.phoff, delta+f.phoff)
			}
			return ""
		}
	}
	return "no PT_LOAD holds them"
}

// checkVersions checks that every library of which versions are needed is
// needed itself: a loader stops otherwise.
func checkVersions(f *File) string {
	vs, ok := (&planner{f: f}).verneeds()
	if !ok {
		return "they cannot be read"
	}
	needed := setOf(f.Needed)
	for i := range vs {
		if !needed[vs[i].lib] {
			return vs[i].lib
		}
	}
	return ""
}

func checkOrder(f *File) string {
	var last *phdr
	for i := range f.phdrs {
		s := &f.phdrs[i]
		if !s.load() || s.memsz == 0 {
			continue
		}
		if last != nil && (s.vaddr < last.vaddr || up(last.vend(), 4096) > s.vaddr&^4095) {
			return fmt.Sprintf("program header %d at %#x", i, s.vaddr)
		}
		if last != nil && i == len(f.phdrs)-1 && s.off < last.off {
			return fmt.Sprintf("program header %d at offset %#x", i, s.off)
		}
		last = s
	}
	return ""
}

func checkLoads(f *File) string {
	for i := range f.phdrs {
		s := &f.phdrs[i]
		if !s.load() {
			continue
		}
		switch a := max(s.alignment, 1); {
		case a&(a-1) != 0, (s.vaddr-s.off)%a != 0, s.filesz > 0 && (s.vaddr-s.off)%4096 != 0:
			return fmt.Sprintf("program header %d: offset %#x, address %#x", i, s.off, s.vaddr)
		case s.filesz > s.memsz, s.filesz > 0 && s.end() > uint64(f.size):
			return fmt.Sprintf("program header %d: %d bytes of file, %d of memory", i, s.filesz, s.memsz)
		}
	}
	return ""
}

func checkTable(f *File) string {
	lo := f.phoff
	hi := lo + uint64(f.phnum*f.phdrSize())
	if hi-lo > 4096 {
		return "they are longer than 4096 bytes"
	}
	var load *phdr
	for i := range f.phdrs {
		if s := &f.phdrs[i]; s.load() && s.off <= lo && hi <= s.end() {
			load = s
			break
		}
	}
	if load == nil {
		return "no PT_LOAD holds them"
	}
	for i := range f.phdrs {
		s := &f.phdrs[i]
		if elf.ProgType(s.kind) != elf.PT_PHDR {
			continue
		}
		if s.off != lo || s.vaddr != load.vaddr+lo-load.off || s.filesz < hi-lo || s.end() > load.end() {
			return fmt.Sprintf("PT_PHDR: offset %#x, address %#x, %d bytes", s.off, s.vaddr, s.filesz)
		}
		for k := range i {
			if f.phdrs[k].load() || elf.ProgType(f.phdrs[k].kind) == elf.PT_DYNAMIC {
				return "PT_PHDR is not the first"
			}
		}
	}
	return ""
}

func checkMapped(f *File) string {
	for i := range f.phdrs {
		s := &f.phdrs[i]
		switch elf.ProgType(s.kind) {
		case elf.PT_DYNAMIC, elf.PT_INTERP, elf.PT_NOTE, elf.PT_TLS, elf.PT_GNU_RELRO, elf.PT_GNU_EH_FRAME, ptGNUProperty:
		default:
			continue
		}
		if s.filesz == 0 {
			continue
		}
		if off, left, ok := fileOffset(f.phdrs, s.vaddr); !ok || off != s.off || left < s.filesz {
			return fmt.Sprintf("program header %d: offset %#x, address %#x", i, s.off, s.vaddr)
		}
	}
	return ""
}

func checkDynamic(f *File) string {
	for i := range f.phdrs {
		s := &f.phdrs[i]
		if s.load() && s.flags&uint32(elf.PF_W) != 0 && f.dynAddr >= s.vaddr && f.dynAddr+f.dynLen <= s.vaddr+s.filesz {
			return ""
		}
	}
	return "no writable PT_LOAD holds it"
}

func checkInterp(f *File) string {
	i := f.segment(elf.PT_INTERP)
	if i < 0 {
		return ""
	}
	b, err := f.read("PT_INTERP", f.phdrs[i].off, min(f.phdrs[i].filesz, 4097))
	if err != nil || len(b) == 0 || len(b) > 4096 || b[len(b)-1] != 0 {
		return fmt.Sprintf("%d bytes", f.phdrs[i].filesz)
	}
	return ""
}

func checkSections(f *File) string {
	broken := ""
	if i := f.segment(elf.PT_INTERP); i >= 0 && f.shnum > 0 && uint64(len(f.Interp)+1) != f.phdrs[i].filesz {
		return "PT_INTERP holds more than a string"
	}
	interp := f.segment(elf.PT_INTERP)
	err := f.eachShdr(maxShdrs, func(i int, s shdr) bool {
		kind := elf.SectionType(s.kind)
		switch {
		case kind == elf.SHT_DYNAMIC && (s.addr != f.dynAddr || s.off != f.dynOff):
			broken = "SHT_DYNAMIC is not PT_DYNAMIC"
		case s.inFile() && s.alloc() && (s.off > uint64(f.size) || s.size > uint64(f.size)-s.off):
			broken = fmt.Sprintf("section %d lies past the end of the file", i)
		case s.inFile() && s.alloc():
			if off, _, ok := fileOffset(f.phdrs, s.addr); ok && off != s.off && s.flags&uint64(elf.SHF_TLS) == 0 {
				broken = fmt.Sprintf("section %d: offset %#x, address %#x", i, s.off, s.addr)
			}
		}
		if kind == elf.SHT_STRTAB && s.alloc() && s.addr == f.strAddr && s.size != f.strSize {
			broken = "SHT_STRTAB is not DT_STRSZ long"
		}
		if interp >= 0 && s.addr == f.phdrs[interp].vaddr && s.addr != 0 && kind == elf.SHT_PROGBITS && s.size != f.phdrs[interp].filesz {
			broken = ".interp is not PT_INTERP"
		}
		return broken == ""
	})
	if err != nil {
		return err.Error()
	}
	return broken
}
