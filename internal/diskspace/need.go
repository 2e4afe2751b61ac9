package diskspace

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// Need is what a work will take of one file system.
type Need struct {
	Bytes  int64 // with a margin
	Inodes int64
	Least  Least // what it takes in any case; less than this cannot do
	Exact  bool  // Bytes and Inodes are known, and not estimated
}

// Least is the least that a work takes.
type Least struct {
	Bytes      int64
	Compressed int64 // on a file system that compresses, bytes
	Inodes     int64
}

// Known is the need of what was measured: content that is written as it is
// measured, but for a file system that compresses.
func Known(bytes, inodes, compressed int64) Need {
	return Need{Bytes: bytes, Inodes: inodes, Exact: true, Least: Least{bytes, min(bytes, compressed), inodes}}
}

// Incompressible is the need of bytes that take as much on every file system.
func Incompressible(bytes int64) Need { return Known(bytes, 0, bytes) }

// Estimated is the need of what was not measured yet: probably so much, and in
// no case less than least.
func Estimated(bytes, inodes int64, least Least) Need {
	return Need{Bytes: bytes, Inodes: inodes, Least: least}
}

// Arriving is the need of a download that is under way: some of the bytes that
// are still to come may be on the disk before that is known.
func Arriving(bytes int64) Need { return Estimated(bytes, 0, Least{}) }

// Plus is the need of two works on one file system.
func (n Need) Plus(m Need) Need {
	return Need{
		Bytes: sum(n.Bytes, m.Bytes), Inodes: sum(n.Inodes, m.Inodes), Exact: n.Exact && m.Exact,
		Least: Least{sum(n.Least.Bytes, m.Least.Bytes), sum(n.Least.Compressed, m.Least.Compressed), sum(n.Least.Inodes, m.Least.Inodes)},
	}
}

func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Fit is how a need and a file system go together.
type Fit string

// The values of Fit.
const (
	Fits     Fit = "yes"
	Doubtful Fit = "perhaps" // less is free than it will probably take
	Short    Fit = "no"      // less is free than it takes at the least
)

// Fit compares a need with what is free.
func (s Space) Fit(n Need) Fit {
	least := n.Least.Bytes
	if s.Compress {
		least = n.Least.Compressed
	}
	switch {
	case s.ReadOnly, under(s.Bytes, least), under(s.Inodes, n.Least.Inodes):
		return Short
	case under(s.Bytes, n.Bytes), under(s.Inodes, n.Inodes):
		return Doubtful
	}
	return Fits
}

func under(free, need int64) bool { return free != Unknown && free < need }

// ShortError says that there is not enough room for a work. It matches
// unix.ENOSPC, or unix.EROFS where nothing can be written at all.
type ShortError struct {
	What  string // the work, as in "unpacking it"
	Need  Need
	Space Space
}

func (e *ShortError) Error() string {
	if e.Space.ReadOnly {
		return fmt.Sprintf("%s is not possible: the file system %s is read-only", e.What, e.Space.where())
	}
	return fmt.Sprintf("not enough room: %s takes %s, and %s", e.What, e.Need, e.Space)
}

// Unwrap returns the error that writing would have ended with.
func (e *ShortError) Unwrap() error {
	if e.Space.ReadOnly {
		return unix.EROFS
	}
	return unix.ENOSPC
}

// String is the need for people: "about 8.4 GiB and 29500 inodes".
func (n Need) String() string {
	s := Text(n.Bytes)
	if !n.Exact {
		s = "about " + s
	}
	if n.Inodes > 0 {
		s += fmt.Sprintf(" and %d inodes", n.Inodes)
	}
	return s
}

// String is what is free, for people: "3.0 GiB and 1000 inodes are free at /srv".
func (s Space) String() string {
	free := "any number of bytes"
	if s.Bytes != Unknown {
		free = Text(s.Bytes)
	}
	if s.Inodes != Unknown {
		free += fmt.Sprintf(" and %d inodes", s.Inodes)
	}
	return free + " are free " + s.where()
}

func (s Space) where() string { return "at " + s.Mount }

// Text is a number of bytes for people.
func Text(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, i := float64(n)/unit, 0
	for ; v >= unit && i < 3; i++ {
		v /= unit
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGT"[i])
}
