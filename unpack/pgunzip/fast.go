package pgunzip

import "unsafe"

// fast decodes symbols while at least margin bytes of input are left and the
// limit of the output is not reached. It comes back starved, and careful goes
// on, when either is so or not known.
//
// A refill brings at least 56 bits. That is enough for two literals from the
// first table and the longest length, of 15 bits and 5 extra ones, or for a
// third literal; another refill stands before the distance, of 15 and 13.
//
// The low six bits of n are right at any time, those above hold anything: so an
// entry is subtracted as it is. In the same way buf may have right bits above
// the n that are accounted for, which the next refill brings again.
func fast[T symbol](d *inflater, out []T, floor, at, limit int) (int, outcome) {
	const margin = 16
	var (
		size = int(unsafe.Sizeof(*new(T)))
		src  = unsafe.Pointer(unsafe.SliceData(d.in))
		dst  = unsafe.Pointer(unsafe.SliceData(out))
		last = len(d.in) - margin
		pos  = d.pos
		buf  = d.buf
		n    = d.n
		lit  = &d.lit
		dist = &d.dist
		was  = starved
	)
	if limit > len(out)-maxMatch-slack {
		return at, corrupt // a bug: nothing may be written behind out
	}
	for pos <= last && at < limit {
		buf |= load64(src, pos) << (n & 63)
		pos += int(^n&63) >> 3
		n |= 56

		e := lit[buf&(1<<litBits-1)]
		if e&flagLiteral != 0 {
			*(*T)(unsafe.Add(dst, at*size)) = T(e >> 16)
			at++
			buf >>= e & takeMask
			n -= uint(e)
			e = lit[buf&(1<<litBits-1)]
			if e&flagLiteral != 0 {
				*(*T)(unsafe.Add(dst, at*size)) = T(e >> 16)
				at++
				buf >>= e & takeMask
				n -= uint(e)
				e = lit[buf&(1<<litBits-1)]
				if e&flagLiteral != 0 {
					*(*T)(unsafe.Add(dst, at*size)) = T(e >> 16)
					at++
					buf >>= e & takeMask
					n -= uint(e)
					continue
				}
			}
		}
		if e&flagOther != 0 {
			if e&(flagEnd|flagBad) == 0 {
				buf >>= litBits
				n -= litBits
				e = lit[e>>16+entry(buf)&(1<<(e>>8&15)-1)]
			}
			if e&flagLiteral != 0 {
				*(*T)(unsafe.Add(dst, at*size)) = T(e >> 16)
				at++
				buf >>= e & takeMask
				n -= uint(e)
				continue
			}
			if e&flagOther != 0 {
				buf >>= e & takeMask
				n -= uint(e)
				was = blockEnd
				if e&flagBad != 0 {
					was = corrupt
				}
				break
			}
		}
		length := int(e>>17 + entry(buf>>(e>>8&15))&(e>>12&31))
		buf >>= e & takeMask
		n -= uint(e)

		buf |= load64(src, pos) << (n & 63)
		pos += int(^n&63) >> 3
		n |= 56

		e = dist[buf&(1<<distBits-1)]
		if e&flagOther != 0 {
			if e&flagBad == 0 {
				buf >>= distBits
				n -= distBits
				e = dist[e>>16+entry(buf)&(1<<(e>>8&15)-1)]
			}
			if e&flagOther != 0 {
				was = corrupt
				break
			}
		}
		code := e >> 8 & 15
		back := int(e>>16) + int(buf>>code)&(1<<((e-code)&63)-1)
		buf >>= e & takeMask
		n -= uint(e)
		if back > at-floor {
			was = corrupt
			break
		}
		if back*size < 16 {
			repeat(dst, at*size, back*size, length*size)
			at += length
			continue
		}
		// Most matches end within 32 bytes: these are copied without asking.
		to, from := at*size, (at-back)*size
		copy16(dst, to, from)
		copy16(dst, to+16, from+16)
		for i := 32; i < length*size; i += 16 {
			copy16(dst, to+i, from+i)
		}
		at += length
	}
	d.pos, d.buf, d.n = pos, buf, n&63
	d.unread() // what refill brought beyond n goes too
	return at, was
}

// repeat copies length bytes from back bytes before at, of which there are less
// than 16, so that it reads what it writes. It writes up to 7 too many.
func repeat(p unsafe.Pointer, at, back, length int) {
	from, end := at-back, at+length
	if back == 1 {
		v := load64(p, from) & 0xff * 0x0101010101010101
		for ; at < end; at += 8 {
			store64(p, at, v)
		}
		return
	}
	// The first back bytes of what is loaded are there; what is stored behind
	// them is overwritten by the next step.
	step := min(back, 8)
	for ; at < end; at, from = at+step, from+step {
		store64(p, at, load64(p, from))
	}
}
