package fetch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// serveNames serves an index of names, each uploaded so many hours ago.
func serveNames(t testing.TB, names map[string]float64) string {
	type file struct {
		Name  string  `json:"name"`
		MTime float64 `json:"mtime"`
	}
	files := []file{}
	for name, age := range names {
		at := testNow.Add(-time.Duration(age * float64(time.Hour)))
		files = append(files, file{"therock-dist-" + name + ".tar.gz", float64(at.Unix())})
	}
	page, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	return indexServer(t, func(w http.ResponseWriter, _ *http.Request) { w.Write(page) })
}

// naive is a way to choose that looks right and is not. It gets the releases
// that it could find by name, in no particular order.
type naive func(all []release.Release) release.Release

// greatest chooses the release with the greatest key, where a key is found.
func greatest[K any](compare func(a, b K) int, key func(release.Release) (K, bool)) naive {
	return func(all []release.Release) release.Release {
		var best release.Release
		var top K
		for _, r := range all {
			if k, ok := key(r); ok && (best.Name == "" || compare(k, top) > 0) {
				best, top = r, k
			}
		}
		return best
	}
}

func byText(key func(version string) (string, bool)) naive {
	return greatest(cmp.Compare[string], func(r release.Release) (string, bool) { return key(r.Version.String()) })
}

func byNumbers(key func(version string) ([]int, bool)) naive {
	return greatest(slices.Compare[[]int], func(r release.Release) ([]int, bool) { return key(r.Version.String()) })
}

func only(found func(release.Release) bool, n naive) naive {
	return func(all []release.Release) release.Release {
		return n(slices.DeleteFunc(slices.Clone(all), func(r release.Release) bool { return !found(r) }))
	}
}

func whole(version string) (string, bool) { return version, true }

// byMTime is "newest file first".
var byMTime = greatest(time.Time.Compare, func(r release.Release) (time.Time, bool) { return r.MTime, true })

// right orders as this program does; with only it shows a filter's mistake alone.
var right = greatest(release.Version.Compare, func(r release.Release) (release.Version, bool) { return r.Version, true })

var partRE = regexp.MustCompile(`^(\d+)\.(\d+)\.(\d+)(?:(a|rc)(\d+))?`)

// numbers returns the base of a version, what rank says of its letter, and
// the number behind that, 0 if there is none.
func numbers(rank map[string]int) func(string) ([]int, bool) {
	return func(version string) ([]int, bool) {
		m := partRE.FindStringSubmatch(version)
		if m == nil {
			return nil, false
		}
		var out []int
		for _, s := range []string{m[1], m[2], m[3]} {
			n, _ := strconv.Atoi(s)
			out = append(out, n)
		}
		n, _ := strconv.Atoi(m[5])
		return append(out, rank[m[4]], n), true
	}
}

// natural splits a version into numbers and the rest, as sort -V and its like
// do: what ends sooner is less.
var natural = greatest(slices.Compare[[]string], func(r release.Release) ([]string, bool) {
	var out []string
	for _, s := range regexp.MustCompile(`\d+|\D+`).FindAllString(r.Version.String(), -1) {
		if s[0] >= '0' && s[0] <= '9' {
			s = fmt.Sprintf("%020s", s)
		}
		out = append(out, s)
	}
	return out, true
})

// TestWrongOrders holds the ways in which programs are known to have chosen
// the wrong night. For each the data shows the mistake: chosen so, it gives
// another release than the true order does.
func TestWrongOrders(t *testing.T) {
	for _, c := range []struct {
		mistake string
		names   map[string]float64 // without the family: version to age in hours
		policy  Policy
		wrong   naive
		want    string
	}{
		{"lexicographic sort of versions", map[string]float64{"7.9.0": 3, "7.15.0a20260728": 2, "10.1.0a20260730": 1}, Policy{}, byText(whole), "10.1.0a20260730"},
		{"lexicographic sort within a major", map[string]float64{"7.9.0": 9, "7.10.0": 8, "7.11.0": 7, "7.12.0": 6, "7.13.0": 5, "7.14.0": 4, "7.15.0a20260728": 3}, Policy{}, byText(whole), "7.15.0a20260728"},
		{"startswith for a series", map[string]float64{"7.1.1": 9, "7.10.0": 3, "7.1.0": 8}, Policy{Series: "7.1"},
			only(func(r release.Release) bool { return strings.HasPrefix(r.Version.String(), "7.1") }, right), "7.1.1"},
		{"series taken from the pin", map[string]float64{"7.13.0a20260514": 90, "7.14.0a20260515": 3}, Policy{},
			only(func(r release.Release) bool { return r.Version.InSeries("7.13") }, right), "7.14.0a20260515"},
		{"largest trailing eight digits", map[string]float64{"10.0.0a20260729": 9, "10.0.0": 3, "10.0.0rc4": 5}, Policy{},
			byText(func(v string) (string, bool) {
				m := regexp.MustCompile(`\d{8}$`).FindString(v)
				return m, m != ""
			}), "10.0.0"},
		{"trailing eight digits across bases", map[string]float64{"10.1.0a20260730": 9, "7.15.0a20260801": 3}, Policy{},
			byText(func(v string) (string, bool) { return v[len(v)-8:], true }), "10.1.0a20260730"},
		{"hard-coded major", map[string]float64{"7.15.0a20260728": 9, "10.1.0a20260730": 3}, Policy{},
			only(func(r release.Release) bool { return strings.Contains(r.Name, "-7.") }, right), "10.1.0a20260730"},
		{"alpha above rc", map[string]float64{"10.1.0a20260822": 9, "10.1.0rc0": 3}, Policy{}, byNumbers(numbers(map[string]int{"rc": 1, "a": 2, "": 3})), "10.1.0rc0"},
		{"rank of rc and alpha inverted, final right", map[string]float64{"7.15.0rc1": 3, "7.15.0a20260728": 9, "7.14.1": 1}, Policy{}, byNumbers(numbers(map[string]int{"rc": 0, "a": 1, "": 2})), "7.15.0rc1"},
		{"sort -V puts a final below its nights", map[string]float64{"7.12.0": 3, "7.12.0a20260301": 9, "7.12.0rc1": 5}, Policy{}, natural, "7.12.0"},
		{"character class without rc", map[string]float64{"7.12.0a20260301": 9, "7.12.0rc1": 5}, Policy{},
			only(func(r release.Release) bool { return regexp.MustCompile(`^[0-9.a]*$`).MatchString(r.Version.String()) }, right), "7.12.0rc1"},
		{"character class without dev", map[string]float64{"10.1.0a20260301": 9, "10.2.0.dev0+abcd": 5}, Policy{},
			only(func(r release.Release) bool { return regexp.MustCompile(`^[0-9.a]*$`).MatchString(r.Version.String()) }, right), "10.2.0.dev0+abcd"},
		{"plus sign not expected", map[string]float64{"10.1.0a20260822": 9, "10.1.0a20260822+bkc.20260823": 5}, Policy{},
			only(func(r release.Release) bool { return !strings.Contains(r.Name, "+") }, right), "10.1.0a20260822+bkc.20260823"},
		{"local part above the next night", map[string]float64{"10.1.0a20260822+bkc.20260824": 1, "10.1.0a20260823": 5}, Policy{},
			byText(func(v string) (string, bool) { return v[len(v)-8:], true }), "10.1.0a20260823"},
		{"final gets 0 in the place of the date", map[string]float64{"10.0.0": 3, "10.0.0a20260729": 9}, Policy{}, byNumbers(numbers(nil)), "10.0.0"},
		{"S3 LastModified as order", map[string]float64{"10.2.0a20260928": 1, "10.2.0a20260930": 5}, Policy{}, byMTime, "10.2.0a20260930"},
		{"upload as the date of a night", map[string]float64{"10.2.0a20260928": 1, "10.2.0a20260930": 5}, Policy{Prefer: PreferDate}, byMTime, "10.2.0a20260930"},
		{"newest date where the highest version is meant", map[string]float64{"10.0.0": 120, "7.14.1": 1}, Policy{}, byMTime, "10.0.0"},
		{"highest version where the newest date is meant", map[string]float64{"10.0.0": 120, "7.14.1": 1}, Policy{Prefer: PreferDate}, right, "7.14.1"},
		{"rc as text", map[string]float64{"10.0.0rc9": 3, "10.0.0rc10": 1}, Policy{}, byText(whole), "10.0.0rc10"},
		{"commits have no order", map[string]float64{"10.2.0.dev0+ffff": 5, "10.2.0.dev0+0000": 1}, Policy{}, byText(whole), "10.2.0.dev0+0000"},
		{"a night spelled rc above real candidates", map[string]float64{"7.0.0rc20250714": 9, "7.0.0rc1": 3}, Policy{}, byNumbers(numbers(map[string]int{"a": 1, "rc": 2, "": 3})), "7.0.0rc1"},
		{"a night spelled rc above later nights", map[string]float64{"7.0.0rc20250714": 9, "7.0.0a20250801": 3}, Policy{}, byNumbers(numbers(map[string]int{"a": 1, "rc": 2, "": 3})), "7.0.0a20250801"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			names := map[string]float64{}
			for v, age := range c.names {
				names["linux-gfx1151-"+v] = age
			}
			l, err := nightClient(t).List(t.Context(), "nightly", Sources(serveNames(t, names)))
			if err != nil {
				t.Fatal(err)
			}
			c.policy.Now = testNow
			got, err := Select(l, "gfx1151", c.policy)
			if err != nil || got.Version.String() != c.want {
				t.Errorf("selected %s, %v; want %s", got.Version, err, c.want)
			}
			if wrong := c.wrong(l.Releases); wrong.Version.String() == c.want {
				t.Errorf("the mistake gives %s too: the case shows nothing", c.want)
			}
		})
	}
}

// TestWrongOrdersOfNames: the mistakes that are made of whole file names.
func TestWrongOrdersOfNames(t *testing.T) {
	line := func(r release.Release) (string, bool) { return r.Name, true }
	// sort -t a -k 2 -r -n: what is behind the first letter a is compared as a
	// number, and if that decides nothing, the line.
	afterLetterA := greatest(func(x, y string) int {
		number := func(s string) int {
			_, s, _ = strings.Cut(s, "a")
			digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
			n, _ := strconv.Atoi(digits)
			return n
		}
		return cmp.Or(cmp.Compare(number(x), number(y)), cmp.Compare(x, y))
	}, line)
	for _, c := range []struct {
		mistake, family string
		names           map[string]float64
		wrong           naive
		want            string
	}{
		{"the letter a in multiarch splits the field", multiarch, map[string]float64{"linux-multiarch-7.15.0a20260728": 9, "linux-multiarch-10.1.0a20260730": 3}, afterLetterA, "linux-multiarch-10.1.0a20260730"},
		{"the -tests sibling is newer", "gfx1151", map[string]float64{"linux-gfx1151-10.2.0a20260930": 3, "linux-gfx1151-tests-10.2.0a20260930": 1}, byMTime, "linux-gfx1151-10.2.0a20260930"},
		{"the -tests sibling sorts last", "multiarch", map[string]float64{"linux-multiarch-10.2.0a20260930": 3, "linux-multiarch-tests-10.2.0a20260930": 1}, greatest(cmp.Compare[string], line), "linux-multiarch-10.2.0a20260930"},
		{"windows is newer", "gfx1151", map[string]float64{"linux-gfx1151-10.2.0a20260929": 3, "windows-gfx1151-10.2.0a20260930": 1}, byMTime, "linux-gfx1151-10.2.0a20260929"},
		{"a sanitizer's build", "gfx950-dcgpu", map[string]float64{"linux-gfx950-dcgpu-10.2.0a20260929": 3, "linux-gfx950-dcgpu-asan-10.2.0a20260930": 1}, right, "linux-gfx950-dcgpu-10.2.0a20260929"},
	} {
		t.Run(c.mistake, func(t *testing.T) {
			l, err := nightClient(t).List(t.Context(), "nightly", Sources(serveNames(t, c.names)))
			if err != nil {
				t.Fatal(err)
			}
			want := "therock-dist-" + c.want + ".tar.gz"
			if got, err := Select(l, c.family, Policy{Now: testNow}); err != nil || got.Name != want {
				t.Errorf("selected %s, %v; want %s", got.Name, err, want)
			}
			if wrong := c.wrong(l.Releases); wrong.Name == want {
				t.Errorf("the mistake gives %s too: the case shows nothing", want)
			}
		})
	}
}

// TestAnnouncedNames: the second grammar is listed and chosen like the first,
// and what cannot be unpacked is said to be so.
func TestAnnouncedNames(t *testing.T) {
	const page = `[{"name":"rocm-sdk-gfx1151-10.3.0a20260930-linux.tar.gz","mtime":1790737964},
		{"name":"rocm-sdk-gfx1151-10.3.0a20261001-linux.tar.zst","mtime":1790737964},
		{"name":"rocm-sdk-lite-gfx1151-10.3.0a20261001-linux.tar.gz","mtime":1790737964},
		{"name":"rocm-sdk-10.3.0a20260930-linux.tar.gz","mtime":1790737964},
		{"name":"therock-dist-linux-gfx1151-10.2.0a20260929.tar.gz","mtime":1790737964},
		{"name":"SHA256SUMS","mtime":1790737964}]`
	l, err := nightClient(t).List(t.Context(), "nightly", Sources(indexServer(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) })))
	if err != nil || len(l.Releases) != 5 || len(l.Unparsed) != 1 {
		t.Fatalf("%+v, %v", l, err)
	}
	if got := strings.Join(l.Families(), " "); got != "gfx1151 multiarch" {
		t.Errorf("families %s", got)
	}
	p := Policy{Now: testNow, Settle: 1000 * time.Hour} // settled because the nameless one is multiarch
	if r, err := Select(l, "gfx1151", p); err != nil || r.Name != "rocm-sdk-gfx1151-10.3.0a20260930-linux.tar.gz" {
		t.Errorf("%s, %v", r.Name, err)
	}
	_, err = Select(l, "gfx1151", Policy{Now: testNow, Version: "10.3.0a20261001"})
	for _, says := range []string{"10.3.0a20261001 is a tar.zst, which update does not take", "10.3.0a20261001 is the lite variant"} {
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "20260930") {
			t.Errorf("error %v does not say %q alone", err, says)
		}
	}
}

// TestSanitizedChannel: the asan channel holds builds by plain names and by
// names that say it.
func TestSanitizedChannel(t *testing.T) {
	names := map[string]float64{"linux-multiarch-10.2.0a20260929": 9, "linux-multiarch-asan-10.2.0a20260930": 3, "linux-multiarch-asan-tests-10.2.0a20261001": 3}
	for channel, want := range map[string]string{"asan": "10.2.0a20260930", "nightly": "10.2.0a20260929"} {
		l, err := nightClient(t).List(t.Context(), channel, Sources(serveNames(t, names)))
		if err != nil {
			t.Fatal(err)
		}
		if r, err := Select(l, multiarch, Policy{Now: testNow}); err != nil || r.Version.String() != want {
			t.Errorf("%s: %s, %v, want %s", channel, r.Name, err, want)
		}
	}
}

// BenchmarkIndexOf5000 is what a run costs that finds something new, without
// the network.
func BenchmarkIndexOf5000(b *testing.B) {
	var text strings.Builder
	text.WriteString(`<script>const files = [`)
	for i := range 5000 {
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(entry(fmt.Sprintf("linux-gfx%dX-all-10.%d.0a2026%02d%02d", 100+i%60, i%7, i%12+1, i%28+1), 1790000000+int64(i)))
	}
	text.WriteString(`];</script>`)
	body, base := []byte(text.String()), mustURL(b, "https://h/d/")
	sources, routes := Sources("https://h/d/"), make([]route, 1)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		p, _, err := parseIndex(body, base, testNow)
		if err != nil {
			b.Fatal(err)
		}
		l := merge("nightly", testNow, sources, routes, []*page{p}, make([]error, 1))
		if _, err := Select(l, "gfx110X-all", Policy{Now: testNow}); err != nil {
			b.Fatal(err)
		}
	}
}
