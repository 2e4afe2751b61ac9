package fetch

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// editable is an index that can be changed, served as files are.
type editable struct {
	mu       sync.Mutex
	body     string
	etag     string
	modified time.Time
	status   []int // of the answers
}

func (e *editable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.etag != "" {
		w.Header().Set("ETag", e.etag)
	}
	rec := &recorder{ResponseWriter: w, code: http.StatusOK}
	http.ServeContent(rec, r, "index.html", e.modified, bytes.NewReader([]byte(e.body)))
	e.status = append(e.status, rec.code)
}

type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

const (
	oneNight  = `[{"name":"` + testName + `","mtime":1790737964}]`
	twoNights = `[{"name":"` + testName + `","mtime":1790737964},{"name":"` + nameMultiarch + `","mtime":1790737964}]`
)

// TestUnchangedIndexIsNotSentAgain: what nothing is new of costs one small
// request, and is listed as before.
func TestUnchangedIndexIsNotSentAgain(t *testing.T) {
	old := time.Date(2026, 9, 30, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		e    *editable
		want string // statuses of: first, again, changed, again
	}{
		"ETag":              {&editable{etag: `"1"`}, "[200 304 200 304]"},
		"weak ETag":         {&editable{etag: `W/"1"`}, "[200 304 200 304]"},
		"Last-Modified":     {&editable{modified: old}, "[200 304 200 304]"},
		"both":              {&editable{etag: `"1"`, modified: old}, "[200 304 200 304]"},
		"neither":           {&editable{}, "[200 200 200 200]"},
		"written right now": {&editable{modified: time.Now().Add(time.Hour)}, "[200 200 200 200]"},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.e
			e.body = oneNight
			index := indexServer(t, e.ServeHTTP)
			client := testClient(t, nil)
			check := func(n int) {
				t.Helper()
				l, err := client.List(t.Context(), "nightly", Sources(index))
				if err != nil || len(l.Releases) != n || l.Sources[0].Releases != n || l.Releases[0].Channel != "nightly" {
					t.Errorf("%+v, %v, want %d releases", l, err, n)
				}
			}
			check(1)
			check(1)
			e.mu.Lock()
			e.body = twoNights
			if e.etag != "" {
				e.etag = strings.Replace(e.etag, "1", "2", 1)
			}
			if !e.modified.IsZero() {
				e.modified = e.modified.Add(time.Hour)
			}
			e.mu.Unlock()
			check(2)
			check(2)
			if got := fmt.Sprint(e.status); got != c.want {
				t.Errorf("answers %s, want %s", got, c.want)
			}
		})
	}
}

// TestRememberedIndexExpires: a server that never says "modified" does not
// freeze an index.
func TestRememberedIndexExpires(t *testing.T) {
	e := &editable{body: oneNight, etag: `"always"`}
	index := indexServer(t, e.ServeHTTP)
	now := testNow
	client := testClient(t, func(o *Options) { o.Now = func() time.Time { return now } })
	for i, later := range []time.Duration{0, rememberFor - 1, 1, -time.Hour} {
		now = now.Add(later)
		if _, err := client.List(t.Context(), "nightly", Sources(index)); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if got := fmt.Sprint(e.status); got != "[200 304 200 200]" {
		t.Errorf("answers %s", got)
	}
}

func TestFailuresAreNotRemembered(t *testing.T) {
	e := &editable{body: "<html>login</html>", etag: `"same"`}
	index := indexServer(t, e.ServeHTTP)
	client := testClient(t, nil)
	if _, err := client.List(t.Context(), "nightly", Sources(index)); !isA[*LayoutError](err) {
		t.Errorf("%v", err)
	}
	e.mu.Lock()
	e.body = oneNight
	e.mu.Unlock()
	if l, err := client.List(t.Context(), "nightly", Sources(index)); err != nil || len(l.Releases) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestNotModifiedElsewhere: an index that was moved has links of its own, and
// an unasked 304 is no index at all.
func TestNotModifiedElsewhere(t *testing.T) {
	to := "/a/"
	e := &editable{body: oneNight, etag: `"1"`}
	index := indexServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/tarball/" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		e.ServeHTTP(w, r)
	})
	client := testClient(t, nil)
	for _, dir := range []string{"/a/", "/b/"} {
		to = dir
		l, err := client.List(t.Context(), "nightly", Sources(index))
		if err != nil || !strings.Contains(l.Releases[0].URL, dir) {
			t.Errorf("%s: %+v, %v", dir, l, err)
		}
	}
	if _, err := client.List(t.Context(), "nightly", Sources(indexServer(t, status(304)))); !isA[*StatusError](err) {
		t.Errorf("304 to a first request: %v", err)
	}
}

func TestClientRemembersSoMany(t *testing.T) {
	e := &editable{body: oneNight, etag: `"1"`}
	index := indexServer(t, e.ServeHTTP)
	client := testClient(t, nil)
	for i := range 3 * maxRemembered {
		if _, err := client.List(t.Context(), "nightly", Sources(fmt.Sprintf("%s%d/", index, i))); err != nil {
			t.Fatal(err)
		}
	}
	if len(client.read) > maxRemembered {
		t.Errorf("%d indexes are remembered", len(client.read))
	}
}
