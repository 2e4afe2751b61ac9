package pgunzip

import "unsafe"

// finder looks for bits at which a dynamic block that is not the last may
// begin. The others are not looked for: a fixed block has nothing to know it by,
// a stored one little, and neither takes long to decode.
type finder struct {
	// skip says, by the 13 bits that come next, how many of them to pass over
	// to the next place that may be one: there stand the end mark (0), the
	// kind (2), and at most 29 each for HLIT and HDIST.
	skip [1 << 13]uint8
	// kraft sums up four code lengths of three bits: a length n uses 2^-n of
	// the codes, counted here in 1/128. All of a precode make just 128.
	kraft [1 << 12]uint16
}

const (
	dynamicBlock = 2 << 1 // the first three bits of one that is not the last
	lookBits     = 13
)

func newFinder() *finder {
	f := new(finder)
	for v := range f.skip {
		f.skip[v] = uint8(skipFor(v))
	}
	for v := range f.kraft {
		for i := range 4 {
			if n := v >> (3 * i) & 7; n != 0 {
				f.kraft[v] += 128 >> n
			}
		}
	}
	return f
}

func skipFor(v int) int {
	for skip := range lookBits {
		if mayBegin(v>>skip, lookBits-skip) {
			return skip
		}
	}
	return lookBits
}

// mayBegin says whether known bits can be the first of a dynamic block.
func mayBegin(v, known int) bool {
	kind := dynamicBlock & (1<<min(known, 3) - 1)
	if v&7 != kind && known >= 3 || known < 3 && v != kind {
		return false
	}
	return (known < 8 || v>>3&31 < 30) && (known < lookBits || v>>8&31 < 30)
}

// behind is how many bytes next must be able to look at behind a bit.
const behind = 24

// next returns the first bit from on, and below end, at which a dynamic block
// may begin as far as its kind and its precode tell, or -1.
func (f *finder) next(in []byte, from, end int) int {
	end = min(end, (len(in)-behind)*8)
	p := unsafe.Pointer(unsafe.SliceData(in))
	for bit := from; bit < end; {
		v := load64(p, bit>>3) >> (bit & 7)
		skip := int(f.skip[v&(1<<lookBits-1)])
		if skip == 0 {
			if f.complete(p, bit, v) {
				return bit
			}
			skip = 1
		}
		bit += skip
	}
	return -1
}

// complete says whether the lengths of the precode use up all codes. v is what
// stands at bit.
func (f *finder) complete(p unsafe.Pointer, bit int, v uint64) bool {
	lengths := int(v>>lookBits&15) + 4
	at := bit + lookBits + 4
	v = load64(p, at>>3) >> (at & 7) // 57 bits are right: 19 lengths
	v &= 1<<(3*lengths) - 1
	sum := f.kraft[v&0xfff] + f.kraft[v>>12&0xfff] + f.kraft[v>>24&0xfff] + f.kraft[v>>36&0xfff] + f.kraft[v>>48&0xfff]
	return sum == 128
}

// findable says whether next would find the block that d is about to begin.
func (d *inflater) findable() bool {
	d.refill()
	yes := d.n >= 3 && d.buf&7 == dynamicBlock
	d.unread()
	return yes
}
