package pgunzip

import "math/bits"

const (
	maxCode    = 15  // bits of the longest code (RFC 1951, section 3.2.7)
	maxLit     = 286 // literals, end of block and lengths that a dynamic block may have codes for
	maxDist    = 30  // distances, the same
	numPrecode = 19  // symbols of the code that the code lengths are written in
	endOfBlock = 256

	litBits  = 11 // looked up at once; longer codes go through a second table
	distBits = 8
	preBits  = 7 // the longest that a precode can have

	// The number of entries that the worst code of 288 and of 32 symbols
	// needs is 2342 and 402 (enough.c of zlib counts them): these are more.
	litSize  = 1<<litBits + 1<<10
	distSize = 1<<distBits + 1<<9
)

// An entry of a table says what the next bits mean. Its low six bits are how
// many of them it takes: code, and extra bits, of all that it stands for. The
// others depend on its kind:
//
//	literal   flagLiteral, 16-23 the byte
//	length    8-11 bits of the code, 12-16 mask of the extra bits, 17-25 base
//	distance  8-11 bits of the code, 16-31 base
//	link      flagOther, 8-11 index bits of the second table, 16-31 its start
//	end       flagOther|flagEnd
//	invalid   flagOther|flagBad: no code begins so, or it means nothing
type entry = uint32

const (
	takeMask    = 63
	flagLiteral = 1 << 6
	flagOther   = 1 << 7
	flagEnd     = 1 << 12
	flagBad     = 1 << 13
)

// The bases and extra bits of lengths and distances (RFC 1951, section 3.2.5).
var (
	lengthBase = [29]uint16{
		3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31,
		35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
	}
	lengthExtra = [29]uint8{
		0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2,
		3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0,
	}
	distBase = [30]uint16{
		1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769,
		1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577,
	}
	distExtra = [30]uint8{
		0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8,
		9, 9, 10, 10, 11, 11, 12, 12, 13, 13,
	}
)

// litEntry returns the entry of symbol sym of the literal and length code,
// without the length of its code.
func litEntry(sym int) entry {
	switch {
	case sym < endOfBlock:
		return flagLiteral | entry(sym)<<16
	case sym == endOfBlock:
		return flagOther | flagEnd
	case sym < maxLit:
		i := sym - endOfBlock - 1
		extra := entry(lengthExtra[i])
		return extra | (1<<extra-1)<<12 | entry(lengthBase[i])<<17
	}
	return flagOther | flagBad // 286 and 287 have codes in a fixed block, and no meaning
}

func distEntry(sym int) entry {
	if sym < maxDist {
		return entry(distExtra[sym]) | entry(distBase[sym])<<16
	}
	return flagOther | flagBad
}

func preEntry(sym int) entry { return entry(sym) << 16 }

// symbols are the entries of all symbols of a code, but for the code lengths.
type symbols struct {
	lit  [288]entry
	dist [32]entry
	pre  [numPrecode]entry
}

func newSymbols() *symbols {
	s := new(symbols)
	for i := range s.lit {
		s.lit[i] = litEntry(i)
	}
	for i := range s.dist {
		s.dist[i] = distEntry(i)
	}
	for i := range s.pre {
		s.pre[i] = preEntry(i)
	}
	return s
}

// withLength completes the entry of a symbol by the bits of its code that are
// looked up in the table at hand.
func withLength(e entry, n int) entry {
	if e&(flagLiteral|flagOther) != 0 {
		return e + entry(n)
	}
	return e + entry(n) + entry(n)<<8 // where the extra bits begin
}

// build fills table, whose first index has tableBits bits, from the code
// lengths of the symbols whose entries are given. It says no to a set of
// lengths that no prefix code has, and to one that leaves codes unused, unless
// that has one code of one bit, or none: encoders write these where a block has
// one distance or no match at all.
func build(table []entry, tableBits int, lengths []uint8, of []entry) bool {
	var count, start [maxCode + 2]int
	for _, n := range lengths {
		count[n]++
	}
	left := 1
	for n := 1; n <= maxCode; n++ {
		left = left<<1 - count[n]
		if left < 0 {
			return false
		}
		start[n+1] = start[n] + count[n]
	}
	total := start[maxCode+1]
	if left > 0 {
		return buildSparse(table[:1<<tableBits], lengths, of, total, count[1])
	}
	var sorted [288]uint16 // symbols by code length, then by value: the order of their codes
	for sym, n := range lengths {
		if n != 0 {
			sorted[start[n]] = uint16(sym)
			start[n]++
		}
	}
	f := filler{table: table, bits: tableBits, of: of, count: &count}
	f.fill(sorted[:total])
	return true
}

// buildSparse makes the table of a code with one symbol, or with none.
func buildSparse(table []entry, lengths []uint8, of []entry, total, ones int) bool {
	if total > 1 || total != ones {
		return false
	}
	bad := entry(flagOther | flagBad)
	if total == 0 {
		for i := range table {
			table[i] = bad // without taking a bit
		}
		return true
	}
	only := bad
	for sym, n := range lengths {
		if n != 0 {
			only = withLength(of[sym], 1)
		}
	}
	for i := range table {
		if i&1 == 0 {
			table[i] = only
		} else {
			table[i] = bad + 1
		}
	}
	return true
}

// filler enters the symbols of a complete code into a table. Codes are read
// from their first bit on, which is the lowest of the bit buffer, so that they
// are kept reversed.
type filler struct {
	table []entry
	bits  int
	of    []entry
	count *[maxCode + 2]int

	code  uint // of the next symbol, reversed
	size  int  // entries in use
	first uint // index that the second table at hand hangs on
	start int  // of that table
}

// fill goes through the symbols in the order of their codes. The table begins
// as one for the shortest codes and is doubled for each longer length.
func (f *filler) fill(sorted []uint16) {
	n := 1
	f.size = 2
	left := f.count[n]
	for _, sym := range sorted {
		for left == 0 {
			n++
			left = f.count[n]
			if n <= f.bits {
				copy(f.table[f.size:2*f.size], f.table[:f.size])
				f.size *= 2
			}
		}
		if n <= f.bits {
			f.table[f.code] = withLength(f.of[sym], n)
		} else {
			f.long(n, left, f.of[sym])
		}
		f.next(n)
		left--
	}
	for n++; n <= f.bits; n++ {
		copy(f.table[f.size:2*f.size], f.table[:f.size])
		f.size *= 2
	}
}

// next adds one to a reversed code of n bits.
func (f *filler) next(n int) {
	zeros := ^f.code & (1<<n - 1)
	if zeros == 0 {
		return // that was the last
	}
	bit := uint(1) << (bits.Len(zeros) - 1)
	f.code = f.code&(bit-1) | bit
}

// long enters a symbol whose code is longer than the first index, of which
// left with the same length are still to come.
func (f *filler) long(n, left int, of entry) {
	prefix := f.code & (1<<f.bits - 1)
	if f.start == 0 || prefix != f.first {
		f.first, f.start = prefix, f.size
		// The table must hold the longest code with this prefix: go on until
		// the codes that follow have used the prefix up.
		more, used := n-f.bits, left
		for used < 1<<more {
			more++
			used = used<<1 + f.count[f.bits+more]
		}
		f.size += 1 << more
		f.table[prefix] = flagOther | entry(more)<<8 | entry(f.start)<<16 | entry(f.bits)
	}
	e := withLength(of, n-f.bits)
	for i := f.start + int(f.code>>f.bits); i < f.size; i += 1 << (n - f.bits) {
		f.table[i] = e
	}
}
