package update

import (
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// early is what the index has for an install, were it not for the times of the
// policy: a night that is still being uploaded, or that is too young, is left
// alone, and looked at again.
type early struct {
	newest *release.Release // nil: nothing is admissible
	waits  *fetch.Early     // why newest may not be taken yet; nil: it may
	coming *release.Release // a newer night of which other families are listed already
	until  time.Time        // zero: nothing has to wait, or nobody knows for how long
}

// lookAhead finds what is newer than what may be taken, and for how long it has to
// wait.
func (t *task) lookAhead(family string) {
	p := t.r.policy()
	if p.Version != "" {
		return // who names a version does not want to wait
	}
	admits := p
	admits.MinAge, admits.Settle = 0, 0
	if rel, err := fetch.Select(t.l, family, admits); err == nil {
		t.early.newest = &rel
		if e, young := p.Early(t.l, rel); young && !t.isActive(rel) {
			t.early.waits, t.early.until = &e, e.Until
		}
	}
	if rel, until, ok := fetch.Coming(t.l, family, p); ok && t.early.waits == nil && !t.isActive(rel) {
		t.early.coming, t.early.until = &rel, until
	}
	t.out.Again = t.early.until
}

// isActive reports whether what is active is of this night, taken whatever the
// policy says now.
func (t *task) isActive(rel release.Release) bool {
	return t.from != nil && t.from.Version == rel.Version.String()
}
