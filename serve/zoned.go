package serve

import (
	"time"

	"github.com/robfig/cron/v3"
)

// zoned is a pattern of wall clock times in a zone. The library's own Next loses a
// time that a change of clocks skips (even the day, where it is midnight that is
// skipped), and runs one that comes twice twice. Here the library is asked in UTC,
// where every time exists once, and what it says is laid over the zone:
//
//   - a time that is skipped is the moment right after the gap, once for all that
//     are skipped;
//   - one that comes twice is its first moment;
//   - a pattern of every hour is a rhythm: it goes on through both, as the clock shows.
type zoned struct {
	pattern cron.SpecSchedule // in UTC
	zone    *time.Location
	hourly  bool
}

// allHours are the bits of every hour, as the library sets them.
const allHours = 1<<24 - 1

// newZoned takes a parsed pattern. Without a zone times are UTC, so that one config
// means the same on all machines; local says that the machine's was asked for, for
// which the library has the same word as for none.
func newZoned(p *cron.SpecSchedule, local bool) *zoned {
	z := &zoned{pattern: *p, zone: p.Location, hourly: p.Hour&allHours == allHours}
	if z.zone == time.Local && !local {
		z.zone = time.UTC
	}
	z.pattern.Location = time.UTC
	return z
}

// maxChanges bounds how many changes of clocks are passed in search of a time: the
// library looks five years ahead, and no zone has changed more than four times in one.
const maxChanges = 40

// Next implements cron.Schedule: the first occurrence after t, in t's zone; the zero
// time if there is none within five years.
func (z *zoned) Next(t time.Time) time.Time {
	at := t.In(z.zone)
	wall := shown(at, at) // what the clock shows, as if it were UTC: only after it
	for range maxChanges {
		start, end := at.ZoneBounds()
		if !start.IsZero() && !z.hourly {
			// What the clock showed before it was set back has been had.
			wall = later(wall, shown(start, start.Add(-1)).Add(-time.Second))
		}
		next := z.pattern.Next(wall)
		if next.IsZero() {
			return time.Time{}
		}
		if moment := next.Add(-offset(at)); end.IsZero() || moment.Before(end) {
			return moment.In(t.Location())
		}
		at = end
		if !z.hourly && next.Before(shown(end, end)) { // no clock shows that
			return end.In(t.Location())
		}
		wall = shown(end, end).Add(-time.Second)
	}
	return time.Time{}
}

// offset is what the clocks of t's zone are ahead of UTC at t.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// shown is what a clock that goes as it went at rule shows at t, as a time in UTC.
func shown(t, rule time.Time) time.Time { return t.UTC().Add(offset(rule)) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// The bounds of a walk over a pattern: more than a day of the closest that is taken,
// into the next one, and a leap year.
const (
	maxWalk  = 400
	maxAhead = 5 * 366 * 24 * time.Hour
)

// closest is the shortest time between two occurrences of the pattern, as a clock
// that is never changed shows them.
func (z *zoned) closest(now time.Time) time.Duration {
	shortest := maxAhead
	at := z.pattern.Next(now.UTC())
	for range maxWalk {
		next := z.pattern.Next(at)
		if next.IsZero() || next.Sub(now) > maxAhead {
			break
		}
		if shortest = min(shortest, next.Sub(at)); shortest < minInterval {
			break
		}
		at = next
	}
	return shortest
}
