package pgunzip_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// completeCode returns the lengths of a random complete code of the given
// symbols, of at most 15 bits.
func completeCode(r *rand.Rand, size int, symbols []int) []uint8 {
	lens := make([]uint8, size)
	if len(symbols) == 0 {
		return lens
	}
	if len(symbols) == 1 {
		lens[symbols[0]] = 1
		return lens
	}
	leaves := []uint8{1, 1}
	skewed := r.IntN(2) == 0
	for len(leaves) < len(symbols) {
		i := r.IntN(len(leaves))
		if deepest := len(leaves) - 1; skewed && leaves[deepest] < 15 {
			i = deepest
		}
		if leaves[i] < 15 {
			leaves[i]++
			leaves = append(leaves, leaves[i])
		}
	}
	for i, j := range r.Perm(len(symbols)) {
		lens[symbols[i]] = leaves[j]
	}
	return lens
}

// randomStored writes a stored block.
func randomStored(w *bitWriter, r *rand.Rand, last bool, content []byte, most int) []byte {
	p := make([]byte, r.IntN(1+min(most, 65535)))
	for i := range p {
		p[i] = byte(r.Uint32())
	}
	w.stored(last, p)
	return append(content, p...)
}

// alphabet returns some symbols: at least the end of block, at most all.
func alphabet(r *rand.Rand) (lits, dists []int) {
	lits = []int{256}
	for range r.IntN(200) {
		lits = append(lits, r.IntN(256))
	}
	for range r.IntN(40) {
		lits = append(lits, 257+r.IntN(29))
	}
	for range r.IntN(40) {
		dists = append(dists, r.IntN(30))
	}
	slices.Sort(lits)
	slices.Sort(dists)
	return slices.Compact(lits), slices.Compact(dists)
}

// randomOps returns up to most operations that mean something behind the
// content from floor on, and the content with what they mean.
func randomOps(r *rand.Rand, lits, dists []int, content []byte, floor, most int) ([]op, []byte) {
	var ops []op
	for range r.IntN(1 + most) {
		o := op{sym: lits[r.IntN(len(lits))], dist: -1}
		if o.sym > 256 {
			if len(dists) == 0 {
				continue
			}
			_, n := lengthOf(o.sym)
			o.extra = r.Uint64N(1 << n)
			o.dist = dists[r.IntN(len(dists))]
			base, n := distanceOf(o.dist)
			o.far = r.Uint64N(1 << n)
			if base+int(o.far) > len(content)-floor {
				continue
			}
		}
		if o.sym != 256 {
			ops = append(ops, o)
			content = apply(content, o)
		}
	}
	return append(ops, endOp), content
}

// randomBlock writes a block of any kind behind the content.
func randomBlock(w *bitWriter, r *rand.Rand, last bool, content []byte, floor, most int) []byte {
	kind := r.IntN(8)
	if kind == 0 {
		return randomStored(w, r, last, content, most)
	}
	lits, dists := alphabet(r)
	ops, content := randomOps(r, lits, dists, content, floor, most)
	if kind == 1 {
		w.fixed(last, ops...)
		return content
	}
	size := lits[len(lits)-1] + 1
	size += r.IntN(286 - size + 1)
	far := 1
	if len(dists) > 0 {
		far = dists[len(dists)-1] + 1
	}
	far += r.IntN(30 - far + 1)
	w.dynamic(last, completeCode(r, size, lits), completeCode(r, far, dists), ops...)
	return content
}

// randomFile returns a gzip file and its content.
func randomFile(r *rand.Rand, members, blocks, most int) (file, content []byte) {
	for range members {
		var w bitWriter
		floor := len(content)
		for i := range blocks {
			content = randomBlock(&w, r, i == blocks-1, content, floor, most)
		}
		file = append(file, member(plainHeader, w.bytes(), content[floor:])...)
	}
	return file, content
}

// TestRandomStreams decodes what uses the format in ways that no compressor does:
// random codes of up to 15 bits, random matches, all kinds of blocks in turn.
func TestRandomStreams(t *testing.T) {
	t.Parallel()
	for i := range fewer(120) {
		r := rand.New(rand.NewPCG(7, uint64(i)))
		file, content := randomFile(r, 1+i%3, 1+r.IntN(20), 1<<r.IntN(12))
		same(t, fmt.Sprintf("file %d", i), file, content)
	}
}

// TestRandomStreamsInPieces is the same with files of many pieces.
func TestRandomStreamsInPieces(t *testing.T) {
	t.Parallel()
	for i := range fewer(4) {
		r := rand.New(rand.NewPCG(8, uint64(i)))
		file, content := randomFile(r, 1+i%2, 60, 1<<14)
		for _, workers := range workersUsed {
			for _, piece := range []int{4 << 10, 17 << 10} {
				got := run(t, pgunzip.NewGuessed(t.Context(), whole(file), workers, piece))
				wanted(t, fmt.Sprintf("file %d, %d workers, pieces of %d", i, workers, piece), got, result{content, clean})
			}
		}
	}
}
