package fetch

import (
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// Early says until when the times of a Policy keep a release back.
type Early struct {
	Until   time.Time // zero: its age is not known, and time alone does not help
	Settles bool      // it waits for the rest of its night, which may come sooner
}

// Early reports whether MinAge or Settle keep r back, which l lists, and until
// when. What else p has against r is not asked.
func (p Policy) Early(l *Listing, r release.Release) (Early, bool) {
	if p.Now.IsZero() {
		p.Now = time.Now()
	}
	return p.early(r, wholeNights(l)[r.Version.String()])
}

func (p Policy) early(r release.Release, whole bool) (e Early, young bool) {
	at := uploadedBy(r)
	if at.IsZero() {
		e.Settles = p.Settle > 0 && !whole
		return e, p.MinAge > 0 || e.Settles
	}
	age := max(0, p.Now.Sub(at)) // clocks differ
	if p.MinAge > 0 && age < p.MinAge {
		e.Until, young = at.Add(p.MinAge), true
	}
	if p.Settle > 0 && !whole && age < p.Settle {
		e.Settles, young = true, true
		if t := at.Add(p.Settle); t.After(e.Until) {
			e.Until = t
		}
	}
	return e, young
}

// Coming looks for a night of which other families are listed and this one is not
// yet: it is being uploaded, or is built without this family. Which of them, time
// tells: it is no longer coming when nothing of it was uploaded for as long as
// Settle. The release is that of another family, uploaded last; until is when
// that is over.
func Coming(l *Listing, family string, p Policy) (r release.Release, until time.Time, ok bool) {
	if p.Settle <= 0 {
		return release.Release{}, time.Time{}, false
	}
	now := p.Now
	if now.IsZero() {
		now = time.Now()
	}
	settle := p.Settle
	p.Settle, p.MinAge = 0, 0
	var own *release.Release
	if have := candidates(l, family, p.Prefer); len(have) > 0 {
		own = &have[0]
	}
	for _, o := range l.Releases {
		at := uploadedBy(o)
		switch {
		case o.Family == family || !usable(o) || at.IsZero() || p.reject(o, nil) != "":
		case own != nil && (o.Version == own.Version || Compare(p.Prefer, o, *own) <= 0):
		case !now.Before(at.Add(settle)) || at.After(now.Add(maxAhead)):
		case ok && o.Version == r.Version && !at.Add(settle).After(until):
		case ok && o.Version != r.Version && Compare(p.Prefer, o, r) < 0:
		default:
			r, until, ok = o, at.Add(settle), true
		}
	}
	return r, until, ok
}
