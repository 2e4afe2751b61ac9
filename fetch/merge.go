package fetch

import (
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// frozenAfter is how far the newest upload of an index may lag that of the
// others before the index counts as frozen. A night is uploaded within hours
// and copied to mirrors within a day.
const frozenAfter = 36 * time.Hour

// maxAhead is how far the clock that dated an upload may be ahead of ours.
const maxAhead = 24 * time.Hour

// SourceStatus is what one index said.
type SourceStatus struct {
	Source                 // as it was given, URL without credentials
	Err      error         // nil if the page was read
	Releases int           // names of AMD's grammar
	Unparsed int           // other names
	Refused  int           // references to another host or directory, which are not followed
	Listed   int           // releases that the Listing took from this index
	Newest   time.Time     // the newest MTime on the page, never in the future; zero if there is none
	Lag      time.Duration // how far Newest is behind that of the index which has the newest of all
	Frozen   bool          // publishes no more: known (Source.Frozen), or seen to lag behind others

	Unchanged bool // it answered that nothing has changed since it was read last (304), and sent no page
}

// seenFrozen reports whether the index lags too far behind the others to
// still publish, whatever is known of it.
func (s *SourceStatus) seenFrozen() bool { return s.Lag > frozenAfter }

// Listing is what the indexes of one channel publish together.
type Listing struct {
	Channel  string
	Releases []release.Release // newest first by release.Compare; one per name, from the index that Client.List says
	Unparsed []string          // names that are not of AMD's grammar, made printable, sorted, each once
	Sources  []SourceStatus    // one per index, in the order given
}

// merge makes one listing of all indexes. Of a name that several of them
// list, the release is taken from the one that most likely still has it: one
// that does not lag before others, then one that is not declared frozen, then
// one whose route holds the version, then the first.
func merge(channel string, now time.Time, indexes []Source, routes []route, pages []*page, errs []error) *Listing {
	l := &Listing{Channel: channel, Sources: statuses(now, indexes, pages, errs)}
	type place struct{ release, source int }
	at := map[string]place{}
	for i, p := range pages {
		if errs[i] != nil {
			continue
		}
		l.Unparsed = append(l.Unparsed, p.unparsed...)
		for _, r := range p.releases {
			r.Channel = channel
			old, again := at[r.Name]
			switch {
			case !again:
				at[r.Name] = place{len(l.Releases), i}
				l.Releases = append(l.Releases, r)
				l.Sources[i].Listed++
			case old.source != i && l.better(i, old.source, routes, r.Version):
				at[r.Name] = place{old.release, i}
				l.Releases[old.release] = r
				l.Sources[i].Listed++
				l.Sources[old.source].Listed--
			}
		}
	}
	slices.SortFunc(l.Releases, func(a, b release.Release) int { return release.Compare(b, a) })
	slices.Sort(l.Unparsed)
	l.Unparsed = slices.Compact(l.Unparsed)
	return l
}

// better reports whether a release is to be taken from source i rather than
// from j, which stands before it.
func (l *Listing) better(i, j int, routes []route, v release.Version) bool {
	a, b := &l.Sources[i], &l.Sources[j]
	if a.seenFrozen() != b.seenFrozen() {
		return b.seenFrozen()
	}
	if a.Source.Frozen != b.Source.Frozen {
		return b.Source.Frozen
	}
	return routes[i].holds(v) && !routes[j].holds(v)
}

// statuses tells what each index said, and which of them have frozen.
func statuses(now time.Time, indexes []Source, pages []*page, errs []error) []SourceStatus {
	out := make([]SourceStatus, len(indexes))
	var newest time.Time
	for i, ix := range indexes {
		st := SourceStatus{Source: ix, Err: errs[i]}
		st.URL = redact(ix.URL)
		if errs[i] == nil {
			p := pages[i]
			st.Releases, st.Unparsed, st.Refused, st.Unchanged = len(p.releases), len(p.unparsed), p.refused, p.unchanged
			for _, r := range p.releases {
				if t := notAhead(r.MTime, now); t.After(st.Newest) {
					st.Newest = t
				}
			}
		}
		if st.Newest.After(newest) {
			newest = st.Newest
		}
		out[i] = st
	}
	for i := range out {
		if st := &out[i]; !st.Newest.IsZero() {
			st.Lag = newest.Sub(st.Newest)
		}
		out[i].Frozen = out[i].Source.Frozen || out[i].seenFrozen()
	}
	return out
}

// notAhead returns the time of an upload, but none in the future: a clock
// that is a little ahead is taken for now, one that is not little for wrong,
// which is the zero time. Otherwise one wrong time would keep an index fresh
// for as long as it lies ahead.
func notAhead(t, now time.Time) time.Time {
	switch {
	case t.After(now.Add(maxAhead)):
		return time.Time{}
	case t.After(now):
		return now
	}
	return t
}

// Families returns the slugs that have a release which can be installed here,
// sorted.
func (l *Listing) Families() []string {
	var out []string
	for _, r := range l.Releases {
		if usable(r) {
			out = append(out, r.Family)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// usable tells a ROCm for this system from its siblings.
func usable(r release.Release) bool { return r.Unusable() == "" }
