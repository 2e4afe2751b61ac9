package patchelf

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// The oracle of the matrix. It knows nothing of plans and of the verifier: it
// compares the file before with the file after.

// held returns what an edit broke in a file, or nothing.
func held(before, after []byte, e Edit) []string {
	f, err := Parse(byteFile(before), int64(len(before)))
	if err != nil {
		return []string{"before: " + err.Error()}
	}
	g, err := Parse(byteFile(after), int64(len(after)))
	if err != nil {
		return []string{"after: " + err.Error()}
	}
	h := &holding{f: f, g: g, before: before, after: after, edit: e}
	h.headers()
	h.segments()
	h.kernels()
	h.memory()
	h.names()
	h.sections()
	return h.broken
}

type holding struct {
	f, g          *File
	before, after []byte
	edit          Edit
	changeable    []span
	broken        []string
}

func (h *holding) fail(format string, args ...any) {
	h.broken = append(h.broken, fmt.Sprintf(format, args...))
}

// headers: the ELF header says the same but for where tables are.
func (h *holding) headers() {
	f, g := h.f, h.g
	if !bytes.Equal(h.before[:24+f.word()], h.after[:24+f.word()]) {
		h.fail("e_ident, e_type, e_machine or e_entry changed")
	}
	if f.shnum != g.shnum || f.shstrndx != g.shstrndx || f.Type != g.Type {
		h.fail("the ELF header changed")
	}
	for _, kind := range []elf.ProgType{elf.PT_TLS, elf.PT_GNU_RELRO, elf.PT_GNU_EH_FRAME, elf.PT_DYNAMIC, elf.PT_INTERP, ptGNUProperty} {
		i, k := f.segment(kind), g.segment(kind)
		if (i < 0) != (k < 0) {
			h.fail("%v came or went", kind)
			continue
		}
		if i >= 0 && kind != elf.PT_DYNAMIC && kind != elf.PT_INTERP && kind != ptGNUProperty && f.phdrs[i] != g.phdrs[k] {
			h.fail("%v changed", kind)
		}
	}
	if was, is := notes(h.before, f), notes(h.after, g); was != is {
		h.fail("notes were %q, are %q", was, is)
	}
}

// notes is what PT_NOTE and PT_GNU_PROPERTY hold, each once.
func notes(b []byte, f *File) string {
	var all []string
	for _, p := range f.phdrs {
		if kind := elf.ProgType(p.kind); kind == elf.PT_NOTE || kind == ptGNUProperty {
			all = append(all, string(b[p.off:p.end()]))
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "|")
}

// segments: what gABI and loaders ask of PT_LOADs, where it held before.
func (h *holding) segments() {
	was := complaints(h.f)
	for _, c := range complaints(h.g) {
		if !slices.ContainsFunc(was, func(s string) bool { return s[:8] == c[:8] }) {
			h.fail("%s", c)
		}
	}
	highest := uint64(0)
	for _, p := range h.f.phdrs {
		if p.load() {
			highest = max(highest, p.alignment)
		}
	}
	for _, p := range h.g.phdrs {
		if p.load() && p.alignment < min(highest, 4096) {
			h.fail("a PT_LOAD is aligned at %d", p.alignment)
		}
	}
}

// complaints of a file; the first eight letters say which rule.
func complaints(f *File) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	var last phdr
	for i, p := range f.phdrs {
		if p.filesz > 0 && p.end() > uint64(f.size) {
			say("past-end %d", i)
		}
		if !p.load() || p.memsz == 0 {
			continue
		}
		if p.alignment > 1 && (p.vaddr-p.off)%p.alignment != 0 {
			say("congruent: PT_LOAD %d: %#x at %#x", i, p.off, p.vaddr)
		}
		if p.filesz > p.memsz {
			say("filesize: PT_LOAD %d", i)
		}
		if last.memsz > 0 && last.vend() > p.vaddr {
			say("ascending: PT_LOAD %d", i)
		}
		if last.memsz > 0 && up(last.vend(), 4096) > p.vaddr&^4095 {
			say("disjoint: PT_LOAD %d", i)
		}
		last = p
	}
	if dyn := f.segment(elf.PT_DYNAMIC); dyn >= 0 {
		p := f.phdrs[dyn]
		if off, flags, ok := loadedAt(f, p.vaddr); !ok || off != p.off || flags&uint32(elf.PF_W) == 0 {
			say("dynamic: not in a writable PT_LOAD at its offset")
		}
	}
	if i := f.segment(elf.PT_INTERP); i >= 0 {
		p := f.phdrs[i]
		if off, _, ok := loadedAt(f, p.vaddr); !ok || off != p.off {
			say("interpreter: not in a PT_LOAD")
		}
	}
	return out
}

// loadedAt is the offset and the flags of what is loaded at an address.
func loadedAt(f *File, addr uint64) (off uint64, flags uint32, ok bool) {
	for _, p := range f.phdrs {
		if p.load() && addr >= p.vaddr && addr < p.vaddr+p.filesz {
			return p.off + addr - p.vaddr, p.flags, true
		}
	}
	return 0, 0, false
}

// memory: what was loaded at an address is loaded there now, but for the
// headers, the dynamic section, the strings, the interpreter, the versions
// and what had to make way; code and data never change, nor does bss.
func (h *holding) memory() {
	for _, p := range h.f.phdrs {
		if !p.load() {
			continue
		}
		i := slices.IndexFunc(h.g.phdrs, func(q phdr) bool { return q.load() && q.vaddr == p.vaddr && q.off == p.off })
		if i < 0 {
			h.fail("the PT_LOAD at %#x is gone", p.vaddr)
			continue
		}
		q := h.g.phdrs[i]
		if q.flags != p.flags && !h.holdsDynamic(p, q) || q.filesz < p.filesz || q.memsz < p.memsz || (p.memsz > p.filesz && q.filesz != p.filesz) {
			h.fail("the PT_LOAD at %#x has other flags, less content or less bss", p.vaddr)
			continue
		}
		plain := p.flags&uint32(elf.PF_X|elf.PF_W) != 0
		h.compare(p, plain)
	}
}

// holdsDynamic tells whether p was read-only data at the end of the file, as an
// edit leaves it, and q became writable because the dynamic section is there now.
func (h *holding) holdsDynamic(p, q phdr) bool {
	return p.flags == uint32(elf.PF_R) && q.flags == uint32(elf.PF_R|elf.PF_W) && p.end() == uint64(h.f.size) &&
		h.g.dynAddr >= p.vend() && h.g.dynAddr < q.vend()
}

// compare looks at the bytes of a PT_LOAD outside of what may change.
func (h *holding) compare(p phdr, always bool) {
	if !always && h.f.shnum == 0 {
		return // what lies where in read-only data is not known without sections
	}
	at := p.off
	for _, s := range append(h.mayChange(), span{p.end(), p.end()}) {
		if hi := min(s.lo, p.end()); at < hi && !bytes.Equal(h.before[at:hi], h.after[at:hi]) {
			h.fail("bytes in %#x-%#x changed, of the PT_LOAD at %#x", at, hi, p.vaddr)
			return
		}
		at = max(at, s.hi)
	}
}

// mayChange lists the ranges of the old file that an edit may write to, in
// order.
func (h *holding) mayChange() []span {
	if h.changeable != nil {
		return h.changeable
	}
	f := h.f
	// One more program header, two with PT_GNU_STACK.
	out := []span{{0, uint64(f.ehdrSize())}, {f.phoff, f.phoff + uint64((f.phnum+2)*f.phdrSize())}, {f.dynOff, f.dynOff + f.dynLen}, {f.strOff, f.strOff + f.strSize}}
	if i := f.segment(elf.PT_INTERP); i >= 0 {
		out = append(out, span{f.phdrs[i].off, f.phdrs[i].end()})
	}
	var taken []span
	if f.shnum > 0 {
		taken = append(taken, span{f.shoff, f.shoff + uint64(f.shnum*f.shdrSize())})
		out = append(out, taken[0])
	}
	_ = f.eachShdr(maxShdrs, func(_ int, s shdr) bool {
		switch kind := elf.SectionType(s.kind); {
		case kind == elf.SHT_GNU_VERNEED, kind == elf.SHT_GNU_VERSYM && len(h.edit.RemoveNeeded) > 0:
			out = append(out, span{s.off, s.off + s.size})
		case s.inFile():
			taken = append(taken, span{s.off, s.off + s.size})
		}
		return true
	})
	if f.shnum > 0 {
		out = append(out, gaps(h.before, taken)...)
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	h.changeable = out
	return out
}

// gaps are the zero bytes between what is taken: they are nobody's.
func gaps(b []byte, taken []span) []span {
	slices.SortFunc(taken, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	var out []span
	at := uint64(0)
	for _, s := range append(taken, span{uint64(len(b)), uint64(len(b))}) {
		for ; at < s.lo; at++ {
			lo := at
			for at < s.lo && b[at] == 0 {
				at++
			}
			if at > lo {
				out = append(out, span{lo, at})
			}
		}
		at = max(at, s.hi)
	}
	return out
}

// names: symbols and versions say what they said, but for libraries that got
// another name or went.
func (h *holding) names() {
	if h.f.shnum == 0 {
		return
	}
	f, errF := elf.NewFile(bytes.NewReader(h.before))
	g, errG := elf.NewFile(bytes.NewReader(h.after))
	if errF != nil {
		return // debug/elf does not read all that there is
	}
	if errG != nil {
		h.fail("debug/elf: %v", errG)
		return
	}
	was, errF := f.DynamicSymbols()
	is, errG := g.DynamicSymbols()
	if (errF == nil) != (errG == nil) || len(was) != len(is) {
		h.fail("%d dynamic symbols (%v) became %d (%v)", len(was), errF, len(is), errG)
		return
	}
	for i, s := range was {
		if now, changes := h.edit.ReplaceNeeded[s.Library]; changes {
			s.Library = now
		}
		if slices.Contains(h.edit.RemoveNeeded, s.Library) {
			s.Library, s.Version, s.VersionIndex, s.HasVersion = is[i].Library, is[i].Version, is[i].VersionIndex, is[i].HasVersion
		}
		if s != is[i] && !(s.Section == is[i].Section && elf.ST_TYPE(s.Info) == elf.STT_SECTION) {
			h.fail("symbol %d was %+v, is %+v", i, s, is[i])
			return
		}
	}
	if all, _ := f.Symbols(); len(all) > 0 {
		now, err := g.Symbols()
		if err != nil || len(now) != len(all) {
			h.fail("%d symbols became %d (%v)", len(all), len(now), err)
		}
	}
}

// sections: code and data are where they were; what moved is of a kind that
// may, and its content is the same.
func (h *holding) sections() {
	f, errF := elf.NewFile(bytes.NewReader(h.before))
	g, errG := elf.NewFile(bytes.NewReader(h.after))
	if errF != nil || errG != nil || len(f.Sections) != len(g.Sections) {
		return // names says so
	}
	for i, s := range f.Sections {
		t := g.Sections[i]
		if s.Name != t.Name || s.Type != t.Type || s.Link != t.Link || s.Info != t.Info && s.Type != elf.SHT_GNU_VERNEED {
			h.fail("section %s was %+v, is %+v", s.Name, s.SectionHeader, t.SectionHeader)
			continue
		}
		switch {
		case s.Type == elf.SHT_DYNAMIC, s.Type == elf.SHT_GNU_VERNEED, s.Type == elf.SHT_SYMTAB, s.Name == ".dynstr", s.Name == ".interp":
			continue // loaders' view of them is compared
		case s.Type == elf.SHT_GNU_VERSYM && len(h.edit.RemoveNeeded) > 0:
			continue
		case s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NULL:
			if s.SectionHeader != t.SectionHeader {
				h.fail("section %s was %+v, is %+v", s.Name, s.SectionHeader, t.SectionHeader)
			}
			continue
		}
		moves := s.Type == elf.SHT_NOTE || s.Type == elf.SHT_HASH || s.Type == elf.SHT_GNU_HASH || s.Type == elf.SHT_DYNSYM ||
			s.Type == elf.SHT_GNU_VERSYM
		if !moves && (s.Addr != t.Addr || s.Offset != t.Offset) || s.Size != t.Size {
			h.fail("section %s moved or changed its size", s.Name)
			continue
		}
		was, errF := s.Data()
		is, errG := t.Data()
		if errF == nil && (errG != nil || !bytes.Equal(was, is)) && s.Type != elf.SHT_DYNSYM {
			h.fail("the content of section %s changed", s.Name)
		}
	}
}

var numbers = regexp.MustCompile(`0x[0-9a-f]+|\d+`)

// complaintsOf is what a tool says of a file, without numbers and names.
func complaintsOf(path string, command ...string) []string {
	out, err := exec.Command(command[0], append(command[1:], path)...).CombinedOutput()
	text := strings.ReplaceAll(string(out), path, "FILE")
	if err != nil {
		text += "\n" + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(numbers.ReplaceAllString(text, "N")), "\n")
	slices.Sort(lines)
	return slices.Compact(lines)
}
