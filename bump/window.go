package bump

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// maxWindow bounds the length of a window, and how far one is looked for.
const maxWindow = 31 * 24 * time.Hour

// parse reads the window's schedule: five fields, with an optional CRON_TZ=
// before them.
func (w Window) parse() (s cron.Schedule, err error) {
	defer func() {
		// The parser slices past the end of some specs ("CRON_TZ=UTC" alone).
		if r := recover(); r != nil {
			s, err = nil, fmt.Errorf("read window %.60q: it is no schedule", w.Cron)
		}
	}()
	if w.Length <= 0 || w.Length > maxWindow {
		return nil, fmt.Errorf("read window %.60q: a length of %s is not between 0 and %s", w.Cron, w.Length, maxWindow)
	}
	spec := strings.TrimSpace(w.Cron)
	if !strings.Contains(spec, " ") || strings.HasPrefix(spec, "@") {
		return nil, fmt.Errorf("read window %.60q: want five fields such as \"0 6 * * 1-5\", with CRON_TZ=Europe/Berlin before them for another zone than UTC", w.Cron)
	}
	s, err = cron.ParseStandard(spec)
	if err != nil {
		return nil, fmt.Errorf("read window %.60q: %w", w.Cron, err)
	}
	return s, nil
}

// openAt reports whether one of windows is open at now, and if not, when the
// next begins. Without a zone of its own a schedule is in UTC.
func openAt(windows []Window, now time.Time) (open bool, next time.Time, err error) {
	if len(windows) == 0 {
		return true, time.Time{}, nil
	}
	now = now.UTC()
	for _, w := range windows {
		s, err := w.parse()
		if err != nil {
			return false, time.Time{}, err
		}
		// A window is open if it began less than its length ago.
		begin := s.Next(now.Add(-w.Length))
		if begin.IsZero() {
			continue
		}
		if !begin.After(now) {
			return true, time.Time{}, nil
		}
		if next.IsZero() || begin.Before(next) {
			next = begin
		}
	}
	return false, next, nil
}
