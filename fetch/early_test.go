package fetch

import (
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// listed makes a listing of names, each uploaded so many hours before now.
func listedAt(t *testing.T, now time.Time, hours map[string]float64) *Listing {
	t.Helper()
	l := &Listing{Channel: "nightly"}
	for name, ago := range hours {
		n, err := release.ParseName("therock-dist-linux-" + name + ".tar.gz")
		if err != nil {
			t.Fatal(err)
		}
		r := release.Release{Channel: "nightly", Name: "therock-dist-linux-" + name + ".tar.gz", Family: n.Family, Version: n.Version, Platform: n.Platform, Variant: n.Variant, Tests: n.Tests, Archive: n.Archive}
		if ago >= 0 {
			r.MTime = now.Add(-time.Duration(ago * float64(time.Hour)))
		}
		l.Releases = append(l.Releases, r)
	}
	return l
}

// A night of which others are listed is coming for as long as something of it was
// uploaded lately; then it is taken for a night without this family.
func TestComing(t *testing.T) {
	now := time.Date(2026, 9, 30, 6, 0, 0, 0, time.UTC)
	const own, other, whole = "gfx1151-10.2.0a20260929", "gfx1103-10.2.0a20260930", "multiarch-10.2.0a20260930"
	p := Policy{Settle: 2 * time.Hour, Now: now}
	for name, c := range map[string]struct {
		hours map[string]float64
		p     Policy
		want  string
		until float64 // hours from now
	}{
		"others of the night":    {map[string]float64{own: 24, other: 1}, p, "10.2.0a20260930", 1},
		"the last upload counts": {map[string]float64{own: 24, other: 1.5, whole: 0.5}, p, "10.2.0a20260930", 1.5},
		"long ago":               {map[string]float64{own: 24, other: 3}, p, "", 0},
		"its own is there":       {map[string]float64{own: 24, "gfx1151-10.2.0a20260930": 1, other: 0.5}, p, "", 0},
		"of an older night":      {map[string]float64{own: 24, "gfx1103-10.2.0a20260928": 1}, p, "", 0},
		"nothing of its own":     {map[string]float64{other: 1}, p, "10.2.0a20260930", 1},
		"denied":                 {map[string]float64{own: 24, other: 1}, Policy{Settle: p.Settle, Now: now, Deny: []string{"10.2.0a20260930"}}, "", 0},
		"of another series":      {map[string]float64{own: 24, other: 1}, Policy{Settle: p.Settle, Now: now, Series: "10.1"}, "", 0},
		"settle is off":          {map[string]float64{own: 24, other: 1}, Policy{Now: now}, "", 0},
		"no time":                {map[string]float64{own: 24, other: -1}, p, "", 0},
		"a clock that is ahead":  {map[string]float64{own: 24, other: -100}, p, "", 0},
		"tests are no night":     {map[string]float64{own: 24, "gfx1103-tests-10.2.0a20260930": 1}, p, "", 0},
		"the newest of two":      {map[string]float64{own: 48, other: 1.9, "gfx1103-10.2.0a20261001": 1}, p, "10.2.0a20261001", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, until, ok := Coming(listedAt(t, now, c.hours), "gfx1151", c.p)
			if ok != (c.want != "") || ok && r.Version.String() != c.want || ok && until.Sub(now).Hours() != c.until {
				t.Errorf("%v until %v, %v", r.Version, until, ok)
			}
		})
	}
}

// Early agrees with Select about what is too young, and says until when.
func TestEarlyAgreesWithSelect(t *testing.T) {
	now := time.Date(2026, 9, 30, 6, 0, 0, 0, time.UTC)
	const night = "gfx1151-10.2.0a20260930"
	for name, c := range map[string]struct {
		hours   map[string]float64
		p       Policy
		early   bool
		settles bool
		until   float64 // hours from now; 0: unknown
	}{
		"neither":             {map[string]float64{night: 1}, Policy{}, false, false, 0},
		"too young":           {map[string]float64{night: 1}, Policy{MinAge: 3 * time.Hour}, true, false, 2},
		"settles":             {map[string]float64{night: 1}, Policy{Settle: 2 * time.Hour}, true, true, 1},
		"both, age is longer": {map[string]float64{night: 1}, Policy{Settle: 2 * time.Hour, MinAge: 4 * time.Hour}, true, true, 3},
		"whole":               {map[string]float64{night: 1, "multiarch-10.2.0a20260930": 0}, Policy{Settle: 2 * time.Hour}, false, false, 0},
		"old enough":          {map[string]float64{night: 5}, Policy{Settle: 2 * time.Hour, MinAge: 4 * time.Hour}, false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.Now = now
			l := listedAt(t, now, c.hours)
			var r release.Release
			for _, l := range l.Releases {
				if l.Family == "gfx1151" {
					r = l
				}
			}
			e, early := c.p.Early(l, r)
			if early != c.early || e.Settles != c.settles || early && e.Until.Sub(now).Hours() != c.until {
				t.Errorf("%+v, %v", e, early)
			}
			if _, err := Select(l, "gfx1151", c.p); (err != nil) != early {
				t.Errorf("Select says %v", err)
			}
			if early {
				c.p.Now = e.Until
				if _, err := Select(l, "gfx1151", c.p); err != nil {
					t.Errorf("at %v Select says %v", e.Until, err)
				}
			}
		})
	}
}
