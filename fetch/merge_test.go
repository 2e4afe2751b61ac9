package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRoutes: bounds mean what their writer means, which PEP 440 does not.
func TestRoutes(t *testing.T) {
	for _, c := range []struct{ from, until, in, out string }{
		{"", "", "7.9.0 10.2.0.dev0+ab", ""},
		{"10.1.0a20260823", "", "10.1.0a20260823 10.1.0a20260823+bkc.20260824 10.1.0rc0 10.2.0a20260930", "10.1.0a20260822 10.1.0a20260822+bkc.20260823 10.0.0"},
		{"", "10.1.0a20260823", "7.9.0 10.1.0a20260822", "10.1.0a20260823 10.1.0"},
		{"10.1", "", "10.1.0.dev0+ab 10.1.0a20260730 10.1.0rc0 10.1.1 10.10.0", "10.0.9 10.0.0 7.15.0"},
		{"10.1.0", "", "10.1.0.dev0+ab 10.1.0a20260730 10.1.0", "10.0.0"},
		{"7.13", "10", "7.13.0a20260312 7.15.0", "7.12.9 10.0.0.dev0+ab 10.0.0a20260729"},
		{"10.0.0rc4", "", "10.0.0rc4 10.0.0rc10 10.0.0", "10.0.0rc3 10.0.0a20260729"},
		{"", "7.0.0rc20250714", "7.0.0rc20250713", "7.0.0a20250801 7.0.0rc0"},
	} {
		routes, err := routesOf([]Source{{URL: "https://h/", From: c.from, Until: c.until}})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range strings.Fields(c.in) {
			if !routes[0].holds(mustVersion(t, v)) {
				t.Errorf("[%s, %s) does not hold %s", c.from, c.until, v)
			}
		}
		for _, v := range strings.Fields(c.out) {
			if routes[0].holds(mustVersion(t, v)) {
				t.Errorf("[%s, %s) holds %s", c.from, c.until, v)
			}
		}
	}
	for _, bad := range []string{"new", "10.x", "v10.1", "10.1.", " 10.1"} {
		for key, s := range map[string]Source{"from": {From: bad}, "until": {Until: bad}} {
			s.URL = "https://me:secret@h/"
			_, err := nightClient(t).List(t.Context(), "nightly", []Source{s})
			if !isA[*SettingError](err) || !strings.Contains(err.Error(), key+" of https://h/") {
				t.Errorf("%s %q: %v", key, bad, err)
			}
		}
	}
}

// TestDuplicatesComeFromTheHostThatStillPublishes: both indexes list one
// name; which of them it is taken from, and what they are said to be.
func TestDuplicatesComeFromTheHostThatStillPublishes(t *testing.T) {
	const dup = "linux-gfx1151-10.1.0a20260822"
	type index struct {
		names  map[string]float64
		source Source
		frozen bool // as the status must say
	}
	fresh := map[string]float64{dup: 900, "linux-gfx1151-10.2.0a20260930": 24}
	for name, c := range map[string]struct {
		indexes []index
		from    int
	}{
		"the first":                               {[]index{{fresh, Source{}, false}, {fresh, Source{}, false}}, 0},
		"the route holds it":                      {[]index{{fresh, Source{From: "10.1.0a20260823"}, false}, {fresh, Source{Until: "10.1.0a20260823"}, false}}, 1},
		"who still publishes before the route":    {[]index{{map[string]float64{dup: 900}, Source{Until: "10.2", Frozen: true}, true}, {fresh, Source{From: "10.2"}, false}}, 1},
		"not declared frozen":                     {[]index{{fresh, Source{Frozen: true}, true}, {fresh, Source{}, false}}, 1},
		"not seen to be frozen":                   {[]index{{map[string]float64{dup: 900}, Source{}, true}, {fresh, Source{}, false}}, 1},
		"seen to be frozen, the other declared":   {[]index{{map[string]float64{dup: 900}, Source{}, true}, {fresh, Source{Frozen: true}, true}}, 1},
		"lags a little":                           {[]index{{map[string]float64{dup: 60}, Source{}, false}, {map[string]float64{dup: 25}, Source{}, false}}, 0},
		"lags by more than 36 hours":              {[]index{{map[string]float64{dup: 61.1}, Source{}, true}, {map[string]float64{dup: 25}, Source{}, false}}, 1},
		"a clock ahead is now, which is no night": {[]index{{map[string]float64{dup: 30}, Source{}, false}, {map[string]float64{dup: -20}, Source{}, false}}, 0},
		"a clock too far ahead says nothing":      {[]index{{map[string]float64{dup: 30}, Source{}, false}, {map[string]float64{dup: -1000}, Source{}, false}}, 0},
		"three":                                   {[]index{{map[string]float64{dup: 900}, Source{}, true}, {fresh, Source{Frozen: true}, true}, {fresh, Source{}, false}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var sources []Source
			for _, ix := range c.indexes {
				ix.source.URL = serveNames(t, ix.names)
				sources = append(sources, ix.source)
			}
			l, err := nightClient(t).List(t.Context(), "nightly", sources)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range l.Releases {
				if strings.Contains(r.Name, dup) && !strings.HasPrefix(r.URL, sources[c.from].URL) {
					t.Errorf("taken from %s, want index %d of %v", r.URL, c.from, sources)
				}
			}
			listed := 0
			for i, st := range l.Sources {
				listed += st.Listed
				if st.Frozen != c.indexes[i].frozen {
					t.Errorf("index %d: frozen %t, lag %s", i, st.Frozen, st.Lag)
				}
				if st.Source.Frozen != c.indexes[i].source.Frozen {
					t.Errorf("index %d: what was declared is lost", i)
				}
			}
			if listed != len(l.Releases) || l.Sources[c.from].Listed == 0 {
				t.Errorf("%d releases, %d listed: %+v", len(l.Releases), listed, l.Sources)
			}
		})
	}
}

// TestFaultsOfOneIndex: whatever is wrong with one index is said, and hides
// nothing of the others.
func TestFaultsOfOneIndex(t *testing.T) {
	long := page1(`const files = [` + one + `,` + strings.Repeat(entry("linux-gfx900-7.9.0", 1700000000)+`,`, 500) + one + `]`)
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		says string // "" is no error
	}{
		"403":        {status(403), "absent or moved (HTTP 403)"},
		"404":        {status(404), "absent or moved (HTTP 404)"},
		"410":        {status(410), "absent or moved (HTTP 410)"},
		"500":        {status(500), "HTTP 500"},
		"401":        {status(401), "HTTP 401"},
		"empty list": {serveScript(`const files = [];`), ""},
		"empty body": {func(http.ResponseWriter, *http.Request) {}, "it is empty"},
		"HTML error, 200": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<html><title>Request blocked</title></html>")
		}, "Request blocked"},
		"XML error, 200": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>`)
		}, "<Error>"},
		"JSON error, 200": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"message":"rate limit exceeded"}`) }, "none of its 1 names"},
		"login page, 200": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `<html><title>Sign in</title><body><form><a href="/reset">forgotten?</a></form></body></html>`)
		}, "Sign in"},
		"truncated, length known": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			io.WriteString(w, long[:len(long)/2])
		}, "unexpected EOF"},
		"truncated, length unknown": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, long[:len(long)/2])
		}, "its list of files cannot be read after"},
		"truncated before the list": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, long[:60])
		}, "no script"},
		"truncated listing": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `<html><body><h1>Index of /</h1><pre><a href="`+testName+`">`+testName+`</a>`)
		}, "cut off after 1 names"},
		"truncated bucket": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, bucketPage("", testName)[:200]) }, "cannot be read"},
		"no bucket page next": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, bucketPage("<IsTruncated>true</IsTruncated><NextMarker/>"))
		}, "does not say how to go on"},
		"other files": {serveScript(`const files = [{"name":"torch-2.9.whl","mtime":1790737964}];`), "none of its 1 names"},
		"UTF-16":      {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "\xff\xfe[\x00]\x00") }, "UTF-16"},
		"hangs up": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				conn.Close()
			}
		}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			good := serveNames(t, map[string]float64{"linux-gfx1151-10.2.0a20260930": 3, "linux-gfx1150-10.2.0a20260930": 3})
			bad := indexServer(t, c.h)
			for _, sources := range [][]Source{Sources(good, bad), Sources(bad, good)} {
				l, err := nightClient(t).List(t.Context(), "nightly", sources)
				if err != nil || len(l.Releases) != 2 {
					t.Fatalf("%+v, %v", l, err)
				}
				for _, st := range l.Sources {
					switch {
					case st.URL == good:
						if st.Err != nil || st.Listed != 2 || st.Frozen {
							t.Errorf("the good one: %+v", st)
						}
					case c.says == "" && (st.Err != nil || st.Frozen || st.Releases != 0), c.says != "" && (st.Err == nil || !strings.Contains(st.Err.Error(), c.says)):
						t.Errorf("the other: %+v, want %q", st, c.says)
					}
				}
			}
			_, err := nightClient(t).List(t.Context(), "nightly", Sources(bad))
			if (err == nil) != (c.says == "") {
				t.Errorf("alone: %v", err)
			}
		})
	}
	t.Run("down", func(t *testing.T) {
		good := serveNames(t, map[string]float64{"linux-gfx1151-10.2.0a20260930": 3})
		l, err := nightClient(t).List(t.Context(), "nightly", Sources("http://127.0.0.1:1/", good))
		if err != nil || len(l.Releases) != 1 || l.Sources[0].Err == nil || errors.Is(l.Sources[0].Err, io.EOF) {
			t.Errorf("%+v, %v", l, err)
		}
	})
}

func TestNotAhead(t *testing.T) {
	for ahead, want := range map[time.Duration]time.Time{
		-time.Hour: testNow.Add(-time.Hour), 0: testNow, time.Hour: testNow, 24 * time.Hour: testNow, 24*time.Hour + 1: {},
	} {
		if got := notAhead(testNow.Add(ahead), testNow); !got.Equal(want) {
			t.Errorf("%s ahead: %v", ahead, got)
		}
	}
}
