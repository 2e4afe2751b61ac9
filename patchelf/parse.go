package patchelf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// Limits of what is read. They are far above what linkers make and what
// loaders accept, and keep hostile headers from costing memory or time.
const (
	maxPhdrs   = 1 << 16
	maxShdrs   = 1 << 20
	maxDynamic = 1 << 20 // bytes of .dynamic
	maxString  = 1 << 20 // bytes of one string
	maxStrings = 8 << 20 // bytes of all strings that File holds
	readChunk  = 16 << 10

	maxCompanion = 512 // section headers looked at to tell a debug file
)

// File is what one ELF file says of itself. It holds no content beyond
// headers and the strings below; more is read from the io.ReaderAt given to
// Parse when it is asked for.
type File struct {
	Class     int // 32 or 64
	ByteOrder binary.ByteOrder
	Type      elf.Type
	Machine   elf.Machine

	Dynamic bool     // there is a PT_DYNAMIC with content
	Interp  string   // PT_INTERP, "" if none
	Soname  string   // DT_SONAME
	Needed  []string // DT_NEEDED, in order
	RPath   *string  // DT_RPATH, nil if there is none
	RunPath *string  // DT_RUNPATH, nil if there is none; loaders ignore DT_RPATH when there is one

	layout
	r    io.ReaderAt
	size int64

	version                  uint32
	phoff, shoff             uint64
	phnum, shnum, shstrndx   int
	rawPhnum                 uint16
	phdrs                    []phdr
	companion                bool // separate debug file: headers without content
	dynOff, dynAddr, dynLen  uint64
	dyns                     []dyn // up to and without the first DT_NULL
	dynTail                  int   // DT_NULL entries behind dyns, within PT_DYNAMIC
	strOff, strAddr, strSize uint64
	hasStrtab                bool
	stringBytes              int
	shdrsCut                 bool // the section header table is not, or not wholly, in the file
}

// Parse reads the headers of the ELF file of size bytes behind r.
// It returns ErrNotELF if the magic is missing, and a *FormatError if the
// headers do not make sense. r is kept for Section and Plan.
func Parse(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size}
	for _, step := range []func() error{f.readEhdr, f.readPhdrs, f.readCompanion, f.readInterp, f.readDynamic, f.readStrings} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// read returns n bytes at off. The caller bounds n.
func (f *File) read(field string, off, n uint64) ([]byte, error) {
	if off > uint64(f.size) || n > uint64(f.size)-off {
		return nil, malformed(field, "bytes %d+%d lie past the end of the file (%d bytes)", off, n, f.size)
	}
	b := make([]byte, n)
	got, err := f.r.ReadAt(b, int64(off))
	switch {
	case got == len(b):
		return b, nil
	case err == nil || errors.Is(err, io.EOF):
		return nil, malformed(field, "the file ends early, at %d", off+uint64(got))
	}
	return nil, fmt.Errorf("read %s: %w", field, err)
}

func (f *File) readEhdr() error {
	if f.size < elf.EI_NIDENT {
		return ErrNotELF
	}
	id, err := f.read("e_ident", 0, elf.EI_NIDENT)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(id, []byte(elf.ELFMAG)) {
		return ErrNotELF
	}
	if err := f.readIdent(id); err != nil {
		return err
	}
	b, err := f.read("ELF header", 0, uint64(f.ehdrSize()))
	if err != nil {
		return err
	}
	w := f.word()
	f.Type, f.Machine = elf.Type(f.order.Uint16(b[16:])), elf.Machine(f.order.Uint16(b[18:]))
	f.version = f.order.Uint32(b[20:])
	f.phoff, f.shoff = f.get(b[24+w:]), f.get(b[24+2*w:])
	t := b[24+3*w+6:] // behind e_flags and e_ehsize
	u16 := func(i int) int { return int(f.order.Uint16(t[2*i:])) }
	f.rawPhnum = uint16(u16(1))
	f.phnum, f.shnum, f.shstrndx = u16(1), u16(3), u16(4)
	if f.phnum > 0 && u16(0) != f.phdrSize() {
		return malformed("e_phentsize", "%d, not %d", u16(0), f.phdrSize())
	}
	return f.readCounts(u16(2))
}

func (f *File) readIdent(id []byte) error {
	switch elf.Class(id[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
		f.Class = 32
	case elf.ELFCLASS64:
		f.Class, f.wide = 64, true
	default:
		return malformed("EI_CLASS", "%d", id[elf.EI_CLASS])
	}
	switch elf.Data(id[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		f.ByteOrder = binary.LittleEndian
	case elf.ELFDATA2MSB:
		f.ByteOrder = binary.BigEndian
	default:
		return malformed("EI_DATA", "%d", id[elf.EI_DATA])
	}
	f.order = f.ByteOrder
	if elf.Version(id[elf.EI_VERSION]) != elf.EV_CURRENT {
		return malformed("EI_VERSION", "%d", id[elf.EI_VERSION])
	}
	return nil
}

// readCounts settles the counts of headers, which overflow into the first
// section header (PN_XNUM, and e_shnum 0 with an e_shoff). A section header
// table that is not in the file is noted, not an error: loaders do not look.
func (f *File) readCounts(shentsize int) error {
	const xnum, xindex = 0xffff, 0xffff
	if f.shoff == 0 || shentsize != f.shdrSize() || f.shoff > uint64(f.size) || uint64(f.size)-f.shoff < uint64(f.shdrSize()) {
		f.shdrsCut = f.shoff != 0 && f.shnum > 0
		f.shnum = 0
		if f.phnum == xnum {
			return malformed("e_phnum", "PN_XNUM without a section header that holds the number")
		}
		return nil
	}
	b, err := f.read("section header 0", f.shoff, uint64(f.shdrSize()))
	if err != nil {
		return err
	}
	zero := f.shdr(b)
	if f.phnum == xnum {
		f.phnum = int(zero.info)
	}
	if f.shnum == 0 {
		f.shnum = int(min(zero.size, math.MaxInt32))
	}
	if f.shstrndx == xindex {
		f.shstrndx = int(zero.link)
	}
	if uint64(f.shnum) > (uint64(f.size)-f.shoff)/uint64(f.shdrSize()) || f.shnum > maxShdrs {
		f.shdrsCut, f.shnum = true, 0
	}
	return nil
}

func (f *File) readPhdrs() error {
	if f.phnum == 0 {
		return nil
	}
	if f.phnum > maxPhdrs {
		return malformed("e_phnum", "%d program headers", f.phnum)
	}
	b, err := f.read("program headers", f.phoff, uint64(f.phnum*f.phdrSize()))
	if err != nil {
		return err
	}
	f.phdrs = make([]phdr, f.phnum)
	for i := range f.phdrs {
		p := f.phdr(b[i*f.phdrSize():])
		if p.off+p.filesz < p.off || p.vaddr+p.memsz < p.vaddr {
			return malformed(fmt.Sprintf("program header %d", i), "its range wraps around")
		}
		f.phdrs[i] = p
	}
	return nil
}

// segment returns the index of the first program header of a kind, or -1.
func (f *File) segment(kind elf.ProgType) int {
	for i := range f.phdrs {
		if elf.ProgType(f.phdrs[i].kind) == kind {
			return i
		}
	}
	return -1
}

// readInterp reads PT_INTERP. The kernel takes at most PATH_MAX bytes and
// wants the last one to be NUL; what it would refuse is still read here.
func (f *File) readInterp() error {
	i := f.segment(elf.PT_INTERP)
	if i < 0 || f.phdrs[i].filesz == 0 || f.companion {
		return nil
	}
	p := &f.phdrs[i]
	b, err := f.read("PT_INTERP", p.off, min(p.filesz, 4096))
	if err != nil {
		return err
	}
	if n := bytes.IndexByte(b, 0); n >= 0 {
		b = b[:n]
	}
	f.Interp = string(b)
	return nil
}

// readCompanion finds out whether this is a separate debug file: its program
// headers describe another file, and the sections at the addresses of
// PT_DYNAMIC and PT_INTERP are NOBITS.
func (f *File) readCompanion() error {
	var addrs []uint64
	for _, kind := range []elf.ProgType{elf.PT_DYNAMIC, elf.PT_INTERP} {
		if i := f.segment(kind); i >= 0 {
			addrs = append(addrs, f.phdrs[i].vaddr)
		}
	}
	if len(addrs) == 0 {
		return nil
	}
	return f.eachShdr(maxCompanion, func(_ int, s shdr) bool {
		f.companion = elf.SectionType(s.kind) == elf.SHT_NOBITS && s.size > 0 && s.alloc() &&
			s.flags&uint64(elf.SHF_TLS) == 0 && slices.Contains(addrs, s.addr)
		return !f.companion
	})
}

// eachShdr calls fn for the first limit section headers until it says no.
func (f *File) eachShdr(limit int, fn func(i int, s shdr) bool) error {
	per := readChunk / f.shdrSize()
	n := min(f.shnum, limit)
	for i := 0; i < n; i += per {
		m := min(per, n-i)
		b, err := f.read("section headers", f.shoff+uint64(i*f.shdrSize()), uint64(m*f.shdrSize()))
		if err != nil {
			return err
		}
		for k := range m {
			if !fn(i+k, f.shdr(b[k*f.shdrSize():])) {
				return nil
			}
		}
	}
	return nil
}

// fileOffset maps an address to the file by the PT_LOAD that holds it, and
// returns how many bytes of that segment's file image follow.
func fileOffset(phdrs []phdr, addr uint64) (off, left uint64, ok bool) {
	for i := range phdrs {
		if p := &phdrs[i]; p.load() && addr >= p.vaddr && addr-p.vaddr < p.filesz {
			d := addr - p.vaddr
			return p.off + d, p.filesz - d, true
		}
	}
	return 0, 0, false
}
