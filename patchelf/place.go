package patchelf

import (
	"debug/elf"
	"slices"
)

// blob is content that needs a new place in the file and in memory.
type blob struct {
	data      []byte
	alignment uint64
	tail      bool // goes last: it may grow later
	writable  bool // the loader writes to it
	headers   bool // it is the program headers: first
	interp    bool // it is the interpreter: the old one's bytes are free
	place     func(off, addr uint64) error
}

func up(v, alignment uint64) uint64 { return (v + alignment - 1) &^ (alignment - 1) }

// extent is the length of the blobs laid out from off.
func extent(off uint64, blobs []blob) uint64 {
	at := off
	for _, b := range blobs {
		at = up(at, max(b.alignment, 1)) + uint64(len(b.data))
	}
	return at - off
}

// placeBlobs finds room for blobs, cheapest first: padding behind read-only
// data, the tail of the file where it is an earlier edit's, a new segment.
func (p *planner) placeBlobs(blobs []blob) error {
	writable := slices.ContainsFunc(blobs, isWritable)
	sortBlobs(blobs)
	for _, atEnd := range []bool{false, true} {
		for i := range p.phdrs {
			end := p.phdrs[i].end()
			rw := p.phdrs[i].flags&uint32(elf.PF_W) != 0 || p.atEnd(i)
			if !p.plainRead(i) || (end >= uint64(p.f.size)) != atEnd || writable && !rw {
				continue
			}
			need := extent(end, blobs)
			room, err := p.room(i, need)
			if err != nil {
				return err
			}
			if room >= need {
				addr := p.phdrs[i].vend()
				p.extend(i, need)
				if writable { // rather than a second segment
					p.phdrs[i].flags |= uint32(elf.PF_W)
				}
				return p.lay(blobs, end, addr)
			}
		}
	}
	return p.newSegment(blobs)
}

func first(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// sortBlobs puts the program headers first, then the dynamic section, by which
// a segment is known as an edit's, and last what may grow later.
func sortBlobs(blobs []blob) {
	rank := func(b blob) int { return 4*first(!b.headers) + 2*first(!b.writable) + first(b.tail) }
	slices.SortStableFunc(blobs, func(a, b blob) int { return rank(a) - rank(b) })
}

func isWritable(b blob) bool { return b.writable }

// lay writes blobs from off on and tells each where it is.
func (p *planner) lay(blobs []blob, off, addr uint64) error {
	at := off
	for _, b := range blobs {
		at = up(at, max(b.alignment, 1))
		p.put(stepTail, at, b.data)
		if err := b.place(at, addr+at-off); err != nil {
			return err
		}
		at += uint64(len(b.data))
	}
	return nil
}

// lead is the padding before the content of a new segment. Without it,
// llvm-strip takes a PT_INTERP or PT_NOTE that starts where the segment does
// for its parent, and breaks its congruence.
const lead = 16

// newSegment appends a PT_LOAD for blobs to the file: above all others, on
// pages of its own, with the offset and the address congruent.
func (p *planner) newSegment(blobs []blob) error {
	if err := p.noPayload(); err != nil {
		return err
	}
	slot, err := p.headerSlot(blobs)
	if err != nil {
		return err
	}
	p.note("segment added (" + slot.how + ")")
	blobs = append(slot.moves, blobs...)
	sortBlobs(blobs)
	page, highest := pageSize(p.phdrs), uint64(0)
	for i := range p.phdrs {
		if s := &p.phdrs[i]; s.load() {
			highest = max(highest, s.vend())
		}
	}
	off := up(uint64(p.size), 16)
	vaddr := up(highest, page) + off%page
	if p.newPhdrs != nil {
		if off, vaddr, err = p.home(off, vaddr, page, highest); err != nil {
			return err
		}
	}
	size := lead + extent(off+lead, blobs)
	limit := p.f.addressLimit()
	if highest > limit || vaddr+size > limit {
		return refuse("its addresses leave no room for another segment")
	}
	if err := p.lay(blobs, off+lead, vaddr+lead); err != nil {
		return err
	}
	p.size = int64(off + size)
	flags := elf.PF_R
	if slices.ContainsFunc(blobs, isWritable) {
		flags |= elf.PF_W
	}
	p.insert(slot, phdr{kind: uint32(elf.PT_LOAD), flags: uint32(flags), off: off, vaddr: vaddr, paddr: vaddr,
		filesz: size, memsz: size, alignment: page})
	return nil
}

// maxPadding is how many zero bytes behind the ELF file are padding and not a
// payload.
const maxPadding = 4096

// noPayload refuses to append to a file that has something appended: such
// payloads are found from the end of the file.
func (p *planner) noPayload() error {
	end, size := p.lastOwned(), uint64(p.f.size)
	if end >= size {
		return nil
	}
	if size-end <= maxPadding {
		if n, err := p.zeros(end, size-end); err == nil && n == size-end {
			return nil
		}
	}
	return refuse("%d bytes are appended to the ELF file (a payload), which may not grow; a string no longer than the one it has may fit", size-end)
}
