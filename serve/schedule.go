package serve

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Bounds of schedules. AMD publishes once a night, and pages may be asked more often,
// but what runs more often than every five minutes is a mistake in the schedule.
const (
	minInterval = 5 * time.Minute
	maxInterval = 366 * 24 * time.Hour // of @every
	maxSpec     = 256                  // bytes
)

// ParseSchedule reads five cron fields, optionally after CRON_TZ=zone or TZ=zone, or
// a descriptor such as @daily or @every 8h. Without a zone times are UTC. Schedules
// that never fire within five years, or anywhere more often than every five minutes,
// are errors. What is returned knows about changes of clocks: see zoned.
func ParseSchedule(spec string, now time.Time) (cron.Schedule, error) {
	s, err := parse(spec, now)
	if err != nil {
		return nil, fmt.Errorf("parse schedule %q: %w", cut(spec), err)
	}
	if gap := closest(s, now); gap < minInterval {
		return nil, fmt.Errorf("parse schedule %q: it fires %s after it has fired; AMD publishes once a night: leave at least %s", cut(spec), gap, minInterval)
	}
	return s, nil
}

// ParseTimes is ParseSchedule for times that may be as close as one likes, such as
// those at which a window opens.
func ParseTimes(spec string, now time.Time) (cron.Schedule, error) {
	s, err := parse(spec, now)
	if err != nil {
		return nil, fmt.Errorf("parse schedule %q: %w", cut(spec), err)
	}
	return s, nil
}

// localRE begins a spec that means the zone of this machine.
var localRE = regexp.MustCompile(`^(CRON_)?TZ=Local `)

func parse(spec string, now time.Time) (s cron.Schedule, err error) {
	defer func() {
		// The parser slices past the end of some specs ("TZ=UTC" alone).
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	if len(spec) > maxSpec {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(spec), maxSpec)
	}
	if text := strings.TrimSpace(spec); text == "" || !strings.Contains(text, " ") && !strings.HasPrefix(text, "@") {
		return nil, errors.New("want five fields such as \"30 6 * * *\"")
	}
	parsed, err := cron.ParseStandard(spec)
	if err != nil {
		return nil, err
	}
	if s, err = timed(parsed, localRE.MatchString(spec)); err != nil {
		return nil, err
	}
	if s.Next(now).IsZero() {
		return nil, errors.New("it never fires")
	}
	return s, nil
}

// timed is what the library has parsed, with our own sense of time.
func timed(parsed cron.Schedule, local bool) (cron.Schedule, error) {
	switch p := parsed.(type) {
	case *cron.SpecSchedule:
		return newZoned(p, local), nil
	case cron.ConstantDelaySchedule:
		// The library makes a second of what is shorter, and of what is negative.
		if p.Delay < minInterval || p.Delay > maxInterval {
			return nil, fmt.Errorf("@every %s is not between %s and %s", p.Delay, minInterval, maxInterval)
		}
		return every(p.Delay), nil
	}
	return nil, fmt.Errorf("the library has made %T of it", parsed)
}

// every fires at the multiples of a duration since the year 1, so that when does not
// depend on when a process was started.
type every time.Duration

// Next implements cron.Schedule.
func (e every) Next(t time.Time) time.Time {
	d := time.Duration(e)
	return t.UTC().Truncate(d).Add(d).In(t.Location())
}

// closest is the shortest time between two occurrences.
func closest(s cron.Schedule, now time.Time) time.Duration {
	switch s := s.(type) {
	case every:
		return time.Duration(s)
	case *zoned:
		return s.closest(now)
	}
	return 0
}

// cut shortens a spec for an error.
func cut(spec string) string {
	if len(spec) > 80 {
		return spec[:80] + "…"
	}
	return spec
}
