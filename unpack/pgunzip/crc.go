package pgunzip

import "hash/crc32"

// combine returns the CRC-32 of two strings, one behind the other, from those
// of each and the length of the second in bytes.
//
// A CRC is a polynomial over GF(2) modulo a fixed one. To put n bytes behind a
// string is to multiply its CRC by x^(8n), which takes log(n) squarings.
func combine(first, second uint32, n int64) uint32 {
	const (
		one  = 1 << 31 // bits are reversed: the highest is that of x^0
		xTo8 = 1 << (31 - 8)
		bits = 63
	)
	shift, power := uint32(one), uint32(xTo8)
	for i := 0; i < bits && n>>i != 0; i++ {
		if n>>i&1 != 0 {
			shift = multiply(shift, power)
		}
		power = multiply(power, power)
	}
	return multiply(shift, first) ^ second
}

// multiply multiplies two polynomials modulo that of CRC-32.
func multiply(a, b uint32) uint32 {
	var product uint32
	for m := uint32(1) << 31; m != 0; m >>= 1 {
		if a&m != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1
		if carry != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}
