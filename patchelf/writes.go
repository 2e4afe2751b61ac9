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

// step orders writes. After each step the file loads: what is new is not
// referred to before it is there, and what is old is not wiped before.
type step int

const (
	stepTail     step = iota // content where nothing refers to yet
	stepHeaders              // e_phnum and the program headers
	stepStrings              // strings, in place
	stepDynamic              // the dynamic section
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
	p.writes = slices.DeleteFunc(p.writes, func(w write) bool { return bytes.Equal(w.old, w.data) })
	return p.writes, nil
}

// finishPhdrs writes the program headers and their number: in one write where
// they are next to each other, as linkers put them.
func (p *planner) finishPhdrs() error {
	if slices.Equal(p.phdrs, p.f.phdrs) {
		return nil
	}
	table := p.f.putPhdrs(p.phdrs)
	if len(p.phdrs) == len(p.f.phdrs) {
		first, last := len(p.phdrs), 0
		for i := range p.phdrs {
			if p.phdrs[i] != p.f.phdrs[i] {
				first, last = min(first, i), i+1
			}
		}
		n := p.f.phdrSize()
		p.put(stepHeaders, p.f.phoff+uint64(first*n), table[first*n:last*n])
		return nil
	}
	at := uint64(24 + 3*p.f.word() + 8) // e_phnum
	b, err := p.f.read("ELF header", at, uint64(p.f.ehdrSize())-at)
	if err != nil {
		return err
	}
	p.f.order.PutUint16(b, uint16(len(p.phdrs)))
	if p.f.LatePHDR() {
		p.put(stepHeaders, p.f.phoff, table)
		p.put(stepHeaders, at, b[:2])
		return nil
	}
	p.put(stepHeaders, at, append(b, table...))
	return nil
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

// finishDyns writes the words of the dynamic section that change, in one
// write from the first to the last.
func (p *planner) finishDyns() {
	before := p.f.putDyns(append(slices.Clone(p.f.dyns), make([]dyn, p.f.dynTail)...))
	after := p.f.putDyns(p.dyns)
	if p.newDyn != nil {
		copy(p.newDyn, after)
		return
	}
	w := p.f.word()
	first, last := len(after), 0
	for i := 0; i < len(after); i += w {
		if !bytes.Equal(before[i:i+w], after[i:i+w]) {
			first, last = min(first, i), i+w
		}
	}
	if first < last {
		p.put(stepDynamic, p.f.dynOff+uint64(first), after[first:last])
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
// planned for. Where Edit.Sync was set and w has a Sync method, what is
// appended and what is changed are synced one after the other.
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
		if p.sync && i > 0 && p.writes[i-1].step != x.step && p.writes[i-1].step == stepTail {
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
