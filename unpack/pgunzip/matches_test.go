package pgunzip_test

import (
	"fmt"
	"slices"
	"testing"
)

// fill makes a code complete by making the last codes shorter.
func fill(lens []uint8) []uint8 {
	left := 1 << 15
	for _, n := range lens {
		if n > 0 {
			left -= 1 << (15 - n)
		}
	}
	for left > 0 {
		for i := len(lens) - 1; i >= 0 && left > 0; i-- {
			if n := lens[i]; n > 1 && 1<<(15-n) <= left {
				lens[i]--
				left -= 1 << (15 - n)
			}
		}
	}
	return lens
}

// TestOverlaps copies every length from every distance up to 40, which is where
// copies of more than a byte at once read what they write, at all alignments.
func TestOverlaps(t *testing.T) {
	for distance := 1; distance <= 40; distance++ {
		ops := literals("0123456789abcdefghijklmnopqrstuvwxyzABCD")
		for length := 3; length <= 258; length++ {
			ops = append(ops, match(length, distance), literal(byte(length)), literal(byte(length*7)))
		}
		ops = append(ops, endOp)
		content := apply(nil, ops...)
		var w bitWriter
		w.fixed(true, ops...)
		same(t, fmt.Sprintf("distance %d", distance), member(plainHeader, w.bytes(), content), content)
	}
}

// TestMatchesAtTheEnd puts each length at the very end of a member, where the
// fast loop is not in charge.
func TestMatchesAtTheEnd(t *testing.T) {
	var file, content []byte
	for length := 3; length <= 258; length++ {
		ops := append(literals("abc"), match(length, 1+length%3), endOp)
		out := apply(nil, ops...)
		var w bitWriter
		w.fixed(true, ops...)
		file = append(file, member(plainHeader, w.bytes(), out)...)
		content = append(content, out...)
	}
	same(t, "all lengths", file, content)
}

// TestReach lets matches reach the first byte of a member, or one before it,
// be there nothing, or another member.
func TestReach(t *testing.T) {
	t.Parallel()
	var w bitWriter
	before := far(&w, 40000)
	w.stored(true, nil)
	first := member(plainHeader, w.bytes(), before)
	for _, n := range []int{0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 258, 300, 4095, 4096, 32766, 32767, 32768, 40000, 262145} {
		for _, more := range []int{0, 1} {
			distance := n + more
			if n == 0 && more == 0 || distance > 32768 && n < 32768 {
				continue
			}
			distance = min(distance, 32768)
			for _, length := range []int{3, 258} {
				if raced && length == 3 {
					continue
				}
				var w bitWriter
				content := far(&w, n)
				w.fixed(true, match(length, distance), endOp)
				end := clean
				if distance > n {
					end = corrupt
				} else {
					content = apply(content, match(length, distance))
				}
				file := member(plainHeader, w.bytes(), content)
				name := fmt.Sprintf("%d bytes, match of %d from %d", n, length, distance)
				alone := new(oracle).compare(t, name, file, 2)
				wanted(t, name, alone, result{content, end})
				second := new(oracle).compare(t, name+" behind a member", slices.Concat(first, file), 2, 3, 8)
				wanted(t, name, second, result{slices.Concat(before, content), end})
			}
		}
	}
}
