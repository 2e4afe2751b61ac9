package pgunzip_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// lens returns the code lengths of size symbols, those of all but the given being 0.
func lens(size int, of map[int]uint8) []uint8 {
	all := make([]uint8, size)
	for sym, n := range of {
		all[sym] = n
	}
	return all
}

// flat are the lengths of a code in which all symbols up to size have nine
// bits or eight.
func flat(size int) []uint8 {
	all := slices.Repeat([]uint8{9}, size)
	for i := range 512 - size {
		all[i] = 8
	}
	return all
}

// deep is a code of 15 bits for the symbols given last.
func deep(size int, symbols ...int) []uint8 {
	all := make([]uint8, size)
	for i, sym := range symbols {
		all[sym] = uint8(min(i+1, len(symbols)-1, 15))
	}
	return all
}

// one is a distance code with the single code for distance symbol sym.
func one(sym int) []uint8 { return lens(sym+1, map[int]uint8{sym: 1}) }

// far returns a stored prefix that lets matches reach back n bytes.
func far(w *bitWriter, n int) []byte {
	r := rand.New(rand.NewPCG(3, uint64(n)))
	content := make([]byte, n)
	for i := range content {
		content[i] = byte(r.Uint32())
	}
	for p := range slices.Chunk(content, 65535) {
		w.stored(false, p)
	}
	return content
}

// TestBlocks decodes one stream for each thing that a block can be. want is the
// content if the stream is valid, and the end else.
func TestBlocks(t *testing.T) {
	both := []op{literal('a'), literal('b'), endOp}
	twoLits := lens(257, map[int]uint8{'a': 2, 'b': 2, 256: 1})
	tests := []struct {
		name  string
		write func(w *bitWriter) (content []byte)
		end   ending // of the content, clean if empty
	}{
		{"stored", func(w *bitWriter) []byte { w.stored(true, []byte("stored")); return []byte("stored") }, clean},
		{"stored, empty", func(w *bitWriter) []byte { w.stored(true, nil); return nil }, clean},
		{"stored, longest", func(w *bitWriter) []byte {
			c := bytes.Repeat([]byte("01234"), 65535/5)
			w.stored(true, c)
			return c
		}, clean},
		{"stored at each bit", func(w *bitWriter) []byte {
			var c []byte
			for i := range 16 {
				w.dynamic(false, twoLits, one(0), slices.Concat(slices.Repeat([]op{literal('a')}, i), []op{endOp})...)
				w.stored(false, []byte{byte(i), 'x'})
				c = append(append(c, bytes.Repeat([]byte("a"), i)...), byte(i), 'x')
			}
			w.stored(true, nil)
			return c
		}, clean},
		{"stored, wrong complement", func(w *bitWriter) []byte { w.storedAs(true, 1, 1, []byte("x")); return nil }, corrupt},
		{"stored, zero and its like", func(w *bitWriter) []byte { w.storedAs(true, 0, 0, nil); return nil }, corrupt},
		{"block of type 3", func(w *bitWriter) []byte { w.bits(7, 3); w.bits(0, 64-3); return nil }, corrupt},
		{"fixed, empty", func(w *bitWriter) []byte { w.fixed(true, endOp); return nil }, clean},
		{"fixed, all literals", func(w *bitWriter) []byte {
			var ops []op
			for i := range 256 {
				ops = append(ops, literal(byte(i)))
			}
			w.fixed(true, append(ops, endOp)...)
			return apply(nil, ops...)
		}, clean},
		{"fixed, symbol 286", func(w *bitWriter) []byte {
			w.fixed(true, append(literals("ab"), op{sym: 286, dist: 0}, endOp)...)
			return []byte("ab")
		}, corrupt},
		{"fixed, symbol 287", func(w *bitWriter) []byte {
			w.fixed(true, append(literals("ab"), op{sym: 287, dist: 0}, endOp)...)
			return []byte("ab")
		}, corrupt},
		{"fixed, distance 30", func(w *bitWriter) []byte {
			w.fixed(true, append(literals("ab"), op{sym: 257, dist: 30}, endOp)...)
			return []byte("ab")
		}, corrupt},
		{"fixed, distance 31", func(w *bitWriter) []byte {
			w.fixed(true, append(literals("ab"), op{sym: 257, dist: 31}, endOp)...)
			return []byte("ab")
		}, corrupt},
		{"fixed, length 258 as 284 and 31", func(w *bitWriter) []byte {
			ops := append(literals("ab"), op{sym: 284, extra: 31, dist: 1}, op{sym: 285, dist: 0}, endOp)
			w.fixed(true, ops...)
			return apply(nil, ops...)
		}, clean},
		{"sync flushes", func(w *bitWriter) []byte {
			for range 100 {
				w.fixed(false, append(literals("ab"), endOp)...)
				w.stored(false, nil)
			}
			w.stored(false, nil)
			w.stored(true, nil)
			return bytes.Repeat([]byte("ab"), 100)
		}, clean},
		{"partial flushes", func(w *bitWriter) []byte {
			for range 100 {
				w.fixed(false, append(literals("ab"), endOp)...)
				w.fixed(false, endOp)
			}
			w.fixed(true, endOp)
			return bytes.Repeat([]byte("ab"), 100)
		}, clean},
		{"dynamic, no distance", func(w *bitWriter) []byte { w.dynamic(true, twoLits, []uint8{0}, both...); return []byte("ab") }, clean},
		{"dynamic, 30 distances without a code", func(w *bitWriter) []byte {
			w.dynamic(true, twoLits, make([]uint8, 30), both...)
			return []byte("ab")
		}, clean},
		{"dynamic, one distance", func(w *bitWriter) []byte {
			ops := append(literals("a"), match(258, 1), endOp)
			w.dynamic(true, lens(286, map[int]uint8{'a': 2, 256: 2, 285: 1}), one(0), ops...)
			return apply(nil, ops...)
		}, clean},
		{"dynamic, one far distance", func(w *bitWriter) []byte {
			c := far(w, 32768)
			ops := []op{match(258, 32768), match(258, 24577), endOp}
			w.dynamic(true, lens(286, map[int]uint8{'a': 2, 256: 2, 285: 1}), one(29), ops...)
			return apply(c, ops...)
		}, clean},
		{"dynamic, the unused half of one distance", func(w *bitWriter) []byte {
			w.dynamic(false, lens(286, map[int]uint8{'a': 2, 256: 2, 285: 1}), one(0), literal('a'), op{sym: 285, dist: -1})
			w.bits(1, 1)
			w.bits(0, 64)
			return []byte("a")
		}, corrupt},
		{"dynamic, a match without distances", func(w *bitWriter) []byte {
			w.dynamic(false, lens(286, map[int]uint8{'a': 2, 256: 2, 285: 1}), []uint8{0}, literal('a'), op{sym: 285, dist: -1})
			w.bits(0, 64)
			return []byte("a")
		}, corrupt},
		{"dynamic, only the end", func(w *bitWriter) []byte {
			w.dynamic(true, lens(257, map[int]uint8{256: 1}), []uint8{0}, endOp)
			return nil
		}, clean},
		{"dynamic, the unused half of only the end", func(w *bitWriter) []byte {
			w.dynamic(false, lens(257, map[int]uint8{256: 1}), []uint8{0})
			w.bits(1, 1)
			w.bits(0, 64)
			return nil
		}, corrupt},
		{"dynamic, no end", func(w *bitWriter) []byte {
			ops := literals("abba")
			w.dynamic(true, lens(257, map[int]uint8{'a': 1, 'b': 1}), []uint8{0}, ops...)
			for w.n > 0 { // up to the end of the byte
				w.bits(1, 1)
				ops = append(ops, literal('b'))
			}
			return apply(nil, ops...)
		}, truncated},
		{"dynamic, no literal at all", func(w *bitWriter) []byte {
			w.dynamic(true, lens(257, nil), []uint8{0})
			w.bits(0, 64)
			return nil
		}, corrupt},
		{"dynamic, one literal of two bits", func(w *bitWriter) []byte {
			w.dynamic(true, lens(257, map[int]uint8{256: 2}), []uint8{0}, endOp)
			w.bits(0, 64)
			return nil
		}, corrupt},
		{"dynamic, one distance of two bits", func(w *bitWriter) []byte {
			w.dynamic(true, twoLits, []uint8{2}, both...)
			w.bits(0, 64)
			return nil
		}, corrupt},
		{"dynamic, literals incomplete", func(w *bitWriter) []byte {
			w.dynamic(true, lens(257, map[int]uint8{'a': 2, 'b': 3, 256: 1}), []uint8{0}, both...)
			w.bits(0, 64)
			return nil
		}, corrupt},
		{"dynamic, literals over-subscribed", func(w *bitWriter) []byte {
			w.dynamic(true, lens(257, map[int]uint8{'a': 1, 'b': 2, 256: 1}), []uint8{0}, both...)
			w.bits(0, 64)
			return nil
		}, corrupt},
		{"dynamic, distances incomplete", func(w *bitWriter) []byte {
			w.dynamic(true, twoLits, []uint8{1, 2}, both...)
			w.bits(0, 64)
			return nil
		}, corrupt},
		{"dynamic, distances over-subscribed", func(w *bitWriter) []byte {
			w.dynamic(true, twoLits, []uint8{1, 1, 1}, both...)
			w.bits(0, 64)
			return nil
		}, corrupt},
		{"dynamic, precode incomplete", func(w *bitWriter) []byte {
			w.preHeader(true, 257, 1, lens(19, map[int]uint8{1: 2, 2: 2, 18: 2}))
			w.bits(0, 128)
			return nil
		}, corrupt},
		{"dynamic, precode over-subscribed", func(w *bitWriter) []byte {
			w.preHeader(true, 257, 1, lens(19, map[int]uint8{1: 1, 2: 1, 18: 1}))
			w.bits(0, 128)
			return nil
		}, corrupt},
		{"dynamic, precode empty", func(w *bitWriter) []byte {
			w.preHeader(true, 257, 1, make([]uint8, 19))
			w.bits(0, 128)
			return nil
		}, corrupt},
		{"dynamic, precode of one symbol", func(w *bitWriter) []byte {
			w.preHeader(true, 257, 1, lens(19, map[int]uint8{9: 1}))
			w.bits(0, 1+257+200) // 258 codes of nine bits leave some over
			return nil
		}, corrupt},
		{"dynamic, repeats nothing", func(w *bitWriter) []byte {
			pre := lens(19, map[int]uint8{16: 1, 1: 1})
			w.preHeader(true, 257, 1, pre)
			w.write(canonical(pre)[16])
			w.bits(0, 128)
			return nil
		}, corrupt},
		{"dynamic, repeats beyond the end", func(w *bitWriter) []byte {
			pre := lens(19, map[int]uint8{18: 1, 1: 1})
			w.preHeader(true, 257, 1, pre)
			w.write(canonical(pre)[18])
			w.bits(127, 7)
			w.write(canonical(pre)[18])
			w.bits(127, 7)
			w.bits(0, 128)
			return nil
		}, corrupt},
		{"dynamic, a run across literals and distances", func(w *bitWriter) []byte {
			lit, dist := make([]uint8, 286), slices.Repeat([]uint8{4}, 16)
			lit['a'], lit[256] = 1, 2
			for i := 282; i < 286; i++ {
				lit[i] = 4
			}
			ops := append(literals("aaaaaaaa"), op{sym: 285, dist: 1}, endOp)
			w.dynamic(true, lit, dist, ops...)
			return apply(nil, ops...)
		}, clean},
		{"dynamic, HLIT 286 and HDIST 30", func(w *bitWriter) []byte {
			c := far(w, 40000)
			ops := append(literals("ab"), match(258, 32768), match(257, 1), match(3, 2), endOp)
			w.dynamic(true, flat(286), fill(slices.Repeat([]uint8{5}, 30)), ops...)
			return apply(c, ops...)
		}, clean},
		{"dynamic, HLIT 287", func(w *bitWriter) []byte { w.dynamic(true, flat(287), []uint8{0}, both...); return nil }, corrupt},
		{"dynamic, HLIT 288", func(w *bitWriter) []byte { w.dynamic(true, flat(288), []uint8{0}, both...); return nil }, corrupt},
		{"dynamic, HDIST 31", func(w *bitWriter) []byte {
			w.dynamic(true, twoLits, make([]uint8, 31), both...)
			return nil
		}, corrupt},
		{"dynamic, HDIST 32", func(w *bitWriter) []byte {
			w.dynamic(true, twoLits, slices.Repeat([]uint8{5}, 32), both...)
			return nil
		}, corrupt},
		{"dynamic, codes of 15 bits", func(w *bitWriter) []byte {
			c := far(w, 32768)
			syms := []int{'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 284, 285, 256}
			var fars []int
			for i := range 16 {
				fars = append(fars, 14+i)
			}
			var ops []op
			for i := range 500 {
				ops = append(ops, literal(byte('a'+i%13)), match(258-i%30, 32768-i*2), match(258, 300+i))
			}
			ops = append(ops, endOp)
			w.dynamic(true, deep(286, syms...), deep(30, fars...), ops...)
			return apply(c, ops...)
		}, clean},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var w bitWriter
			content := tt.write(&w)
			file := w.bytes()
			if tt.end == clean {
				file = member(plainHeader, file, content)
				same(t, tt.name, file, content)
				// Behind the fast loop's reach, and in front of it.
				same(t, tt.name+" twice", slices.Concat(file, file), slices.Concat(content, content))
				return
			}
			file = slices.Concat(plainHeader, file)
			if tt.end == corrupt {
				file = append(file, make([]byte, 100)...)
			}
			got := new(oracle).compare(t, tt.name, file, 2)
			wanted(t, tt.name, got, result{content, tt.end})
		})
	}
}
