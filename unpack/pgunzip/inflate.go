package pgunzip

// window is how far back a match may reach (RFC 1951, section 2).
const window = 32 << 10

// maxMatch is the longest match. Where the fast loop copies one, it may write
// up to slack elements more than that behind it.
const (
	maxMatch = 258
	slack    = 64
)

// symbol is what the output consists of: bytes, or, where the window before
// the first is not known, values of which those from marker on stand for the
// byte at that place of the window.
type symbol interface{ uint8 | uint16 }

const marker = 1 << 15

// outcome is why inflate came back.
type outcome int

const (
	starved  outcome = iota // the input is used up
	full                    // the limit of the output is reached
	blockEnd                // a block has ended, and another follows
	finished                // the last block has ended
	corrupt                 // the input is no deflate stream
)

// kind is what of a block is decoded next.
type kind int

const (
	header kind = iota
	stored
	coded
)

// inflater decodes a deflate stream (RFC 1951). It is resumed at any symbol:
// after starved with more input, after full with room in the output.
type inflater struct {
	in  []byte
	pos int    // bytes of in that are in buf or used
	buf uint64 // the next bits of the stream, the first lowest
	n   uint   // how many bits of buf are valid; those above are zero

	block kind
	final bool // the block is the last
	left  int  // bytes of a stored block that are to come
	fixed bool // the tables are those of a fixed block

	syms *symbols
	lit  [litSize]entry
	dist [distSize]entry
	pre  [1 << preBits]entry
	lens [maxLit + maxDist]uint8
}

func newInflater() *inflater { return &inflater{syms: newSymbols()} }

// reset makes d begin a deflate stream with the next byte of its input.
func (d *inflater) reset() {
	d.align()
	d.block, d.final = header, false
}

// seek makes d begin at a block boundary, bit bits into in.
func (d *inflater) seek(in []byte, bit int) {
	d.in, d.pos, d.buf, d.n = in, bit>>3, 0, 0
	d.block, d.final = header, false
	if skip := uint(bit & 7); skip != 0 {
		d.buf, d.n, d.pos = uint64(in[d.pos]>>skip), 8-skip, d.pos+1
	}
}

// bit is how many bits of in have been used.
func (d *inflater) bit() int { return d.pos*8 - int(d.n) }

// unread gives whole bytes of the bit buffer back to the input.
func (d *inflater) unread() {
	d.pos -= int(d.n >> 3)
	d.n &= 7
	d.buf &= 1<<d.n - 1
}

// align drops the bits up to the next byte.
func (d *inflater) align() {
	d.unread()
	d.buf, d.n = 0, 0
}

// refill takes bytes until the bit buffer is full or the input is used up.
func (d *inflater) refill() {
	for d.n <= 56 && d.pos < len(d.in) {
		d.buf |= uint64(d.in[d.pos]) << d.n
		d.pos++
		d.n += 8
	}
}

// inflate decodes to out[at:], until limit is reached, which must lie at least
// maxMatch+slack below len(out). Matches reach back to out[floor]. It returns
// where the output ends.
func inflate[T symbol](d *inflater, out []T, floor, at, limit int) (int, outcome) {
	for {
		was := starved
		switch d.block {
		case header:
			was = d.header()
			if was == blockEnd { // of the header: its block begins
				continue
			}
		case stored:
			at, was = copyStored(d, out, at, limit)
		case coded:
			at, was = decode(d, out, floor, at, limit)
		}
		if was == blockEnd && d.final {
			was = finished
		}
		if was == blockEnd || was == finished {
			d.block = header
		}
		d.unread() // so that in can be another next time
		return at, was
	}
}

// decode goes through the symbols of a block: fast as long as there is much of
// everything, else carefully.
func decode[T symbol](d *inflater, out []T, floor, at, limit int) (int, outcome) {
	for {
		var was outcome
		at, was = fast(d, out, floor, at, limit)
		if was != starved {
			return at, was
		}
		var more bool
		if at, was, more = careful(d, out, floor, at, limit); !more {
			return at, was
		}
	}
}

// header reads the header of a block, if all of it is there. Its end is blockEnd.
func (d *inflater) header() outcome {
	pos, buf, n := d.pos, d.buf, d.n
	was := d.readHeader()
	if was == starved {
		d.pos, d.buf, d.n = pos, buf, n // from its beginning when there is more
	}
	return was
}

func (d *inflater) readHeader() outcome {
	bits, ok := d.take(3)
	if !ok {
		return starved
	}
	d.final = bits&1 != 0
	switch bits >> 1 {
	case 0:
		return d.storedHeader()
	case 1:
		d.fixedTables()
		return blockEnd
	case 2:
		return d.dynamicHeader()
	}
	return corrupt
}

// take removes n bits from the stream.
func (d *inflater) take(n uint) (uint, bool) {
	if d.n < n {
		d.refill()
		if d.n < n {
			return 0, false
		}
	}
	v := uint(d.buf & (1<<n - 1))
	d.buf >>= n
	d.n -= n
	return v, true
}

func (d *inflater) storedHeader() outcome {
	d.align()
	v, ok := d.take(32)
	if !ok {
		return starved
	}
	if v&0xffff != ^v>>16&0xffff {
		return corrupt
	}
	d.left, d.block = int(v&0xffff), stored
	return blockEnd
}

// copyStored copies what is left of a stored block.
func copyStored[T symbol](d *inflater, out []T, at, limit int) (int, outcome) {
	d.unread() // its bytes are whole
	n := min(d.left, len(d.in)-d.pos, max(limit-at, 0))
	copyBytes(out[at:at+n], d.in[d.pos:])
	d.pos += n
	d.left -= n
	switch {
	case d.left == 0:
		return at + n, blockEnd
	case at+n >= limit:
		return at + n, full
	}
	return at + n, starved
}

func copyBytes[T symbol](out []T, in []byte) {
	if bytes, ok := any(out).([]uint8); ok {
		copy(bytes, in)
		return
	}
	for i := range out {
		out[i] = T(in[i])
	}
}

// fixedTables makes the tables of a fixed block (RFC 1951, section 3.2.6).
func (d *inflater) fixedTables() {
	d.block = coded
	if d.fixed {
		return
	}
	var lit [288]uint8
	for i := range lit {
		switch {
		case i < 144:
			lit[i] = 8
		case i < 256:
			lit[i] = 9
		case i < 280:
			lit[i] = 7
		default:
			lit[i] = 8
		}
	}
	var dist [32]uint8
	for i := range dist {
		dist[i] = 5
	}
	build(d.lit[:], litBits, lit[:], d.syms.lit[:])
	build(d.dist[:], distBits, dist[:], d.syms.dist[:])
	d.fixed = true
}

// precodeOrder is the order in which the lengths of the precode are written.
var precodeOrder = [numPrecode]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamicHeader makes the tables of a dynamic block (RFC 1951, section 3.2.7).
func (d *inflater) dynamicHeader() outcome {
	v, ok := d.take(14)
	if !ok {
		return starved
	}
	lits, dists, pres := int(v&31)+257, int(v>>5&31)+1, int(v>>10&15)+4
	if lits > maxLit || dists > maxDist {
		return corrupt
	}
	var lens [numPrecode]uint8
	for _, sym := range precodeOrder[:pres] {
		n, ok := d.take(3)
		if !ok {
			return starved
		}
		lens[sym] = uint8(n)
	}
	if !build(d.pre[:], preBits, lens[:], d.syms.pre[:]) {
		return corrupt
	}
	d.fixed = false
	if was := d.codeLengths(lits + dists); was != blockEnd {
		return was
	}
	if !build(d.lit[:], litBits, d.lens[:lits], d.syms.lit[:]) ||
		!build(d.dist[:], distBits, d.lens[lits:lits+dists], d.syms.dist[:]) {
		return corrupt
	}
	d.block = coded
	return blockEnd
}

// codeLengths reads total code lengths, which the precode run-length encodes.
func (d *inflater) codeLengths(total int) outcome {
	for i := 0; i < total; {
		d.refill()
		e := d.pre[d.buf&(1<<preBits-1)]
		if n := uint(e & takeMask); n > d.n {
			return starved
		}
		if e&flagOther != 0 {
			return corrupt
		}
		sym := e >> 16
		d.buf >>= e & takeMask
		d.n -= uint(e & takeMask)
		if sym < 16 {
			d.lens[i] = uint8(sym)
			i++
			continue
		}
		value, times, was := d.run(sym, i)
		if was != blockEnd {
			return was
		}
		if times > total-i {
			return corrupt
		}
		for range times {
			d.lens[i] = value
			i++
		}
	}
	return blockEnd
}

// run reads a repetition of the length before index i, or of 0.
func (d *inflater) run(sym entry, i int) (value uint8, times int, was outcome) {
	var extra uint
	switch sym {
	case 16:
		if i == 0 {
			return 0, 0, corrupt
		}
		value, times, extra = d.lens[i-1], 3, 2
	case 17:
		times, extra = 3, 3
	default:
		times, extra = 11, 7
	}
	more, ok := d.take(extra)
	if !ok {
		return 0, 0, starved
	}
	return value, times + int(more), blockEnd
}

// careful decodes one symbol where the input may end. more says that another
// may be tried.
func careful[T symbol](d *inflater, out []T, floor, at, limit int) (_ int, was outcome, more bool) {
	if at >= limit {
		return at, full, false
	}
	d.refill()
	buf, n := d.buf, d.n
	e := d.lit[buf&(1<<litBits-1)]
	e, buf, n = linked(d.lit[:], e, buf, n)
	take := uint(e & takeMask)
	if take > n {
		return at, starved, false
	}
	switch {
	case e&flagLiteral != 0:
		out[at] = T(e >> 16)
		d.buf, d.n = buf>>take, n-take
		return at + 1, starved, true
	case e&flagOther != 0 && e&flagBad != 0:
		return at, corrupt, false
	case e&flagOther != 0:
		d.buf, d.n = buf>>take, n-take
		return at, blockEnd, false
	}
	length := int(e>>17 + entry(buf>>(e>>8&15))&(e>>12&31))
	buf, n = buf>>take, n-take

	e = d.dist[buf&(1<<distBits-1)]
	e, buf, n = linked(d.dist[:], e, buf, n)
	take = uint(e & takeMask)
	if take > n {
		return at, starved, false
	}
	if e&flagOther != 0 {
		return at, corrupt, false
	}
	code := uint(e >> 8 & 15)
	dist := int(e>>16) + int(buf>>code)&(1<<(take-code)-1)
	if dist > at-floor {
		return at, corrupt, false
	}
	d.buf, d.n = buf>>take, n-take
	for i := at; i < at+length; i++ {
		out[i] = out[i-dist]
	}
	return at + length, starved, true
}

// linked follows an entry to the second table, if it leads there and the bits
// for it are there.
func linked(table []entry, e entry, buf uint64, n uint) (entry, uint64, uint) {
	if e&flagOther == 0 || e&(flagEnd|flagBad) != 0 {
		return e, buf, n
	}
	take := uint(e & takeMask)
	if take > n {
		return e, buf, n // and its caller finds the same
	}
	buf >>= take
	return table[uint64(e>>16)+buf&(1<<(e>>8&15)-1)], buf, n - take
}
