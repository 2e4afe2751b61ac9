package main

import (
	"testing"
	"time"
)

func TestParseUntil(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, berlin)
	for text, want := range map[string]time.Time{
		"2026-12-01":                time.Date(2026, 12, 1, 0, 0, 0, 0, berlin),
		"2026-12-01T12:00:00Z":      time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC),
		"2026-11-22T13:00:00+01:00": now.Add(time.Hour),
		"2026-12-01T12:30":          time.Date(2026, 12, 1, 12, 30, 0, 0, berlin),
		"2026-12-01 12:30":          time.Date(2026, 12, 1, 12, 30, 0, 0, berlin),
		"2026-12-01T12:30:05":       time.Date(2026, 12, 1, 12, 30, 5, 0, berlin),
		"14d":                       now.AddDate(0, 0, 14),
		"2w":                        now.AddDate(0, 0, 14),
		"36h":                       now.Add(36 * time.Hour),
		"90m":                       now.Add(90 * time.Minute),
		"2026-11-22":                {}, "2026-11-21": {}, "0d": {}, "-36h": {}, "0s": {}, "soon": {}, "": {}, "14": {}, "999999w": {}, "2026-13-01": {}, "d": {},
		"2026-11-22T11:00:00Z": {}, "99999999999999999999h": {}, "12-01-2026": {}, "2026-11-22 11:59": {}, "2026-12-01 24:00": {},
	} {
		got, err := parseUntil(text, now)
		if (err == nil) != !want.IsZero() || err == nil && !got.Equal(want) {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}

// Whatever is taken is in the future, and can be written down.
func FuzzParseUntil(f *testing.F) {
	for _, s := range []string{"2026-12-01", "14d", "36h", "2026-12-01T12:00:00Z", "-1ns", "9999-12-31T23:59:59-23:59"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		at, err := parseUntil(s, now)
		if err != nil {
			return
		}
		if _, err := at.UTC().MarshalJSON(); err != nil || !at.After(now) {
			t.Errorf("%q: %v, %v", s, at, err)
		}
	})
}
