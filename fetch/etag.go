package fetch

import (
	"crypto/fips140"
	"crypto/md5" // what S3 makes its ETags of; nothing is trusted for it
	"encoding/hex"
	"fmt"
	"hash"
	"regexp"
	"strconv"
	"strings"
)

const (
	mib int64 = 1 << 20
	gib int64 = 1 << 30
	mb  int64 = 1e6
)

// maxETagParts is how many parts S3 lets an object have.
const maxETagParts = 10000

// maxETagSums is how many part sizes are tried at once: each costs as much
// time of a processor as the SHA-256 does.
const maxETagSums = 2

// usualParts are the part sizes that uploading tools have by default, or let
// their users choose from, the most common ones first, in bytes.
var usualParts = []int64{
	8 * mib, 128 * mib, 64 * mib, 16 * mib, 5 * mib, 100 * mib, 50 * mib, 15 * mib, 32 * mib, 256 * mib, 512 * mib, gib, 5 * gib,
	10 * mib, 20 * mib, 25 * mib, 2 * gib, 3 * gib, 4 * gib, 8 * mb, 16 * mb, 64 * mb, 100 * mb,
}

// etagRE matches the ETags that S3 gives to an object: the MD5 of its bytes,
// or, if it was uploaded in N parts, the MD5 of the MD5s of the parts, and N.
var etagRE = regexp.MustCompile(`^"?([0-9a-fA-F]{32})(?:-([1-9][0-9]{0,4}))?"?$`)

// ETagSum recomputes an S3 ETag of the bytes that are written to it. How
// large the parts of the upload were is not said; it is inferred from their
// number. What does not match proves nothing: other servers have ETags that
// look the same, and so have encrypted objects of S3.
type ETagSum struct {
	want string // in lower case
	size int64
	sums []*partSum
}

// partSum is the ETag for one part size.
type partSum struct {
	part  int64 // bytes; 0 is one sum over everything, without a suffix
	left  int64 // bytes to the end of the part
	n     int   // parts that are complete
	inner hash.Hash
	outer hash.Hash // over the sums of the parts
}

// NewETagSum returns a sum for an object of size bytes, or nil if etag, as a
// server sent it, is not of a form that S3 gives out.
func NewETagSum(size int64, etag string) *ETagSum {
	m := etagRE.FindStringSubmatch(etag)
	if m == nil || size <= 0 || fips140.Enabled() { // MD5 may not be used there
		return nil
	}
	s := &ETagSum{want: strings.ToLower(m[1]), size: size}
	if m[2] == "" {
		s.sums = []*partSum{{inner: md5.New()}}
		return s
	}
	n, err := strconv.Atoi(m[2])
	if err != nil || n > maxETagParts {
		return nil
	}
	s.want += "-" + m[2]
	for _, part := range partSizes(size, n) {
		s.sums = append(s.sums, &partSum{part: part, left: part, inner: md5.New(), outer: md5.New()})
	}
	return s
}

// partSizes returns the sizes that n parts of an object of size bytes are
// likely to have had, the likeliest first.
func partSizes(size int64, n int) []int64 {
	if n == 1 {
		return []int64{size} // any larger size makes the same sum
	}
	fits := func(part int64) bool { return segmentCount(size, part) == int64(n) }
	var out []int64
	for _, part := range usualParts {
		if fits(part) && len(out) < maxETagSums {
			out = append(out, part)
		}
	}
	if even := (size + int64(n) - 1) / int64(n); len(out) == 0 && fits((even+mib-1)/mib*mib) {
		out = append(out, (even+mib-1)/mib*mib) // somebody divided it evenly
	}
	return out
}

// Write takes the next bytes of the object. It never fails.
func (s *ETagSum) Write(p []byte) (int, error) {
	for _, sum := range s.sums {
		sum.write(p)
	}
	return len(p), nil
}

func (s *partSum) write(p []byte) {
	for s.part > 0 && int64(len(p)) >= s.left {
		s.inner.Write(p[:s.left])
		p = p[s.left:]
		s.endPart()
	}
	s.inner.Write(p)
	s.left -= int64(len(p))
}

func (s *partSum) endPart() {
	s.outer.Write(s.inner.Sum(nil))
	s.inner.Reset()
	s.left = s.part
	s.n++
}

// etag returns the ETag of what was written. Nothing may be written after it.
func (s *partSum) etag() string {
	if s.part == 0 {
		return hex.EncodeToString(s.inner.Sum(nil))
	}
	if s.left < s.part {
		s.endPart()
	}
	return hex.EncodeToString(s.outer.Sum(nil)) + "-" + strconv.Itoa(s.n)
}

// Result reports, when every byte was written, whether the ETag is that of
// the bytes, and says in words how it was made, or that it could not be.
func (s *ETagSum) Result() (text string, matched bool) {
	for _, sum := range s.sums {
		if sum.etag() == s.want {
			return "S3 ETag (MD5" + sum.describe() + ")", true
		}
	}
	return "S3 ETag could not be recomputed", false
}

func (s *partSum) describe() string {
	switch {
	case s.part == 0:
		return ""
	case s.n == 1:
		return " of 1 part"
	case s.part%gib == 0:
		return fmt.Sprintf(" of %d parts of %d GiB", s.n, s.part/gib)
	case s.part%mib == 0:
		return fmt.Sprintf(" of %d parts of %d MiB", s.n, s.part/mib)
	}
	return fmt.Sprintf(" of %d parts of %d MB", s.n, s.part/mb)
}
