package pgunzip_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
)

// What stands here writes deflate (RFC 1951) symbol by symbol, so that tests
// reach what no compressor makes. It shares no table with the package.

// bitWriter writes bits, the first lowest.
type bitWriter struct {
	b   []byte
	acc uint64
	n   uint
}

func (w *bitWriter) bits(v uint64, n uint) {
	w.acc |= v << w.n
	for w.n += n; w.n >= 8; w.n -= 8 {
		w.b = append(w.b, byte(w.acc))
		w.acc >>= 8
	}
}

// align fills the last byte with zeros.
func (w *bitWriter) align() {
	if w.n > 0 {
		w.b = append(w.b, byte(w.acc))
		w.acc, w.n = 0, 0
	}
}

// bytes returns what has been written, up to the end of the last byte.
func (w *bitWriter) bytes() []byte {
	w.align()
	return w.b
}

// codeword is the code of a symbol, its first bit lowest.
type codeword struct {
	bits uint64
	n    uint
}

// canonical gives the symbols of these code lengths their codes (section 3.2.2).
func canonical(lens []uint8) []codeword {
	codes := make([]codeword, len(lens))
	next := uint64(0)
	for n := uint(1); n <= 15; n++ {
		for sym, have := range lens {
			if uint(have) != n {
				continue
			}
			var reversed uint64
			for i := range n {
				reversed |= next >> i & 1 << (n - 1 - i)
			}
			codes[sym] = codeword{reversed, n}
			next++
		}
		next <<= 1
	}
	return codes
}

// op is a literal, the end of a block, or a match.
type op struct {
	sym   int // of the literal and length code
	extra uint64
	dist  int // symbol of the distance code, or -1
	far   uint64
}

var endOp = op{sym: 256, dist: -1}

func literal(b byte) op { return op{sym: int(b), dist: -1} }

func literals(s string) []op {
	ops := make([]op, len(s))
	for i := range ops {
		ops[i] = literal(s[i])
	}
	return ops
}

// lengthOf returns the base and the number of extra bits of a length symbol
// (section 3.2.5).
func lengthOf(sym int) (base int, extra uint) {
	if sym == 285 {
		return 258, 0
	}
	base = 3
	for s := 257; ; s++ {
		extra = uint(max(0, (s-257)/4-1))
		if s == sym {
			return base, extra
		}
		base += 1 << extra
	}
}

func distanceOf(sym int) (base int, extra uint) {
	base = 1
	for s := 0; ; s++ {
		extra = uint(max(0, s/2-1))
		if s == sym {
			return base, extra
		}
		base += 1 << extra
	}
}

// match returns the usual coding of a match.
func match(length, distance int) op {
	o := op{sym: 285}
	if length != 258 {
		for o.sym = 284; ; o.sym-- {
			if base, _ := lengthOf(o.sym); base <= length {
				o.extra = uint64(length - base)
				break
			}
		}
	}
	for o.dist = 29; ; o.dist-- {
		if base, _ := distanceOf(o.dist); base <= distance {
			o.far = uint64(distance - base)
			return o
		}
	}
}

// apply appends what the operations mean to the content before them.
func apply(content []byte, ops ...op) []byte {
	for _, o := range ops {
		switch {
		case o.sym < 256:
			content = append(content, byte(o.sym))
		case o.sym > 256:
			length, _ := lengthOf(o.sym)
			distance, _ := distanceOf(o.dist)
			for range length + int(o.extra) {
				content = append(content, content[len(content)-distance-int(o.far)])
			}
		}
	}
	return content
}

func final(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// stored writes a stored block of at most 65535 bytes.
func (w *bitWriter) stored(last bool, p []byte) {
	w.storedAs(last, uint16(len(p)), ^uint16(len(p)), p)
}

func (w *bitWriter) storedAs(last bool, n, inverse uint16, p []byte) {
	w.bits(final(last), 3)
	w.align()
	w.b = binary.LittleEndian.AppendUint16(w.b, n)
	w.b = binary.LittleEndian.AppendUint16(w.b, inverse)
	w.b = append(w.b, p...)
}

// fixedLens are the code lengths of a fixed block.
func fixedLens() (lit, dist []uint8) {
	lit = slices.Repeat([]uint8{8}, 288)
	copy(lit[144:256], slices.Repeat([]uint8{9}, 112))
	copy(lit[256:280], slices.Repeat([]uint8{7}, 24))
	return lit, slices.Repeat([]uint8{5}, 32)
}

func (w *bitWriter) fixed(last bool, ops ...op) {
	w.bits(final(last)|1<<1, 3)
	lit, dist := fixedLens()
	w.ops(lit, dist, ops)
}

// dynamic writes a block with these code lengths, of which there may be more
// and others than RFC 1951 allows.
func (w *bitWriter) dynamic(last bool, lit, dist []uint8, ops ...op) {
	w.dynamicHeader(last, lit, dist)
	w.ops(lit, dist, ops)
}

func (w *bitWriter) dynamicHeader(last bool, lit, dist []uint8) {
	// 13 codes of four bits and 6 of five use all codes.
	pre := slices.Repeat([]uint8{4}, 19)
	copy(pre[13:], []uint8{5, 5, 5, 5, 5, 5})
	w.preHeader(last, len(lit), len(dist), pre)
	w.lengths(canonical(pre), slices.Concat(lit, dist))
}

// preHeader writes the header of a dynamic block up to the code lengths.
func (w *bitWriter) preHeader(last bool, lits, dists int, pre []uint8) {
	w.bits(final(last)|2<<1, 3)
	w.bits(uint64(lits-257), 5)
	w.bits(uint64(dists-1), 5)
	w.bits(19-4, 4)
	for _, sym := range []int{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15} {
		w.bits(uint64(pre[sym]), 3)
	}
}

func (w *bitWriter) write(c codeword) { w.bits(c.bits, c.n) }

// lengths writes code lengths, with runs wherever one fits.
func (w *bitWriter) lengths(codes []codeword, lens []uint8) {
	for i := 0; i < len(lens); {
		run := 1
		for i+run < len(lens) && lens[i+run] == lens[i] {
			run++
		}
		switch {
		case lens[i] == 0 && run >= 11:
			run = min(run, 138)
			w.write(codes[18])
			w.bits(uint64(run-11), 7)
		case lens[i] == 0 && run >= 3:
			w.write(codes[17])
			w.bits(uint64(run-3), 3)
		case i > 0 && lens[i-1] == lens[i] && run >= 3:
			run = min(run, 6)
			w.write(codes[16])
			w.bits(uint64(run-3), 2)
		default:
			run = 1
			w.write(codes[lens[i]])
		}
		i += run
	}
}

func (w *bitWriter) ops(lit, dist []uint8, ops []op) {
	lits, dists := canonical(lit), canonical(dist)
	for _, o := range ops {
		w.write(lits[o.sym])
		if o.dist < 0 {
			continue
		}
		if o.sym < 286 {
			_, n := lengthOf(o.sym)
			w.bits(o.extra, n)
		}
		w.write(dists[o.dist])
		if o.dist < 30 {
			_, n := distanceOf(o.dist)
			w.bits(o.far, n)
		}
	}
}

// plainHeader is that of a gzip member without anything optional.
var plainHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// member puts a deflate stream into a gzip member.
func member(header, deflated, content []byte) []byte {
	b := slices.Concat(header, deflated)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(content))
	return binary.LittleEndian.AppendUint32(b, uint32(len(content)))
}
