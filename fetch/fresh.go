package fetch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// The values of Freshness.Cause.
const (
	// CauseUnread: an index that still publishes could not be read, and what
	// the others list is old.
	CauseUnread = "unread"
	// CauseFrozen: a host froze. If another one goes on nothing is stale, and
	// the index that froze wants to be replaced; if not, only hosts that are
	// known or seen to publish no more could be read.
	CauseFrozen = "frozen"
	// CauseFamily: the index goes on without this family: it was renamed or
	// split, or its build fails.
	CauseFamily = "family"
	// CauseSkipped: every index of the channel stopped at the same time: AMD
	// skipped nights, or moved them to where nobody looks yet.
	CauseSkipped = "skipped"
)

// Freshness says how old the newest release of a family is, and why.
type Freshness struct {
	Newest release.Release // the latest upload; zero if nothing has a time
	Age    time.Duration   // since then, never negative; 0 if Newest is zero
	Stale  bool            // older than asked for, or unknown
	Cause  string          // one of the Cause constants; "" if nothing is wrong or the question is off
	Detail string          // Cause for people: one clause, lower case
}

// Freshness compares what the indexes list. after is the age at which the
// newest release of a family that can be installed here ("" is any) is stale;
// 0 turns the question off. Where an index states no time of upload, the day
// that a night is named by counts; what lies in the future does not.
func (l *Listing) Freshness(family string, after time.Duration, now time.Time) Freshness {
	v := view{l: l, family: family, after: after, now: now}
	var f Freshness
	var at time.Time
	f.Newest, at = v.newest(func(r release.Release) bool { return usable(r) && (family == "" || r.Family == family) })
	if !at.IsZero() {
		f.Age = now.Sub(at)
	}
	if after <= 0 {
		return f
	}
	f.Stale = at.IsZero() || f.Age > after
	if f.Stale {
		f.Cause, f.Detail = v.whyStale(f, at)
	} else {
		f.Cause, f.Detail = v.whoFroze()
	}
	return f
}

// view is a listing as it is looked at, with one question.
type view struct {
	l      *Listing
	family string
	after  time.Duration
	now    time.Time
}

// uploaded returns when r was published, as far as it can be known.
func (v *view) uploaded(r release.Release) time.Time {
	if t := notAhead(r.MTime, v.now); !t.IsZero() {
		return t
	}
	day, _ := r.Version.Date()
	return notAhead(day, v.now)
}

// newest returns the latest upload of those that count, and its time.
func (v *view) newest(counts func(release.Release) bool) (newest release.Release, at time.Time) {
	for _, r := range v.l.Releases {
		if t := v.uploaded(r); t.After(at) && counts(r) {
			newest, at = r, t
		}
	}
	return newest, at
}

func (v *view) fresh(at time.Time) bool { return !at.IsZero() && v.now.Sub(at) <= v.after }

// goesOn reports whether anything at all was published lately. What an index
// lists counts even if another one was preferred for it.
func (v *view) goesOn() bool {
	_, at := v.newest(func(release.Release) bool { return true })
	for _, s := range v.l.Sources {
		if t := notAhead(s.Newest, v.now); t.After(at) {
			at = t
		}
	}
	return v.fresh(at)
}

// whyStale names the cause; at is the time of f.Newest.
func (v *view) whyStale(f Freshness, at time.Time) (cause, detail string) {
	last := "nothing is listed"
	if !at.IsZero() {
		last = fmt.Sprintf("the newest is %s, of %s", f.Newest.Version, v.ago(at))
	}
	if v.goesOn() {
		return CauseFamily, v.familyStopped(last)
	}
	var unread, left, empty []string
	frozen := true // all that is left is
	for i := range v.l.Sources {
		switch s := &v.l.Sources[i]; {
		case s.Err != nil && !s.Source.Frozen:
			unread = append(unread, fmt.Sprintf("%s could not be read (%v)", s.URL, s.Err))
		case s.Err != nil:
		case s.Releases == 0:
			empty = append(empty, s.URL+" lists nothing")
		default:
			left = append(left, s.URL)
			frozen = frozen && s.Frozen
		}
	}
	switch {
	case len(unread) > 0:
		return CauseUnread, strings.Join(unread, ", ") + ", and of what is left " + last
	case len(left) > 0 && frozen:
		return CauseFrozen, strings.Join(append(empty, "only hosts that publish no more are left: "+strings.Join(left, ", ")), ", and ") + "; " + last
	case len(left) > 1:
		return CauseSkipped, "every index stopped at the same time: AMD skipped nights or has moved them; " + last
	}
	return CauseSkipped, strings.Join(append(empty, "AMD skipped nights or has moved them"), ", ") + "; " + last
}

// familyStopped says that others are published, and who could serve instead.
func (v *view) familyStopped(last string) string {
	if v.family == "" {
		return "the index goes on, but without anything that can be installed here; " + last
	}
	detail := fmt.Sprintf("the index goes on without %s: it was renamed or its build fails; %s", v.family, last)
	if s := v.siblings(); len(s) > 0 {
		detail += "; newer are " + strings.Join(s, ", ")
	}
	return detail
}

// siblings returns the fresh families that may hold what v.family did: slugs
// whose digits agree, X being any, in their order, and multiarch, which holds
// everything, behind them.
func (v *view) siblings() []string {
	var out []string
	every := false
	for _, r := range v.l.Releases {
		switch {
		case r.Family == v.family || !usable(r) || !v.fresh(v.uploaded(r)):
		case r.Family == multiarch:
			every = true
		case sameTargets(stem(r.Family), stem(v.family)):
			out = append(out, r.Family)
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if every {
		out = append(out, multiarch)
	}
	return out
}

// stem returns a slug without its class: gfx110X of gfx110X-all.
func stem(family string) string {
	head, _, _ := strings.Cut(family, "-")
	return strings.ToUpper(head)
}

// sameTargets reports whether two stems have a target in common.
func sameTargets(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := len("GFX"); i < len(a); i++ {
		if a[i] != b[i] && a[i] != 'X' && b[i] != 'X' {
			return false
		}
	}
	return true
}

// whoFroze reports the indexes that stopped while others go on. One that is
// known to, or whose route has an end, is no news.
func (v *view) whoFroze() (cause, detail string) {
	var froze []string
	for i := range v.l.Sources {
		if s := &v.l.Sources[i]; s.seenFrozen() && !s.Source.Frozen && s.Until == "" {
			froze = append(froze, fmt.Sprintf("%s (its newest is of %s)", s.URL, v.ago(s.Newest)))
		}
	}
	if len(froze) == 0 {
		return "", ""
	}
	return CauseFrozen, "another index goes on, but no more is published at " + strings.Join(froze, ", ")
}

// ago tells a time by its distance: days are what nights are counted in.
func (v *view) ago(t time.Time) string {
	age := v.now.Sub(t)
	if age < 48*time.Hour {
		return fmt.Sprintf("%d hours ago", int(age.Hours()))
	}
	return fmt.Sprintf("%d days ago", int(age.Hours()/24))
}
