package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

func TestDownloadOfEverySize(t *testing.T) {
	const part = 4 << 10
	for _, size := range []int{2, 3, part - 1, part, part + 1, 3*part + 7} {
		for _, connections := range []int{1, 4} {
			t.Run(fmt.Sprintf("%d bytes, %d connections", size, connections), func(t *testing.T) {
				data := random(uint64(size), size)
				o := newOrigin(t, data)
				d, err := testClient(t, func(o *Options) { o.Connections, o.SegmentSize = connections, part }).Download(t.Context(), o.release(), t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				if d.Size() != int64(size) || d.ETag() != `"v1"` || !d.LastModified().Equal(o.modified) || d.Resumed() != 0 {
					t.Errorf("%d bytes, ETag %s, modified %s, resumed %d", d.Size(), d.ETag(), d.LastModified(), d.Resumed())
				}
				if err := iotest.TestReader(readOnce{d}, data); err != nil && !strings.Contains(err.Error(), "ReadByte") {
					t.Error(err)
				}
			})
		}
	}
}

// readOnce hides everything but Read.
type readOnce struct{ io.Reader }

// TestFirstByteBeforeTheLast: the stream is readable while segments arrive.
func TestFirstByteBeforeTheLast(t *testing.T) {
	data := random(1, 3*testSegment)
	o := newOrigin(t, data)
	read := make(chan struct{})
	o.fault = func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		if from, _ := rangeOf(r); from == 2*testSegment {
			<-read
		}
		return false
	}
	d, err := testClient(t, nil).Download(t.Context(), o.release(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	head := make([]byte, testSegment+1)
	if _, err := io.ReadFull(d, head); err != nil {
		t.Fatal(err)
	}
	close(read)
	tail, err := io.ReadAll(d)
	if err != nil || !bytes.Equal(append(head, tail...), data) {
		t.Errorf("%d bytes after the first, %v", len(tail), err)
	}
}

// TestHalfASegmentIsReadable: not only whole segments are.
func TestHalfASegmentIsReadable(t *testing.T) {
	data := random(1, testSegment)
	o := newOrigin(t, data)
	o.fault = once(isSegment, o.hang(1000))
	d, err := testClient(t, func(o *Options) { o.IdleTimeout = 300 * time.Millisecond }).Download(t.Context(), o.release(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	head := make([]byte, 1000)
	if _, err := io.ReadFull(d, head); err != nil {
		t.Fatal(err)
	}
	tail, err := io.ReadAll(d)
	if err != nil || !bytes.Equal(append(head, tail...), data) {
		t.Errorf("%d bytes after the first 1000, %v", len(tail), err)
	}
}

func TestServerWithoutRanges(t *testing.T) {
	data := random(1, 3*testSegment)
	whole := func(o *origin) func(int, http.ResponseWriter, *http.Request) bool {
		return func(_ int, w http.ResponseWriter, r *http.Request) bool {
			if o.etag != "" {
				w.Header().Set("ETag", o.etag)
			}
			w.Header().Set("Accept-Ranges", "none")
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			if r.Method == http.MethodGet {
				w.Write(data)
			}
			return true
		}
	}
	breaking := func(o *origin, n int) {
		fault := whole(o)
		o.fault = func(i int, w http.ResponseWriter, r *http.Request) bool {
			if i == 2 {
				w.Header().Set("ETag", o.etag)
				w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				w.Write(data[:n])
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
			return fault(i, w, r)
		}
	}
	t.Run("plain", func(t *testing.T) {
		o := newOrigin(t, data)
		o.fault = whole(o)
		dir := t.TempDir()
		got, err := drain(t, testClient(t, nil), o, dir)
		if err != nil || !bytes.Equal(got, data) || checkSpool(t, dir, data, len(data)) != 1 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
	t.Run("breaks off and begins anew", func(t *testing.T) {
		o := newOrigin(t, data)
		breaking(o, 2*testSegment)
		got, err := drain(t, testClient(t, nil), o, t.TempDir())
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
	t.Run("breaks off without a way to identify it", func(t *testing.T) {
		o := newOrigin(t, data)
		o.etag = ""
		fault := whole(o)
		read := make(chan struct{})
		o.fault = func(i int, w http.ResponseWriter, r *http.Request) bool {
			if i == 2 {
				w.Header().Set("Content-Length", fmt.Sprint(len(data)))
				w.Write(data[:1000])
				w.(http.Flusher).Flush()
				<-read
				panic(http.ErrAbortHandler)
			}
			return fault(i, w, r)
		}
		d, err := testClient(t, nil).Download(t.Context(), o.release(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if _, err := io.ReadFull(d, make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		close(read)
		if _, err := io.ReadAll(d); !isA[*RangeError](err) || !strings.Contains(err.Error(), "no ETag") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("another length than it said", func(t *testing.T) {
		o := newOrigin(t, data)
		fault := whole(o)
		o.fault = func(i int, w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				w.Header().Set("ETag", o.etag)
				w.Write(data[:100])
				return true
			}
			return fault(i, w, r)
		}
		if _, err := drain(t, testClient(t, nil), o, t.TempDir()); !isA[*RangeError](err) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("ranges of an object without identity are not used", func(t *testing.T) {
		o := newOrigin(t, data)
		o.etag, o.modified = "", time.Time{}
		got, err := drain(t, testClient(t, nil), o, t.TempDir())
		if err != nil || !bytes.Equal(got, data) || o.requests("GET ") != 1 || o.requests("GET bytes") != 0 {
			t.Errorf("%d bytes, %v, requests %q", len(got), err, o.log)
		}
	})
}

func TestContextEndsADownload(t *testing.T) {
	o := newOrigin(t, random(1, 2*testSegment))
	o.fault = always(isSegment, o.hang(100))
	ctx, cancel := context.WithCancel(t.Context())
	d, err := testClient(t, nil).Download(ctx, o.release(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := io.ReadFull(d, make([]byte, 50)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(d); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted; 0 of 2 segments are kept") {
		t.Errorf("error %v", err)
	}
}

// TestCloseLeavesNoGoroutine: in every state of a download.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	o := newOrigin(t, random(1, 6*testSegment))
	asked := make(chan struct{}, 100)
	o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if from, _ := rangeOf(r); from < 2*testSegment || !isSegment(r) {
			return false
		}
		asked <- struct{}{}
		o.hang(10)(w, r)
		return true
	}
	d, err := testClient(t, nil).Download(t.Context(), o.release(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	blocked := make(chan error)
	go func() { _, err := io.Copy(io.Discard, d); blocked <- err }()
	<-asked
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-blocked; !errors.Is(err, errClosed) && !isA[*DownloadError](err) {
		t.Errorf("the blocked read returned %v", err)
	}
	// grab's last goroutine ends just after it says that it has; a worker of
	// ours would not end at all.
	deadline := time.Now().Add(5 * time.Second)
	for left := goroutines(); left != ""; left = goroutines() {
		if time.Now().After(deadline) {
			t.Fatalf("left behind:\n%s", left)
		}
		runtime.Gosched()
	}
}

// goroutines returns the stacks of goroutines that a download started.
func goroutines() string {
	var b bytes.Buffer
	pprof.Lookup("goroutine").WriteTo(&b, 1)
	var left []string
	for _, stack := range strings.Split(b.String(), "\n\n") {
		for _, ours := range []string{"fetch.(*Download)", "fetch.(*attempt)", "grab/v3", "persistConn"} {
			if strings.Contains(stack, ours) {
				left = append(left, stack)
				break
			}
		}
	}
	return strings.Join(left, "\n\n")
}

func TestDiscard(t *testing.T) {
	o := newOrigin(t, random(1, 2*testSegment))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := testClient(t, nil).Download(t.Context(), o.release(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(d); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Discard(), d.Discard()); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "notes" {
		t.Errorf("left %v, %v", entries, err)
	}
}

// TestSpoolOfNoTarballIsCleared: a login page must not be kept as a segment.
func TestSpoolOfNoTarballIsCleared(t *testing.T) {
	o := newOrigin(t, []byte(strings.Repeat("<html>not a tarball</html>", 10000)))
	dir := t.TempDir()
	got, err := drain(t, testClient(t, nil), o, dir)
	if !isA[*NotArchiveError](err) || len(got) != 0 || !strings.Contains(err.Error(), "application/gzip") {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if n := len(strings.Split(err.Error(), "<html>")); n > 5 {
		t.Errorf("the error shows too much: %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}

func TestSpoolIsUsedOnce(t *testing.T) {
	o := newOrigin(t, random(1, testSegment))
	dir := t.TempDir()
	d, err := testClient(t, nil).Download(t.Context(), o.release(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := testClient(t, nil).Download(t.Context(), o.release(), dir); err == nil || !strings.Contains(err.Error(), "another download is using it") {
		t.Errorf("second download: %v", err)
	}
}

func TestDirectoryThatIsNoSpool(t *testing.T) {
	o := newOrigin(t, random(1, testSegment))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "2026"), []byte("a diary"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := drain(t, testClient(t, nil), o, dir); !errors.Is(err, errNotSpool) {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "2026")); err != nil || string(b) != "a diary" {
		t.Errorf("the diary is %q, %v", b, err)
	}
}

func TestRateLimit(t *testing.T) {
	data := random(1, 4*testSegment)
	o := newOrigin(t, data)
	begin := time.Now()
	got, err := drain(t, testClient(t, func(o *Options) { o.RateLimit = 512 << 10 }), o, t.TempDir())
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if took := time.Since(begin); took < 450*time.Millisecond {
		t.Errorf("256 KiB at 512 KiB/s took %s", took)
	}
}

func TestEvents(t *testing.T) {
	data := random(1, 8*testSegment)
	o := newOrigin(t, data)
	o.fault = once(isSegment, status(500))
	var mu sync.Mutex
	var events []Event
	begin := time.Now()
	c := testClient(t, func(o *Options) {
		o.RateLimit = 2 << 20
		o.Event = func(e Event) { mu.Lock(); events = append(events, e); mu.Unlock() }
	})
	if _, err := drain(t, c, o, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	kinds := map[string]int{}
	var last int64
	for _, e := range events {
		kinds[e.Kind]++
		if e.Release != testName || e.Total != int64(len(data)) || e.Done < last {
			t.Errorf("event %+v after %d bytes", e, last)
		}
		last = e.Done
	}
	if last != int64(len(data)) || kinds[EventStart] != 1 || kinds[EventDone] != 1 || kinds[EventRetry] != 1 || kinds[EventProgress] < 2 {
		t.Errorf("%d bytes, events %v", last, kinds)
	}
	if most := int(took/progressEvery) + 2; kinds[EventProgress] > most {
		t.Errorf("%d events of progress in %s", kinds[EventProgress], took)
	}
}

func TestDownloadRefusesURLs(t *testing.T) {
	for _, u := range []string{"file:///etc/passwd", "http://mirror.example/x.tar.gz", "https:///x", "", "https://h/%zz"} {
		o := &origin{url: u}
		if _, err := drain(t, testClient(t, nil), o, t.TempDir()); !isA[*InsecureError](err) {
			t.Errorf("%q: %v", u, err)
		}
	}
}
