package patchelf

import (
	"bytes"
	"debug/elf"
	"slices"
)

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
		if t.flags == s.flags|uint32(elf.PF_W) && s.flags == uint32(elf.PF_R) && t.end() == uint64(g.size) && i == len(was)-1 {
			s.flags = t.flags // the end of the file, which takes the dynamic section in
		}
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

// keptHeaders checks that every program header that is not a PT_LOAD is still
// there, with its flags, its size and what is in it. Only what loaders do not
// need may go: PT_NULL, the PT_PHDR of what is not position-independent or no
// program, and the PT_NOTE that PT_GNU_PROPERTY repeats.
func keptHeaders(f, g *File) error {
	next := 0
	for i := range f.phdrs {
		s := &f.phdrs[i]
		if s.load() || elf.ProgType(s.kind) == elf.PT_NULL {
			continue
		}
		at := slices.IndexFunc(g.phdrs[next:], func(t phdr) bool { return t.kind == s.kind && sameHeader(f, g, *s, t) })
		if at < 0 && !dispensable(f, i) {
			return refuse("the result would lack program header %d (%v), or have it otherwise", i, elf.ProgType(s.kind))
		}
		if at >= 0 {
			next += at + 1
		}
	}
	return nil
}

func dispensable(f *File, i int) bool {
	switch s := &f.phdrs[i]; elf.ProgType(s.kind) {
	case elf.PT_PHDR:
		return f.Type == elf.ET_EXEC || f.segment(elf.PT_INTERP) < 0
	case elf.PT_NOTE:
		k := f.segment(ptGNUProperty)
		return k >= 0 && f.phdrs[k].off == s.off && f.phdrs[k].filesz == s.filesz
	}
	return false
}

// sameHeader tells whether t is s, perhaps in another place.
func sameHeader(f, g *File, s, t phdr) bool {
	switch elf.ProgType(s.kind) {
	case elf.PT_PHDR, elf.PT_INTERP, elf.PT_DYNAMIC: // what they hold is checked by what it says
		return t.flags == s.flags && t.alignment == s.alignment
	case elf.PT_GNU_STACK:
		t.flags = t.flags&^uint32(elf.PF_X) | s.flags&uint32(elf.PF_X)
	case elf.PT_NOTE, ptGNUProperty:
		if t.off == s.off || t.filesz != s.filesz || s.filesz > maxNote {
			break
		}
		a, errA := f.read("note", s.off, s.filesz)
		b, errB := g.read("note", t.off, t.filesz)
		f.rebase(a, t.vaddr-s.vaddr)
		t.off, t.vaddr, t.paddr = s.off, s.vaddr, s.paddr
		return s == t && errA == nil && errB == nil && bytes.Equal(a, b)
	}
	return s == t
}

// keptBytes checks that only bytes change that the edit is about: headers, the
// dynamic section, its strings and versions, the interpreter, the symbols of
// what moved, the room of what moved; or bytes that are zero and nobody's.
func keptBytes(f *File, p *Plan, pl *planner) error {
	mine := permitted(f, pl)
	spare := func(o *owner) bool { // PT_PHDR may be longer than the table
		return o.kind == ownLoad || o.kind == ownSegment && elf.ProgType(f.phdrs[o.index].kind) == elf.PT_PHDR
	}
	for _, w := range p.writes {
		for i := 0; i < len(w.old); {
			at := uint64(w.off) + uint64(i)
			if k := slices.IndexFunc(mine, func(s span) bool { return s.lo <= at && at < s.hi }); k >= 0 {
				i = int(min(uint64(len(w.old)), mine[k].hi-uint64(w.off)))
				continue
			}
			if w.old[i] != w.data[i] && (w.old[i] != 0 || pl.owned(at, at+1, spare)) {
				return refuse("the result would change byte %d, which the edit is not about", at)
			}
			i++
		}
	}
	return nil
}

func permitted(f *File, pl *planner) []span {
	out := []span{
		{0, uint64(f.ehdrSize())},
		{f.phoff, f.phoff + uint64(f.phnum*f.phdrSize())},
		{f.shoff, f.shoff + uint64(f.shnum*f.shdrSize())},
		{f.dynOff, f.dynOff + f.dynLen},
		{f.strOff, f.strOff + f.strSize},
	}
	if i := f.segment(elf.PT_INTERP); i >= 0 {
		s := &f.phdrs[i]
		end := s.off + uint64(len(f.Interp)+1)
		if pl.interpOwn(end, s) {
			end = s.end()
		}
		out = append(out, span{s.off, end})
	}
	for i := range pl.verns {
		out = append(out, span{pl.verns[i].off, pl.verns[i].off + 16})
	}
	if off, left, present, ok := pl.table(elf.DT_VERSYM); present && ok && pl.lost() > 0 {
		n, _ := pl.symbolCount()
		out = append(out, span{off, off + min(left, 2*n)})
	}
	for i := range pl.was {
		if s := &pl.was[i]; elf.SectionType(s.kind) == elf.SHT_SYMTAB {
			out = append(out, span{s.off, s.off + s.size})
		}
	}
	out = append(out, pl.ousted...)
	return slices.DeleteFunc(out, func(s span) bool { return s.lo >= s.hi })
}
