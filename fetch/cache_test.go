package fetch

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cached lists an index with a Client of its own, as another process would.
func cached(t testing.TB, dir, index string, now time.Time) (*Listing, []Event, error) {
	t.Helper()
	var events []Event
	c := testClient(t, func(o *Options) {
		o.CacheDir, o.Now, o.Retries = dir, func() time.Time { return now }, -1
		o.Event = func(e Event) { events = append(events, e) }
	})
	l, err := c.List(t.Context(), "nightly", Sources(index))
	return l, events, err
}

// TestCacheOutlivesTheProcess: nothing new is one request without a body; what
// is new is found; a server is not believed for longer than half a day.
func TestCacheOutlivesTheProcess(t *testing.T) {
	for name, e := range map[string]*editable{"ETag": {etag: `"1"`}, "Last-Modified": {modified: time.Date(2026, 9, 30, 3, 0, 0, 0, time.UTC)}} {
		t.Run(name, func(t *testing.T) {
			e.body = oneNight
			index := indexServer(t, e.ServeHTTP)
			dir := filepath.Join(t.TempDir(), "deep", "cache")
			for i, step := range []struct {
				at   time.Duration
				edit bool
				want int
			}{{0, false, 1}, {1, false, 1}, {2, true, 2}, {2 + rememberFor - 1, false, 2}, {2 + rememberFor, false, 2}, {1, false, 2}} {
				if step.edit {
					e.body = twoNights
					if e.etag != "" {
						e.etag = `"2"`
					} else {
						e.modified = e.modified.Add(time.Hour)
					}
				}
				l, events, err := cached(t, dir, index, testNow.Add(step.at))
				if err != nil || len(l.Releases) != step.want || len(events) != 0 {
					t.Fatalf("%d: %+v, %v, %v", i, l, events, err)
				}
			}
			if got := fmt.Sprint(e.status); got != "[200 304 200 304 200 200]" {
				t.Errorf("answers %s", got)
			}
		})
	}
}

func onlyFile(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	return filepath.Join(dir, entries[0].Name())
}

// TestCacheIsIgnoredWhenBad: whatever happened to a file, the index is read.
func TestCacheIsIgnoredWhenBad(t *testing.T) {
	edit := func(f func(string) string) func(t *testing.T, p string) {
		return func(t *testing.T, p string) {
			raw, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(f(string(raw))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, damage := range map[string]func(t *testing.T, p string){
		"empty":         edit(func(string) string { return "" }),
		"no body":       edit(func(s string) string { line, _, _ := strings.Cut(s, "\n"); return line }),
		"cut off":       edit(func(s string) string { return s[:len(s)-10] }),
		"not JSON":      edit(func(s string) string { return "x" + s }),
		"a changed bit": edit(func(s string) string { return strings.Replace(s, "gfx1151", "gfx1150", 1) }),
		"other schema":  edit(func(s string) string { return strings.Replace(s, `"schema":1`, `"schema":2`, 1) }),
		"other index":   edit(func(s string) string { return strings.Replace(s, `"key":"`, `"key":"0`, 1) }),
		"a header line": edit(func(s string) string { return strings.Replace(s, `"etag":"`, `"etag":"\r\nX-Evil: 1`, 1) }),
		"too large":     edit(func(s string) string { return s + strings.Repeat(" ", maxCachedBody+maxCacheHeader) }),
		"others write":  func(t *testing.T, p string) { must(t, os.Chmod(p, 0o622)) },
		"a link": func(t *testing.T, p string) {
			must(t, os.Rename(p, filepath.Dir(p)+"/../moved"))
			must(t, os.Symlink("../moved", p))
		},
		"a directory": func(t *testing.T, p string) { must(t, os.Remove(p)); must(t, os.MkdirAll(p+"/x", 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			e := &editable{body: oneNight, etag: `"1"`}
			index := indexServer(t, e.ServeHTTP)
			dir := filepath.Join(t.TempDir(), "cache")
			for range 2 {
				if _, _, err := cached(t, dir, index, testNow); err != nil {
					t.Fatal(err)
				}
				if len(e.status) == 1 {
					damage(t, onlyFile(t, dir))
				}
			}
			if got := fmt.Sprint(e.status); got != "[200 200]" {
				t.Errorf("answers %s", got)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCacheThatCannotBeWritten(t *testing.T) {
	e := &editable{body: oneNight, etag: `"1"`}
	index := indexServer(t, e.ServeHTTP)
	l, events, err := cached(t, write(t, "file", "")+"/cache", index, testNow)
	if err != nil || len(l.Releases) != 1 || len(events) != 1 || events[0].Kind != EventNote || !strings.Contains(events[0].Message, "cannot be kept") {
		t.Errorf("%+v, %v, %v", l, events, err)
	}
}

// TestCacheHoldsNoSecrets: of the URL, or of where a redirect led.
func TestCacheHoldsNoSecrets(t *testing.T) {
	e := &editable{body: oneNight, etag: `"1"`}
	index := indexServer(t, func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query().Get("to"); q != "" {
			http.Redirect(w, r, q, http.StatusFound)
			return
		}
		e.ServeHTTP(w, r)
	})
	for to, want := range map[string]string{"": "[200 304]", "/b/": "[200 304]", "/b/?sig=s3cret": "[200 200]"} {
		e.status = nil
		dir := t.TempDir()
		for range 2 {
			u := strings.Replace(index, "http://", "http://me:s3cret@", 1) + "?token=s3cret&to=" + url.QueryEscape(to)
			l, _, err := cached(t, dir, u, testNow)
			if err != nil || len(l.Releases) != 1 || to != "" && !strings.Contains(l.Releases[0].URL, "/b/") {
				t.Fatalf("%+v, %v", l, err)
			}
		}
		if got := fmt.Sprint(e.status); got != want {
			t.Errorf("to %q: answers %s", to, got)
		}
		if want == "[200 200]" {
			continue
		}
		p := onlyFile(t, dir)
		raw, err := os.ReadFile(p)
		info, serr := os.Stat(p)
		if err != nil || serr != nil || strings.Contains(string(raw), "s3cret") || info.Mode() != 0o600 {
			t.Errorf("%v, %v, %v: %s", err, serr, info, raw)
		}
	}
}

// TestNotModifiedAboutSomethingElse: a 304 that names another ETag than the
// one that was asked about, and a 412, which is no answer to a GET.
func TestNotModifiedAboutSomethingElse(t *testing.T) {
	for _, code := range []int{http.StatusNotModified, http.StatusPreconditionFailed} {
		testOddConditional(t, code)
	}
}

func testOddConditional(t *testing.T, code int) {
	t.Helper()
	n := 0
	index := indexServer(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(code)
			return
		}
		fmt.Fprint(w, oneNight)
	})
	dir := t.TempDir()
	for range 2 {
		if l, _, err := cached(t, dir, index, testNow); err != nil || len(l.Releases) != 1 {
			t.Errorf("%d: %+v, %v", code, l, err)
		}
	}
	if n != 3 {
		t.Errorf("%d: %d requests", code, n)
	}
}

func TestCacheIsBounded(t *testing.T) {
	e := &editable{body: oneNight, etag: `"1"`}
	index := indexServer(t, e.ServeHTTP)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	old := filepath.Join(dir, "."+pageKey(mustURL(t, index))+".index123")
	must(t, os.WriteFile(old, nil, 0o600))
	must(t, os.Chtimes(old, time.Time{}, time.Now().Add(-48*time.Hour)))
	for i := range maxCached + 3 {
		if _, _, err := cached(t, dir, fmt.Sprintf("%s%d/", index, i), testNow); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != maxCached+1 {
		t.Errorf("%d files, %v", len(entries), err)
	}
	e.etag = ""
	last := fmt.Sprintf("%s%d/", index, maxCached+2)
	if _, _, err := cached(t, dir, last, testNow); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, pageKey(mustURL(t, last))+".index")); !os.IsNotExist(err) {
		t.Errorf("what cannot be asked about again is kept: %v", err)
	}
}

func FuzzParseCached(f *testing.F) {
	u, err := url.Parse("https://h.example/x/")
	if err != nil {
		f.Fatal(err)
	}
	key := pageKey(u)
	f.Add([]byte(`{"schema":1,"key":"` + key + `","etag":"\"1\"","read":"2026-09-30T00:00:00Z","sha256":"` + hexSum([]byte(oneNight)) + `"}` + "\n" + oneNight))
	f.Add([]byte(`{"schema":1,"key":"` + key + `","etag":"x","found":"https://b/","sha256":"` + hexSum(nil) + `"}` + "\n"))
	f.Add([]byte("{}\n[]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parseCached(raw, key, u)
		if err == nil && (r.base == nil || r.base.Host == "" || r.etag == "" && r.modified == "" || r.found == "") {
			t.Errorf("%+v", r)
		}
	})
}

// BenchmarkNoNews is what a run costs that begins a process, asks one index
// of 5000 names, and finds nothing new.
func BenchmarkNoNews(b *testing.B) {
	var entries []string
	for i := range 5000 {
		entries = append(entries, entry(fmt.Sprintf("linux-gfx1151-10.%d.0a20260930", i), 1790737964))
	}
	e := &editable{body: page1(`const files = [` + strings.Join(entries, ",") + `];`), etag: `"1"`}
	index := indexServer(b, e.ServeHTTP)
	dir := b.TempDir()
	if _, _, err := cached(b, dir, index, testNow); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if l, _, err := cached(b, dir, index, testNow); err != nil || len(l.Releases) != 5000 {
			b.Fatal(err)
		}
	}
	for _, s := range e.status[1:] {
		if s != http.StatusNotModified {
			b.Fatalf("answer %d", s)
		}
	}
}
