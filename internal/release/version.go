package release

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	pep440 "github.com/aquasecurity/go-pep440-version"
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

// versionPattern is the normalised spelling of PEP 440, restricted to what
// can be in a file name: at least two release numbers, no epoch, and no
// number longer than 18 digits, so that none overflows.
const versionPattern = `[0-9]{1,18}(?:\.[0-9]{1,18})+` +
	`(?:(?:a|b|rc)[0-9]{1,18})?` +
	`(?:\.post[0-9]{1,18})?` +
	`(?:\.dev[0-9]{1,18})?` +
	`(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?`

// maxVersionLen bounds what ParseVersion reads; AMD's longest (a dev version
// with a full commit) has 52 bytes.
const maxVersionLen = 128

var versionRE = regexp.MustCompile(`^(` + versionPattern + `)$`)

// partsRE splits a version that versionRE has accepted.
var partsRE = regexp.MustCompile(`^([0-9.]+?)(?:(a|b|rc)([0-9]+))?(?:\.post[0-9]+)?(\.dev[0-9]+)?(?:\+(.*))?$`)

// Version is one ROCm version, as written in a tarball's name. The zero
// Version is invalid and sorts before every other.
type Version struct {
	raw    string
	base   string
	public string // without the local part
	kind   Kind
	date   time.Time
	order  pep440.Version
}

// ErrVersion is what ParseVersion's errors match.
var ErrVersion = errors.New("not a ROCm version")

// ParseVersion reads a version such as 10.2.0a20260930. The grammar is PEP
// 440's normalised form; anything else is an error that matches ErrVersion.
func ParseVersion(s string) (Version, error) {
	if len(s) > maxVersionLen || !versionRE.MatchString(s) {
		return Version{}, fmt.Errorf("parse version %.140q: %w (want something like 10.2.0a20260930)", s, ErrVersion)
	}
	order, err := pep440.Parse(s)
	if err != nil {
		return Version{}, fmt.Errorf("parse version %q: %w: %w", s, ErrVersion, err)
	}
	m := partsRE.FindStringSubmatch(s)
	v := Version{raw: s, base: m[1], order: order}
	v.public, _, _ = strings.Cut(s, "+")
	v.kind, v.date = classify(m[2], m[3], m[4], m[5])
	return v, nil
}

// classify tells a version's kind and date from its parts: the letter and
// number of the pre-release, the .dev part and the local part.
func classify(letter, number, dev, local string) (Kind, time.Time) {
	date, dated := parseDate(number)
	switch {
	case dev != "":
		return Dev, time.Time{}
	case letter == "":
		return Final, time.Time{}
	case strings.HasPrefix(local, "bkc."):
		if d, ok := parseDate(strings.TrimPrefix(local, "bkc.")); ok {
			return BKC, d
		}
		return BKC, date
	case letter == "a", letter == "b", dated:
		return Nightly, date
	}
	return RC, time.Time{}
}

func parseDate(s string) (time.Time, bool) {
	if len(s) != len("20060102") {
		return time.Time{}, false
	}
	t, err := time.Parse("20060102", s)
	return t, err == nil && t.Year() >= 2000
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
// part above the same version without one. Two development builds of one
// version are equal here: their local part is a commit, which has no order
// (see Compare for releases, which falls back on publication time).
func (v Version) Compare(w Version) int {
	switch {
	case v.IsZero() || w.IsZero():
		return len(v.raw) - len(w.raw)
	case v.kind == Dev && w.kind == Dev && v.public == w.public:
		return 0
	}
	return v.order.Compare(w.order)
}

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
