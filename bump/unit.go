package bump

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// unit is what one branch, and one request, brings.
type unit struct {
	key    string // the target, where every target has a unit of its own; else ""
	branch string
	plan   *plan
	pins   map[string]Pin // that may be offered, by target

	waits   string   // why nothing is offered now; "" if something is
	waiting []string // targets that hold it back
	skipped []string // targets that are left out
	gone    string   // why nothing is offered at all: it was withdrawn
}

// units splits the bump of repo into what goes its own way, and says of each
// what may be offered now.
func units(repo Repo, pins map[string]Pin, o Options, now time.Time) ([]*unit, error) {
	// Everything is looked at first: what is wrong with one target is wrong.
	if _, err := planFiles(repo.Files, pins); err != nil {
		return nil, err
	}
	byTarget := map[string][]File{}
	for _, f := range repo.Files {
		target, _, _, err := pinFor(f, pins)
		if err != nil {
			return nil, err
		}
		f.Target = target
		byTarget[target] = append(byTarget[target], f)
	}
	targets := slices.Sorted(maps.Keys(byTarget))
	if repo.Group == groupLockstep {
		u, err := newUnit(repo, "", targets, byTarget, pins, o, now)
		return []*unit{u}, err
	}
	var all []*unit
	for _, target := range targets {
		u, err := newUnit(repo, target, []string{target}, byTarget, pins, o, now)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

func newUnit(repo Repo, key string, targets []string, byTarget map[string][]File, pins map[string]Pin, o Options, now time.Time) (*unit, error) {
	u := &unit{key: key, branch: repo.Branch, pins: map[string]Pin{}}
	if key != "" && repo.Mode == modePull {
		u.branch += "-" + key
		if err := checkBranch(u.branch); err != nil {
			return nil, err
		}
	}
	c := &choice{repo: repo, o: o, now: now, pins: u.pins}
	for _, target := range targets {
		pin, ok := pins[target]
		if pin.Target == "" {
			pin.Target = target
		}
		c.consider(target, pin, ok)
	}
	c.agree()
	c.settle(u)
	var files []File
	for _, target := range targets {
		files = append(files, byTarget[target]...)
	}
	var err error
	u.plan, err = planFiles(files, u.pins)
	return u, err
}

// choice finds out which pins of a unit may be offered.
type choice struct {
	repo Repo
	o    Options
	now  time.Time
	pins map[string]Pin // that may be

	late      []string // targets without one that may be
	reasons   []string // one for each of late
	withdrawn []string // versions that the index no longer lists
	patient   bool     // max_wait has passed
}

// consider takes target's pin, unless it is too young or gone.
func (c *choice) consider(target string, pin Pin, ok bool) {
	reason := ""
	switch {
	case !ok:
		reason = "there is no verified tarball"
	case c.o.Published != nil && pin.Name != "" && !c.o.Published(pin.Name):
		reason = pin.Version + " has been withdrawn from the index"
		c.withdrawn = append(c.withdrawn, pin.Version)
	case c.repo.MinAge > 0:
		reason = c.tooYoung(pin)
	}
	if reason == "" {
		c.pins[target] = pin
		return
	}
	c.late, c.reasons = append(c.late, target), append(c.reasons, reason)
}

// tooYoung says why pin is too young; "" if it is not. Its day counts from its
// beginning, in UTC.
func (c *choice) tooYoung(pin Pin) string {
	day, err := time.Parse(time.DateOnly, pin.Date)
	if err != nil {
		return pin.Version + " has no date, which counts as too young"
	}
	if ripe := day.Add(c.repo.MinAge); c.now.Before(ripe) {
		return fmt.Sprintf("%s is younger than %s: it may be offered from %s", pin.Version, c.repo.MinAge, ripe.UTC().Format(time.RFC3339))
	}
	return ""
}

// agree leaves, in lockstep, the pins of the newest version alone.
func (c *choice) agree() {
	if c.repo.Group != groupLockstep || len(c.pins) == 0 {
		return
	}
	newest := ""
	for _, target := range slices.Sorted(maps.Keys(c.pins)) {
		if v := c.pins[target].Version; newest == "" || newer(v, newest) {
			newest = v
		}
	}
	date := ""
	for _, target := range slices.Sorted(maps.Keys(c.pins)) {
		pin := c.pins[target]
		if pin.Version == newest {
			date = max(date, pin.Date)
			continue
		}
		delete(c.pins, target)
		c.late = append(c.late, target)
		c.reasons = append(c.reasons, fmt.Sprintf("%s is at %s, the others at %s", target, pin.Version, newest))
	}
	if day, err := time.Parse(time.DateOnly, date); err == nil && c.repo.MaxWait > 0 {
		c.patient = !c.now.Before(day.Add(c.repo.MaxWait))
	}
}

// settle says whether late targets hold the unit back.
func (c *choice) settle(u *unit) {
	late := strings.Join(c.late, ", ")
	switch {
	case len(c.late) == 0:
		return
	case len(c.withdrawn) > 0 && len(c.pins) == 0:
		u.gone = strings.Join(slices.Compact(slices.Sorted(slices.Values(c.withdrawn))), ", ") + " has been withdrawn from AMD's index"
		u.waiting = c.late
	case c.repo.Require == requireAll && !c.patient:
		u.waiting = c.late
		u.waits = "waiting for " + late + ", for require is all"
		if !slices.Contains(c.reasons, "there is no verified tarball") {
			u.waits = "waiting: " + strings.Join(slices.Compact(c.reasons), "; ")
		}
	case len(c.pins) == 0:
		u.skipped = c.late
		u.waits = "nothing to do: no tarball for " + late
	default:
		u.skipped = c.late
	}
}

// newer reports whether version a is newer than b. What is no version of AMD's
// is compared as text.
func newer(a, b string) bool {
	v, errA := release.ParseVersion(a)
	w, errB := release.ParseVersion(b)
	if errA != nil || errB != nil {
		return a > b
	}
	return v.Compare(w) > 0
}
