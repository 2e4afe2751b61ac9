package fetch

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// listed makes a listing of names that were uploaded so many hours ago; a
// negative age is no upload time.
func listed(t testing.TB, names map[string]float64) *Listing {
	t.Helper()
	l := &Listing{Channel: "nightly"}
	for name, age := range names {
		full := "therock-dist-" + name + ".tar.gz"
		n, err := release.ParseName(full)
		if err != nil {
			t.Fatal(err)
		}
		r := release.Release{Channel: "nightly", Name: full, Family: n.Family, Version: n.Version, Platform: n.Platform, Variant: n.Variant, Tests: n.Tests, Archive: n.Archive}
		if age >= 0 {
			r.MTime = testNow.Add(-time.Duration(age * float64(time.Hour)))
		}
		l.Releases = append(l.Releases, r)
	}
	slices.SortFunc(l.Releases, func(a, b release.Release) int { return release.Compare(b, a) })
	return l
}

func TestSelect(t *testing.T) {
	nights := map[string]float64{
		"linux-gfx1151-10.2.0a20260930": 1, "linux-multiarch-10.2.0a20260930": 0.5,
		"linux-gfx1151-10.2.0a20260929": 25,
		"linux-gfx1151-10.2.0a20260928": 49, "linux-multiarch-10.2.0a20260928": 48,
		"linux-gfx1151-tests-10.3.0a20261001": 0.1, "windows-gfx1151-10.3.0a20261001": 0.1,
		"linux-gfx110X-all-10.3.0a20261001": 0.1,
	}
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		names map[string]float64
		p     Policy
		want  string // "" is a NoReleaseError
	}{
		"newest":                           {nights, Policy{}, "10.2.0a20260930"},
		"exact":                            {nights, Policy{Version: "10.2.0a20260928"}, "10.2.0a20260928"},
		"exact, not listed":                {nights, Policy{Version: "10.2.0a20260927"}, ""},
		"exact, but denied":                {nights, Policy{Version: "10.2.0a20260928", Deny: []string{"*28"}}, ""},
		"min age":                          {nights, Policy{MinAge: day}, "10.2.0a20260929"},
		"min age of everything":            {nights, Policy{MinAge: 30 * day}, ""},
		"settled by multiarch":             {nights, Policy{Settle: 2 * time.Hour}, "10.2.0a20260930"},
		"settled by age":                   {map[string]float64{"linux-gfx1151-10.2.0a20260930": 3}, Policy{Settle: 2 * time.Hour}, "10.2.0a20260930"},
		"not settled":                      {map[string]float64{"linux-gfx1151-10.2.0a20260930": 1, "linux-gfx1151-10.2.0a20260929": 25, "linux-multiarch-tests-10.2.0a20260930": 1}, Policy{Settle: 2 * time.Hour}, "10.2.0a20260929"},
		"no time, no policy":               {map[string]float64{"linux-gfx1151-10.2.0a20260930": -1}, Policy{}, "10.2.0a20260930"},
		"no time, min age":                 {map[string]float64{"linux-gfx1151-10.2.0a20260930": -1}, Policy{MinAge: time.Second}, ""},
		"no time, settle":                  {map[string]float64{"linux-gfx1151-10.2.0a20260930": -1}, Policy{Settle: time.Second}, ""},
		"no time, settle, whole night":     {map[string]float64{"linux-gfx1151-10.2.0a20260930": -1, "linux-multiarch-10.2.0a20260930": 0}, Policy{Settle: time.Second}, "10.2.0a20260930"},
		"deny by version":                  {nights, Policy{Deny: []string{"10.2.0a20260930", "*0929"}}, "10.2.0a20260928"},
		"deny by file name":                {nights, Policy{Deny: []string{"therock-dist-*-gfx1151-10.2.0a20260930.tar.gz"}}, "10.2.0a20260929"},
		"series is not a prefix":           {map[string]float64{"linux-gfx1151-7.10.0": 1, "linux-gfx1151-7.1.1": 2}, Policy{Series: "7.1"}, "7.1.1"},
		"numbers, not strings":             {map[string]float64{"linux-gfx1151-7.9.0": 2, "linux-gfx1151-7.10.0": 1}, Policy{}, "7.10.0"},
		"final above its night":            {map[string]float64{"linux-gfx1151-10.2.0": 9, "linux-gfx1151-10.2.0rc1": 5, "linux-gfx1151-10.2.0a20260930": 1}, Policy{}, "10.2.0"},
		"bkc above its base":               {map[string]float64{"linux-gfx1151-10.2.0a20260929+bkc.20260930": 9, "linux-gfx1151-10.2.0a20260929": 5}, Policy{}, "10.2.0a20260929+bkc.20260930"},
		"by version":                       {map[string]float64{"linux-gfx1151-10.0.0": 120, "linux-gfx1151-7.14.1": 1}, Policy{Prefer: PreferVersion}, "10.0.0"},
		"by date":                          {map[string]float64{"linux-gfx1151-10.0.0": 120, "linux-gfx1151-7.14.1": 1}, Policy{Prefer: PreferDate}, "7.14.1"},
		"by date, then version":            {map[string]float64{"linux-gfx1151-10.0.0": 1, "linux-gfx1151-7.14.1": 1}, Policy{Prefer: PreferDate}, "10.0.0"},
		"dev by time":                      {map[string]float64{"linux-gfx1151-10.2.0.dev0+ffff": 2, "linux-gfx1151-10.2.0.dev0+0000": 1}, Policy{}, "10.2.0.dev0+0000"},
		"by date: the day, not the upload": {map[string]float64{"linux-gfx1151-10.2.0a20260928": 1, "linux-gfx1151-10.2.0a20260930": 24}, Policy{Prefer: PreferDate}, "10.2.0a20260930"},
		"by date, of a lower base":         {map[string]float64{"linux-gfx1151-10.1.0a20260930": 1, "linux-gfx1151-10.2.0a20260928": 24}, Policy{Prefer: PreferDate}, "10.1.0a20260930"},
		"by date, then upload":             {map[string]float64{"linux-gfx1151-10.1.0a20260930": 1, "linux-gfx1151-10.2.0a20260930": 5}, Policy{Prefer: PreferDate}, "10.1.0a20260930"},
		"by date, days and uploads":        {map[string]float64{"linux-gfx1151-10.2.0a20260929": 1, "linux-gfx1151-10.1.0": 20}, Policy{Prefer: PreferDate}, "10.1.0"},
		"dev by time, by date":             {map[string]float64{"linux-gfx1151-10.2.0.dev0+ffff": 2, "linux-gfx1151-10.1.0.dev0+0000": 1}, Policy{Prefer: PreferDate}, "10.1.0.dev0+0000"},
		"min age, the clock is behind":     {map[string]float64{"linux-gfx1151-10.2.0a20260930": 0}, Policy{MinAge: time.Nanosecond}, ""},
		"series of a major":                {map[string]float64{"linux-gfx1151-10.2.0": 1, "linux-gfx1151-1.9.0": 2}, Policy{Series: "1"}, "1.9.0"},
		"series of a whole base":           {map[string]float64{"linux-gfx1151-7.14.1": 1, "linux-gfx1151-7.14.10": 2}, Policy{Series: "7.14.1"}, "7.14.1"},
		"deny a range":                     {map[string]float64{"linux-gfx1151-7.14.0a20260613": 1, "linux-gfx1151-7.14.0a20260612": 2, "linux-gfx1151-7.14.0a20260609": 3}, Policy{Deny: []string{"7.14.0a2026061[0-3]"}}, "7.14.0a20260609"},
		"deny one family of a night":       {map[string]float64{"linux-gfx1151-10.2.0a20260930": 1}, Policy{Deny: []string{"*-gfx1150-*"}}, "10.2.0a20260930"},
		"settle of multiarch itself":       {map[string]float64{"linux-multiarch-tests-10.2.0a20260930": 1, "linux-gfx1151-10.2.0a20260930": 1}, Policy{Settle: 2 * time.Hour}, ""},
		"settle by another version":        {map[string]float64{"linux-multiarch-10.2.0a20260930+bkc.20261001": 1, "linux-gfx1151-10.2.0a20260930": 1}, Policy{Settle: 2 * time.Hour}, ""},
		"settle by windows":                {map[string]float64{"windows-multiarch-10.2.0a20260930": 1, "linux-gfx1151-10.2.0a20260930": 1}, Policy{Settle: 2 * time.Hour}, ""},
		"empty":                            {nil, Policy{}, ""},
		"other family":                     {map[string]float64{"linux-gfx1150-10.2.0": 1}, Policy{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.p.Now = testNow
			r, err := Select(listed(t, c.names), "gfx1151", c.p)
			if _, none := errors.AsType[*NoReleaseError](err); none != (c.want == "") {
				t.Fatalf("error %v", err)
			}
			if c.want != "" && (r.Version.String() != c.want || r.Family != "gfx1151" || r.Tests || r.Platform != "linux") {
				t.Errorf("selected %s, want %s", r.Name, c.want)
			}
		})
	}
}

func TestSelectRefusesAPolicyWithoutMeaning(t *testing.T) {
	l := listed(t, map[string]float64{"linux-gfx1151-10.2.0": 1})
	if _, err := Select(l, "gfx1151", Policy{Prefer: "newest"}); err == nil || !strings.Contains(err.Error(), "newest") {
		t.Errorf("prefer: %v", err)
	}
	if _, err := Select(l, "gfx1151", Policy{Deny: []string{"10.[2"}}); !errors.Is(err, path.ErrBadPattern) {
		t.Errorf("deny: %v", err)
	}
}

// A listing without times: the night's name says how old it is at least.
func TestTheNameTellsTheAge(t *testing.T) {
	day := testNow.AddDate(0, 0, -4).Format("20060102")
	l := listed(t, map[string]float64{"linux-gfx1151-10.2.0a" + day: -1})
	for age, ok := range map[time.Duration]bool{time.Hour: true, 47 * time.Hour: true, 96 * time.Hour: false} {
		if _, err := Select(l, "gfx1151", Policy{Now: testNow, MinAge: age}); (err == nil) != ok {
			t.Errorf("of four days ago, at least %s old: %v", age, err)
		}
	}
	if _, err := Select(l, "gfx1151", Policy{Now: testNow, Settle: 2 * time.Hour}); err != nil {
		t.Error(err)
	}
}

func TestNoReleaseErrorExplains(t *testing.T) {
	l := listed(t, map[string]float64{
		"linux-gfx1151-10.2.0a20260930": 1, "linux-gfx1151-10.2.0rc7": -1, "linux-gfx1151-10.2.0a20260928": 49,
		"linux-gfx1151-10.1.0": 1000, "linux-gfx110X-all-10.2.0a20260930": 1,
	})
	p := Policy{Now: testNow, Series: "10.2", MinAge: 24 * time.Hour, Deny: []string{"*0928"}}
	_, err := Select(l, "gfx1151", p)
	for _, says := range []string{"10.2.0a20260930 is too young (1h0m0s old", "10.2.0rc7 has no upload time", `10.2.0a20260928 is denied by "*0928"`, "10.1.0 is not of series 10.2"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
	if none, ok := errors.AsType[*NoReleaseError](err); !ok || len(none.Rejected) != 4 || none.Rejected[3].Reason != "is not of series 10.2" {
		t.Errorf("rejected %+v", none)
	}
	p.Series, p.Deny, p.MinAge = "9", []string{"10.2*", "*"}, 1000*time.Hour
	_, err = Select(l, "gfx1151", p)
	if says := `10.2.0a20260930 is not of series 9 and is denied by "10.2*" and is denied by "*" and is too young (1h0m0s old`; err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("not every reason is told: %v", err)
	}
	_, err = Select(l, "gfx1151", Policy{Now: testNow, Version: "10.1.0", Deny: []string{"10.1.0"}})
	if says := `gfx1151 10.1.0 in channel nightly: 10.1.0 is denied by "10.1.0"`; err == nil || !strings.HasSuffix(err.Error(), says) {
		t.Errorf("error %v, want %q", err, says)
	}
	ahead := listed(t, map[string]float64{"linux-gfx1151-10.2.0": 1})
	ahead.Releases[0].MTime = testNow.Add(time.Hour)
	if _, err := Select(ahead, "gfx1151", Policy{Now: testNow, MinAge: time.Hour}); err == nil || !strings.Contains(err.Error(), "is too young (0s old") {
		t.Errorf("a clock that is ahead: %v", err)
	}
	siblings := listed(t, map[string]float64{"linux-gfx1151-tests-10.2.0": 1, "windows-gfx1151-10.1.0": 2})
	_, err = Select(siblings, "gfx1151", Policy{Now: testNow})
	for _, says := range []string{"10.2.0 is the -tests sibling", "10.1.0 is for windows"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
	_, err = Select(l, "gfx900", Policy{Now: testNow})
	if err == nil || !strings.Contains(err.Error(), "gfx110X-all, gfx1151") {
		t.Errorf("unknown family: %v", err)
	}
	_, err = Select(&Listing{Channel: "bkc"}, "gfx900", Policy{})
	if err == nil || !strings.Contains(err.Error(), "nothing is published") {
		t.Errorf("empty channel: %v", err)
	}
}

func TestStale(t *testing.T) {
	l := listed(t, map[string]float64{"linux-gfx1151-10.2.0a20260920": 100, "linux-gfx1150-10.2.0a20260929": 10, "linux-gfx1151-tests-10.2.0a20260929": 1, "linux-gfx900-7.9.0": -1})
	for _, c := range []struct {
		family string
		after  time.Duration
		age    time.Duration
		stale  bool
	}{
		{"gfx1151", 96 * time.Hour, 100 * time.Hour, true},
		{"gfx1151", 0, 100 * time.Hour, false},
		{"gfx1150", 96 * time.Hour, 10 * time.Hour, false},
		{"", 96 * time.Hour, 10 * time.Hour, false},
		{"gfx900", 96 * time.Hour, 0, true},
		{"absent", 96 * time.Hour, 0, true},
	} {
		if f := l.Freshness(c.family, c.after, testNow); f.Age != c.age || f.Stale != c.stale {
			t.Errorf("%q, %s: %+v", c.family, c.after, f)
		}
	}
}
