package patchelf

import (
	"debug/elf"
	"strings"
)

// Limits of what Exports reads: far above the largest libraries there are
// (libLLVM exports some 60,000 symbols).
const (
	maxExports     = 1 << 20
	maxExportTable = 64 << 20  // bytes of the string table; libLLVM has 3 MB
	maxExportNames = 128 << 20 // bytes of all names: they may share bytes of the table
)

// Export is a dynamic symbol that a file defines for others.
type Export struct {
	Name    string
	Version string // "" for none
	Hidden  bool   // not the default of its name (nm shows @, not @@): only what was linked to it before finds it
	Weak    bool   // STB_WEAK: templates and inline functions of C++, mostly
	Kind    elf.SymType
	Size    uint64 // st_size, bytes
}

// Exports lists the symbols that other files can be linked to: defined, global,
// weak or unique, of default or protected visibility, in the order of
// DT_SYMTAB (gABI, "Symbol Table"). The symbols that GNU ld makes of version
// names are not among them. None is not an error, and neither is a file
// without a dynamic section; a table that does not make sense is a
// *FormatError.
func (f *File) Exports() ([]Export, error) {
	if !f.Dynamic {
		return nil, nil
	}
	t, err := f.openSymbols()
	if t == nil || err != nil {
		return nil, err
	}
	var out []Export
	for at := uint64(0); at < t.count; at += t.per {
		n := min(t.per, t.count-at)
		syms, err := f.read("DT_SYMTAB", t.off+at*t.size, n*t.size)
		if err != nil {
			return nil, err
		}
		var vers []byte
		if t.versioned {
			if vers, err = f.read("DT_VERSYM", t.verOff+at*2, n*2); err != nil {
				return nil, err
			}
		}
		for i := range n {
			e, ok, err := t.export(syms[i*t.size:][:t.size], vers, i)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			if out = append(out, e); len(out) > maxExports {
				return nil, malformed("DT_SYMTAB", "more than %d exported symbols", maxExports)
			}
		}
	}
	return out, nil
}

// symbolTable is the dynamic symbols of a file and what their versions are
// called.
type symbolTable struct {
	f                *File
	off, size, count uint64 // of DT_SYMTAB; size is that of one
	per              uint64 // symbols that are read at once
	versioned        bool
	verOff           uint64
	names            map[uint16]string // versions, by index
	base             map[uint16]bool   // indexes that mean no version
	strings          string            // DT_STRTAB
	bytes            int               // of names handed out
}

// openSymbols finds the table of symbols; nil when there is none.
func (f *File) openSymbols() (*symbolTable, error) {
	p := &planner{f: f}
	off, left, present, ok := p.table(elf.DT_SYMTAB)
	if !present {
		return nil, nil
	}
	if !ok {
		return nil, malformed("DT_SYMTAB", "no PT_LOAD has its address")
	}
	t := &symbolTable{f: f, off: off, size: uint64(f.symSize())}
	t.per = readChunk * 4 / t.size
	var err error
	if t.count, err = f.countSymbols(p); err != nil || t.count == 0 {
		return nil, err
	}
	if t.count > maxSyms || t.count > left/t.size {
		return nil, malformed("DT_SYMTAB", "%d symbols do not fit into their segment", t.count)
	}
	if err := t.openVersions(p); err != nil {
		return nil, err
	}
	if !f.hasStrtab {
		return nil, malformed("DT_SYMTAB", "there is no DT_STRTAB and DT_STRSZ")
	}
	if f.strSize > maxExportTable {
		return nil, malformed("DT_STRTAB", "%d bytes, more than %d", f.strSize, maxExportTable)
	}
	b, err := f.read("DT_STRTAB", f.strOff, f.strSize)
	if err != nil {
		return nil, err
	}
	t.strings = string(b)
	return t, nil
}

// countSymbols asks the hash tables and the section headers. A file that has a
// DT_GNU_HASH which hashes nothing, and no other source, exports nothing.
func (f *File) countSymbols(p *planner) (uint64, error) {
	addr, _ := f.dynValue(elf.DT_SYMTAB)
	err := f.eachShdr(maxShdrs, func(_ int, s shdr) bool {
		found := elf.SectionType(s.kind) == elf.SHT_DYNSYM && s.addr == addr
		if found {
			p.shdrs = append(p.shdrs, s)
		}
		return !found
	})
	if err != nil {
		return 0, err
	}
	n, known := p.symbolCount()
	if known {
		return n, nil
	}
	_, sysv := f.dynValue(elf.DT_HASH)
	if _, gnu := f.dynValue(elf.DT_GNU_HASH); gnu && !sysv {
		if off, _, _, ok := p.table(elf.DT_GNU_HASH); ok {
			if n, fine := p.gnuCount(off); fine && n == 0 {
				return 0, nil
			}
		}
	}
	return 0, malformed("DT_SYMTAB", "it cannot be told how many symbols there are")
}

// openVersions finds DT_VERSYM and the names of the versions that are defined.
func (t *symbolTable) openVersions(p *planner) error {
	off, left, present, ok := p.table(elf.DT_VERSYM)
	if !present {
		return nil
	}
	if !ok || t.count > left/2 {
		return malformed("DT_VERSYM", "it does not cover the symbols")
	}
	defs, err := t.f.VersionDefs()
	if err != nil {
		return err
	}
	t.versioned, t.verOff = true, off
	t.names, t.base = make(map[uint16]string, len(defs)), map[uint16]bool{}
	for _, d := range defs {
		if d.Base {
			t.base[d.Index] = true
		} else {
			t.names[d.Index] = d.Name
		}
	}
	return nil
}

// export reads one symbol, and tells whether it is for others.
func (t *symbolTable) export(b, vers []byte, i uint64) (e Export, ok bool, err error) {
	u16, u32 := t.f.order.Uint16, t.f.order.Uint32
	var info, other byte
	var section uint16
	if t.f.wide {
		info, other, section, e.Size = b[4], b[5], u16(b[6:]), t.f.order.Uint64(b[16:])
	} else {
		info, other, section, e.Size = b[12], b[13], u16(b[14:]), uint64(u32(b[8:]))
	}
	const unique = elf.SymBind(10) // STB_GNU_UNIQUE
	bind := elf.ST_BIND(info)
	vis := elf.ST_VISIBILITY(other)
	e.Kind, e.Weak = elf.ST_TYPE(info), bind == elf.STB_WEAK
	if elf.SectionIndex(section) == elf.SHN_UNDEF || e.Kind == elf.STT_SECTION || e.Kind == elf.STT_FILE ||
		bind != elf.STB_GLOBAL && bind != elf.STB_WEAK && bind != unique || vis != elf.STV_DEFAULT && vis != elf.STV_PROTECTED {
		return e, false, nil
	}
	if t.versioned {
		v := u16(vers[i*2:])
		index := v &^ versionHidden
		if index == 0 { // VER_NDX_LOCAL
			return e, false, nil
		}
		if !t.base[index] {
			e.Version = t.names[index]
		}
		e.Hidden = v&versionHidden != 0 && e.Version != ""
	}
	if e.Name, err = t.name(u32(b)); err != nil {
		return e, false, err
	}
	marker := elf.SectionIndex(section) == elf.SHN_ABS && e.Name == e.Version
	return e, e.Name != "" && !marker, nil
}

// name returns the string at an offset of the table.
func (t *symbolTable) name(at uint32) (string, error) {
	if uint64(at) >= uint64(len(t.strings)) {
		return "", malformed("st_name", "string %d lies past DT_STRSZ (%d)", at, len(t.strings))
	}
	s := t.strings[at:]
	s = s[:min(len(s), maxString)]
	n := strings.IndexByte(s, 0)
	if n < 0 {
		return "", malformed("st_name", "string %d does not end", at)
	}
	if t.bytes += n; t.bytes > maxExportNames {
		return "", malformed("st_name", "more than %d bytes of names", maxExportNames)
	}
	return s[:n], nil
}
