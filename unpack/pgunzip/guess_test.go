package pgunzip

import (
	"bytes"
	"compress/flate"
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestCombine compares with the checksum of both parts at once, for lengths
// around powers of two, and checks it against itself for those of no test.
func TestCombine(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 21))
	b := sample(r, 1<<17)
	for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 255, 256, 257, 4095, 4096, 65535, 65536, 65537, 100000} {
		for _, at := range []int{0, 1, n / 2, n} {
			at = min(at, n)
			got := combine(crc32.ChecksumIEEE(b[:at]), crc32.ChecksumIEEE(b[at:n]), int64(n-at))
			if want := crc32.ChecksumIEEE(b[:n]); got != want {
				t.Errorf("%d and %d bytes: %08x, want %08x", at, n-at, got, want)
			}
		}
	}
	for range 100 { // a+(b+c) is (a+b)+c
		x, y, z := r.Uint32(), r.Uint32(), r.Uint32()
		n, m := r.Int64N(1<<50), r.Int64N(1<<50)
		if one, two := combine(combine(x, y, n), z, m), combine(x, combine(y, z, m), n+m); one != two {
			t.Errorf("%x, %x of %d, %x of %d: %x and %x", x, y, n, z, m, one, two)
		}
	}
}

// blocks compresses to raw deflate and returns it with the bits at which dynamic
// blocks begin that are not the last, as a decoder that goes through all of it sees them.
func blocks(t *testing.T, content []byte, level int) (in []byte, begins []int) {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	for len(content) > 0 {
		n := min(20000, len(content))
		if _, err := w.Write(content[:n]); err != nil {
			t.Fatal(err)
		}
		if content = content[n:]; len(content)%3 == 0 {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in = b.Bytes()
	d := newInflater()
	d.in = in
	out := make([]uint8, 1<<20)
	for at := 0; ; {
		if d.block == header {
			if bit := d.bit(); in[bit/8]>>(bit%8)&1 == 0 && bits3(in, bit) == dynamicBlock {
				begins = append(begins, bit)
			}
		}
		var was outcome
		at, was = inflate(d, out, 0, at, len(out)-maxMatch-slack)
		switch was {
		case full:
			copy(out, out[at-window:at])
			at = window
		case finished:
			return in, begins
		case starved, corrupt:
			t.Fatalf("%v at bit %d", was, d.bit())
		case blockEnd:
		}
	}
}

func bits3(in []byte, bit int) byte {
	v := uint(in[bit/8])
	if bit/8+1 < len(in) {
		v |= uint(in[bit/8+1]) << 8
	}
	return byte(v >> (bit % 8) & 7)
}

// TestFinder finds every dynamic block, and a guesser believes it.
func TestFinder(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 22))
	f := newFinder()
	g := newGuesser(f, &pool{most: 2})
	total := 0
	for i := range 12 {
		in, begins := blocks(t, sample(r, 1+r.IntN(1<<20)), []int{1, 6, 9, -2}[i%4])
		for _, bit := range begins {
			if bit >= (len(in)-behind)*8 {
				continue
			}
			total++
			if got := f.next(in, bit, bit+1); got != bit {
				t.Fatalf("block at %d: %d", bit, got)
			}
			if !g.begins(in, bit) {
				t.Fatalf("block at %d is not believed", bit)
			}
		}
		// A search over all of it passes over none of them.
		found := map[int]bool{}
		for bit := f.next(in, 0, len(in)*8); bit >= 0; bit = f.next(in, bit+1, len(in)*8) {
			found[bit] = true
		}
		for _, bit := range begins {
			if bit < (len(in)-behind)*8 && !found[bit] {
				t.Errorf("the block at %d is passed over", bit)
			}
		}
	}
	if total < 50 {
		t.Fatalf("%d blocks were looked for", total)
	}
}

// TestFinderStays looks at inputs of all small sizes and at all bits: it must
// not look behind the end, nor answer with a bit out of the range.
func TestFinderStays(t *testing.T) {
	f := newFinder()
	r := rand.New(rand.NewPCG(23, 23))
	for size := range 64 {
		in := make([]byte, size)
		for i := range in {
			in[i] = byte(r.Uint32())
		}
		for from := range size*8 + 2 {
			for _, end := range []int{from, from + 1, size * 8, size*8 + 100} {
				if got := f.next(in, from, end); got != -1 && (got < from || got >= end) {
					t.Fatalf("%d bytes, from %d to %d: %d", size, from, end, got)
				}
			}
		}
	}
}

// TestGuess decodes from each piece on without what came before, and gets what
// is there once the window is known.
func TestGuess(t *testing.T) {
	r := rand.New(rand.NewPCG(24, 24))
	never := func() bool { return false }
	chunks := 0
	for i := range 8 {
		content := sample(r, 1<<20)
		in, _ := blocks(t, content, []int{1, 6, 9, 5}[i%4])
		g := newGuesser(newFinder(), &pool{most: 2})
		for _, from := range []int{0, len(in) / 3, len(in) / 2} {
			first := -1
			c := g.guess(in[from:], len(in)*8/10, never, func(bit int) { first = bit + from*8 })
			if c == nil {
				continue
			}
			if c.from+from*8 != first {
				t.Fatalf("a chunk from bit %d, and %d was told", c.from+from*8, first)
			}
			at, known := outputAt(t, in, first)
			if !known {
				continue // something that only looks like a block
			}
			chunks++
			size := len(c.marked) + len(c.plain)
			win := make([]byte, window)
			copy(win[window-min(window, at):], content[max(0, at-window):at])
			tail := c.tail(win)
			marked, crc := g.resolve(c, win)
			got := append(bytes.Clone(marked), c.plain...)
			want := content[at : at+size]
			if !bytes.Equal(got, want) || crc != crc32.ChecksumIEEE(want) {
				t.Fatalf("a chunk of %d bytes (%d with markers) from byte %d on is wrong", size, len(marked), at)
			}
			if at+size >= window && !bytes.Equal(tail, content[at+size-window:at+size]) {
				t.Fatal("the window behind a chunk is wrong")
			}
		}
	}
	if chunks < 10 {
		t.Fatalf("%d chunks were compared", chunks)
	}
}

// outputAt returns how much the stream has put out before the block at bit.
func outputAt(t *testing.T, in []byte, bit int) (int, bool) {
	d := newInflater()
	d.in = in
	out := make([]uint8, 2<<20)
	at := 0
	for d.bit() < bit {
		var was outcome
		at, was = inflate(d, out, 0, at, len(out)-maxMatch-slack)
		if was != blockEnd {
			return 0, false
		}
	}
	return at, d.bit() == bit
}

// TestChunksAreTaken says that the engine does not decode all by itself.
func TestChunksAreTaken(t *testing.T) {
	r := rand.New(rand.NewPCG(25, 25))
	in, _ := blocks(t, sample(r, 8<<20), 6)
	file := append(bytes.Clone([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0}), in...)
	e := newParallelSized(t.Context(), bytes.NewReader(file), 2, 64<<10, 16<<10)
	defer e.close()
	// The driver waits for its output to be taken; the workers get ahead of it.
	e.mu.Lock()
	e.wait(func() bool {
		for k, p := range e.pieces {
			if k > e.at && p.job != nil && p.job.done && p.job.chunk != nil {
				return true
			}
		}
		return false
	})
	e.mu.Unlock()
	chunks, others := 0, 0
	for it := range e.items {
		if it.err != nil {
			break
		}
		if !it.memberEnd {
			<-it.ready
		}
		if it.chunk != nil {
			chunks++
		} else {
			others++
		}
	}
	t.Logf("%d chunks, %d other items of a file of %d bytes", chunks, others, len(file))
	if chunks == 0 {
		t.Error("no chunk was taken")
	}
}
