package web

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

func TestRoutesMethodsAndSlashes(t *testing.T) {
	_, ts := start(t, Options{Source: hub(quiet()), Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })})
	for _, c := range []struct {
		method, path string
		status       int
		header, want string
	}{
		{"GET", "/", 200, "Content-Type", "text/html; charset=utf-8"},
		{"HEAD", "/", 200, "Content-Type", "text/html; charset=utf-8"},
		{"GET", "/nothing", 404, "Content-Type", "application/problem+json"},
		{"GET", "/api/v1/nothing", 404, "Content-Type", "application/problem+json"},
		{"GET", "/api/v1/state", 200, "Content-Type", "application/json"},
		{"HEAD", "/api/v1/state", 200, "Content-Type", "application/json"},
		{"GET", "/api/v1/state/", 308, "Location", "/api/v1/state"},
		{"GET", "/api/v1/slots/?a=b", 308, "Location", "/api/v1/slots?a=b"},
		{"GET", "//example.net/", 307, "Location", "/example.net/"},
		{"GET", "/%5cexample.net/", 404, "Location", ""},
		{"GET", "/healthz", 200, "Content-Type", "text/plain; charset=utf-8"},
		{"GET", "/readyz", 200, "Cache-Control", "no-store"},
		{"GET", "/metrics", 200, "Cache-Control", "no-store"},
		{"GET", "/metrics/", 308, "Location", "/metrics"},
		{"POST", "/api/v1/state", 405, "Allow", "GET, HEAD, OPTIONS"},
		{"OPTIONS", "/api/v1/state", 204, "Allow", "GET, HEAD, OPTIONS"},
		{"DELETE", "/", 405, "Allow", "GET, HEAD, OPTIONS"},
		{"GET", "/api/v1/jobs/update/run", 405, "Allow", "OPTIONS, POST"},
		{"HEAD", "/events", 200, "Content-Type", "text/event-stream"},
		{"GET", "/api/v1/slots/nightly-gfx1151", 200, "Content-Type", "application/json"},
		{"GET", "/api/v1/slots/..%2f..%2fetc", 404, "Content-Type", "application/problem+json"},
		{"GET", "/assets/style.css", 200, "Content-Type", "text/css; charset=utf-8"},
		{"GET", "/assets/..%2fopenapi.yaml", 404, "Content-Type", "application/problem+json"},
		{"GET", "/api/v1/openapi.yaml", 200, "Content-Type", "application/yaml"},
		{"GET", "/login", 403, "Content-Type", "application/problem+json"},
		{"POST", "/api/v1/jobs/update/run", 403, "Content-Type", "application/problem+json"},
		{"POST", "/login", 403, "", ""},
		{"POST", "/actions/run", 403, "", ""},
	} {
		res, body := ask(t, c.method, ts.URL+c.path, "")
		if res.StatusCode != c.status || res.Header.Get(c.header) != c.want {
			t.Errorf("%s %s: %s, %s: %q, want %d and %q\n%.200s", c.method, c.path, res.Status, c.header, res.Header.Get(c.header), c.status, c.want, body)
		}
		if res.Header.Get("Content-Security-Policy") == "" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s %s: without its headers: %v", c.method, c.path, res.Header)
		}
		if c.method == "HEAD" && body != "" {
			t.Errorf("HEAD %s has a body", c.path)
		}
		if strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem") && c.method != "HEAD" {
			var p problem
			if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != c.status || p.Detail == "" {
				t.Errorf("%s %s: %s: %v", c.method, c.path, body, err)
			}
		}
	}
	// A person gets a page, and is told how to change it.
	res, body := ask(t, "POST", ts.URL+"/actions/run", "", "Accept", "text/html")
	if res.StatusCode != 403 || !strings.Contains(body, "serve.token_file") || !strings.Contains(body, "<!doctype html>") {
		t.Errorf("%s\n%s", res.Status, body)
	}
}

// Only names that are known are answered: a page of somebody else's cannot make a
// browser read this one under a name of its own.
func TestForeignNamesAreNotAnswered(t *testing.T) {
	_, ts := start(t, Options{Source: hub(quiet()), Hosts: []string{"rocm.example.net"}})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:7151": 200, "127.0.0.1:1": 200, "[::1]:7151": 200, "192.0.2.1": 200, "LOCALHOST.": 200,
		"rocm.example.net": 200, "ROCM.example.net:443": 200,
		"evil.example.net": 421, "localhost.evil.example": 421, "rocm.example.net.evil": 421, "127.0.0.1.evil": 421, "127.0.0.1.nip.io:80": 421,
	} {
		for _, path := range []string{"/", "/api/v1/state", "/healthz", "/assets/live.js", "/events"} {
			if path == "/events" && want == 200 {
				continue
			}
			if res, body := ask(t, "GET", ts.URL+path, "", "Host", host); res.StatusCode != want {
				t.Errorf("%s of %s: %s, want %d\n%.200s", path, host, res.Status, want, body)
			}
		}
	}
}

func TestAnswersAreMadeOnceAndCompressed(t *testing.T) {
	h := hub(quiet())
	s, ts := start(t, Options{Source: h})
	made := 0
	inner := s.cache.make
	s.cache.make = func(st *state.State, now time.Time, in bool, mark string) (*page, error) {
		made++
		return inner(st, now, in, mark)
	}
	_, first := ask(t, "GET", ts.URL+"/", "")
	for range 50 {
		res, _ := ask(t, "GET", ts.URL+"/", "", "Accept-Encoding", "br, gzip;q=0.5")
		if res.Header.Get("Content-Encoding") != "gzip" {
			t.Fatal("not compressed")
		}
	}
	if made != 1 {
		t.Errorf("one State made %d pages", made)
	}
	for range 500 { // progress comes often; the clock of this test stands still
		h.Update(func(s *state.State) { s.Host = "other" })
		ask(t, "HEAD", ts.URL+"/", "")
	}
	if made > pagesBurst+1 {
		t.Errorf("a flood of States made %d pages", made)
	}
	_, now := ask(t, "GET", ts.URL+"/", "")
	if now == first || !strings.Contains(now, "on other") {
		t.Error("the page does not follow the State")
	}
	res, _ := ask(t, "GET", ts.URL+"/api/v1/state", "", "Accept-Encoding", "gzip")
	if res.Header.Get("ETag") == "" {
		t.Error("no tag")
	}
	same, body := ask(t, "GET", ts.URL+"/api/v1/state", "", "If-None-Match", `"x", `+res.Header.Get("ETag"))
	if same.StatusCode != 304 || body != "" {
		t.Errorf("%s %q", same.Status, body)
	}
	res, body = ask(t, "GET", ts.URL+"/api/v1/state", "", "Accept-Encoding", "gzip")
	zr, err := gzip.NewReader(strings.NewReader(body))
	if err != nil || res.Header.Get("Vary") != "Accept-Encoding" {
		t.Fatal(err, res.Header)
	}
	var st state.State
	if err := json.NewDecoder(zr).Decode(&st); err != nil || st.Host != "other" || len(st.Slots) != 2 {
		t.Errorf("%v: %+v", err, st)
	}
	for header, want := range map[string]bool{"": false, "gzip": true, "GZIP": true, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=0.1": true, "br": false, "identity, gzip": true} {
		if takesGzip(header) != want {
			t.Errorf("Accept-Encoding: %s is taken for %v", header, !want)
		}
	}
}

func TestHealthSaysWhatIsWrong(t *testing.T) {
	_, ts := start(t, Options{Source: hub(quiet()), Live: func() error { return errors.New("the schedule\nstands still") }})
	res, body := ask(t, "GET", ts.URL+"/healthz", "")
	if res.StatusCode != 503 || body != "the schedule\\nstands still\n" {
		t.Errorf("%s %q", res.Status, body)
	}
}

// Nothing of a hostile State is markup, a script's address, or a long line.
func TestHostileTextIsText(t *testing.T) {
	_, ts := start(t, Options{Source: hub(nasty())})
	_, page := ask(t, "GET", ts.URL+"/", "")
	for _, bad := range []string{"<script>", "onerror=window", `href="javascript`, `href="data:`, "\x1b", "\u202e", "\x00", "user:secret@", strings.Repeat("A", maxText+1)} {
		at := strings.Index(page, bad)
		if at < 0 {
			continue
		}
		if around := page[max(0, at-80):min(len(page), at+120)]; !strings.Contains(around, "&lt;img src=x "+bad) {
			t.Errorf("%q is in the page: …%s…", bad, around)
		}
	}
	if len(page) > 200<<10 {
		t.Errorf("the page has %d bytes", len(page))
	}
	_, body := ask(t, "GET", ts.URL+"/api/v1/state", "")
	if strings.Contains(body, "<script>") || !json.Valid([]byte(body)) {
		t.Error("the API sends markup, or no JSON")
	}
}

func FuzzRequests(f *testing.F) {
	f.Add("localhost", "/api/v1/slots/nightly-gfx1151/", "csrf=a&slot=b", "Bearer x")
	f.Add("[::1]:7151", "/confirm/use?slot=%00", "%zz", "")
	f.Add("evil", "//evil/%2e%2e/", "token=\xff", "Basic")
	s, err := newServer(Options{Source: hub(nasty()), Actions: new(deeds), Token: testToken, Now: func() time.Time { return noon }})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, host, target, form, auth string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Path == "/events" || u.Path == "/api/v1/events" {
			return
		}
		for _, method := range []string{"GET", "POST"} {
			w := &recorder{header: http.Header{}}
			r := &http.Request{Method: method, URL: u, Host: host, RemoteAddr: "192.0.2.1:1", Body: io.NopCloser(strings.NewReader(form)),
				Header: http.Header{"Authorization": {auth}, "Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"text/html"}}}
			s.ServeHTTP(w, r.WithContext(t.Context()))
			if w.status >= 500 {
				t.Fatalf("%s %q of %q: %d", method, target, host, w.status)
			}
			if to := w.header.Get("Location"); strings.HasPrefix(to, "//") || strings.Contains(to, "://") || strings.HasPrefix(to, "/\\") {
				t.Fatalf("%s %q is sent to %q", method, target, to)
			}
		}
	})
}

// recorder keeps what matters of an answer.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(b []byte) (int, error) { r.WriteHeader(200); return len(b), nil }
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}
