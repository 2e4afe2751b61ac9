package fetch

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// interrupt downloads until the segment at from is asked for, then closes.
func interrupt(t *testing.T, o *origin, dir string, from int) {
	t.Helper()
	asked := make(chan struct{})
	var once sync.Once
	o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if at, _ := rangeOf(r); at != from || !isSegment(r) {
			return false
		}
		once.Do(func() { close(asked) })
		o.hang(100)(w, r)
		return true
	}
	d, err := testClient(t, func(o *Options) { o.Connections = 1 }).Download(t.Context(), o.release(), dir)
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Read(make([]byte, 1)); !errors.Is(err, errClosed) {
		t.Errorf("read after close: %v", err)
	}
	o.heal()
	o.mu.Lock()
	o.log = nil
	o.mu.Unlock()
}

func TestResume(t *testing.T) {
	data, other := random(1, 4*testSegment+9), random(2, 4*testSegment+9)
	for name, c := range map[string]struct {
		between func(t *testing.T, o *origin, dir string)
		resumed int64
		gets    int
	}{
		"the same object": {func(*testing.T, *origin, string) {}, 3 * testSegment, 2},
		"what a killed process leaves": {func(t *testing.T, _ *origin, dir string) {
			for _, name := range []string{"0003.part", "0004.part", ".state.json123"} {
				if err := os.WriteFile(filepath.Join(dir, name), other[:testSegment], 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}, 3 * testSegment, 2},
		"another ETag":                    {func(_ *testing.T, o *origin, _ string) { o.replace(other, `"v2"`) }, 0, 5},
		"weak ETag, same date":            {func(_ *testing.T, o *origin, _ string) { o.etag = `W/"v1"` }, 0, 5},
		"a segment cut short":             {func(t *testing.T, _ *origin, dir string) { truncate(t, dir, "0001", 5) }, 2 * testSegment, 3},
		"a segment too long":              {func(t *testing.T, _ *origin, dir string) { truncate(t, dir, "0001", testSegment+1) }, 2 * testSegment, 3},
		"a symlink in place of a segment": {func(t *testing.T, _ *origin, dir string) { relink(t, dir, "0001") }, 2 * testSegment, 3},
		"damaged state":                   {func(t *testing.T, _ *origin, dir string) { truncate(t, dir, stateName, 10) }, 0, 5},
		"state of part size 0": {func(t *testing.T, _ *origin, dir string) {
			rewrite(t, dir, `"part_size": 65536`, `"part_size": 0`)
		}, 0, 5},
		"state of another URL": {func(t *testing.T, _ *origin, dir string) { rewrite(t, dir, "/therock", "/xherock") }, 0, 5},
		"segments of another name": {func(t *testing.T, _ *origin, dir string) {
			for _, name := range []string{"00001", "00003", "9999", "99999999999999999999999"} {
				if err := os.WriteFile(filepath.Join(dir, name), other[:testSegment], 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}, 3 * testSegment, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrigin(t, data)
			dir := t.TempDir()
			interrupt(t, o, dir, 3*testSegment)
			c.between(t, o, dir)
			// The size of segments is the spool's, not the option's.
			d, err := testClient(t, func(o *Options) {
				if c.resumed > 0 {
					o.SegmentSize = 1000
				}
			}).DownloadIf(t.Context(), o.release(), dir, func(a Ahead) error {
				if a.Kept != c.resumed || a.Size != int64(len(o.data)) {
					t.Errorf("before: %+v, want %d kept", a, c.resumed)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if d.Resumed() != c.resumed {
				t.Errorf("resumed %d, want %d", d.Resumed(), c.resumed)
			}
			got, err := io.ReadAll(d)
			if err != nil || !bytes.Equal(got, o.data) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if n := o.requests("GET"); n != c.gets {
				t.Errorf("%d requests for content, want %d: %q", n, c.gets, o.log)
			}
			checkSpool(t, dir, o.data, testSegment)
		})
	}
}

// TestPartsOfAnySize: state.json may have been damaged, and an option may mean
// "in one piece".
func TestPartsOfAnySize(t *testing.T) {
	const most = "9223372036854775807"
	data := random(1, 4*testSegment+9)
	o := newOrigin(t, data)
	dir := t.TempDir()
	interrupt(t, o, dir, 3*testSegment)
	rewrite(t, dir, `"part_size": 65536`, `"part_size": `+most)
	for _, dir := range []string{dir, t.TempDir()} {
		client := testClient(t, func(o *Options) { o.SegmentSize = math.MaxInt64 })
		if got, err := drain(t, client, o, dir); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		checkSpool(t, dir, data, len(data))
	}
}

// TestResumeWithoutRanges: what a server sent in parts, it may send as a whole
// only when it is asked again.
func TestResumeWithoutRanges(t *testing.T) {
	data := random(1, 4*testSegment+9)
	o := newOrigin(t, data)
	dir := t.TempDir()
	interrupt(t, o, dir, 3*testSegment)
	o.breakWith(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Accept-Ranges", "none")
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		if r.Method == http.MethodGet {
			w.Write(data)
		}
		return true
	})
	if got, err := drain(t, testClient(t, nil), o, dir); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	checkSpool(t, dir, data, len(data))
}

func truncate(t *testing.T, dir, name string, size int64) {
	t.Helper()
	if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
		t.Fatal(err)
	}
}

func relink(t *testing.T, dir, name string) {
	t.Helper()
	aside := filepath.Join(t.TempDir(), "aside")
	if err := errors.Join(os.Rename(filepath.Join(dir, name), aside), os.Symlink(aside, filepath.Join(dir, name))); err != nil {
		t.Fatal(err)
	}
}

func rewrite(t *testing.T, dir, from, to string) {
	t.Helper()
	p := filepath.Join(dir, stateName)
	b, err := os.ReadFile(p)
	if err != nil || !strings.Contains(string(b), from) {
		t.Fatalf("state %q, %v", b, err)
	}
	if err := os.WriteFile(p, []byte(strings.Replace(string(b), from, to, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestResumeByDate: without a strong ETag, date and size identify the object.
func TestResumeByDate(t *testing.T) {
	for _, etag := range []string{"", `W/"v1"`} {
		o := newOrigin(t, random(1, 4*testSegment))
		o.etag = etag
		dir := t.TempDir()
		interrupt(t, o, dir, 2*testSegment)
		d, err := testClient(t, nil).Download(t.Context(), o.release(), dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(d)
		if d.Close(); err != nil || !bytes.Equal(got, o.data) || d.Resumed() != 2*testSegment {
			t.Errorf("ETag %q: %d bytes, resumed %d, %v", etag, len(got), d.Resumed(), err)
		}
		interrupt(t, o, t.TempDir(), 2*testSegment)
		o.replace(random(2, 4*testSegment), etag)
		got, err = drain(t, testClient(t, nil), o, dir)
		if err != nil || !bytes.Equal(got, o.data) {
			t.Errorf("ETag %q, replaced: %d bytes, %v", etag, len(got), err)
		}
	}
}

// TestWholeSpoolNeedsNoContent: a second run only asks whether it is the same.
func TestWholeSpoolNeedsNoContent(t *testing.T) {
	o := newOrigin(t, random(1, 3*testSegment))
	dir := t.TempDir()
	for range 2 {
		got, err := drain(t, testClient(t, nil), o, dir)
		if err != nil || !bytes.Equal(got, o.data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	if n := o.requests("GET"); n != 3 {
		t.Errorf("%d requests for content, want 3", n)
	}
}
