package amd

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Holds reports whether v lies in the index's route, [From, Until).
func (ix Index) Holds(v release.Version) bool {
	from, err := release.ParseBound(ix.From)
	if err != nil {
		return false
	}
	until, err := release.ParseBound(ix.Until)
	if err != nil {
		return false
	}
	return within(v, from, until)
}

func within(v, from, until release.Version) bool {
	return (from.IsZero() || v.Compare(from) >= 0) && (until.IsZero() || v.Compare(until) < 0)
}

// overlaps reports whether the index's route and the series have a version in
// common. A series that cannot be read overlaps with everything: to ask once
// too often finds what is there.
func (ix Index) overlaps(series string) bool {
	first, past, ok := seriesBounds(series)
	if !ok {
		return true
	}
	from, errFrom := release.ParseBound(ix.From)
	until, errUntil := release.ParseBound(ix.Until)
	if errFrom != nil || errUntil != nil {
		return true
	}
	return (from.IsZero() || from.Compare(past) < 0) && (until.IsZero() || first.Compare(until) < 0)
}

// Ask lists the indexes to ask for what is wanted, in order: those that are
// no archives, and the archives whose route holds the version or touches the
// series. The zero version and the empty series want whatever is newest, so
// that no archive is asked. all adds every archive.
func (c Channel) Ask(version release.Version, series string, all bool) []Index {
	var asked []Index
	for _, ix := range c.Indexes {
		switch {
		case !ix.Archive, all,
			!version.IsZero() && ix.Holds(version),
			version.IsZero() && series != "" && ix.overlaps(series):
			asked = append(asked, ix)
		}
	}
	return asked
}

// seriesBounds returns the first version of a series such as 7, 7.12 or
// 7.12.0, and the first one past it.
func seriesBounds(series string) (first, past release.Version, ok bool) {
	parts := strings.Split(series, ".")
	n, err := strconv.Atoi(parts[len(parts)-1])
	if err != nil || n < 0 || n >= 1<<40 {
		return first, past, false
	}
	next := strings.Join(append(parts[:len(parts)-1:len(parts)-1], strconv.Itoa(n+1)), ".")
	first, err = release.ParseBound(series)
	if err != nil {
		return first, past, false
	}
	past, err = release.ParseBound(next)
	return first, past, err == nil
}

// newer reports whether version a of the facts is later than b.
func newer(a, b string) bool {
	x, errX := parseFacts(a)
	y, errY := parseFacts(b)
	if errX != nil || errY != nil {
		return errX == nil
	}
	for i := range max(len(x), len(y)) {
		var p, q int
		if i < len(x) {
			p = x[i]
		}
		if i < len(y) {
			q = y[i]
		}
		if p != q {
			return p > q
		}
	}
	return false
}

// parseFacts reads a version of the facts: numbers with dots between them.
func parseFacts(s string) ([]int, error) {
	var parts []int
	for p := range strings.SplitSeq(s, ".") {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || p[0] == '+' || len(p) > 9 {
			return nil, fmt.Errorf("%.40q is not of the form 2026.10.1", s)
		}
		parts = append(parts, n)
	}
	return parts, nil
}
