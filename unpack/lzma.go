package unpack

import (
	"encoding/binary"
	"errors"
)

// errLZMA is damage that LZMA itself notices.
var errLZMA = errors.New("xz: the compressed data is damaged")

const (
	probInit  = 1 << 10 // one half, in 2048ths
	probShift = 5       // how fast a probability follows what is seen
	states    = 12
	minMatch  = 2
)

// rangeDecoder decodes bits of one chunk, which is in memory as a whole.
type rangeDecoder struct {
	in   []byte
	at   int
	rng  uint32
	code uint32
	over bool // more was read than there is
}

// start begins a chunk. The first byte is always 0.
func (r *rangeDecoder) start(in []byte) error {
	if len(in) < 5 || in[0] != 0 {
		return errLZMA
	}
	*r = rangeDecoder{in: in, at: 5, rng: 1<<32 - 1, code: binary.BigEndian.Uint32(in[1:])}
	return nil
}

func (r *rangeDecoder) normalize() {
	if r.rng >= 1<<24 {
		return
	}
	r.rng <<= 8
	r.code <<= 8
	if r.at < len(r.in) {
		r.code |= uint32(r.in[r.at])
		r.at++
	} else {
		r.over = true
	}
}

// bit decodes one bit and lets its probability follow.
func (r *rangeDecoder) bit(p *uint16) uint32 {
	r.normalize()
	v := uint32(*p)
	bound := r.rng >> 11 * v
	if r.code < bound {
		r.rng = bound
		*p = uint16(v + (2048-v)>>probShift)
		return 0
	}
	r.rng -= bound
	r.code -= bound
	*p = uint16(v - v>>probShift)
	return 1
}

// tree decodes n bits, the highest first.
func (r *rangeDecoder) tree(probs []uint16, n int) uint32 {
	m := uint32(1)
	for range n {
		m = m<<1 | r.bit(&probs[m])
	}
	return m - 1<<n
}

// reverse decodes n bits, the lowest first.
func (r *rangeDecoder) reverse(probs []uint16, n int) uint32 {
	m, v := uint32(1), uint32(0)
	for i := range n {
		b := r.bit(&probs[m])
		m = m<<1 | b
		v |= b << i
	}
	return v
}

// direct decodes n bits that are as likely 0 as 1.
func (r *rangeDecoder) direct(n int) uint32 {
	v := uint32(0)
	for range n {
		r.normalize()
		r.rng >>= 1
		r.code -= r.rng
		sign := 0 - r.code>>31 // all ones for a 0
		r.code += r.rng & sign
		v = v<<1 + sign + 1
	}
	return v
}

// lengths decodes the length of a match.
type lengths struct {
	choice, choice2 uint16
	low, mid        [16][8]uint16
	high            [256]uint16
}

func (l *lengths) decode(r *rangeDecoder, posState uint32) int {
	if r.bit(&l.choice) == 0 {
		return minMatch + int(r.tree(l.low[posState][:], 3))
	}
	if r.bit(&l.choice2) == 0 {
		return minMatch + 8 + int(r.tree(l.mid[posState][:], 3))
	}
	return minMatch + 16 + int(r.tree(l.high[:], 8))
}

// model is what LZMA learns of its data: probabilities, the state, and the last
// four distances.
type model struct {
	lc, posMask, litMask uint32

	state uint32
	reps  [4]uint32
	probs probabilities
}

type probabilities struct {
	match    [states][16]uint16
	rep      [states]uint16
	repG0    [states]uint16
	repG1    [states]uint16
	repG2    [states]uint16
	rep0Long [states][16]uint16
	slots    [4][64]uint16
	special  [128]uint16
	align    [16]uint16
	matchLen lengths
	repLen   lengths
	literals [16 << 8 * 3]uint16
}

// setProps takes the byte that says how much of its place and of the byte before
// it a literal depends on.
func (m *model) setProps(b byte) error {
	if b >= 9*5*5 {
		return errLZMA
	}
	lc, lp, pb := uint32(b%9), uint32(b/9%5), uint32(b/45)
	if lc+lp > 4 {
		return errLZMA
	}
	m.lc, m.litMask, m.posMask = lc, 1<<lp-1, 1<<pb-1
	return nil
}

// reset forgets what was learned.
func (m *model) reset() {
	m.state, m.reps = 0, [4]uint32{}
	p := &m.probs
	for i := range states {
		fill(p.match[i][:])
		fill(p.rep0Long[i][:])
	}
	for _, probs := range [][]uint16{p.rep[:], p.repG0[:], p.repG1[:], p.repG2[:], p.special[:], p.align[:], p.literals[:]} {
		fill(probs)
	}
	for i := range p.slots {
		fill(p.slots[i][:])
	}
	for _, l := range []*lengths{&p.matchLen, &p.repLen} {
		l.choice, l.choice2 = probInit, probInit
		for i := range l.low {
			fill(l.low[i][:])
			fill(l.mid[i][:])
		}
		fill(l.high[:])
	}
}

func fill(probs []uint16) {
	for i := range probs {
		probs[i] = probInit
	}
}

// decode decodes one chunk into the window: just size bytes, of just what r has.
func (m *model) decode(r *rangeDecoder, w *window, size int) error {
	for end := w.total + int64(size); w.total < end; {
		posState := uint32(w.total) & m.posMask
		if r.bit(&m.probs.match[m.state][posState]) == 0 {
			m.literal(r, w)
			continue
		}
		n := m.matched(r, posState)
		dist := int64(m.reps[0]) + 1
		if int64(n) > end-w.total || r.over || !w.copy(dist, n) {
			return errLZMA
		}
	}
	if r.normalize(); r.over || r.at != len(r.in) || r.code != 0 {
		return errLZMA
	}
	return nil
}

// literal decodes one byte.
func (m *model) literal(r *rangeDecoder, w *window) {
	before := uint32(w.back(1))
	at := 0x300 * ((uint32(w.total)&m.litMask)<<m.lc | before>>(8-m.lc))
	probs := m.probs.literals[at : at+0x300]
	sym := uint32(1)
	if m.state >= 7 { // after a match: what it would have gone on with tells something
		match, off := uint32(w.back(int64(m.reps[0])+1))<<1, uint32(0x100)
		for sym < 0x100 {
			bit := match & off
			b := r.bit(&probs[off+bit+sym])
			sym = sym<<1 | b
			match <<= 1
			if b == 0 {
				off &^= bit
			} else {
				off &= bit
			}
		}
	} else {
		for sym < 0x100 {
			sym = sym<<1 | r.bit(&probs[sym])
		}
	}
	w.put(byte(sym))
	switch {
	case m.state < 4:
		m.state = 0
	case m.state < 10:
		m.state -= 3
	default:
		m.state -= 6
	}
}

// matched decodes a match: its distance becomes the first of reps, and its
// length is returned.
func (m *model) matched(r *rangeDecoder, posState uint32) int {
	p := &m.probs
	afterLiteral := m.state < 7
	next := func(a, b uint32) {
		if m.state = b; afterLiteral {
			m.state = a
		}
	}
	s := m.state
	if r.bit(&p.rep[s]) == 0 {
		next(7, 10)
		n := p.matchLen.decode(r, posState)
		m.reps = [4]uint32{m.distance(r, n), m.reps[0], m.reps[1], m.reps[2]}
		return n
	}
	switch {
	case r.bit(&p.repG0[s]) == 0:
		if r.bit(&p.rep0Long[s][posState]) == 0 {
			next(9, 11)
			return 1
		}
	case r.bit(&p.repG1[s]) == 0:
		m.reps[0], m.reps[1] = m.reps[1], m.reps[0]
	case r.bit(&p.repG2[s]) == 0:
		m.reps = [4]uint32{m.reps[2], m.reps[0], m.reps[1], m.reps[3]}
	default:
		m.reps = [4]uint32{m.reps[3], m.reps[0], m.reps[1], m.reps[2]}
	}
	next(8, 11)
	return p.repLen.decode(r, posState)
}

// distance decodes how far back a match of n bytes is, less one.
func (m *model) distance(r *rangeDecoder, n int) uint32 {
	p := &m.probs
	slot := r.tree(p.slots[min(n-minMatch, 3)][:], 6)
	if slot < 4 {
		return slot
	}
	bits := int(slot>>1 - 1)
	d := (2 | slot&1) << bits
	if slot < 14 {
		return d + r.reverse(p.special[d-slot:], bits)
	}
	d += r.direct(bits-4) << 4
	return d + r.reverse(p.align[:], 4)
}

// window is the output of a block, as far back as a match may reach.
type window struct {
	buf   []byte // grows to max, and is a ring from then on
	max   int
	at    int   // where the next byte goes
	total int64 // bytes since the dictionary was reset
}

// reset begins a dictionary of max bytes, or goes on with an empty one.
func (w *window) reset(max int) { w.at, w.total, w.max = 0, 0, max }

// room makes sure that n bytes can be put without losing what a match may reach.
func (w *window) room(n int) {
	if need := int(min(w.total, int64(w.max))) + n; len(w.buf) < w.max && need > len(w.buf) {
		grown := make([]byte, min(w.max, max(need, 2*len(w.buf))))
		copy(grown, w.buf[:w.total]) // it was no ring yet
		w.buf, w.at = grown, int(w.total)
	}
}

func (w *window) put(b byte) {
	w.buf[w.at] = b
	w.total++
	if w.at++; w.at == len(w.buf) {
		w.at = 0
	}
}

// back returns the byte that was put dist ago, 0 if there is none.
func (w *window) back(dist int64) byte {
	if dist > w.total || dist > int64(len(w.buf)) {
		return 0
	}
	i := w.at - int(dist)
	if i < 0 {
		i += len(w.buf)
	}
	return w.buf[i]
}

// copy repeats n bytes from dist ago. It returns false if there are none.
func (w *window) copy(dist int64, n int) bool {
	if dist > w.total || dist > int64(w.max) {
		return false
	}
	from := w.at - int(dist)
	if from < 0 {
		from += len(w.buf)
	}
	w.total += int64(n)
	if dist >= int64(n) && from+n <= len(w.buf) && w.at+n < len(w.buf) {
		copy(w.buf[w.at:w.at+n], w.buf[from:from+n])
		w.at += n
		return true
	}
	for range n {
		w.buf[w.at] = w.buf[from]
		if w.at++; w.at == len(w.buf) {
			w.at = 0
		}
		if from++; from == len(w.buf) {
			from = 0
		}
	}
	return true
}
