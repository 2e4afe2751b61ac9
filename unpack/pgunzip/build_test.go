package pgunzip

import (
	"math/rand/v2"
	"testing"
)

// TestBuildEveryShape makes tables of codes of all shapes up to the largest, and
// looks each code up.
func TestBuildEveryShape(t *testing.T) {
	syms := newSymbols()
	table := make([]entry, litSize)
	for i := range 2000 {
		r := rand.New(rand.NewPCG(26, uint64(i)))
		lens := complete(r, 2+r.IntN(maxLit-1))
		clear(table)
		if !build(table, litBits, lens, syms.lit[:]) {
			t.Fatalf("code %d is refused: %v", i, lens)
		}
		for sym, code := range codes(lens) {
			if lens[sym] == 0 {
				continue
			}
			for range 3 {
				buf := uint64(code) | r.Uint64()<<lens[sym]
				e, _, left := linked(table, table[buf&(1<<litBits-1)], buf, 64)
				first := 64 - left
				if want := withLength(syms.lit[sym], int(lens[sym])-int(first)); e != want {
					t.Fatalf("code %d, symbol %d of %d bits: entry %x, want %x", i, sym, lens[sym], e, want)
				}
			}
		}
	}
}

// complete returns the lengths of a complete code of n symbols.
func complete(r *rand.Rand, n int) []uint8 {
	lens := []uint8{1, 1}
	for len(lens) < n {
		i := r.IntN(len(lens))
		if r.IntN(3) > 0 {
			i = len(lens) - 1
		}
		if lens[i] < maxCode {
			lens[i]++
			lens = append(lens, lens[i])
		}
	}
	r.Shuffle(n, func(i, j int) { lens[i], lens[j] = lens[j], lens[i] })
	return lens
}

// codes returns the codes of RFC 1951, section 3.2.2, the first bit lowest.
func codes(lens []uint8) []uint32 {
	all := make([]uint32, len(lens))
	next := uint32(0)
	for n := uint8(1); n <= maxCode; n++ {
		for sym := range lens {
			if lens[sym] != n {
				continue
			}
			for i := range n {
				all[sym] |= next >> i & 1 << (n - 1 - i)
			}
			next++
		}
		next <<= 1
	}
	return all
}

// TestBuildRefuses says no to all sets of lengths that are no complete code.
func TestBuildRefuses(t *testing.T) {
	syms := newSymbols()
	table := make([]entry, litSize)
	r := rand.New(rand.NewPCG(27, 27))
	for range 20000 {
		lens := make([]uint8, 1+r.IntN(maxLit))
		sum, used, ones := 0, 0, 0
		for i := range lens {
			if lens[i] = uint8(r.IntN(1 + r.IntN(16))); r.IntN(4) > 0 {
				lens[i] = 0
			}
			if n := lens[i]; n > 0 {
				sum += 1 << (maxCode - n)
				used++
			}
			if lens[i] == 1 {
				ones++
			}
		}
		want := sum == 1<<maxCode || used == 0 || used == 1 && ones == 1
		if got := build(table, litBits, lens, syms.lit[:]); got != want {
			t.Fatalf("%v: %t, want %t", lens, got, want)
		}
	}
}

// TestBuildRefusesByOne adds the longest code to a complete set, and takes one away.
func TestBuildRefusesByOne(t *testing.T) {
	syms := newSymbols()
	table := make([]entry, litSize)
	r := rand.New(rand.NewPCG(28, 28))
	for range 1000 {
		lens := complete(r, 3+r.IntN(maxLit-4))
		if build(table, litBits, append(lens[:len(lens):len(lens)], maxCode), syms.lit[:]) {
			t.Fatalf("%v and one more code", lens)
		}
		if build(table, litBits, lens[1:], syms.lit[:]) {
			t.Fatalf("%v without the first", lens)
		}
	}
}
