package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

const (
	testName    = "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"
	testSegment = 64 << 10
)

// random returns n bytes that begin as a gzip file does.
func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(b)
	copy(b, gzipMagic)
	return b
}

// origin serves one object correctly, as an object store does, unless its
// fault says otherwise.
type origin struct {
	mu       sync.Mutex
	data     []byte
	etag     string
	modified time.Time
	log      []string // method and Range of each request

	// fault answers the nth request (from 1) that it wants to, and returns
	// true; false leaves it to the origin.
	fault func(n int, w http.ResponseWriter, r *http.Request) bool

	url string
}

func newOrigin(t testing.TB, data []byte) *origin {
	t.Helper()
	o := &origin{data: data, etag: `"v1"`, modified: time.Date(2026, 9, 30, 3, 0, 0, 0, time.UTC)}
	srv := httptest.NewServer(o)
	t.Cleanup(srv.Close)
	o.url = srv.URL + "/" + testName
	return o
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.log = append(o.log, r.Method+" "+r.Header.Get("Range"))
	n, fault := len(o.log), o.fault
	o.mu.Unlock()
	if fault != nil && fault(n, w, r) {
		return
	}
	o.serve(w, r)
}

func (o *origin) serve(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	data, etag, modified := o.data, o.etag, o.modified
	o.mu.Unlock()
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	w.Header().Set("Content-Type", "application/gzip")
	http.ServeContent(w, r, "", modified, bytes.NewReader(data))
}

func (o *origin) replace(data []byte, etag string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.data, o.etag = data, etag
	o.modified = o.modified.Add(time.Hour)
}

// breakWith sets the fault while requests may be under way.
func (o *origin) breakWith(fault func(int, http.ResponseWriter, *http.Request) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fault = fault
}

// heal ends all faults.
func (o *origin) heal() { o.breakWith(nil) }

// requests counts the requests that begin with prefix.
func (o *origin) requests(prefix string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, l := range o.log {
		if len(l) >= len(prefix) && l[:len(prefix)] == prefix {
			n++
		}
	}
	return n
}

func (o *origin) release() release.Release {
	return release.Release{Channel: "nightly", Name: testName, Family: "gfx1151", URL: o.url}
}

// rangeOf reads the range of a request to the origin.
func rangeOf(r *http.Request) (from, to int) {
	if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to); n != 2 {
		return -1, -1
	}
	return from, to
}

// isSegment tells requests for content from those that only ask.
func isSegment(r *http.Request) bool {
	from, to := rangeOf(r)
	return r.Method == http.MethodGet && to > from
}

// once runs f for the first request for which is is true.
func once(is func(*http.Request) bool, f func(http.ResponseWriter, *http.Request)) func(int, http.ResponseWriter, *http.Request) bool {
	return times(1, is, f)
}

func times(n int, is func(*http.Request) bool, f func(http.ResponseWriter, *http.Request)) func(int, http.ResponseWriter, *http.Request) bool {
	var mu sync.Mutex
	return func(_ int, w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		use := n > 0 && is(r)
		if use {
			n--
		}
		mu.Unlock()
		if use {
			f(w, r)
		}
		return use
	}
}

// always is times without a limit.
func always(is func(*http.Request) bool, f func(http.ResponseWriter, *http.Request)) func(int, http.ResponseWriter, *http.Request) bool {
	return times(1<<30, is, f)
}

// partial begins a correct 206 and returns what its body has to be.
func (o *origin) partial(w http.ResponseWriter, r *http.Request) []byte {
	from, to := rangeOf(r)
	o.mu.Lock()
	defer o.mu.Unlock()
	w.Header().Set("ETag", o.etag)
	w.Header().Set("Last-Modified", o.modified.Format(http.TimeFormat))
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(o.data)))
	return o.data[from : to+1]
}

// hang sends the first bytes of a correct answer, and then nothing.
func (o *origin) hang(n int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		body := o.partial(w, r)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(body[:n])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

// breakOff sends the first bytes of a correct answer and closes the connection.
func (o *origin) breakOff(n int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		body := o.partial(w, r)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(body[:n])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func testClient(t testing.TB, change func(*Options)) *Client {
	t.Helper()
	o := Options{Connections: 3, Retries: 3, IdleTimeout: 5 * time.Second, SegmentSize: testSegment}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	return c
}

// drain downloads everything and returns it with the error that ended it.
func drain(t testing.TB, c *Client, o *origin, spool string) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	d, err := c.Download(ctx, o.release(), spool)
	if err != nil {
		return nil, err
	}
	got, err := io.ReadAll(d)
	if cerr := d.Close(); cerr != nil {
		t.Errorf("close: %v", cerr)
	}
	return got, err
}

// checkSpool fails when a whole segment in the spool is not of data.
func checkSpool(t testing.TB, dir string, data []byte, part int) (whole int) {
	t.Helper()
	for i := 0; i*part < len(data); i++ {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%04d", i)))
		if err != nil {
			continue
		}
		whole++
		if !bytes.Equal(b, data[i*part:min((i+1)*part, len(data))]) {
			t.Errorf("segment %d in the spool has wrong bytes", i)
		}
	}
	return whole
}
