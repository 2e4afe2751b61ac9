package fetch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func isHead(r *http.Request) bool { return r.Method == http.MethodHead }

func status(code int, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func htmlPage(w http.ResponseWriter, contentType string) {
	w.Header().Set("Content-Type", contentType)
	io.WriteString(w, "<html><body>\x1b[31mPlease log in</body></html>")
}

// TestFaultsThatPass: what a network does on a bad night, and must not show.
func TestFaultsThatPass(t *testing.T) {
	data := random(1, 5*testSegment+777)
	for name, fault := range map[string]func(o *origin) func(int, http.ResponseWriter, *http.Request) bool{
		"reset midway": func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
			return times(3, isSegment, o.breakOff(100))
		},
		"reset before a byte": func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
			return times(3, isSegment, o.breakOff(0))
		},
		"reset at the last byte": func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
			return once(isSegment, o.breakOff(testSegment-1))
		},
		"stall midway": func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
			return times(2, isSegment, o.hang(1000))
		},
		"stall before the header": func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
			return once(isSegment, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		},
		"5xx, then fine": func(*origin) func(int, http.ResponseWriter, *http.Request) bool {
			return times(3, isSegment, status(502))
		},
		"5xx to HEAD":    func(*origin) func(int, http.ResponseWriter, *http.Request) bool { return once(isHead, status(503)) },
		"408":            func(*origin) func(int, http.ResponseWriter, *http.Request) bool { return once(isSegment, status(408)) },
		"HEAD refused":   func(*origin) func(int, http.ResponseWriter, *http.Request) bool { return always(isHead, status(405)) },
		"HEAD forbidden": func(*origin) func(int, http.ResponseWriter, *http.Request) bool { return always(isHead, status(403)) },
		"HEAD dropped": func(*origin) func(int, http.ResponseWriter, *http.Request) bool {
			return always(isHead, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		},
		"HEAD without a word on ranges": func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
			return always(isHead, status(200, "ETag", `"v1"`, "Content-Length", fmt.Sprint(len(data))))
		},
		"chunked parts": func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
			return always(isSegment, func(w http.ResponseWriter, r *http.Request) {
				body := o.partial(w, r)
				w.WriteHeader(206)
				w.(http.Flusher).Flush()
				w.Write(body)
			})
		},
		"stored with a Content-Encoding": func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
			return func(_ int, w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Content-Encoding", "gzip")
				return false
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, data)
			o.fault = fault(o)
			dir := t.TempDir()
			got, err := drain(t, testClient(t, func(o *Options) { o.IdleTimeout, o.Retries = 150*time.Millisecond, 10 }), o, dir)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, data) {
				t.Error("the bytes differ")
			}
			if n := checkSpool(t, dir, data, testSegment); n != 6 {
				t.Errorf("%d whole segments, want 6", n)
			}
		})
	}
}

// TestFaultsThatAreRefused: answers that must not reach the disk.
func TestFaultsThatAreRefused(t *testing.T) {
	data, other := random(1, 5*testSegment+777), random(2, 5*testSegment+777)
	segment := func(f func(o *origin, w http.ResponseWriter, r *http.Request)) func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
		return func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
			third := func(r *http.Request) bool { from, _ := rangeOf(r); return isSegment(r) && from >= 2*testSegment }
			return always(third, func(w http.ResponseWriter, r *http.Request) { f(o, w, r) })
		}
	}
	probe := func(f func(w http.ResponseWriter, r *http.Request)) func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
		return func(*origin) func(int, http.ResponseWriter, *http.Request) bool {
			return always(func(*http.Request) bool { return true }, f)
		}
	}
	for name, c := range map[string]struct {
		fault func(o *origin) func(int, http.ResponseWriter, *http.Request) bool
		is    func(error) bool
		says  string
	}{
		"200 to a range": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			r.Header.Del("Range")
			o.serve(w, r)
		}), isA[*RangeError], "HTTP 200"},
		"another start": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			body := o.partial(w, r)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(body)-1, len(data)))
			w.WriteHeader(206)
			w.Write(body)
		}), isA[*RangeError], "bytes 0-"},
		"another total": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			body := o.partial(w, r)
			from, to := rangeOf(r)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)+1))
			w.WriteHeader(206)
			w.Write(body)
		}), isA[*RangeError], "the server sent bytes"},
		"no Content-Range": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			body := o.partial(w, r)
			w.Header().Del("Content-Range")
			w.WriteHeader(206)
			w.Write(body)
		}), isA[*RangeError], "sent none"},
		"too short by its own word": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			body := o.partial(w, r)
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(206)
			w.Write(body[:10])
		}), isA[*RangeError], "sent 10"},
		"too long, chunked": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			body := o.partial(w, r)
			w.WriteHeader(206)
			w.Write(body)
			w.(http.Flusher).Flush()
			w.Write([]byte("more"))
		}), isA[*RangeError], "sent more"},
		"always too short, chunked": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			o.partial(w, r)
			w.WriteHeader(206)
			w.(http.Flusher).Flush()
		}), func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }, "run it again"},
		"another ETag": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			body := o.partial(w, r)
			w.Header().Set("ETag", `"v2"`)
			w.WriteHeader(206)
			w.Write(body)
		}), isA[*ChangedError], `ETag was "v1", is "v2"`},
		"another Last-Modified": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			body := o.partial(w, r)
			w.Header().Del("ETag")
			w.Header().Set("Last-Modified", o.modified.Add(time.Hour).Format(http.TimeFormat))
			w.WriteHeader(206)
			w.Write(body)
		}), isA[*ChangedError], "Last-Modified"},
		"neither of them": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			body := o.partial(w, r)
			w.Header().Del("ETag")
			w.Header().Del("Last-Modified")
			w.WriteHeader(206)
			w.Write(body)
		}), isA[*RangeError], "without ETag"},
		"replaced, honestly": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			o.replace(other, `"v2"`)
			o.serve(w, r)
		}), isA[*ChangedError], "replaced"},
		"replaced by a shorter one": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			status(416, "Content-Range", "bytes */7")(w, r)
		}), isA[*ChangedError], "bytes */7"},
		"412":                     {segment(func(_ *origin, w http.ResponseWriter, r *http.Request) { status(412)(w, r) }), isA[*ChangedError], "replaced"},
		"deleted":                 {segment(func(_ *origin, w http.ResponseWriter, r *http.Request) { status(404)(w, r) }), isA[*StatusError], "absent or moved (HTTP 404)"},
		"HTML in place of a part": {segment(func(_ *origin, w http.ResponseWriter, _ *http.Request) { htmlPage(w, "text/html; charset=utf-8") }), isA[*NotArchiveError], "?[31mPlease log in"},
		"re-coded on the way": {segment(func(o *origin, w http.ResponseWriter, r *http.Request) {
			body := o.partial(w, r)
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(206)
			zw := gzip.NewWriter(w)
			zw.Write(body)
			zw.Close()
		}), isA[*EncodingError], "gzip"},
		"5xx for ever":             {segment(func(_ *origin, w http.ResponseWriter, r *http.Request) { status(500)(w, r) }), isA[*StatusError], "run it again"},
		"a wait of hours":          {segment(func(_ *origin, w http.ResponseWriter, r *http.Request) { status(503, "Retry-After", "7200")(w, r) }), isA[*StatusError], "wait 2h"},
		"absent":                   {probe(status(403)), isA[*StatusError], "absent or moved (HTTP 403); list"},
		"HTML in place of all":     {probe(func(w http.ResponseWriter, _ *http.Request) { htmlPage(w, "text/html") }), isA[*NotArchiveError], "Please log in"},
		"HTML under another name":  {probe(func(w http.ResponseWriter, _ *http.Request) { htmlPage(w, "application/gzip") }), isA[*NotArchiveError], "Please log in"},
		"empty":                    {probe(status(200, "Content-Length", "0")), isA[*SizeError], "empty"},
		"absurd size":              {probe(status(200, "Content-Length", "4611686018427387904", "Accept-Ranges", "bytes")), isA[*SizeError], "more than any"},
		"no size":                  {probe(func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }), isA[*SizeError], "does not say how large"},
		"redirected to plain http": {probe(status(302, "Location", "http://mirror.example/x?sig=secret")), isA[*InsecureError], "http://mirror.example/x: a redirect to another host without https"},
		"redirected for ever": {probe(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }), isA[*InsecureError],
			"more than 5 redirects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, data)
			o.fault = c.fault(o)
			dir := t.TempDir()
			got, err := drain(t, testClient(t, func(o *Options) { o.Connections = 1 }), o, dir)
			if !c.is(err) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("error %v (%T), want one that says %q", err, err, c.says)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error tells a secret: %v", err)
			}
			if !bytes.HasPrefix(data, got) {
				t.Error("wrong bytes were delivered")
			}
			checkSpool(t, dir, data, testSegment)
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	o := newOrigin(t, random(1, testSegment))
	o.fault = once(isSegment, status(429, "Retry-After", "1"))
	begin := time.Now()
	if _, err := drain(t, testClient(t, nil), o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("asked again after %s, the server wanted 1s", took)
	}
	now := time.Date(2026, 9, 30, 3, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-1": 0, "soon": 0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0} {
		if got := parseRetryAfter(s, now); got != want {
			t.Errorf("parseRetryAfter(%q) = %s, want %s", s, got, want)
		}
	}
}

// TestIdleTimeoutOfAnyClient: it does not depend on the transport's own.
func TestIdleTimeoutOfAnyClient(t *testing.T) {
	o := newOrigin(t, random(1, testSegment))
	o.fault = always(isSegment, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	c := testClient(t, func(o *Options) {
		o.HTTP = &http.Client{Transport: &http.Transport{}}
		o.IdleTimeout, o.Retries = 250*time.Millisecond, 1
	})
	_, err := drain(t, c, o, t.TempDir())
	if idle, ok := errors.AsType[*IdleError](err); !ok || !idle.Timeout() || o.requests("GET") != 2 {
		t.Errorf("error %v after %d requests", err, o.requests("GET"))
	}
}

func TestRedirectsAreCounted(t *testing.T) {
	o := newOrigin(t, nil)
	o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
		return true
	}
	if _, err := drain(t, testClient(t, nil), o, t.TempDir()); err == nil || len(o.log) != 1+maxRedirects {
		t.Errorf("%v after %d requests", err, len(o.log))
	}
}

func TestRetriesAreCounted(t *testing.T) {
	o := newOrigin(t, random(1, testSegment))
	o.fault = always(isSegment, status(500))
	if _, err := drain(t, testClient(t, func(o *Options) { o.Retries = 2 }), o, t.TempDir()); err == nil {
		t.Fatal("no error")
	}
	if n := o.requests("GET"); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
	o = newOrigin(t, random(1, testSegment))
	o.fault = always(isSegment, status(500))
	if _, err := drain(t, testClient(t, func(o *Options) { o.Retries = -1 }), o, t.TempDir()); err == nil || o.requests("GET") != 1 {
		t.Errorf("without retries: %v after %d requests", err, o.requests("GET"))
	}
}

// TestFullDisk: what is written to /dev/full fails as a full disk does.
func TestFullDisk(t *testing.T) {
	data := random(1, 3*testSegment)
	o := newOrigin(t, data)
	dir := t.TempDir()
	o.fault = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		if from, _ := rangeOf(r); from == testSegment {
			if err := os.Symlink("/dev/full", filepath.Join(dir, "0001.part")); err != nil {
				t.Error(err)
			}
		}
		return false
	}
	c := testClient(t, func(o *Options) { o.Connections = 1 })
	got, err := drain(t, c, o, dir)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "1 of 3 segments are kept") {
		t.Fatalf("error %v", err)
	}
	if !bytes.HasPrefix(data, got) {
		t.Error("wrong bytes were delivered")
	}
	o.heal()
	got, err = drain(t, c, o, dir)
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("after space was made: %d bytes, %v", len(got), err)
	}
	if n := o.requests("GET bytes=0-"); n != 1 {
		t.Errorf("the first segment was fetched %d times", n)
	}
}
