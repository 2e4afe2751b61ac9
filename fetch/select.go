package fetch

import (
	"cmp"
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
	PreferDate    = "date"    // the latest night or, where no day is named, upload: AMD published 7.14.1 after 10.0.0
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
	Rejected []Rejection // every release of the family, those that can be installed here and the preferred first
	Families []string    // what is published
}

func (e *NoReleaseError) Error() string {
	what := e.Family
	if e.Version != "" {
		what += " " + e.Version
	}
	head := fmt.Sprintf("no admissible release of %s in channel %s", what, e.Channel)
	switch {
	case len(e.Rejected) > 0:
	case len(e.Families) == 0:
		return head + ": nothing is published"
	default:
		return head + ": it is not published, these are: " + strings.Join(e.Families, ", ")
	}
	shown, more := e.telling()
	var b strings.Builder
	b.WriteString(head + ": ")
	for i, r := range shown {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%s %s", r.Release.Version, r.Reason)
	}
	if more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// telling returns the rejections that answer the question, and how many
// others there are: of a version that was asked for, its own.
func (e *NoReleaseError) telling() (shown []Rejection, more int) {
	all := e.Rejected
	if e.Version != "" {
		var own []Rejection
		for _, r := range all {
			if r.Release.Version.String() == e.Version {
				own = append(own, r)
			}
		}
		if len(own) > 0 {
			all = own
		}
	}
	n := min(len(all), shownRejections)
	return all[:n], len(all) - n
}

// Select returns the release of exactly this family that p prefers among the
// admissible ones, which can be installed here (see release.Unusable). When
// there is none the error is a *NoReleaseError.
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
	for _, r := range l.Releases {
		if why := r.Unusable(); why != "" && r.Family == family {
			none.Rejected = append(none.Rejected, Rejection{Release: r, Reason: why})
		}
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
	slices.SortStableFunc(out, func(a, b release.Release) int { return Compare(prefer, b, a) })
	return out
}

// Compare orders two releases as a policy that prefers versions or dates
// does: positive if it prefers a.
func Compare(prefer string, a, b release.Release) int {
	if prefer == PreferDate {
		if c := cmp.Or(day(a).Compare(day(b)), a.MTime.Compare(b.MTime)); c != 0 {
			return c
		}
	}
	return release.Compare(a, b)
}

// day returns what a release is dated by: the day that its version names,
// because a night that is built again is uploaded again, or else its upload.
func day(r release.Release) time.Time {
	if t, ok := r.Version.Date(); ok {
		return t
	}
	return r.MTime
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

// reject returns every reason why r is not admissible, "" if it is.
func (p Policy) reject(r release.Release, whole map[string]bool) string {
	v := r.Version.String()
	if p.Version != "" && v != p.Version {
		return "is not the version asked for"
	}
	var why []string
	if !r.Version.InSeries(p.Series) {
		why = append(why, "is not of series "+p.Series)
	}
	for _, pattern := range p.Deny {
		// check has found every pattern well formed.
		byVersion, _ := path.Match(pattern, v)
		byName, _ := path.Match(pattern, r.Name)
		if byVersion || byName {
			why = append(why, fmt.Sprintf("is denied by %q", pattern))
		}
	}
	if young := p.tooYoung(r, whole[v]); young != "" {
		why = append(why, young)
	}
	return strings.Join(why, " and ")
}

func (p Policy) tooYoung(r release.Release, whole bool) string {
	e, young := p.early(r, whole)
	at := uploadedBy(r)
	age := max(0, p.Now.Sub(at)) // clocks differ
	switch {
	case !young:
		return ""
	case e.Until.IsZero():
		return "has no upload time, so its age is not known"
	case p.MinAge > 0 && age < p.MinAge:
		return fmt.Sprintf("is too young (%s old, the minimum is %s)", age.Round(time.Second), p.MinAge)
	}
	return fmt.Sprintf("may still be uploading (multiarch of it is not listed, and it is %s old, not %s)", age.Round(time.Second), p.Settle)
}

// uploadedBy is when a release was published at the latest: when its index
// says, or else at the end of the day after the one that its version names. It
// is zero if neither is known.
func uploadedBy(r release.Release) time.Time {
	if !r.MTime.IsZero() {
		return r.MTime
	}
	day, named := r.Version.Date()
	if !named {
		return time.Time{}
	}
	return day.Add(2 * 24 * time.Hour)
}
