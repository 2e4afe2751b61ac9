package patchelf

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
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
	readHead   = 1 << 10 // the ELF header and the program headers, where linkers put them
)

// File is what one ELF file says of itself. It holds no content beyond
// headers and the strings below; more is read from the io.ReaderAt given to
// Parse when it is asked for.
//
// What it says is what a loader sees: PT_DYNAMIC and PT_INTERP count, sections
// of those names do not, and addresses are believed before offsets.
type File struct {
	Class      int // 32 or 64
	ByteOrder  binary.ByteOrder
	OSABI      elf.OSABI
	ABIVersion uint8
	Type       elf.Type
	Machine    elf.Machine
	Entry      uint64 // e_entry: the address where the program starts, 0 if it is none

	Dynamic bool         // there is a PT_DYNAMIC with content
	Interp  string       // PT_INTERP, "" if none
	Soname  string       // DT_SONAME
	Needed  []string     // DT_NEEDED, in order
	RPath   *string      // DT_RPATH, nil if there is none
	RunPath *string      // DT_RUNPATH, nil if there is none; loaders ignore DT_RPATH when there is one
	Flags   elf.DynFlag  // DT_FLAGS
	Flags1  elf.DynFlag1 // DT_FLAGS_1
	Strings []DynString  // every other entry that names something, in order

	layout
	r    io.ReaderAt
	size int64
	head []byte // start of the file, while it is parsed

	version                  uint32
	phoff, shoff             uint64
	phnum, shnum, shstrndx   int
	rawPhnum                 uint16
	phdrs                    []phdr // none of a core file
	companion                bool   // separate debug file: headers without content
	dynOff, dynAddr, dynLen  uint64
	dyns                     []dyn // up to and without the first DT_NULL
	dynTail                  int   // DT_NULL entries behind dyns, within PT_DYNAMIC
	strOff, strAddr, strSize uint64
	hasStrtab                bool
	stringBytes              int
	shdrsCut                 bool // the section header table is not, or not wholly, in the file
}

// DynString is an entry of the dynamic section that names something and that
// File has no field for: DT_CONFIG, DT_AUDIT, DT_DEPAUDIT, DT_FILTER,
// DT_AUXILIARY or DT_USED.
type DynString struct {
	Tag   elf.DynTag
	Value string
}

// Parse reads the headers of the ELF file of size bytes behind r.
// It returns ErrNotELF if the magic is missing, and a *FormatError if the
// headers do not make sense. r is kept for Section and Plan.
//
// It reads the ELF header, the program headers, the dynamic section, the
// strings that File shows, and of the section headers only as many as tell a
// separate debug file from a whole one. Of a core file it reads the ELF header.
func Parse(r io.ReaderAt, size int64) (*File, error) {
	f := &File{r: r, size: size}
	for _, step := range []func() error{f.readEhdr, f.readPhdrs, f.readCompanion} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	err := f.readContent()
	if err != nil && isFormat(err) && f.hollow() {
		f.forget()
		err = nil
	}
	f.head = nil
	if err != nil {
		return nil, err
	}
	return f, nil
}

func isFormat(err error) bool {
	var format *FormatError
	return errors.As(err, &format)
}

// readContent reads what the program headers lead to.
func (f *File) readContent() error {
	for _, step := range []func() error{f.readInterp, f.readDynamic, f.readStrtab, f.readNames} {
		if err := step(); err != nil {
			return err
		}
	}
	flags, _ := f.dynValue(elf.DT_FLAGS)
	flags1, _ := f.dynValue(elf.DT_FLAGS_1)
	f.Flags, f.Flags1 = elf.DynFlag(flags), elf.DynFlag1(flags1)
	return nil
}

// forget drops what readContent took for content.
func (f *File) forget() {
	f.Dynamic, f.Interp, f.Soname, f.Needed, f.RPath, f.RunPath, f.Strings = false, "", "", nil, nil, nil, nil
	f.dynOff, f.dynAddr, f.dynLen, f.dyns, f.dynTail = 0, 0, 0, nil, 0
	f.strOff, f.strAddr, f.strSize, f.hasStrtab, f.stringBytes = 0, 0, 0, false, 0
}

// read returns n bytes at off. The caller bounds n.
func (f *File) read(field string, off, n uint64) ([]byte, error) {
	if off > uint64(f.size) || n > uint64(f.size)-off {
		return nil, malformed(field, "bytes %d+%d lie past the end of the file (%d bytes)", off, n, f.size)
	}
	if have := uint64(len(f.head)); off < have && n <= have-off {
		return f.head[off : off+n : off+n], nil
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
	head, err := f.read("e_ident", 0, min(uint64(f.size), readHead))
	if err != nil {
		return err
	}
	f.head = head
	if !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return ErrNotELF
	}
	if err := f.readIdent(head[:elf.EI_NIDENT]); err != nil {
		return err
	}
	b, err := f.read("ELF header", 0, uint64(f.ehdrSize()))
	if err != nil {
		return err
	}
	w := f.word()
	f.Type, f.Machine = elf.Type(f.order.Uint16(b[16:])), elf.Machine(f.order.Uint16(b[18:]))
	f.version = f.order.Uint32(b[20:])
	f.Entry, f.phoff, f.shoff = f.get(b[24:]), f.get(b[24+w:]), f.get(b[24+2*w:])
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
	f.OSABI, f.ABIVersion = elf.OSABI(id[elf.EI_OSABI]), id[elf.EI_ABIVERSION]
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
		f.phnum = int(min(zero.info, math.MaxInt32))
	}
	if f.shnum == 0 {
		f.shnum = int(min(zero.size, math.MaxInt32))
	}
	if f.shstrndx == xindex {
		f.shstrndx = int(min(zero.link, math.MaxInt32))
	}
	if uint64(f.shnum) > (uint64(f.size)-f.shoff)/uint64(f.shdrSize()) || f.shnum > maxShdrs {
		f.shdrsCut, f.shnum = true, 0
	}
	return nil
}

// readPhdrs reads the program headers. Those of a core file describe memory
// and not what is in a file to load; there may be a million.
func (f *File) readPhdrs() error {
	if f.phnum == 0 {
		return nil
	}
	n := uint64(f.phnum) * uint64(f.phdrSize())
	switch {
	case f.phoff > uint64(f.size) || n > uint64(f.size)-f.phoff:
		return malformed("e_phoff", "%d program headers at %d lie past the end of the file (%d bytes)", f.phnum, f.phoff, f.size)
	case f.Type == elf.ET_CORE:
		return nil
	case f.phnum > maxPhdrs:
		return malformed("e_phnum", "%d program headers", f.phnum)
	}
	b, err := f.read("program headers", f.phoff, n)
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

// eachShdr calls fn for the first limit section headers until it says no. It
// reads few first: what is looked for tends to be near the start.
func (f *File) eachShdr(limit int, fn func(i int, s shdr) bool) error {
	n := min(f.shnum, limit)
	for i, per := 0, 32; i < n; per = min(2*per, readChunk/f.shdrSize()) {
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
		i += m
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
