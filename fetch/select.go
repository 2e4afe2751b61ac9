package fetch

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// The values of Policy.Prefer.
const (
	PreferVersion = "version" // the highest version; the default
	PreferDate    = "date"    // the latest upload: AMD published 7.14.1 after 10.0.0
)

// multiarch is the family that AMD's build uploads for every night.
const multiarch = "multiarch"

// Policy says which releases are admissible and which of them is wanted. All
// conditions hold at once.
type Policy struct {
	Prefer  string        // PreferVersion, PreferDate or ""
	Series  string        // leading release numbers: 10, 10.2; "" is any
	Version string        // this version and no other; "" is any
	MinAge  time.Duration // since the upload; a release without a time is too young. 0 is off
	Settle  time.Duration // a night counts once multiarch of the same version is listed, or after this long. 0 is off
	Deny    []string      // path.Match patterns over the version or the file name
	Now     time.Time     // zero is time.Now
}

// Rejection is a release that was not chosen, and why.
type Rejection struct {
	Release release.Release
	Reason  string
}

// shownRejections is how many rejections an error lists.
const shownRejections = 5

// NoReleaseError says that nothing published is admissible.
type NoReleaseError struct {
	Channel  string
	Family   string
	Version  string      // the one asked for, if any
	Rejected []Rejection // every candidate, the preferred first
	Families []string    // what is published
}

func (e *NoReleaseError) Error() string {
	what := e.Family
	if e.Version != "" {
		what += " " + e.Version
	}
	head := fmt.Sprintf("no admissible release of %s in channel %s", what, e.Channel)
	switch {
	case len(e.Families) == 0:
		return head + ": nothing is published"
	case len(e.Rejected) == 0:
		return head + ": it is not published, these are: " + strings.Join(e.Families, ", ")
	}
	var b strings.Builder
	b.WriteString(head + ": ")
	for i, r := range e.Rejected[:min(len(e.Rejected), shownRejections)] {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s %s", r.Release.Version, r.Reason)
	}
	if n := len(e.Rejected) - shownRejections; n > 0 {
		fmt.Fprintf(&b, "; and %d more", n)
	}
	return b.String()
}

// Select returns the release of exactly this family that p prefers among the
// admissible ones: for Linux, not the -tests sibling. When there is none the
// error is a *NoReleaseError.
func Select(l *Listing, family string, p Policy) (release.Release, error) {
	if err := p.check(); err != nil {
		return release.Release{}, err
	}
	if p.Now.IsZero() {
		p.Now = time.Now()
	}
	whole := wholeNights(l)
	none := &NoReleaseError{Channel: l.Channel, Family: family, Version: p.Version, Families: l.Families()}
	for _, r := range candidates(l, family, p.Prefer) {
		reason := p.reject(r, whole)
		if reason == "" {
			return r, nil
		}
		none.Rejected = append(none.Rejected, Rejection{Release: r, Reason: reason})
	}
	return release.Release{}, none
}

func (p Policy) check() error {
	switch p.Prefer {
	case "", PreferVersion, PreferDate:
	default:
		return fmt.Errorf("select release: prefer is %q (want version or date)", p.Prefer)
	}
	for _, pattern := range p.Deny {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("select release: deny pattern %q: %w", pattern, err)
		}
	}
	return nil
}

// candidates returns the usable releases of a family, the preferred first.
func candidates(l *Listing, family, prefer string) []release.Release {
	var out []release.Release
	for _, r := range l.Releases {
		if r.Family == family && usable(r) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b release.Release) int {
		if prefer == PreferDate {
			if c := b.MTime.Compare(a.MTime); c != 0 {
				return c
			}
		}
		return release.Compare(b, a)
	})
	return out
}

// wholeNights returns the versions of which multiarch is listed.
func wholeNights(l *Listing) map[string]bool {
	whole := map[string]bool{}
	for _, r := range l.Releases {
		if r.Family == multiarch && usable(r) {
			whole[r.Version.String()] = true
		}
	}
	return whole
}

// reject returns why r is not admissible, "" if it is.
func (p Policy) reject(r release.Release, whole map[string]bool) string {
	v := r.Version.String()
	if p.Version != "" && v != p.Version {
		return "is not the version asked for"
	}
	if !r.Version.InSeries(p.Series) {
		return "is not of series " + p.Series
	}
	for _, pattern := range p.Deny {
		// check has found every pattern well formed.
		byVersion, _ := path.Match(pattern, v)
		byName, _ := path.Match(pattern, r.Name)
		if byVersion || byName {
			return fmt.Sprintf("is denied by %q", pattern)
		}
	}
	return p.tooYoung(r, whole[v])
}

func (p Policy) tooYoung(r release.Release, whole bool) string {
	age := p.Now.Sub(r.MTime)
	switch {
	case r.MTime.IsZero() && (p.MinAge > 0 || p.Settle > 0 && !whole):
		return "has no upload time, so its age is not known"
	case p.MinAge > 0 && age < p.MinAge:
		return fmt.Sprintf("is too young (%s old, the minimum is %s)", age.Round(time.Second), p.MinAge)
	case p.Settle > 0 && !whole && age < p.Settle:
		return fmt.Sprintf("may still be uploading (multiarch of it is not listed, and it is %s old, not %s)", age.Round(time.Second), p.Settle)
	}
	return ""
}

// Stale returns the age of the newest Linux upload of a family ("" is any),
// and whether that is more than after. AMD moved its index once and left the
// old page in place, frozen: only its age told. A family without any dated
// release has age 0 and is stale; after 0 turns the question off.
func Stale(l *Listing, family string, after time.Duration, now time.Time) (age time.Duration, stale bool) {
	var newest time.Time
	for _, r := range l.Releases {
		if usable(r) && (family == "" || r.Family == family) && r.MTime.After(newest) {
			newest = r.MTime
		}
	}
	if newest.IsZero() {
		return 0, after > 0
	}
	age = now.Sub(newest)
	return age, after > 0 && age > after
}
