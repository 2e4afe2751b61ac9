package pgunzip_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// TestEndAtPiece ends the source where a piece and a block end, or a few bytes
// from there, be that told with the last bytes or after them.
func TestEndAtPiece(t *testing.T) {
	const piece, pieces = 64 << 10, 4
	r := rand.New(rand.NewPCG(5, 5))
	w := bitWriter{b: bytes.Clone(plainHeader)}
	var before []byte
	for len(w.b) < pieces*piece-2000 {
		lits, dists := alphabet(r)
		var ops []op
		ops, before = randomOps(r, lits, dists, before, 0, 1<<10)
		w.dynamic(false, completeCode(r, 286, lits), completeCode(r, 30, dists), ops...)
	}
	for w.n < 6 { // until the header of a stored block begins a byte of its own
		w.fixed(false, endOp)
	}
	for _, over := range []int{-9, -8, -1, 0, 1, 5, piece / 4, piece/4 + 1} {
		for _, last := range []bool{false, true} {
			end := bitWriter{b: bytes.Clone(w.b), acc: w.acc, n: w.n}
			p := make([]byte, pieces*piece+over-len(w.b)-6)
			end.stored(last, p)
			if len(end.b) != pieces*piece+over {
				t.Fatalf("the file has %d bytes, want %d", len(end.b), pieces*piece+over)
			}
			want := result{append(bytes.Clone(before), p...), truncated}
			for name, from := range map[string]io.Reader{"after": whole(end.b), "with": iotest.DataErrReader(whole(end.b))} {
				got := run(t, pgunzip.NewGuessed(t.Context(), from, 2, piece))
				wanted(t, fmt.Sprintf("piece %+d, last %t, the end comes %s the last bytes", over, last, name), got, want)
			}
		}
	}
}

// TestLastOfTheWindow refers to the oldest byte of the window right where a
// worker may go on with bytes, since all but that one, or all, are known.
func TestLastOfTheWindow(t *testing.T) {
	const window = 32768
	lit := lens(258, map[int]uint8{'a': 1, 256: 2, 257: 2})
	for n := window - 4; n <= window+1; n++ {
		var w bitWriter
		content := far(&w, 40000)
		ops := []op{match(3, window)}
		for range n {
			ops = append(ops, literal('a'))
		}
		w.dynamic(false, lit, one(29), append(ops, endOp)...)
		w.dynamic(false, lit, one(29), match(3, window), endOp)
		w.fixed(true, append(literals("end"), endOp)...)
		content = apply(content, ops...)
		content = append(apply(content, match(3, window)), "end"...)
		got := run(t, pgunzip.NewGuessed(t.Context(), whole(member(plainHeader, w.bytes(), content)), 2, 16<<10))
		wanted(t, fmt.Sprintf("%d known bytes", n), got, result{content, clean})
	}
}
