package patchelf

import (
	"debug/elf"
	"encoding/binary"
)

// layout reads and writes the records of one class and byte order. The
// records themselves are class-neutral: a 32-bit field is widened.
type layout struct {
	order binary.ByteOrder
	wide  bool // ELFCLASS64
}

type phdr struct {
	kind, flags                                 uint32
	off, vaddr, paddr, filesz, memsz, alignment uint64
}

func (p *phdr) end() uint64  { return p.off + p.filesz }
func (p *phdr) vend() uint64 { return p.vaddr + p.memsz }
func (p *phdr) load() bool   { return elf.ProgType(p.kind) == elf.PT_LOAD }

type shdr struct {
	name, kind             uint32
	flags, addr, off, size uint64
	link, info             uint32
	alignment, entsize     uint64
}

// inFile tells whether the section has bytes in the file.
func (s *shdr) inFile() bool {
	return elf.SectionType(s.kind) != elf.SHT_NOBITS && elf.SectionType(s.kind) != elf.SHT_NULL && s.size > 0
}

func (s *shdr) alloc() bool { return s.flags&uint64(elf.SHF_ALLOC) != 0 }

type dyn struct{ tag, val uint64 }

func (d dyn) is(t elf.DynTag) bool { return d.tag == uint64(t) }

func (l layout) word() int {
	if l.wide {
		return 8
	}
	return 4
}

func (l layout) ehdrSize() int { return 40 + 3*l.word() }
func (l layout) dynSize() int  { return 2 * l.word() }

func (l layout) phdrSize() int {
	if l.wide {
		return 56
	}
	return 32
}

func (l layout) shdrSize() int {
	if l.wide {
		return 64
	}
	return 40
}

func (l layout) symSize() int {
	if l.wide {
		return 24
	}
	return 16
}

// get reads an address-sized field.
func (l layout) get(b []byte) uint64 {
	if l.wide {
		return l.order.Uint64(b)
	}
	return uint64(l.order.Uint32(b))
}

// put writes an address-sized field.
func (l layout) put(b []byte, v uint64) {
	if l.wide {
		l.order.PutUint64(b, v)
		return
	}
	l.order.PutUint32(b, uint32(v))
}

func (l layout) phdr(b []byte) phdr {
	u32, w := l.order.Uint32, l.word()
	at := func(i int) uint64 { return l.get(b[4+i*w:]) }
	if l.wide { // p_flags moved up, for alignment
		at = func(i int) uint64 { return l.get(b[8+i*w:]) }
		return phdr{kind: u32(b), flags: u32(b[4:]), off: at(0), vaddr: at(1), paddr: at(2), filesz: at(3), memsz: at(4), alignment: at(5)}
	}
	return phdr{kind: u32(b), flags: u32(b[24:]), off: at(0), vaddr: at(1), paddr: at(2), filesz: at(3), memsz: at(4), alignment: at(6)}
}

func (l layout) putPhdr(b []byte, p phdr) {
	l.order.PutUint32(b, p.kind)
	w := l.word()
	if l.wide {
		l.order.PutUint32(b[4:], p.flags)
		for i, v := range []uint64{p.off, p.vaddr, p.paddr, p.filesz, p.memsz, p.alignment} {
			l.put(b[8+i*w:], v)
		}
		return
	}
	for i, v := range []uint64{p.off, p.vaddr, p.paddr, p.filesz, p.memsz, uint64(p.flags), p.alignment} {
		l.put(b[4+i*w:], v)
	}
}

func (l layout) shdr(b []byte) shdr {
	u32, w := l.order.Uint32, l.word()
	at := func(i int) uint64 { return l.get(b[8+i*w:]) }
	t := b[8+4*w:]
	return shdr{name: u32(b), kind: u32(b[4:]), flags: at(0), addr: at(1), off: at(2), size: at(3),
		link: u32(t), info: u32(t[4:]), alignment: l.get(t[8:]), entsize: l.get(t[8+w:])}
}

func (l layout) putShdr(b []byte, s shdr) {
	put32, w := l.order.PutUint32, l.word()
	put32(b, s.name)
	put32(b[4:], s.kind)
	for i, v := range []uint64{s.flags, s.addr, s.off, s.size} {
		l.put(b[8+i*w:], v)
	}
	t := b[8+4*w:]
	put32(t, s.link)
	put32(t[4:], s.info)
	l.put(t[8:], s.alignment)
	l.put(t[8+w:], s.entsize)
}

func (l layout) dyn(b []byte) dyn {
	return dyn{tag: l.get(b), val: l.get(b[l.word():])}
}

func (l layout) putDyns(ds []dyn) []byte {
	b := make([]byte, len(ds)*l.dynSize())
	for i, d := range ds {
		l.put(b[i*l.dynSize():], d.tag)
		l.put(b[i*l.dynSize()+l.word():], d.val)
	}
	return b
}

func (l layout) putPhdrs(ps []phdr) []byte {
	b := make([]byte, len(ps)*l.phdrSize())
	for i, p := range ps {
		l.putPhdr(b[i*l.phdrSize():], p)
	}
	return b
}
