package pgunzip

import "hash/crc32"

const (
	// firstMarked and mostMarked are how many symbols a chunk has room for at
	// first and at last, and firstPlain and mostPlain the same for bytes. What
	// expands to more is decoded in order.
	firstMarked = 256 << 10
	mostMarked  = 2 << 20
	firstPlain  = 2 << 20
	mostPlain   = 8 << 20

	// guessStep is how much is decoded before markers are looked for.
	guessStep = 64 << 10
)

// chunk is what was decoded without knowing what came before. Offsets are in
// bits of the input that the guesser was given.
type chunk struct {
	from, to int
	final    bool     // the last block of a member ends at to
	marked   []uint16 // bytes, and markers of the window before from
	plain    []byte   // what follows

	symbols []uint16 // the memory of marked
	bytes   []byte   // and of plain
}

// guesser decodes chunks. It belongs to one goroutine.
type guesser struct {
	d     *inflater
	f     *finder
	pool  *pool
	begin []uint16 // a window of markers
	table []byte   // of resolve
}

func newGuesser(f *finder, p *pool) *guesser {
	g := &guesser{d: newInflater(), f: f, pool: p, begin: make([]uint16, window), table: make([]byte, 1<<16)}
	for i := range g.begin {
		g.begin[i] = marker + uint16(i)
	}
	for i := range 256 {
		g.table[i] = byte(i)
	}
	return g
}

// lookStep is how many bits are searched before stopped is asked.
const lookStep = 64 << 10

// guess decodes the first blocks in in that it can find, up to the first at end
// or behind. It returns nil where there are none, or when stopped says so. found
// is told where it begins, and -1 when that turns out to be wrong.
func (g *guesser) guess(in []byte, end int, stopped func() bool, found func(bit int)) *chunk {
	for from := 0; from < end; {
		upTo := min(from+lookStep, end)
		bit := g.f.next(in, from, upTo)
		if bit < 0 {
			from = upTo
		} else if from = bit + 1; g.begins(in, bit) {
			found(bit)
			if c := g.decode(in, bit, end, stopped); c != nil {
				return c
			}
			found(-1)
		}
		if stopped() {
			return nil
		}
	}
	return nil
}

// begins says whether all of the header of a block stands at bit.
func (g *guesser) begins(in []byte, bit int) bool {
	g.d.seek(in, bit)
	return g.d.header() == blockEnd && g.d.lens[endOfBlock] != 0
}

// decode decodes from a bit on. What follows the last block that it gets to
// the end of is dropped.
func (g *guesser) decode(in []byte, from, end int, stopped func() bool) *chunk {
	w := writer[uint16]{d: g.d, end: end, stopped: stopped, most: mostMarked, grow: g.pool.growSymbols}
	w.out = g.pool.growSymbols(nil, window+firstMarked)
	w.at = window + copy(w.out, g.begin) - window
	g.d.seek(in, from)
	c := &chunk{from: from}
	clean := w.run(true)
	c.symbols, c.marked = w.out, w.out[window:w.cut]
	c.to, c.final = w.to, w.final
	if clean {
		c.marked = w.out[window:w.at] // for the time being
		g.goOn(c, &w)
	}
	if c.to == 0 || stopped() {
		g.pool.put(c)
		return nil
	}
	return c
}

// goOn decodes to bytes where the last window has no marker.
func (g *guesser) goOn(c *chunk, w *writer[uint16]) {
	p := writer[uint8]{d: g.d, end: w.end, stopped: w.stopped, most: mostPlain, grow: g.pool.growBytes}
	p.out = g.pool.growBytes(nil, window+firstPlain)
	for i, v := range w.out[w.at-window : w.at] {
		p.out[i] = byte(v)
	}
	p.at = window
	p.run(false)
	c.bytes = p.out
	if p.to == 0 { // the last block that ended is before
		c.marked, c.plain = w.out[window:max(w.cut, window)], p.out[window:window]
		return
	}
	c.plain = p.out[window:p.cut]
	c.to, c.final = p.to, p.final
}

// writer decodes into memory that grows.
type writer[T symbol] struct {
	d       *inflater
	end     int // bit from which on to stop at a block that can be found
	stopped func() bool
	most    int
	grow    func(old []T, n int) []T

	out   []T
	at    int
	cut   int // end of the output of whole blocks
	to    int // bit at which they end; 0: there are none
	final bool
}

// run decodes until the chunk ends, or nothing more can be decoded. It returns true
// if it was asked to look for markers, and has come to have none in reach.
func (w *writer[T]) run(look bool) (clean bool) {
	w.cut = w.at
	marked := w.at // end of the last marker
	for {
		was := w.step()
		switch was {
		case blockEnd, finished:
			w.cut, w.to, w.final = w.at, w.d.bit(), was == finished
			if w.final || w.to >= w.end && w.d.findable() {
				return false
			}
		case starved, corrupt:
			return false
		case full:
		}
		if look {
			marked = lastMarker(w.out[:w.at], marked)
			if w.at-marked >= window {
				return true
			}
		}
		if w.stopped() {
			return false
		}
	}
}

// step decodes a little. Where there is no room for it, that is the end.
func (w *writer[T]) step() outcome {
	if room := len(w.out) - maxMatch - slack; w.at+guessStep > room {
		n := min(2*(len(w.out)-window), w.most)
		if n <= len(w.out)-window {
			return starved
		}
		w.out = w.grow(w.out, window+n)
	}
	var was outcome
	w.at, was = inflate(w.d, w.out, 0, w.at, w.at+guessStep)
	return was
}

// lastMarker returns the end of the last marker of out, which has none from
// seen on as far as was known before; it looks no further back.
func lastMarker[T symbol](out []T, seen int) int {
	for i := len(out); i > seen; i-- {
		if uint16(out[i-1]) >= marker {
			return i
		}
	}
	return seen
}

// tail returns the last window of the output of c, which follows that of win.
func (c *chunk) tail(win []byte) []byte {
	if n := len(c.plain); n >= window {
		return append([]byte(nil), c.plain[n-window:]...)
	}
	out := make([]byte, 0, window)
	rest := window - len(c.plain)
	if n := len(c.marked); n < rest {
		out = append(out, win[len(win)-(rest-n):]...)
		rest = n
	}
	for _, v := range c.marked[len(c.marked)-rest:] {
		if v >= marker {
			out = append(out, win[v-marker])
		} else {
			out = append(out, byte(v))
		}
	}
	return append(out, c.plain...)
}

// resolve turns the marked part of c into bytes, given the window before it,
// and returns them with the CRC-32 of the whole.
func (g *guesser) resolve(c *chunk, win []byte) ([]byte, uint32) {
	out := g.pool.growBytes(nil, len(c.marked))[:len(c.marked)]
	copy(g.table[marker:], win)
	table := (*[1 << 16]byte)(g.table)
	for i, v := range c.marked {
		out[i] = table[v]
	}
	crc := crc32.ChecksumIEEE(out)
	return out, crc32.Update(crc, crc32.IEEETable, c.plain)
}
