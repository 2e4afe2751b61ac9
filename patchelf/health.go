package patchelf

import (
	"debug/elf"
	"fmt"
)

// Fault is a rule of the format that a file breaks.
type Fault struct {
	Rule   string
	Detail string
	// Harmless faults stop neither the kernel nor a loader; tools that edit the
	// file may stumble over them.
	Harmless bool
}

func (v Fault) String() string { return v.Rule + ": " + v.Detail }

// Health judges a whole file of this or another machine, which nobody wants to
// edit, by what the kernel (fs/binfmt_elf.c) and the loader of glibc
// (elf/dl-load.c, elf/rtld.c) do with it; VersionNeeds and VersionDefs judge the
// tables of versions. Files that neither of them
// loads, such as relocatables, core files and separate debug files, have no
// faults. It reads headers and tables, never the content.
func (f *File) Health() []Fault {
	if f.companion || f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN || len(f.phdrs) == 0 {
		return nil
	}
	program := f.segment(elf.PT_INTERP) >= 0 || f.Type == elf.ET_EXEC
	var out []Fault
	add := func(rule, broken string, harmless bool) {
		if broken != "" {
			out = append(out, Fault{rule, broken, harmless})
		}
	}
	add("every PT_LOAD can be mapped", f.unloadable(), false)
	add("PT_LOADs are in the file", f.truncated(), false)
	add("PT_LOADs ascend and share no page", f.overlap(), false)
	if program {
		add("program headers are in memory", f.headersLost(), false)
	}
	add("the dynamic section is in memory", f.dynamicLost(), false)
	add("what the dynamic section points to is in the file", f.tableLost(), false)
	add("PT_TLS and PT_GNU_RELRO are in memory", f.segmentLost(), false)
	if f.segment(elf.PT_INTERP) >= 0 {
		add("the interpreter ends in NUL", checkInterp(f), false)
	}
	if f.shdrsCut {
		add("section headers are in the file", "their table is cut off", true)
	}
	if len(out) == 0 && len(f.phdrs) <= maxJudged {
		f.oddities(add)
	}
	return out
}

// maxJudged bounds the program headers of a file that is compared with what
// linkers write: they write a dozen.
const maxJudged = 256

// oddities finds what breaks a rule of the format that nobody relies on who
// loads the file. Who edits it may: edits are checked by the same rules.
func (f *File) oddities(add func(rule, broken string, harmless bool)) {
	for _, v := range byItself(f) {
		if v.rule == ruleDynamic && !f.Dynamic {
			continue
		}
		add(v.rule, v.broken, true)
	}
}

// unloadable finds what mmap refuses: glibc says "ELF load command address/offset
// not page-aligned", the kernel fails with EINVAL.
func (f *File) unloadable() string {
	loads := 0
	for i := range f.phdrs {
		s := &f.phdrs[i]
		if !s.load() {
			continue
		}
		loads++
		switch a := max(s.alignment, 1); {
		case a&(a-1) != 0:
			return fmt.Sprintf("program header %d: the alignment %#x is no power of two", i, a)
		case s.filesz > s.memsz:
			return fmt.Sprintf("program header %d: %d bytes of file for %d bytes of memory", i, s.filesz, s.memsz)
		case s.filesz > 0 && (s.vaddr-s.off)%loadPage != 0:
			return fmt.Sprintf("program header %d: offset %#x and address %#x differ within a page", i, s.off, s.vaddr)
		case s.filesz > 0 && f.Dynamic && (s.vaddr-s.off)%a != 0:
			return fmt.Sprintf("program header %d: offset %#x and address %#x differ by no multiple of %#x", i, s.off, s.vaddr, a)
		}
	}
	if loads == 0 {
		return "there is none"
	}
	return ""
}

// loadPage is the smallest page of the machines that anybody runs.
const loadPage = 4096

// truncated finds a PT_LOAD that goes on behind the end of the file: whoever touches
// that is killed by SIGBUS.
func (f *File) truncated() string {
	for i := range f.phdrs {
		if s := &f.phdrs[i]; s.load() && s.filesz > 0 && s.end() > uint64(f.size) {
			return fmt.Sprintf("program header %d ends at %d, the file at %d", i, s.end(), f.size)
		}
	}
	return ""
}

// overlap finds a PT_LOAD that is mapped over the one before it. One that has no
// bytes in the file and lies within the page where the one before it ends costs
// nothing: its zeros are there already, or it is the split-off room of kernels.
func (f *File) overlap() string {
	var last *phdr
	for i := range f.phdrs {
		s := &f.phdrs[i]
		if !s.load() || s.memsz == 0 {
			continue
		}
		switch {
		case last == nil:
		case s.vaddr < last.vend():
			return fmt.Sprintf("program header %d at %#x begins before %#x, where the one before it ends", i, s.vaddr, last.vend())
		case s.filesz > 0 && s.vaddr/loadPage == (last.vend()-1)/loadPage && s.off/loadPage != (last.off+last.memsz-1)/loadPage:
			return fmt.Sprintf("program header %d at %#x is mapped over the end of the one before it", i, s.vaddr)
		}
		last = s
	}
	return ""
}

// headersLost tells whether no PT_LOAD has the program headers, or PT_PHDR says
// something else than that PT_LOAD: a program finds its own by it.
func (f *File) headersLost() string {
	if f.segment(elf.PT_INTERP) < 0 {
		return "" // what a static program wants of them is its own business
	}
	lo := f.phoff
	hi := lo + uint64(f.phnum*f.phdrSize())
	for i := range f.phdrs {
		s := &f.phdrs[i]
		if !s.load() || s.off > lo || hi > s.end() {
			continue
		}
		if k := f.segment(elf.PT_PHDR); k >= 0 && f.phdrs[k].vaddr != s.vaddr+lo-s.off {
			return fmt.Sprintf("PT_PHDR says %#x, and they are at %#x", f.phdrs[k].vaddr, s.vaddr+lo-s.off)
		}
		return ""
	}
	return "no PT_LOAD holds them"
}

func (f *File) dynamicLost() string {
	i := f.segment(elf.PT_DYNAMIC)
	if i < 0 || !f.Dynamic {
		return ""
	}
	s := &f.phdrs[i]
	if off, left, ok := fileOffset(f.phdrs, s.vaddr); !ok || left < s.filesz {
		return fmt.Sprintf("no PT_LOAD holds %#x", s.vaddr)
	} else if off != s.off {
		return fmt.Sprintf("PT_DYNAMIC: offset %#x, and address %#x is at offset %#x", s.off, s.vaddr, off)
	}
	return ""
}

// dynTables are the entries that point to a table which loaders read, and those
// that tell how long it is, where there is one.
var dynTables = []struct{ at, size elf.DynTag }{
	{elf.DT_STRTAB, elf.DT_STRSZ}, {elf.DT_SYMTAB, 0}, {elf.DT_HASH, 0}, {elf.DT_GNU_HASH, 0},
	{elf.DT_RELA, elf.DT_RELASZ}, {elf.DT_REL, elf.DT_RELSZ}, {elf.DT_JMPREL, elf.DT_PLTRELSZ},
	{elf.DT_VERSYM, 0}, {elf.DT_VERNEED, 0}, {elf.DT_VERDEF, 0},
	{elf.DT_INIT_ARRAY, elf.DT_INIT_ARRAYSZ}, {elf.DT_FINI_ARRAY, elf.DT_FINI_ARRAYSZ},
}

func (f *File) tableLost() string {
	if !f.Dynamic {
		return ""
	}
	for _, t := range dynTables {
		addr, present := f.dynValue(t.at)
		size, sized := f.dynValue(t.size)
		if !present || addr == 0 || t.size != 0 && sized && size == 0 {
			continue
		}
		_, left, ok := fileOffset(f.phdrs, addr)
		if !ok || t.size != 0 && sized && size > left {
			return fmt.Sprintf("%v: no PT_LOAD holds %d bytes at %#x", t.at, max(size, 1), addr)
		}
	}
	for _, t := range []elf.DynTag{elf.DT_STRTAB, elf.DT_SYMTAB} {
		if _, ok := f.dynValue(t); !ok && len(f.Needed) > 0 {
			return "there is no " + t.String()
		}
	}
	return ""
}

// segmentLost finds what the loader copies from or protects where nothing is
// mapped.
func (f *File) segmentLost() string {
	for _, kind := range []elf.ProgType{elf.PT_TLS, elf.PT_GNU_RELRO} {
		i := f.segment(kind)
		if i < 0 {
			continue
		}
		if s := &f.phdrs[i]; s.filesz > 0 && !f.inMemory(s.vaddr, s.filesz) {
			return fmt.Sprintf("%v: no PT_LOAD holds %d bytes at %#x", kind, s.filesz, s.vaddr)
		}
	}
	return ""
}

// inMemory tells whether PT_LOADs hold all of a range, one behind the other.
func (f *File) inMemory(addr, n uint64) bool {
	for i := range f.phdrs {
		if s := &f.phdrs[i]; s.load() && addr >= s.vaddr && addr < up(s.vend(), loadPage) {
			if have := up(s.vend(), loadPage) - addr; have < n {
				addr, n = addr+have, n-have
				continue
			}
			return true
		}
	}
	return false
}
