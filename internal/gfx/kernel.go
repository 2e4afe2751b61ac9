package gfx

import "strings"

// OlderKernel reports whether a running kernel, as uname -r says it, is older
// than a minimum such as 6.10. Numbers are compared; what distributions hang
// on behind them (-45-generic, -427.el9.x86_64) is not a version. A release
// candidate counts as its release: drivers come in before the first one.
// What cannot be read is not older.
//
// Enterprise kernels carry drivers that are newer than their number, so that
// whoever shows this to people says "may be too old".
func OlderKernel(running, minimum string) bool {
	r, okR := kernelNumbers(running)
	m, okM := kernelNumbers(minimum)
	if !okR || !okM {
		return false
	}
	for i := range r {
		if r[i] != m[i] {
			return r[i] < m[i]
		}
	}
	return false
}

// kernelNumbers reads the up to three numbers that a kernel release begins
// with; those that are absent are 0. There are at least two.
func kernelNumbers(s string) (n [3]int, ok bool) {
	s = strings.TrimPrefix(strings.TrimSpace(s), "v")
	count := 0
	for ; count < len(n); count++ {
		digits := 0
		for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
			digits++
		}
		if digits == 0 || digits > 6 {
			break
		}
		for _, d := range s[:digits] {
			n[count] = n[count]*10 + int(d-'0')
		}
		rest, dot := strings.CutPrefix(s[digits:], ".")
		if s = rest; !dot {
			count++
			break
		}
	}
	return n, count >= 2
}
