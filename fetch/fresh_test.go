package fetch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

func mustVersion(t testing.TB, s string) release.Version {
	t.Helper()
	v, err := release.ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestFreshness: what a listing says of why nothing is new. An index is what
// it lists, with ages in hours; nil could not be read.
func TestFreshness(t *testing.T) {
	const day = 24.0
	old := map[string]float64{"linux-gfx1151-10.1.0a20260822": 39 * day}
	older := map[string]float64{"linux-gfx1151-10.1.0a20260801": 60 * day}
	alsoOld := map[string]float64{"linux-gfx1151-10.1.0a20260821": 39*day + 20}
	fresh := map[string]float64{"linux-gfx1151-10.2.0a20260930": day, "linux-multiarch-10.2.0a20260930": day}
	other := map[string]float64{"linux-gfx1150-10.2.0a20260930": day}
	empty := map[string]float64{}
	type ix struct {
		names map[string]float64
		s     Source
	}
	frozen := Source{Frozen: true}
	for name, c := range map[string]struct {
		indexes []ix
		stale   bool
		cause   string
		says    []string
	}{
		"all is well":                          {[]ix{{fresh, Source{}}}, false, "", nil},
		"all is well, the old one is known":    {[]ix{{fresh, Source{}}, {old, frozen}}, false, "", nil},
		"all is well, the old one has an end":  {[]ix{{fresh, Source{}}, {old, Source{Until: "10.1.0a20260823"}}}, false, "", nil},
		"all is well, one could not be read":   {[]ix{{fresh, Source{}}, {nil, Source{}}}, false, "", nil},
		"one froze, another goes on":           {[]ix{{old, Source{}}, {fresh, Source{}}}, false, CauseFrozen, []string{"no more is published at {0}", "39 days ago"}},
		"the one that publishes is unread":     {[]ix{{nil, Source{}}, {old, frozen}}, true, CauseUnread, []string{"{0} could not be read", "absent or moved", "10.1.0a20260822, of 39 days ago"}},
		"unread, and another is old":           {[]ix{{nil, Source{}}, {old, Source{}}}, true, CauseUnread, []string{"{0} could not be read"}},
		"unread, but it was frozen":            {[]ix{{nil, frozen}, {old, Source{}}}, true, CauseSkipped, nil},
		"only a frozen host is left":           {[]ix{{old, frozen}}, true, CauseFrozen, []string{"only hosts that publish no more are left: {0}"}},
		"only frozen hosts, declared and seen": {[]ix{{old, frozen}, {older, Source{}}}, true, CauseFrozen, []string{"{0}, {1}"}},
		"frozen, and the new one is empty":     {[]ix{{old, frozen}, {empty, Source{}}}, true, CauseFrozen, []string{"{1} lists nothing", "are left: {0};"}},
		"skipped":                              {[]ix{{old, Source{}}}, true, CauseSkipped, []string{"skipped nights or has moved", "39 days ago"}},
		"skipped by all":                       {[]ix{{old, Source{}}, {alsoOld, Source{}}}, true, CauseSkipped, []string{"every index stopped at the same time"}},
		"nothing at all":                       {[]ix{{empty, Source{}}}, true, CauseSkipped, []string{"lists nothing"}},
		"the family stopped":                   {[]ix{{old, Source{}}, {other, Source{}}}, true, CauseFamily, []string{"goes on without gfx1151", "10.1.0a20260822"}},
		"the family is not there":              {[]ix{{other, Source{}}}, true, CauseFamily, []string{"nothing is listed"}},
		"the family stopped, one is unread":    {[]ix{{other, Source{}}, {old, frozen}, {nil, Source{}}}, true, CauseFamily, nil},
		"only tests go on":                     {[]ix{{map[string]float64{"linux-gfx1151-10.2.0a20260926": 5 * day, "linux-gfx1151-tests-10.2.0a20260930": day}, Source{}}}, true, CauseFamily, nil},
		"a time far ahead is none":             {[]ix{{map[string]float64{"linux-gfx1151-10.1.0a20260822": -30 * day, "linux-gfx1151-10.1.0a20260821": 39 * day}, Source{}}}, true, CauseSkipped, nil},
		"no time, but a night":                 {[]ix{{map[string]float64{"linux-gfx1151-10.2.0a20260930": -30 * day}, Source{}}}, false, "", nil},
		"no time, no night":                    {[]ix{{map[string]float64{"linux-gfx1151-10.2.0": -30 * day}, Source{}}}, true, CauseSkipped, []string{"nothing is listed"}},
	} {
		t.Run(name, func(t *testing.T) {
			var sources []Source
			for _, x := range c.indexes {
				if x.s.URL = indexServer(t, status(403)); x.names != nil {
					x.s.URL = serveNames(t, x.names)
				}
				sources = append(sources, x.s)
			}
			l, err := nightClient(t).List(t.Context(), "nightly", sources)
			if err != nil {
				t.Fatal(err)
			}
			f := l.Freshness("gfx1151", 96*time.Hour, testNow)
			if f.Stale != c.stale || f.Cause != c.cause || (f.Cause == "") != (f.Detail == "") {
				t.Errorf("stale %t, cause %q (%s); want %t, %q", f.Stale, f.Cause, f.Detail, c.stale, c.cause)
			}
			for _, says := range c.says {
				for i, s := range sources {
					says = strings.ReplaceAll(says, "{"+string(rune('0'+i))+"}", s.URL)
				}
				if !strings.Contains(f.Detail, says) {
					t.Errorf("%q does not say %q", f.Detail, says)
				}
			}
			if off := l.Freshness("gfx1151", 0, testNow); off.Stale || off.Cause != "" || off.Age != f.Age {
				t.Errorf("the question is off: %+v", off)
			}
		})
	}
}

// TestFreshnessDoesNotLastForEver: what is ahead today is old one day.
func TestFreshnessDoesNotLastForEver(t *testing.T) {
	l := listed(t, map[string]float64{"linux-gfx1151-10.2.0": 1})
	l.Releases[0].MTime = testNow.Add(20 * time.Hour)
	if f := l.Freshness("gfx1151", 96*time.Hour, testNow); f.Stale || f.Age != 0 {
		t.Errorf("20 hours ahead: %+v", f)
	}
	l.Releases[0].MTime = testNow.Add(25 * time.Hour)
	if f := l.Freshness("gfx1151", 96*time.Hour, testNow); !f.Stale {
		t.Errorf("25 hours ahead: %+v", f)
	}
}

// TestFreshnessNamesSuccessors: a slug that was split or renamed.
func TestFreshnessNamesSuccessors(t *testing.T) {
	l := listed(t, map[string]float64{
		"linux-gfx90X-dcgpu-10.2.0a20260820": 1000, "linux-gfx906-10.2.0a20260930": 9, "linux-gfx90a-10.2.0a20260930": 9, "linux-gfx908-10.2.0a20260820": 1000,
		"linux-gfx94X-dcgpu-10.2.0a20260930": 9, "linux-gfx90c-tests-10.2.0a20260930": 9, "linux-gfx900-10.2.0a20260930": 9,
		"linux-gfx110X-dgpu-10.2.0a20260820": 1000, "linux-gfx110X-all-10.2.0a20260930": 9, "linux-gfx1151-10.2.0a20260930": 9, "linux-multiarch-10.2.0a20260930": 9,
	})
	for family, want := range map[string]string{
		"gfx90X-dcgpu": "newer are gfx900, gfx906, gfx90a, multiarch",
		"gfx110X-dgpu": "newer are gfx110X-all, multiarch",
		"gfx110x":      "newer are gfx110X-all, multiarch",
		"gfx1103":      "newer are gfx110X-all, multiarch",
		"gfx12":        "newer are multiarch",
	} {
		f := l.Freshness(family, 96*time.Hour, testNow)
		if f.Cause != CauseFamily || !strings.HasSuffix(f.Detail, want) {
			t.Errorf("%s: %s, %q", family, f.Cause, f.Detail)
		}
	}
	if f := l.Freshness("", 96*time.Hour, testNow); f.Stale || f.Age != 9*time.Hour || f.Newest.Family == "" {
		t.Errorf("any family: %+v", f)
	}
}

// TestFreshnessOfAHandMadeListing: Sources may be missing, and may hold
// more than Releases.
func TestFreshnessOfAHandMadeListing(t *testing.T) {
	if f := (&Listing{}).Freshness("", time.Hour, testNow); !f.Stale || f.Cause != CauseSkipped || f.Newest.Name != "" {
		t.Errorf("nothing: %+v", f)
	}
	l := listed(t, map[string]float64{"linux-gfx1151-10.2.0a20260820": 1000})
	l.Sources = []SourceStatus{{Source: Source{URL: "https://h/"}, Newest: testNow, Releases: 1}, {Source: Source{URL: "https://g/"}, Err: errors.New("down")}}
	if f := l.Freshness("gfx1151", time.Hour, testNow); f.Cause != CauseFamily {
		t.Errorf("an index that goes on: %+v", f)
	}
}
