package release

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	pep440 "github.com/aquasecurity/go-pep440-version"
	"pgregory.net/rapid"
)

// ordered lists versions in their true order, lowest first. The comments
// name the mistake that each neighbour guards against.
var ordered = []string{
	"6.4.0rc20250416", // a night of the old scheme
	"6.5.0rc20250610",
	"7.0.0.dev0+ffffffffffffffffffffffffffffffffffffffff",
	"7.0.0rc20250630",
	"7.0.0rc20250714",
	"7.0.0a20250714", // the spelling changed within one base
	"7.0.0a20250801",
	"7.0.0rc0", // above every night, however that is spelled
	"7.0.0rc9",
	"7.0.0rc10",
	"7.0.0",
	"7.1.0",
	"7.9.0", // 7.10 is above 7.9: not string order
	"7.10.0a20251120",
	"7.12.0.dev0+0123456789abcdef0123456789abcdef01234567", // dev is lowest of its base
	"7.12.0.dev1+0123456789abcdef0123456789abcdef01234567",
	"7.12.0a20260121",
	"7.12.0a20260301",
	"7.12.0b1",
	"7.12.0rc0",
	"7.12.0rc1",
	"7.12.0rc10", // not string order
	"7.12.0",     // sort -V puts it below its pre-releases
	"7.12.0+1",
	"7.12.0.post1.dev0",
	"7.12.0.post1",
	"7.12.0.post2",
	"7.12.0.1",
	"7.13.0a20260312",
	"7.14.0",
	"7.14.1",
	"7.15.0a20260719",
	"7.15.0rc0",
	"10.0.0rc4", // 10 is above 7: not string order
	"10.0.0",
	"10.1.0a20260822",
	"10.1.0a20260822+bkc", // a shorter local part is below a longer one
	"10.1.0a20260822+bkc.20260823",
	"10.1.0a20260822+bkc.20260824",
	"10.1.0a20260822+1", // digits are above letters
	"10.1.0a20260823",   // above a BKC of the day before
	"10.2.0a20260930",
	"10.10.0a20260101",
}

func TestVersionOrder(t *testing.T) {
	var want []Version
	for _, s := range ordered {
		want = append(want, mustVersion(t, s))
	}
	got := slices.Clone(want)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, Version.Compare)
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("place %d is %s, want %s", i, got[i], want[i])
		}
	}
	if (Version{}).Compare(want[0]) >= 0 || want[0].Compare(Version{}) <= 0 || (Version{}).Compare(Version{}) != 0 {
		t.Error("the zero Version is not below every other")
	}
}

// TestEqualVersions: what is written in two ways, or has no order.
func TestEqualVersions(t *testing.T) {
	for _, c := range [][2]string{
		{"10.2", "10.2.0"},
		{"10.2.0.0rc1", "10.2rc01"},
		{"10.2.0.dev0+ffff", "10.2.0.dev0+0000"},
		{"10.2.dev0", "10.2.0.dev0+0000"},
		{"10.2.0+01", "10.2.0+1"},
	} {
		if v, w := mustVersion(t, c[0]), mustVersion(t, c[1]); v.Compare(w) != 0 || w.Compare(v) != 0 || v == w {
			t.Errorf("%s and %s compare %d", v, w, v.Compare(w))
		}
	}
}

// versionRE is the grammar once more, as PEP 440's own appendix puts it.
var versionRE = regexp.MustCompile(`^[0-9]{1,18}(?:\.[0-9]{1,18})+(?:(?:a|b|rc)[0-9]{1,18})?(?:\.post[0-9]{1,18})?(?:\.dev[0-9]{1,18})?(?:\+[a-z0-9]+(?:\.[a-z0-9]+)*)?$`)

// genVersion draws versions that are close to each other.
func genVersion(t *rapid.T, label string) string {
	return rapid.StringMatching(`(7|10)\.[019]{1,2}(\.[01]){0,2}((a|b|rc)([0-9]{1,2}|2025071[0-9]|20259999))?(\.post[01])?(\.dev[01])?(\+(bkc|[0a]{1,3}|1f)(\.(20260[89]01|[01]{1,22}|b)){0,2})?`).Draw(t, label)
}

// TestOrderAgreesWithPEP440: but for the two exceptions that Compare states,
// the order is that of an independent implementation.
func TestOrderAgreesWithPEP440(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genVersion(t, "a"), genVersion(t, "b")
		v, err1 := ParseVersion(a)
		w, err2 := ParseVersion(b)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if v.Kind() == Dev || w.Kind() == Dev {
			a, _, _ = strings.Cut(a, "+")
			b, _, _ = strings.Cut(b, "+")
		}
		if strings.Contains(a, "rc2025071") || strings.Contains(b, "rc2025071") {
			return
		}
		if got, want := v.Compare(w), pep440.MustParse(a).Compare(pep440.MustParse(b)); got != want {
			t.Fatalf("%s against %s is %d, by PEP 440 %d", v, w, got, want)
		}
	})
}

// TestOldNightsAreNights: the same order as if they had been spelled as now.
func TestOldNightsAreNights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		night := rapid.StringMatching(`7\.[01]\.0rc2025071[0-9]`).Draw(t, "night")
		v, err1 := ParseVersion(night)
		now, err2 := ParseVersion(strings.Replace(night, "rc", "a", 1))
		w, err3 := ParseVersion(genVersion(t, "other"))
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if v.Kind() != Nightly {
			t.Fatalf("%s is %s", v, v.Kind())
		}
		if d1, ok := v.Date(); !ok || d1 != now.date {
			t.Fatalf("%s is of %v", v, d1)
		}
		between := w.Compare(v) > 0 && w.Compare(now) < 0 && !strings.Contains(w.String(), "rc2025071")
		if v.Compare(now) >= 0 || between {
			t.Fatalf("%s is not just below %s, seen from %s", v, now, w)
		}
	})
}

func TestParseVersion(t *testing.T) {
	for _, tt := range []struct {
		in, base string
		kind     Kind
		date     string
	}{
		{"10.2.0a20260930", "10.2.0", Nightly, "20260930"},
		{"10.2.0a20260930+bkc.20261001", "10.2.0", BKC, "20261001"},
		{"10.2.0a20260930+bkc.new", "10.2.0", BKC, "20260930"},
		{"7.0.0rc20250714", "7.0.0", Nightly, "20250714"},
		{"7.0.0rc20251314", "7.0.0", RC, ""}, // no day has that number
		{"10.0.0rc0", "10.0.0", RC, ""},
		{"10.0.0rc12", "10.0.0", RC, ""},
		{"10.0.0", "10.0.0", Final, ""},
		{"10.0.0.post1", "10.0.0", Final, ""},
		{"10.2.0.dev0+0123456789abcdef0123456789abcdef01234567", "10.2.0", Dev, ""},
		{"10.2.0a20269999", "10.2.0", Nightly, ""},
	} {
		v, err := ParseVersion(tt.in)
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
			continue
		}
		date := ""
		if d, ok := v.Date(); ok {
			date = d.Format("20060102")
		}
		if v.Base() != tt.base || v.Kind() != tt.kind || date != tt.date || v.String() != tt.in {
			t.Errorf("%s: base %s, kind %s, date %s", tt.in, v.Base(), v.Kind(), date)
		}
	}
	for _, in := range []string{
		"", "10", "ADHOCBUILD", "tests-10.2.0", "10.2.0a", "10.2.0 ", " 10.2.0", "v10.2.0", "10.2.0-1",
		"10.2.0a20260930\n", "10.2.0+", "10.2.0A1", "10.2.0rc1-tests", "10..0", "1!10.2.0", "10.2.", "10.2.0.dev", "10.2.0.post",
		"10.2.0+a..b", "10.2.0+a.", "10.2.0+.a", "10.2.0+A", "10.2.0+a+b", "10.2.0c1", "10.2.0.a1", "10.2.0.dev0.post1",
		"10.2.0a" + strings.Repeat("9", 400), "99999999999999999999.1", "1.9999999999999999999", "1.2+" + strings.Repeat("a", maxVersionLen),
	} {
		if v, err := ParseVersion(in); !errors.Is(err, ErrVersion) {
			t.Errorf("%q parsed as %s, error %v", in, v, err)
		}
	}
}

func TestInSeries(t *testing.T) {
	v := mustVersion(t, "7.10.0a20251120")
	for series, want := range map[string]bool{"": true, "7": true, "7.10": true, "7.10.0": true, "7.1": false, "10": false, "7.10.0a": false} {
		if got := v.InSeries(series); got != want {
			t.Errorf("in %q: %v", series, got)
		}
	}
}

func FuzzVersion(f *testing.F) {
	for i := range ordered[1:] {
		f.Add(ordered[i], ordered[i+1], "10.0.0")
	}
	f.Add("10.2.0+a.", "10.2.0.dev", "1.2.3rc1.post2.dev3+4.5a.6")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		v, err1 := ParseVersion(a)
		w, err2 := ParseVersion(b)
		x, err3 := ParseVersion(c)
		if want := len(a) <= maxVersionLen && versionRE.MatchString(a); want != (err1 == nil) {
			t.Fatalf("%q: %v, by the expression %t", a, err1, want)
		}
		if err1 != nil || err2 != nil || err3 != nil {
			return
		}
		if v.Compare(w) != -w.Compare(v) {
			t.Fatalf("%s and %s compare %d and %d", v, w, v.Compare(w), w.Compare(v))
		}
		if v.Compare(w) <= 0 && w.Compare(x) <= 0 && v.Compare(x) > 0 {
			t.Fatalf("%s <= %s <= %s, but not %s <= %s", v, w, x, v, x)
		}
	})
}
