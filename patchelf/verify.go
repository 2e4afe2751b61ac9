package patchelf

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
)

// verify checks the file that a plan would make, before anything is written:
// it says what was asked for, everything else as before, and breaks no rule
// that the file kept before. It returns the file as it would be.
func verify(f *File, p *Plan, w wanted, r *refs) (*File, error) {
	o := &overlay{base: f.r, size: f.size, after: p.after, writes: p.writes}
	g, err := Parse(o, p.after)
	if err != nil {
		return nil, refuse("the result would be unreadable: %v", err)
	}
	if err := sameBut(f, g, w); err != nil {
		return nil, err
	}
	if err := keptStrings(f, p, r); err != nil {
		return nil, err
	}
	if err := keptImage(f, g); err != nil {
		return nil, err
	}
	was := check(f)
	for _, c := range check(g) {
		if c.broken != "" && !slices.ContainsFunc(was, func(b verdict) bool { return b.rule == c.rule && b.broken != "" }) {
			return nil, refuse("the result would break a rule: %s: %s", c.rule, c.broken)
		}
	}
	g.r = f.r
	return g, nil
}

// sameBut checks that g says what w asks for, and else what f says.
func sameBut(f, g *File, w wanted) error {
	path, tag := g.Path()
	wantPath, wantTag := f.Path()
	if !w.leave {
		wantPath, wantTag = w.path, w.tag
		if g.RPath != nil && g.RunPath != nil {
			return refuse("the result would have two run paths")
		}
	}
	interp := f.Interp
	if !w.noInterp {
		interp = w.interp
	}
	switch {
	case path != wantPath || tag != wantTag:
		return refuse("the result would have the run path %q (%v)", path, tag)
	case g.Interp != interp:
		return refuse("the result would have the interpreter %q", g.Interp)
	case g.Soname != f.Soname, !slices.Equal(g.Needed, f.Needed):
		return refuse("the result would have another DT_SONAME or DT_NEEDED")
	case g.Type != f.Type, g.Machine != f.Machine, g.shnum != f.shnum, g.phoff != f.phoff, g.shstrndx != f.shstrndx:
		return refuse("the result would have another ELF header")
	}
	return nil
}

// keptStrings checks that no string that something refers to changes. Writes
// to the old table are the only ones that could.
func keptStrings(f *File, p *Plan, r *refs) error {
	if !f.hasStrtab {
		return nil
	}
	for _, w := range p.writes {
		lo, hi := max(uint64(w.off), f.strOff), min(uint64(w.off)+uint64(len(w.data)), f.strOff+f.strSize)
		if lo >= hi {
			continue
		}
		if r == nil || !r.known {
			return refuse("the result would change strings of which it is not known who uses them")
		}
		// From the start of the string that holds the first byte changed.
		start := lo
		for start > f.strOff {
			n := min(start-f.strOff, 256)
			b, err := f.read("DT_STRTAB", start-n, n)
			if err != nil {
				return err
			}
			i := bytes.LastIndexByte(b, 0)
			if start -= n - uint64(i+1); i >= 0 {
				break
			}
		}
		if at, used := r.last(start-f.strOff, hi-f.strOff); used {
			return refuse("the result would change the string at %d, which is in use", at)
		}
	}
	return nil
}

// keptImage checks that what is loaded stays where it is: every PT_LOAD of f
// is one of g, at most longer and not into the page of the next. One more may
// come, behind all others in the file and, on pages of its own, in memory.
func keptImage(f, g *File) error {
	was, is := loads(f), loads(g)
	if len(is) > len(was)+1 || len(is) < len(was) {
		return refuse("the result would have %d PT_LOADs, not %d", len(is), len(was))
	}
	page := pageSize(f.phdrs)
	for i, s := range was {
		t := is[i]
		longer := t.filesz >= s.filesz && t.memsz-t.filesz == s.memsz-s.filesz && (t.filesz == s.filesz || s.filesz == s.memsz)
		if t.off != s.off || t.vaddr != s.vaddr || t.flags != s.flags || t.alignment != s.alignment || !longer {
			return refuse("the result would load PT_LOAD %d differently", i)
		}
		for _, o := range is {
			if t.filesz > s.filesz && o.vaddr > s.vaddr && t.vend() > o.vaddr&^(page-1) {
				return refuse("the result would extend PT_LOAD %d into the page of another", i)
			}
			if len(is) > len(was) && up(t.vend(), page) > is[len(was)].vaddr {
				return refuse("the result would add a PT_LOAD that is not above PT_LOAD %d", i)
			}
		}
	}
	if len(is) > len(was) {
		if n := is[len(was)]; n.off < uint64(f.size) || n.vaddr%page != n.off%page || n.alignment != page {
			return refuse("the result would add a PT_LOAD that shares bytes or is misaligned")
		}
	}
	return nil
}

func loads(f *File) []phdr {
	var ps []phdr
	for _, p := range f.phdrs {
		if p.load() {
			ps = append(ps, p)
		}
	}
	return ps
}

// verdict is a rule and how a file breaks it ("" if it does not).
type verdict struct{ rule, broken string }

// check judges a file by the rules of the gABI and of loaders. Linkers' own
// output breaks some of them at times: an edit must not break more.
func check(f *File) []verdict {
	return []verdict{
		{"PT_LOADs ascend and share no page", checkOrder(f)},
		{"PT_LOADs are congruent and in the file", checkLoads(f)},
		{"program headers are loaded where PT_PHDR says", checkTable(f)},
		{"PT_DYNAMIC, PT_INTERP, PT_NOTE and others map to their offsets", checkMapped(f)},
		{"the dynamic section is writable and ends", checkDynamic(f)},
		{"the interpreter ends in NUL", checkInterp(f)},
		{"section headers agree with the dynamic section", checkSections(f)},
	}
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
	if err != nil || len(b) == 0 || len(b) > 4096 || bytes.IndexByte(b, 0) != len(b)-1 {
		return fmt.Sprintf("%d bytes", f.phdrs[i].filesz)
	}
	return ""
}

func checkSections(f *File) string {
	broken := ""
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
