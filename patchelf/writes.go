package patchelf

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
)

// step orders writes. After each write the file loads, with what it said
// before or with what it shall say: what is new is not referred to before it
// is there, and what is old is not wiped before nothing refers to it.
type step int

// maxWrites bounds the writes of a plan: the file is checked after each. No
// file that a linker made needs a tenth of them.
const maxWrites = 1 << 10

const (
	stepTail     step = iota // content that nothing refers to yet
	stepBorrow               // a new segment, over an entry that loaders can do without
	stepHeaders              // the program headers and e_phnum, e_phoff
	stepTable                // DT_STRTAB and DT_STRSZ, where they cannot change with the rest
	stepSwitch               // strings in place, and records of versions
	stepDynamic              // the dynamic section
	stepReturn               // the program headers where an entry was borrowed
	stepWipe                 // strings that nothing refers to any more
	stepSections             // section headers and symbols, for tools
)

// write is bytes that replace others.
type write struct {
	step step
	off  int64
	data []byte
	old  []byte // what is there now; shorter where the file ends
}

func (p *planner) put(s step, off uint64, data []byte) {
	if len(data) > 0 {
		p.writes = append(p.writes, write{step: s, off: int64(off), data: data})
	}
}

// move says that the symbols of a section move.
type move struct {
	section int
	delta   uint64
}

// finish turns the changed copies into writes, in order.
func (p *planner) finish() ([]write, error) {
	if err := p.finishPhdrs(); err != nil {
		return nil, err
	}
	p.finishDyns()
	p.finishShdrs()
	for _, m := range p.moved {
		if err := p.moveSymbols(m); err != nil {
			return nil, err
		}
	}
	if len(p.writes) > maxWrites {
		return nil, refuse("it would take %d writes: too many entries change in its dynamic section or its versions", len(p.writes))
	}
	slices.SortStableFunc(p.writes, func(a, b write) int { return cmp.Compare(a.step, b.step) })
	for i := range p.writes {
		w := &p.writes[i]
		if have := max(0, min(int64(len(w.data)), p.f.size-w.off)); have > 0 {
			var err error
			if w.old, err = p.f.read("file", uint64(w.off), uint64(have)); err != nil {
				return nil, err
			}
		}
	}
	p.writes = needless(p.writes)
	return p.writes, nil
}

// needless drops the writes that change nothing.
func needless(ws []write) []write {
	var out []write
	for _, w := range ws {
		again := slices.ContainsFunc(out, func(v write) bool {
			return v.off < w.off+int64(len(w.data)) && w.off < v.off+int64(len(v.data))
		})
		if again || !bytes.Equal(w.old, w.data) {
			out = append(out, w)
		}
	}
	return out
}

// finishShdrs writes the section headers that change, or all where they move.
func (p *planner) finishShdrs() {
	size := uint64(p.f.shdrSize())
	for i := range p.shdrs {
		if p.newShdrs != nil {
			p.f.putShdr(p.newShdrs[uint64(i)*size:], p.shdrs[i])
		} else if p.shdrs[i] != p.was[i] {
			b := make([]byte, size)
			p.f.putShdr(b, p.shdrs[i])
			p.put(stepSections, p.f.shoff+uint64(i)*size, b)
		}
	}
}

// maxMoved is how many local symbols are looked at for a section that moved:
// section symbols come first, and the C runtime's note right behind.
const maxMoved = 4096

// moveSymbols updates the symbols of the static symbol table that lie in a
// section that moved.
func (p *planner) moveSymbols(m move) error {
	size := uint64(p.f.symSize())
	value, index := uint64(4), uint64(14)
	if p.f.wide {
		value, index = 8, 6
	}
	for i := range p.was {
		s := &p.was[i]
		if elf.SectionType(s.kind) != elf.SHT_SYMTAB || s.entsize != size {
			continue
		}
		n := min(s.size/size, uint64(s.info), maxMoved)
		b, err := p.f.read("symbol table", s.off, n*size)
		if err != nil {
			return err
		}
		for k := uint64(0); k < n; k++ {
			sym := b[k*size:]
			if int(p.f.order.Uint16(sym[index:])) == m.section {
				v := make([]byte, p.f.word())
				p.f.put(v, p.f.get(sym[value:])+m.delta)
				p.put(stepSections, s.off+k*size+value, v)
			}
		}
	}
	return nil
}

// Apply makes the writes of the plan, in the order that keeps the file
// loadable after each. It first makes sure that w is the file that was
// planned for. Where Edit.Sync was set and w has a Sync method, what one step
// writes is synced before the next.
func (p *Plan) Apply(w ReaderWriterAt) error {
	for _, x := range p.writes {
		now := make([]byte, len(x.old))
		if n, err := w.ReadAt(now, x.off); n < len(now) {
			if err == nil || errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("read before edit: %w", err)
		}
		if !bytes.Equal(now, x.old) {
			return refuse("the file has changed since it was read")
		}
	}
	for i, x := range p.writes {
		if p.sync && i > 0 && p.writes[i-1].step != x.step {
			if err := syncFile(w); err != nil {
				return err
			}
		}
		if _, err := w.WriteAt(x.data, x.off); err != nil {
			return fmt.Errorf("write edit at %d: %w", x.off, err)
		}
	}
	if p.sync && len(p.writes) > 0 {
		return syncFile(w)
	}
	return nil
}

func syncFile(w ReaderWriterAt) error {
	if s, ok := w.(interface{ Sync() error }); ok {
		if err := s.Sync(); err != nil {
			return fmt.Errorf("sync edit: %w", err)
		}
	}
	return nil
}
