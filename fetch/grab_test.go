package fetch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tests in this file hold the guards against what grab v3.0.1 does
// silently when it is left alone with a server.

// TestGrabReplacedBetweenAttempts: grab resumes without If-Range and joins
// the tail of a new file to the head of the old one.
func TestGrabReplacedBetweenAttempts(t *testing.T) {
	for name, honest := range map[string]bool{"server that honours If-Range": true, "server that ignores it": false} {
		t.Run(name, func(t *testing.T) {
			data, other := random(1, testSegment), random(2, testSegment)
			o := newOrigin(t, data)
			n := 0
			o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
				if !isSegment(r) {
					return false
				}
				if n++; n == 1 {
					o.breakOff(1000)(w, r)
				}
				o.replace(other, `"v2"`)
				if !honest {
					r.Header.Del("If-Range")
				}
				return false
			}
			got, err := drain(t, testClient(t, nil), o, t.TempDir())
			if _, ok := errors.AsType[*ChangedError](err); !ok {
				t.Errorf("error %v, want a ChangedError", err)
			}
			if !bytes.HasPrefix(data, got) {
				t.Error("bytes of two files were joined")
			}
		})
	}
}

// TestGrabRangeIgnoredOnResume: grab appends a whole body to a partial file.
func TestGrabRangeIgnoredOnResume(t *testing.T) {
	data := random(1, testSegment)
	o := newOrigin(t, data)
	n := 0
	o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if !isSegment(r) {
			return false
		}
		if n++; n == 1 {
			o.breakOff(1000)(w, r)
		}
		r.Header.Del("Range")
		return false
	}
	got, err := drain(t, testClient(t, nil), o, t.TempDir())
	if _, ok := errors.AsType[*RangeError](err); !ok {
		t.Errorf("error %v, want a RangeError", err)
	}
	if n != 2 {
		t.Errorf("%d requests, want 2: it is of no use to ask again", n)
	}
	if !bytes.HasPrefix(data, got) {
		t.Error("wrong bytes were delivered")
	}
}

// TestGrabTwoBrokenAttempts: with a Request used twice, grab sends an old
// Range and writes the tail of the file at its start. The requests that the
// origin sees show that each attempt continues where the last one ended.
func TestGrabTwoBrokenAttempts(t *testing.T) {
	data := random(1, testSegment)
	o := newOrigin(t, data)
	breakOff := times(2, isSegment, o.breakOff(1000))
	o.fault = func(n int, w http.ResponseWriter, r *http.Request) bool {
		if isSegment(r) && r.Header.Get("If-Range") != o.etag {
			t.Errorf("If-Range is %q", r.Header.Get("If-Range"))
		}
		return breakOff(n, w, r)
	}
	got, err := drain(t, testClient(t, nil), o, t.TempDir())
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	want := []string{"HEAD ", "GET bytes=0-65535", "GET bytes=1000-65535", "GET bytes=2000-65535"}
	if fmt.Sprint(o.log) != fmt.Sprint(want) {
		t.Errorf("requests %q, want %q", o.log, want)
	}
}

// TestGrabPartLostAfterABrokenResume: the Range of a resumed attempt must not
// be sent by the next one, which begins anew.
func TestGrabPartLostAfterABrokenResume(t *testing.T) {
	data := random(1, testSegment)
	o := newOrigin(t, data)
	dir := t.TempDir()
	breakOff := o.breakOff(1000)
	o.fault = times(2, isSegment, func(w http.ResponseWriter, r *http.Request) {
		if from, _ := rangeOf(r); from > 0 {
			if err := os.Remove(filepath.Join(dir, "0000.part")); err != nil {
				t.Error(err)
			}
			w.WriteHeader(500)
			return
		}
		breakOff(w, r)
	})
	got, err := drain(t, testClient(t, nil), o, dir)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	want := []string{"HEAD ", "GET bytes=0-65535", "GET bytes=1000-65535", "GET bytes=0-65535"}
	if fmt.Sprint(o.log) != fmt.Sprint(want) {
		t.Errorf("requests %q, want %q", o.log, want)
	}
}

// TestGrabContentEncoding: with a transport that asks for gzip by itself, a
// .tar.gz is inflated on its way to disk.
func TestGrabContentEncoding(t *testing.T) {
	data := random(1, 2*testSegment)
	for _, ranges := range []string{"bytes", "none"} {
		o := newOrigin(t, data)
		o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("ETag", o.etag)
			w.Header().Set("Accept-Ranges", ranges)
			if r.Method == http.MethodHead || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				if ranges == "none" {
					w.Header().Set("Content-Length", fmt.Sprint(len(data)))
					w.Write(data)
				}
				return ranges == "none"
			}
			w.Header().Set("Content-Encoding", "gzip")
			zw := gzip.NewWriter(w)
			zw.Write(data)
			zw.Close()
			return true
		}
		// The client of a caller who knows nothing of this.
		c := testClient(t, func(o *Options) { o.HTTP = &http.Client{Transport: &http.Transport{}} })
		got, err := drain(t, c, o, t.TempDir())
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("ranges %s: %d bytes, %v", ranges, len(got), err)
		}
	}
}

// TestGrabFileOfEqualSize: grab takes any file of the right size for the
// finished one.
func TestGrabFileOfEqualSize(t *testing.T) {
	data, other := random(1, 2*testSegment), random(2, testSegment)
	t.Run("from an earlier run", func(t *testing.T) {
		o := newOrigin(t, data)
		dir := t.TempDir()
		if _, err := drain(t, testClient(t, nil), o, dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "0001")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "0001.part"), other, 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := drain(t, testClient(t, nil), o, dir)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
	t.Run("between two attempts", func(t *testing.T) {
		o := newOrigin(t, data)
		dir := t.TempDir()
		o.fault = once(isSegment, func(w http.ResponseWriter, r *http.Request) {
			if err := os.WriteFile(filepath.Join(dir, "0000.part"), other, 0o644); err != nil {
				t.Error(err)
			}
			status(500)(w, r)
		})
		got, err := drain(t, testClient(t, func(o *Options) { o.Connections = 1 }), o, dir)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

// TestGrabTimesAndNames: grab sets the file's time from the server's and
// writes under the final name; a segment has its name only once it is synced.
func TestGrabTimesAndNames(t *testing.T) {
	data := random(1, testSegment)
	o := newOrigin(t, data)
	dir := t.TempDir()
	d, err := testClient(t, nil).Download(t.Context(), o.release(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	buf := make([]byte, len(data)+1)
	for {
		_, err := os.Stat(filepath.Join(dir, "0000"))
		_, perr := os.Stat(filepath.Join(dir, "0000.part"))
		if err == nil && perr == nil {
			t.Error("a segment has both names")
		}
		if n, err := d.Read(buf); n == 0 {
			if err.Error() != "EOF" {
				t.Fatal(err)
			}
			break
		}
	}
	fi, err := os.Stat(filepath.Join(dir, "0000"))
	if err != nil || fi.Size() != int64(len(data)) || fi.ModTime().Equal(o.modified) {
		t.Errorf("after the end: %v, %v", fi, err)
	}
}
