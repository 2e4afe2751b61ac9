package demo

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// LateOptions says what MoveProgramHeaders adds.
type LateOptions struct {
	// KpackRef is the content of a .rocm_kpack_ref section, mapped by a
	// segment of its own; nil adds none. See [KpackRef].
	KpackRef []byte
}

// Sizes in an ELF file of 64 bits, in bytes (gABI, figures 4-3, 4-8 and 5-1).
const (
	ehdrSize = 64
	phdrSize = 56
	shdrSize = 64
	pageSize = 0x1000
)

// lateUnit is what the number of entries of the moved table is rounded up to.
const lateUnit = 16

// MoveProgramHeaders returns a 64-bit little-endian ELF file as AMD's kpack
// splitter would leave it. The program headers are at the end, in a segment of
// their own whose file image has room for more, the rest zero; PT_PHDR, where
// there is one, spans that room. Where they were is 0xEE. New segments are last
// in the table. Of a program, the table is mapped where kernels older than 5.18
// look for it; of a library, right above the rest. The section headers come
// after everything, at an odd offset; the old ones stay where they were, dead.
// The result runs as the input does.
func MoveProgramHeaders(in []byte, o LateOptions) ([]byte, error) {
	f, err := readLayout(in)
	if err != nil {
		return nil, fmt.Errorf("move program headers: %w", err)
	}
	f.out = slices.Clone(in)
	for i := range f.phdrs * phdrSize {
		f.out[f.phoff+i] = 0xEE
	}
	ref := elf.Section64{}
	if o.KpackRef != nil {
		f.pad(pageSize)
		at, va := uint64(len(f.out)), up(f.top, pageSize)
		size := uint64(len(o.KpackRef))
		f.load(at, va, size)
		f.out = append(f.out, o.KpackRef...)
		ref = elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Addr: va, Off: at, Size: size, Addralign: 1}
	}
	f.moveTable()
	if err := f.moveSections(ref); err != nil {
		return nil, fmt.Errorf("move program headers: %w", err)
	}
	return f.out, nil
}

// layout is a file that is being rearranged.
type layout struct {
	in, out      []byte
	phoff, phdrs int
	table        []elf.Prog64
	top          uint64 // first address above every segment
	delta        uint64 // address minus offset of the first segment
	program      bool   // it has an interpreter
}

var errFormat = errors.New("not a linked 64-bit little-endian ELF file, or one that is damaged")

func readLayout(in []byte) (*layout, error) {
	le := binary.LittleEndian
	if len(in) < ehdrSize || string(in[:6]) != "\x7fELF\x02\x01" || le.Uint16(in[54:]) != phdrSize {
		return nil, errFormat
	}
	phoff, n := le.Uint64(in[32:]), int(le.Uint16(in[56:]))
	if n == 0 || n > 1000 || phoff > uint64(len(in)) || uint64(len(in))-phoff < uint64(n*phdrSize) || phoff < ehdrSize {
		return nil, errFormat
	}
	f := &layout{in: in, phoff: int(phoff), phdrs: n, table: make([]elf.Prog64, n)}
	if _, err := binary.Decode(in[phoff:], le, f.table); err != nil {
		return nil, err
	}
	first := true
	for _, p := range f.table {
		switch elf.ProgType(p.Type) {
		case elf.PT_INTERP:
			f.program = true
		case elf.PT_LOAD:
			if first {
				f.delta, first = p.Vaddr-p.Off, false
			}
			f.top = max(f.top, p.Vaddr+p.Memsz)
		}
	}
	if first || f.top > 1<<46 || f.delta > 1<<46 {
		return nil, errFormat
	}
	return f, nil
}

// load adds a read-only segment.
func (f *layout) load(off, va, size uint64) {
	f.table = append(f.table, elf.Prog64{
		Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R),
		Off: off, Vaddr: va, Paddr: va, Filesz: size, Memsz: size, Align: pageSize,
	})
	f.top = va + size
}

// pad makes the next byte's offset a multiple of unit.
func (f *layout) pad(unit uint64) { f.grow(up(uint64(len(f.out)), unit)) }

func (f *layout) grow(to uint64) { f.out = append(f.out, make([]byte, to-uint64(len(f.out)))...) }

func up(v, unit uint64) uint64 { return (v + unit - 1) / unit * unit }

// maxHole bounds the zeros that the moved table may need before it, in bytes.
const maxHole = 256 << 20

func (f *layout) moveTable() {
	f.pad(pageSize)
	va := up(f.top, pageSize)
	// The kernel once took the first segment's distance for that of the table.
	if at := va - f.delta; f.program && at >= uint64(len(f.out)) && at-uint64(len(f.out)) < maxHole {
		f.grow(at)
	} else if f.program {
		va = uint64(len(f.out)) + f.delta
	}
	at := uint64(len(f.out))
	size := up(uint64(len(f.table)+1), lateUnit) * phdrSize
	f.load(at, va, size)
	for i := range f.table {
		if p := &f.table[i]; elf.ProgType(p.Type) == elf.PT_PHDR {
			p.Off, p.Vaddr, p.Paddr, p.Filesz, p.Memsz = at, va, va, size, size
		}
	}
	f.grow(at + size)
	encode(f.out[at:], f.table)
	binary.LittleEndian.PutUint64(f.out[32:], at)
	binary.LittleEndian.PutUint16(f.out[56:], uint16(len(f.table)))
}

// moveSections appends the section headers, with ref among them if it has a
// type, and the names that they use.
func (f *layout) moveSections(ref elf.Section64) error {
	le := binary.LittleEndian
	shoff, n, names := le.Uint64(f.in[40:]), int(le.Uint16(f.in[60:])), int(le.Uint16(f.in[62:]))
	if n == 0 {
		return nil // stripped of them: segments are all that is left
	}
	if le.Uint16(f.in[58:]) != shdrSize || names >= n || shoff > uint64(len(f.in)) || uint64(len(f.in))-shoff < uint64(n*shdrSize) {
		return errFormat
	}
	table := make([]elf.Section64, n)
	if _, err := binary.Decode(f.in[shoff:], le, table); err != nil {
		return err
	}
	if ref.Type != 0 {
		s := &table[names]
		if s.Off > uint64(len(f.in)) || s.Size > uint64(len(f.in))-s.Off {
			return errFormat
		}
		old := f.in[s.Off : s.Off+s.Size]
		ref.Name = uint32(len(old))
		s.Off = uint64(len(f.out))
		f.out = slices.Concat(f.out, old, []byte(".rocm_kpack_ref\x00"))
		s.Size = uint64(len(f.out)) - s.Off
		table = append(table, ref)
	}
	f.grow(uint64(len(f.out)) | 1)
	le.PutUint64(f.out[40:], uint64(len(f.out)))
	le.PutUint16(f.out[60:], uint16(len(table)))
	end := len(f.out)
	f.grow(uint64(end + len(table)*shdrSize))
	encode(f.out[end:], table)
	return nil
}

// encode writes a table of fixed-size values, for which there is room.
func encode[T any](b []byte, table []T) {
	_, _ = binary.Encode(b, binary.LittleEndian, table) // fails only for want of room
}
