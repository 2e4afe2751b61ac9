package release

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind tells how far along its way to a release a version is. The zero Kind
// is not a kind.
type Kind int

// The kinds of version that AMD has published, in no particular order.
const (
	Dev     Kind = iota + 1 // 10.2.0.dev0+<commit>: one per commit
	Nightly                 // 10.2.0a20260930, and 7.0.0rc20250714 until July 2025
	BKC                     // 10.2.0a20260930+bkc.20261001: a "best known configuration" built on a night
	RC                      // 10.2.0rc1
	Final                   // 10.2.0
)

// String returns the kind as it is shown to people.
func (k Kind) String() string {
	switch k {
	case Dev:
		return "dev"
	case Nightly:
		return "nightly"
	case BKC:
		return "bkc"
	case RC:
		return "rc"
	case Final:
		return "final"
	}
	return "unknown"
}

// Version is one ROCm version, as written in a tarball's name. The zero
// Version is invalid and sorts before every other. Two Versions are == when
// they are written alike; for their order see Compare.
type Version struct {
	raw  string
	base string
	key  string // orders as versions do, byte by byte; see sortKey
	kind Kind
	date time.Time
}

// ErrVersion is what ParseVersion's errors match.
var ErrVersion = errors.New("not a ROCm version")

// ParseVersion reads a version such as 10.2.0a20260930. The grammar is PEP
// 440's normalised form; anything else is an error that matches ErrVersion.
func ParseVersion(s string) (Version, error) {
	p, ok := scanVersion(s)
	if !ok {
		return Version{}, fmt.Errorf("parse version %.140q: %w (want something like 10.2.0a20260930)", s, ErrVersion)
	}
	v := Version{raw: s, base: p.base}
	var night time.Time // the day that the pre-release number names
	v.kind, v.date, night = p.classify()
	v.key = p.sortKey(v.kind, !night.IsZero())
	return v, nil
}

// classify tells a version's kind, the day that it names, and the day that
// its pre-release number names, which differ for BKC.
func (p *parts) classify() (kind Kind, date, night time.Time) {
	night = parseDate(p.preText)
	switch {
	case p.hasDev:
		return Dev, time.Time{}, night
	case p.letter == "":
		return Final, time.Time{}, night
	case strings.HasPrefix(p.local, "bkc."):
		if d := parseDate(p.local[len("bkc."):]); !d.IsZero() {
			return BKC, d, night
		}
		return BKC, night, night
	case p.letter == "rc" && night.IsZero():
		return RC, time.Time{}, night
	}
	return Nightly, night, night
}

// parseDate reads YYYYMMDD; what is no day is the zero time.
func parseDate(s string) time.Time {
	if len(s) != len("20060102") {
		return time.Time{}
	}
	t, err := time.Parse("20060102", s)
	if err != nil || t.Year() < 2000 {
		return time.Time{}
	}
	return t
}

// String returns the version exactly as it was parsed.
func (v Version) String() string { return v.raw }

// IsZero reports whether v is the zero Version.
func (v Version) IsZero() bool { return v.raw == "" }

// Base returns the release numbers alone: 10.2.0 for 10.2.0a20260930. It is
// what AMD calls the version in .info/version.
func (v Version) Base() string { return v.base }

// Kind returns the kind of v.
func (v Version) Kind() Kind { return v.kind }

// Date returns the day (UTC) that the version names, and whether it names one.
func (v Version) Date() (time.Time, bool) { return v.date, !v.date.IsZero() }

// InSeries reports whether the leading release numbers of v are those of
// series: 7.1 holds 7.1.0 and 7.1.1a20260101 but not 7.10.0. The empty series
// holds everything.
func (v Version) InSeries(series string) bool {
	return series == "" || v.base == series || strings.HasPrefix(v.base, series+".")
}

// Compare orders v and w as PEP 440 does: dev < a < rc < final, and a local
// part above the same version without one, with two exceptions.
//
// Development builds of one version are equal here: their local part is a
// commit, which has no order (see Compare for releases, which falls back on
// publication time). And a night of before mid-2025, which was spelled
// 7.0.0rc20250714, is ordered as the night that it is, by its day among
// 7.0.0a20250801 and its like and below every rcN: AMD changed the spelling
// within one base.
func (v Version) Compare(w Version) int { return strings.Compare(v.key, w.key) }

// MarshalText implements encoding.TextMarshaler.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.raw), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (v *Version) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*v = Version{}
		return nil
	}
	w, err := ParseVersion(string(b))
	if err != nil {
		return err
	}
	*v = w
	return nil
}
