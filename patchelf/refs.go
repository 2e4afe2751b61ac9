package patchelf

import (
	"debug/elf"
	"slices"
)

// refs is the set of offsets of the dynamic string table that something
// refers to.
type refs struct {
	bits  []uint64
	size  uint64
	known bool // false: there may be others
}

func (r *refs) add(at uint64) {
	if at < r.size {
		r.bits[at/64] |= 1 << (at % 64)
	}
}

// any tells whether something refers into [lo, hi).
func (r *refs) any(lo, hi uint64) bool {
	if !r.known {
		return true
	}
	for at := lo; at < min(hi, r.size); at++ {
		if r.bits[at/64]&(1<<(at%64)) != 0 {
			return true
		}
	}
	return false
}

// first returns the lowest offset in [lo, hi) that something refers to.
func (r *refs) first(lo, hi uint64) (uint64, bool) {
	for at := lo; at < min(hi, r.size); at++ {
		if r.bits[at/64]&(1<<(at%64)) != 0 {
			return at, true
		}
	}
	return 0, false
}

func (r *refs) clone() *refs {
	return &refs{bits: slices.Clone(r.bits), size: r.size, known: r.known}
}

// last returns the highest offset in [lo, hi) that something refers to.
func (r *refs) last(lo, hi uint64) (uint64, bool) {
	for at := min(hi, r.size); at > lo; at-- {
		if r.bits[(at-1)/64]&(1<<((at-1)%64)) != 0 {
			return at - 1, true
		}
	}
	return 0, false
}

// maxSyms bounds the symbols, and maxVers the version records, looked at.
const (
	maxSyms = 1 << 24
	maxVers = 1 << 16
)

// collectRefs finds every reference to the dynamic string table but for those
// that the edit changes: of entries that items give another name or that are
// not among them, and of the versions of libraries that change.
func (p *planner) collectRefs(items []item) *refs {
	f := p.f
	stays := make([]bool, len(f.dyns))
	for _, it := range items {
		if it.from >= 0 && !it.named {
			stays[it.from] = true
		}
	}
	r := &refs{bits: make([]uint64, f.strSize/64+1), size: f.strSize, known: !p.overrun()}
	r.add(0)
	for i, d := range f.dyns {
		if refersTo(elf.DynTag(d.tag)) && (stays[i] || !nameTag(d)) {
			r.add(d.val)
		}
	}
	for _, collect := range []func(*refs) bool{p.symbolRefs, p.verneedRefs, p.verdefRefs} {
		if !collect(r) {
			r.known = false
			break
		}
	}
	return r
}

// overrun tells whether DT_STRSZ claims bytes of something else, too.
func (p *planner) overrun() bool {
	f := p.f
	for _, d := range f.dyns {
		if t := elf.DynTag(d.tag); isAddress(t) && t != elf.DT_STRTAB && d.val > f.strAddr && d.val-f.strAddr < f.strSize {
			return true
		}
	}
	return p.owned(f.strOff, f.strOff+f.strSize, func(o *owner) bool {
		switch o.kind {
		case ownLoad:
			return true
		case ownSection:
			return p.was[o.index].addr == f.strAddr
		case ownSegment:
			return elf.ProgType(f.phdrs[o.index].kind) == elf.PT_GNU_RELRO
		}
		return false
	})
}

// refersTo tells whether the value of a tag is, or may be, an offset in the
// string table: the tags that name strings, and every tag not known here.
func refersTo(t elf.DynTag) bool {
	switch {
	case t == elf.DT_NEEDED, t == elf.DT_SONAME, t == elf.DT_RPATH, t == elf.DT_RUNPATH:
		return true
	case t >= 0 && t <= 37: // DT_NULL to DT_RELRENT
		return false
	case t >= elf.DT_VALRNGLO && t <= elf.DT_VALRNGHI:
		return false
	case t == elf.DT_CONFIG, t == elf.DT_DEPAUDIT, t == elf.DT_AUDIT:
		return true
	case t >= elf.DT_ADDRRNGLO && t <= elf.DT_ADDRRNGHI:
		return false
	case t >= elf.DT_VERSYM && t <= elf.DT_VERNEEDNUM: // with DT_RELACOUNT and DT_FLAGS_1
		return false
	}
	return true
}

// table maps an address of the dynamic section to the file.
func (p *planner) table(tag elf.DynTag) (off, left uint64, present, ok bool) {
	addr, present := p.f.dynValue(tag)
	if !present {
		return 0, 0, false, true
	}
	off, left, ok = fileOffset(p.f.phdrs, addr)
	return off, left, true, ok
}

// symbolRefs marks the names of dynamic symbols.
func (p *planner) symbolRefs(r *refs) bool {
	off, left, present, ok := p.table(elf.DT_SYMTAB)
	if !present || !ok {
		return ok
	}
	n, ok := p.symbolCount()
	size := uint64(p.f.symSize())
	if !ok || n > maxSyms || n > left/size {
		return false
	}
	per := uint64(readChunk*4) / size
	for i := uint64(0); i < n; i += per {
		m := min(per, n-i)
		b, err := p.f.read("DT_SYMTAB", off+i*size, m*size)
		if err != nil {
			return false
		}
		for ; len(b) > 0; b = b[size:] {
			r.add(uint64(p.f.order.Uint32(b))) // st_name comes first in both classes
		}
	}
	return true
}

// symbolCount is the number of dynamic symbols. No tag says it: it is the
// longest of what the hash tables and the section header say. A GNU hash
// table that hashes nothing does not tell (GNU ld writes 1), so another
// source must.
func (p *planner) symbolCount() (uint64, bool) {
	addr, _ := p.f.dynValue(elf.DT_SYMTAB)
	n, known := uint64(0), false
	for i := range p.shdrs {
		if s := &p.shdrs[i]; elf.SectionType(s.kind) == elf.SHT_DYNSYM && s.addr == addr {
			n, known = max(n, s.size/uint64(p.f.symSize())), true
		}
	}
	if off, _, present, ok := p.table(elf.DT_HASH); present {
		m, fine := p.sysvCount(off)
		if !ok || !fine {
			return 0, false
		}
		n, known = max(n, m), true
	}
	if off, _, present, ok := p.table(elf.DT_GNU_HASH); present {
		m, fine := p.gnuCount(off)
		if !ok || !fine {
			return 0, false
		}
		n, known = max(n, m), known || m > 0
	}
	return n, known
}

// sysvCount reads nchain, which equals the number of symbols. The words of
// the table are 8 bytes wide on two machines.
func (p *planner) sysvCount(off uint64) (uint64, bool) {
	const alpha = elf.Machine(0x9026)
	if p.f.wide && (p.f.Machine == elf.EM_S390 || p.f.Machine == alpha) {
		b, err := p.f.read("DT_HASH", off, 16)
		if err != nil {
			return 0, false
		}
		return p.f.order.Uint64(b[8:]), true
	}
	b, err := p.f.read("DT_HASH", off, 8)
	if err != nil {
		return 0, false
	}
	return uint64(p.f.order.Uint32(b[4:])), true
}

// gnuCount walks the chain of the highest bucket to its end. It returns 0 for
// a table without symbols.
func (p *planner) gnuCount(off uint64) (uint64, bool) {
	u32 := p.f.order.Uint32
	b, err := p.f.read("DT_GNU_HASH", off, 16)
	if err != nil {
		return 0, false
	}
	buckets, first, words := uint64(u32(b)), uint64(u32(b[4:])), uint64(u32(b[8:]))
	if buckets > maxSyms || words > maxSyms {
		return 0, false
	}
	at := off + 16 + words*uint64(p.f.word())
	b, err = p.f.read("DT_GNU_HASH", at, buckets*4)
	if err != nil {
		return 0, false
	}
	last := uint64(0)
	for ; len(b) > 0; b = b[4:] {
		last = max(last, uint64(u32(b)))
	}
	if last == 0 {
		return 0, true
	}
	if last < first || last > maxSyms {
		return 0, false
	}
	return p.chainEnd(at+buckets*4, last-first, first)
}

func (p *planner) chainEnd(chains, i, first uint64) (uint64, bool) {
	const per = 256
	for ; i < maxSyms; i += per {
		n := uint64(per)
		if left := uint64(p.f.size) - min(uint64(p.f.size), chains+i*4); left < n*4 {
			n = left / 4
		}
		b, err := p.f.read("DT_GNU_HASH", chains+i*4, n*4)
		if err != nil || n == 0 {
			return 0, false
		}
		for k := range n {
			if p.f.order.Uint32(b[k*4:])&1 != 0 {
				return first + i + k + 1, true
			}
		}
	}
	return 0, false
}

// verneedRefs marks the file and version names that are needed: Elf_Verneed
// {version, cnt, file, aux, next} with Elf_Vernaux {hash, flags, other, name,
// next}, the same in both classes.
func (p *planner) verneedRefs(r *refs) bool {
	return p.versions(elf.DT_VERNEED, elf.DT_VERNEEDNUM, 16, func(b []byte) (int, uint64, uint64) {
		if at := uint64(p.f.order.Uint32(b[4:])); !p.renamed(at) {
			r.add(at)
		}
		return int(p.f.order.Uint16(b[2:])), uint64(p.f.order.Uint32(b[8:])), uint64(p.f.order.Uint32(b[12:]))
	}, 16, func(b []byte) uint64 {
		r.add(uint64(p.f.order.Uint32(b[8:])))
		return uint64(p.f.order.Uint32(b[12:]))
	})
}

// renamed tells whether all records whose library has its name at an offset
// get another, or go.
func (p *planner) renamed(at uint64) bool {
	return slices.ContainsFunc(p.verns, func(v vern) bool { return v.file == at && (v.gone || v.now != "") })
}

// verdefRefs marks the version names that are defined: Elf_Verdef {version,
// flags, ndx, cnt, hash, aux, next} with Elf_Verdaux {name, next}.
func (p *planner) verdefRefs(r *refs) bool {
	return p.versions(elf.DT_VERDEF, elf.DT_VERDEFNUM, 20, func(b []byte) (int, uint64, uint64) {
		return int(p.f.order.Uint16(b[6:])), uint64(p.f.order.Uint32(b[12:])), uint64(p.f.order.Uint32(b[16:]))
	}, 8, func(b []byte) uint64 {
		r.add(uint64(p.f.order.Uint32(b)))
		return uint64(p.f.order.Uint32(b[4:]))
	})
}

// versions walks a list of version records and the list that hangs on each.
func (p *planner) versions(tag, count elf.DynTag, size uint64, record func([]byte) (n int, aux, next uint64), auxSize uint64, aux func([]byte) (next uint64)) bool {
	off, _, present, ok := p.table(tag)
	n, counted := p.f.dynValue(count)
	if !present || !ok {
		return ok
	}
	if !counted || n > maxVers {
		return false
	}
	seen := 0
	for range n {
		b, err := p.f.read(tag.String(), off, size)
		if err != nil {
			return false
		}
		auxes, first, next := record(b)
		at := off + first
		for range auxes {
			if seen++; seen > maxVers {
				return false
			}
			b, err := p.f.read(tag.String(), at, auxSize)
			if err != nil {
				return false
			}
			step := aux(b)
			if at += step; step == 0 {
				break
			}
		}
		if off += next; next == 0 {
			break
		}
	}
	return true
}
