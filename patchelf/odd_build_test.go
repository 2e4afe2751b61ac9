package patchelf

import (
	"debug/elf"
	"encoding/binary"
	"slices"
)

// odd describes a small ELF file of any class, byte order and machine. Zero
// fields mean an ordinary library: one PT_LOAD for all of it, a dynamic section
// with a string, a symbol and a hash table, and section headers.
type odd struct {
	narrow  bool // ELFCLASS32
	big     bool // ELFDATA2MSB
	kind    elf.Type
	machine elf.Machine
	entry   uint64

	interp  string
	entries []oddEntry // of the dynamic section
	static  bool       // no dynamic section
	bare    bool       // no section headers
	late    bool       // program headers at the end
	xnum    bool       // numbers of headers in section header 0
	hollow  bool       // a separate debug file
	strings []byte     // instead of a string table of the names
	flags   uint32     // of PT_LOAD, PF_R|PF_W if 0
}

// oddEntry is one of the dynamic section: by name, or by value.
type oddEntry struct {
	tag  elf.DynTag
	name string
	val  uint64
}

const oddBase = 0x10000

func (o odd) layout() layout {
	l := layout{order: binary.LittleEndian, wide: !o.narrow}
	if o.big {
		l.order = binary.BigEndian
	}
	return l
}

// oddPart is a piece of an odd file that a section header speaks of.
type oddPart struct {
	name          string
	kind          elf.SectionType
	b             []byte
	off           uint64
	link, entsize uint64
}

// table returns the names of the entries, and the entries with their values.
func (o odd) table() ([]byte, []dyn) {
	names, ds := []byte{0}, []dyn{}
	for _, e := range o.entries {
		v := e.val
		if e.name != "" || stringTag(e.tag) && e.val == 0 {
			v = uint64(len(names))
			names = append(append(names, e.name...), 0)
		}
		ds = append(ds, dyn{uint64(e.tag), v})
	}
	if o.strings != nil {
		names = o.strings
	}
	return names, ds
}

// parts lays the pieces out behind the program headers.
func (o odd) parts(at uint64) ([]oddPart, []dyn) {
	l := o.layout()
	names, ds := o.table()
	hash := make([]byte, 20)
	for i, v := range []uint32{1, 1, 0, 0} {
		l.order.PutUint32(hash[4*i:], v)
	}
	ps := []oddPart{{}}
	if o.interp != "" {
		ps = append(ps, oddPart{name: ".interp", kind: elf.SHT_PROGBITS, b: append([]byte(o.interp), 0)})
	}
	if !o.static {
		n := len(ps)
		ps = append(ps, oddPart{name: ".hash", kind: elf.SHT_HASH, b: hash}, oddPart{name: ".dynsym", kind: elf.SHT_DYNSYM, b: make([]byte, l.symSize()), link: uint64(n + 2), entsize: uint64(l.symSize())},
			oddPart{name: ".dynstr", kind: elf.SHT_STRTAB, b: names}, oddPart{name: ".dynamic", kind: elf.SHT_DYNAMIC, link: uint64(n + 2), entsize: uint64(l.dynSize()), b: make([]byte, (len(ds)+4+4)*l.dynSize())})
	}
	ps = append(ps, oddPart{name: ".text", kind: elf.SHT_PROGBITS, b: []byte("code")})
	for i := range ps[1:] {
		ps[i+1].off = up(at, 8)
		at = ps[i+1].off + uint64(len(ps[i+1].b))
	}
	ds = append(ds, dyn{uint64(elf.DT_HASH), 0}, dyn{uint64(elf.DT_SYMTAB), 0}, dyn{uint64(elf.DT_STRTAB), 0}, dyn{uint64(elf.DT_STRSZ), uint64(len(names))})
	return ps, ds
}

func oddFind(ps []oddPart, name string) *oddPart {
	i := slices.IndexFunc(ps, func(p oddPart) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return &ps[i]
}

// segments are the program headers; the first PT_LOAD reaches to end.
func (o odd) segments(ps []oddPart, end uint64) []phdr {
	flags := o.flags
	if flags == 0 {
		flags = uint32(elf.PF_R | elf.PF_W)
	}
	out := []phdr{}
	over := func(kind elf.ProgType, p *oddPart, flags uint32) {
		if p != nil {
			n := uint64(len(p.b))
			out = append(out, phdr{kind: uint32(kind), flags: flags, off: p.off, vaddr: oddBase + p.off, paddr: oddBase + p.off, filesz: n, memsz: n, alignment: 8})
		}
	}
	over(elf.PT_INTERP, oddFind(ps, ".interp"), uint32(elf.PF_R))
	out = append(out, phdr{kind: uint32(elf.PT_LOAD), flags: flags, vaddr: oddBase, paddr: oddBase, filesz: end, memsz: end, alignment: 4096})
	over(elf.PT_DYNAMIC, oddFind(ps, ".dynamic"), uint32(elf.PF_R|elf.PF_W))
	return append(out, phdr{kind: uint32(elf.PT_GNU_STACK), flags: uint32(elf.PF_R | elf.PF_W), alignment: 16})
}

// bytes makes the file.
func (o odd) bytes() []byte {
	l := o.layout()
	phoff := uint64(l.ehdrSize())
	at := phoff
	if !o.late {
		at += uint64(len(o.segments(o.skeleton(), 0)) * l.phdrSize())
	}
	ps, ds := o.parts(at)
	last := ps[len(ps)-1]
	end := up(last.off+uint64(len(last.b)), 8)
	if o.late {
		phoff = end
		end += uint64(len(o.segments(ps, 0)) * l.phdrSize())
	}
	if dynamic := oddFind(ps, ".dynamic"); dynamic != nil {
		for i, name := range []string{".hash", ".dynsym", ".dynstr"} {
			ds[len(ds)-4+i].val = oddBase + oddFind(ps, name).off
		}
		copy(dynamic.b, l.putDyns(ds))
	}
	b := make([]byte, end)
	for _, p := range ps {
		copy(b[p.off:], p.b)
	}
	segments := o.segments(ps, end)
	copy(b[phoff:], l.putPhdrs(segments))
	return o.header(b, ps, phoff, len(segments))
}

// skeleton is the parts that segments wants to count.
func (o odd) skeleton() []oddPart {
	ps, _ := o.parts(0)
	return ps
}

// header writes the ELF header, and the section headers behind all else.
func (o odd) header(b []byte, ps []oddPart, phoff uint64, phnum int) []byte {
	l, w := o.layout(), o.layout().word()
	kind, machine := o.kind, o.machine
	if kind == elf.ET_NONE {
		kind = elf.ET_DYN
	}
	if machine == elf.EM_NONE {
		machine = elf.EM_X86_64
	}
	copy(b, elf.ELFMAG)
	b[elf.EI_CLASS], b[elf.EI_DATA], b[elf.EI_VERSION] = byte(2-b2i(o.narrow)), byte(1+b2i(o.big)), 1
	l.order.PutUint16(b[16:], uint16(kind))
	l.order.PutUint16(b[18:], uint16(machine))
	l.order.PutUint32(b[20:], 1)
	l.put(b[24:], o.entry)
	l.put(b[24+w:], phoff)
	shnum, shoff, names := 0, uint64(0), []byte{0}
	var table []byte
	if !o.bare {
		shnum, shoff = len(ps)+1, uint64(len(b))
		table, names = o.sections(ps, phnum, shoff)
	}
	l.put(b[24+2*w:], shoff)
	num := []int{l.ehdrSize(), l.phdrSize(), phnum, l.shdrSize(), shnum, max(shnum-1, 0)}
	if o.xnum {
		num[2], num[4], num[5] = 0xffff, 0, 0xffff
	}
	for i, v := range num {
		l.order.PutUint16(b[24+3*w+4+2*i:], uint16(v))
	}
	if o.bare {
		return b
	}
	return append(append(b, table...), names...)
}

// sections makes the section headers, which are at shoff, and the names that
// follow them.
func (o odd) sections(ps []oddPart, phnum int, shoff uint64) (table, names []byte) {
	l, names := o.layout(), []byte{0}
	put := func(s shdr, name string) {
		if name != "" {
			s.name = uint32(len(names))
			names = append(append(names, name...), 0)
		}
		b := make([]byte, l.shdrSize())
		l.putShdr(b, s)
		table = append(table, b...)
	}
	zero := shdr{}
	if o.xnum {
		zero = shdr{size: uint64(len(ps) + 1), link: uint32(len(ps)), info: uint32(phnum)}
	}
	put(zero, "")
	for _, p := range ps[1:] {
		kind := p.kind
		if o.hollow {
			kind = elf.SHT_NOBITS
		}
		put(shdr{kind: uint32(kind), flags: uint64(elf.SHF_ALLOC), addr: oddBase + p.off, off: p.off, size: uint64(len(p.b)), link: uint32(p.link), alignment: 1, entsize: p.entsize}, p.name)
	}
	const own = ".shstrtab"
	n := uint64((len(ps) + 1) * l.shdrSize())
	put(shdr{kind: uint32(elf.SHT_STRTAB), off: shoff + n, size: uint64(len(names) + len(own) + 1), alignment: 1}, own)
	return table, names
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// oddEntries name something by every tag that does.
var oddEntries = []oddEntry{
	{tag: elf.DT_NEEDED, name: "libone.so.1"}, {tag: elf.DT_NEEDED, name: "libtwo.so.2"}, {tag: elf.DT_SONAME, name: "libodd.so"},
	{tag: elf.DT_RUNPATH, name: "$ORIGIN/../lib"}, {tag: elf.DT_RPATH, name: "/old/path"}, {tag: elf.DT_CONFIG, name: "ld.cfg"},
	{tag: elf.DT_AUDIT, name: "audit.so"}, {tag: elf.DT_DEPAUDIT, name: "depaudit.so"}, {tag: elf.DT_FILTER, name: "filtee.so"},
	{tag: elf.DT_AUXILIARY, name: "auxiliary.so"}, {tag: elf.DT_USED, name: "used.so"},
	{tag: elf.DT_FLAGS, val: uint64(elf.DF_BIND_NOW | elf.DF_ORIGIN)}, {tag: elf.DT_FLAGS_1, val: uint64(elf.DF_1_NOW | elf.DF_1_NODELETE)},
}

// oddFiles are odd files by name.
func oddFiles() map[string]odd {
	run := []oddEntry{{tag: elf.DT_NEEDED, name: "libone.so.1"}, {tag: elf.DT_RUNPATH, name: "/some/where"}, {tag: elf.DT_DEBUG}}
	return map[string]odd{
		"lib64le": {entries: oddEntries}, "lib64be": {entries: oddEntries, big: true, machine: elf.EM_S390},
		"lib32le": {entries: oddEntries, narrow: true, machine: elf.EM_386}, "lib32be": {entries: oddEntries, narrow: true, big: true, machine: elf.EM_MIPS},
		"bare": {entries: oddEntries, bare: true}, "late": {entries: oddEntries, late: true}, "latebare32": {entries: oddEntries, late: true, bare: true, narrow: true, machine: elf.EM_ARM},
		"xnum": {entries: oddEntries, xnum: true}, "xnum32": {entries: oddEntries, xnum: true, narrow: true, big: true, machine: elf.EM_PPC},
		"exec": {kind: elf.ET_EXEC, entry: oddBase, interp: "/lib/ld.so.1", entries: run}, "pie": {entry: oddBase, interp: "/lib/ld.so.1", entries: run},
		"static": {kind: elf.ET_EXEC, entry: oddBase, static: true}, "packed": {entry: oddBase, static: true, bare: true, flags: 7},
		"gpu": {machine: machineAMDGPU, entries: []oddEntry{{tag: elf.DT_SONAME, name: "kernel"}}}, "hollow": {entries: oddEntries, hollow: true, interp: "/lib/ld.so.1"},
	}
}
