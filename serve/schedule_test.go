package serve

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the tables are of zones that a small machine may not have
)

func TestParseScheduleRefuses(t *testing.T) {
	now := time.Date(2026, 9, 30, 0, 0, 0, 0, time.UTC)
	for _, spec := range []string{
		"", "TZ=UTC", "CRON_TZ=UTC", "CRON_TZ=Nowhere/City 0 6 * * *", "CRON_TZ=../../etc/passwd 0 6 * * *", "0 3 31 2 *", "* * * *", "61 * * * *", "nonsense", "\x00 * * * *",
		"@every -1h", "@every 0s", "@every 5s", "@every 4m59s", "@every 9000h", "@every 1x", "@reboot", "@nonsense",
		"* * * * *", "0,1 6 * * *", "59 5,6 * * *\n", "0,59 0 * * *" + strings.Repeat(" ", 300), "*/4 * * * *", "58 23 * * * *", "0-3 12 1 1 *", "0,2 12 29 2 *",
	} {
		if s, err := ParseSchedule(spec, now); err == nil && spec != "59 5,6 * * *\n" {
			t.Errorf("%q was taken: next %v", spec, s.Next(now))
		}
	}
	for _, spec := range []string{"@daily", "@weekly", "@every 5m", "@every 366h", "*/5 * * * *", "0,30 6 * * 1-5", "0 0 29 2 *", "TZ=Asia/Tokyo 0 6 * * *", "CRON_TZ=Local 0 6 * * *"} {
		if _, err := ParseSchedule(spec, now); err != nil {
			t.Error(err)
		}
	}
	if _, err := ParseTimes("* 7-17 * * *", now); err != nil {
		t.Error(err)
	}
	// A pattern whose first two occurrences are far apart, and later ones are not.
	if s, err := ParseSchedule("58,0 23,0 * * *", now.Add(10*time.Minute)); err == nil {
		t.Errorf("two minutes apart at midnight: %v", s)
	}
}

// What a schedule does where clocks change. Times are as the clock of the zone
// shows them, with their offset.
func TestClocksChange(t *testing.T) {
	const form = "2006-01-02 15:04 -0700"
	for _, tt := range []struct {
		zone, spec, from string
		want             []string
	}{
		// Spring: what is skipped runs once, right after.
		{"America/New_York", "30 2 * * *", "2026-03-07 12:00 -0500", []string{"2026-03-08 03:00 -0400", "2026-03-09 02:30 -0400"}},
		{"America/New_York", "0,15,30,45 2 * * *", "2026-03-07 12:00 -0500", []string{"2026-03-08 03:00 -0400", "2026-03-09 02:00 -0400"}},
		{"America/New_York", "30 2,3 * * *", "2026-03-07 12:00 -0500", []string{"2026-03-08 03:00 -0400", "2026-03-08 03:30 -0400", "2026-03-09 02:30 -0400"}},
		{"America/New_York", "0 2,3 * * *", "2026-03-07 12:00 -0500", []string{"2026-03-08 03:00 -0400", "2026-03-09 02:00 -0400"}},
		{"Europe/Berlin", "15 2 * * *", "2026-03-28 12:00 +0100", []string{"2026-03-29 03:00 +0200", "2026-03-30 02:15 +0200"}},
		{"Europe/Berlin", "0 3 * * *", "2026-03-28 12:00 +0100", []string{"2026-03-29 03:00 +0200", "2026-03-30 03:00 +0200"}},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03 12:00 +1030", []string{"2026-10-04 02:30 +1100", "2026-10-05 02:15 +1100"}},
		// Midnight does not exist: the day is not lost.
		{"America/Sao_Paulo", "0 0 * * *", "2018-11-03 12:00 -0300", []string{"2018-11-04 01:00 -0200", "2018-11-05 00:00 -0200"}},
		{"Asia/Beirut", "0 0 * * *", "2026-03-28 12:00 +0200", []string{"2026-03-29 01:00 +0300", "2026-03-30 00:00 +0300"}},
		{"Asia/Beirut", "0 0 * * 0", "2026-03-28 12:00 +0200", []string{"2026-03-29 01:00 +0300", "2026-04-05 00:00 +0300"}},
		{"Asia/Beirut", "30 6 * * *", "2026-03-28 12:00 +0200", []string{"2026-03-29 06:30 +0300", "2026-03-30 06:30 +0300"}},
		// A whole day does not exist.
		{"Pacific/Apia", "0 6 * * *", "2011-12-29 07:00 -1000", []string{"2011-12-31 00:00 +1400", "2011-12-31 06:00 +1400"}},
		// Autumn: what comes twice runs once, the first time.
		{"America/New_York", "30 1 * * *", "2026-10-31 12:00 -0400", []string{"2026-11-01 01:30 -0400", "2026-11-02 01:30 -0500"}},
		{"America/New_York", "30 1 * * *", "2026-11-01 01:15 -0500", []string{"2026-11-02 01:30 -0500"}}, // begun in the second hour
		{"America/New_York", "0 1,2 * * *", "2026-10-31 12:00 -0400", []string{"2026-11-01 01:00 -0400", "2026-11-01 02:00 -0500", "2026-11-02 01:00 -0500"}},
		{"Europe/Berlin", "30 2 * * *", "2026-10-24 12:00 +0200", []string{"2026-10-25 02:30 +0200", "2026-10-26 02:30 +0100"}},
		{"Europe/Berlin", "0 3 * * *", "2026-10-24 12:00 +0200", []string{"2026-10-25 03:00 +0100", "2026-10-26 03:00 +0100"}},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-04 12:00 +1100", []string{"2026-04-05 01:45 +1100", "2026-04-06 01:45 +1030"}},
		{"America/Sao_Paulo", "30 23 * * *", "2018-02-17 12:00 -0200", []string{"2018-02-17 23:30 -0200", "2018-02-18 23:30 -0300"}},
		// A rhythm goes on through both.
		{"America/New_York", "0 * * * *", "2026-11-01 00:30 -0400", []string{"2026-11-01 01:00 -0400", "2026-11-01 01:00 -0500", "2026-11-01 02:00 -0500"}},
		{"America/New_York", "12 * * * *", "2026-03-08 01:00 -0500", []string{"2026-03-08 01:12 -0500", "2026-03-08 03:12 -0400", "2026-03-08 04:12 -0400"}},
		// No clocks change.
		{"UTC", "30 6 * * *", "2026-03-28 12:00 +0000", []string{"2026-03-29 06:30 +0000", "2026-03-30 06:30 +0000"}},
		{"Asia/Kolkata", "0 0 29 2 *", "2026-03-28 12:00 +0530", []string{"2028-02-29 00:00 +0530", "2032-02-29 00:00 +0530"}},
	} {
		t.Run(tt.zone+" "+tt.spec, func(t *testing.T) {
			zone, err := time.LoadLocation(tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(form, tt.from)
			if err != nil {
				t.Fatal(err)
			}
			s, err := ParseSchedule("CRON_TZ="+tt.zone+" "+tt.spec, at)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				at = s.Next(at)
				if got := at.In(zone).Format(form); got != want {
					t.Fatalf("%s, want %s", got, want)
				}
			}
		})
	}
}

// Every day has its run, and no two are less than 22 hours apart, in every zone and
// at many an hour, over years.
func TestEveryDayHasItsRun(t *testing.T) {
	for _, name := range []string{"America/New_York", "America/Sao_Paulo", "Asia/Beirut", "Australia/Lord_Howe", "Europe/Berlin", "Africa/Casablanca", "America/Nuuk"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, clock := range []string{"0 0", "30 1", "0 2", "30 2", "0 3", "59 23"} {
			at := time.Date(2010, 1, 1, 12, 0, 0, 0, zone)
			s, err := ParseSchedule("CRON_TZ="+name+" "+clock+" * * *", at)
			if err != nil {
				t.Fatal(err)
			}
			at = s.Next(at)
			for at.Year() < 2014 {
				next := s.Next(at)
				if d := next.Sub(at); d < 22*time.Hour || d > 26*time.Hour {
					t.Fatalf("%s %s: %s after %s", name, clock, next.In(zone), at.In(zone))
				}
				at = next
			}
		}
	}
}

// @every does not depend on when it is asked.
func TestEveryIsAnchored(t *testing.T) {
	now := time.Date(2026, 9, 30, 7, 11, 0, 0, time.UTC)
	s, err := ParseSchedule("@every 8h", now)
	if err != nil {
		t.Fatal(err)
	}
	want := time.Date(2026, 9, 30, 8, 0, 0, 0, time.UTC)
	if got := s.Next(now); !got.Equal(want) || !s.Next(now.Add(time.Minute)).Equal(want) || !s.Next(want).Equal(want.Add(8*time.Hour)) {
		t.Errorf("%s", got)
	}
}

func FuzzParseSchedule(f *testing.F) {
	f.Add("CRON_TZ=UTC 30 6 * * *")
	f.Add("TZ=")
	f.Add("CRON_TZ=Asia/Beirut 0 0 * * *")
	f.Add("@every 1h")
	f.Fuzz(func(t *testing.T, spec string) {
		now := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
		s, err := ParseSchedule(spec, now)
		if err != nil {
			return
		}
		for range 50 {
			next := s.Next(now)
			if next.IsZero() {
				return // more than five years away
			}
			if !next.After(now) {
				t.Fatalf("%q fires at %v, after %v", spec, next, now)
			}
			now = next
		}
	})
}
