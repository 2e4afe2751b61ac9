package pgunzip

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// sample returns n bytes that compress in all ways: noise, runs, text, and
// copies from nearer and farther than the window reaches.
func sample(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n)
	for len(b) < n {
		switch r.IntN(4) {
		case 0:
			for range r.IntN(300) {
				b = append(b, byte(r.Uint32()))
			}
		case 1:
			b = append(b, bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(1000))...)
		case 2:
			b = append(b, fmt.Sprintf("the quick %d brown fox jumps %x", r.Uint32(), r.Uint64())...)
		case 3:
			if len(b) > 0 {
				back := r.IntN(min(len(b), 1<<16)) + 1
				k := r.IntN(back) + 1
				b = append(b, b[len(b)-back:len(b)-back+k]...)
			}
		}
	}
	return b[:n]
}
