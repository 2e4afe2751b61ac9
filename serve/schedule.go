package serve

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// minInterval is how close two runs may be. AMD publishes once a night; what
// runs more often than this is a mistake in the schedule.
const minInterval = time.Minute

// ParseSchedule reads five cron fields, optionally after CRON_TZ=zone or
// TZ=zone, or a descriptor such as @daily. Schedules that never fire, or more
// than once a minute, are errors.
func ParseSchedule(spec string, now time.Time) (s cron.Schedule, err error) {
	defer func() {
		// The parser slices past the end of some specs ("TZ=UTC" alone).
		if r := recover(); r != nil {
			err = fmt.Errorf("parse schedule %q: %v", spec, r)
		}
	}()
	if text := strings.TrimSpace(spec); text == "" || !strings.Contains(text, " ") && !strings.HasPrefix(text, "@") {
		return nil, fmt.Errorf("parse schedule %q: want five fields such as \"30 6 * * *\"", spec)
	}
	s, err = cron.ParseStandard(spec)
	if err != nil {
		return nil, fmt.Errorf("parse schedule %q: %w", spec, err)
	}
	first := s.Next(now)
	if first.IsZero() {
		return nil, fmt.Errorf("parse schedule %q: it never fires", spec)
	}
	if second := s.Next(first); !second.IsZero() && second.Sub(first) < minInterval {
		return nil, fmt.Errorf("parse schedule %q: it fires every %s; AMD publishes once a night", spec, second.Sub(first))
	}
	return s, nil
}
