package fetch

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

func TestGet(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("pinned"), 0o644))
	n := 0
	index := indexServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch n++; r.URL.Path {
		case "/tarball/lock":
			if n == 1 {
				w.WriteHeader(502)
				return
			}
			io.WriteString(w, "pinned")
		case "/tarball/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, "x")
		case "/tarball/away":
			http.Redirect(w, r, "https://evil.example/", http.StatusFound)
		default:
			w.WriteHeader(404)
		}
	})
	c := testClient(t, nil)
	for _, u := range []string{index + "lock", "file://" + dir + "/lock"} {
		if got, err := c.Get(t.Context(), u, 6); err != nil || string(got) != "pinned" {
			t.Errorf("%s: %q, %v", u, got, err)
		}
		if got, err := c.Get(t.Context(), u, 5); !isA[*SizeError](err) || got != nil {
			t.Errorf("%s, too large: %q, %v", u, got, err)
		}
	}
	for u, is := range map[string]func(error) bool{
		index + "gzip":               isA[*EncodingError],
		index + "away":               isA[*InsecureError],
		index + "none":               IsGone,
		"file://" + dir + "/none":    IsGone,
		"file://" + dir:              isA[*SizeError],
		"file:///dev/zero":           isA[*SizeError],
		"file://elsewhere/etc/hosts": isA[*InsecureError],
		"http://h.example/":          isA[*InsecureError],
		"lock.json":                  isA[*InsecureError],
		"http://me:s3cret@h%zz/":     isA[*InsecureError],
	} {
		if got, err := c.Get(t.Context(), u, 1<<20); !is(err) || got != nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %q, %v", u, got, err)
		}
	}
}

// TestStatOfWhatWasDeleted: a host says so with one of three statuses.
func TestStatOfWhatWasDeleted(t *testing.T) {
	for code, gone := range map[int]bool{403: true, 404: true, 410: true, 401: false, 400: false, 500: false} {
		n := 0
		rel := release.Release{Name: testName, URL: indexServer(t, func(w http.ResponseWriter, _ *http.Request) { n++; w.WriteHeader(code) }) + testName}
		_, err := testClient(t, func(o *Options) { o.Retries = -1 }).Stat(t.Context(), rel)
		if err == nil || IsGone(err) != gone || n > 2 {
			t.Errorf("%d: %v after %d requests", code, err, n)
		}
	}
	_, err := testClient(t, nil).Stat(t.Context(), release.Release{Name: testName, URL: "file://" + t.TempDir() + "/" + testName})
	if !IsGone(err) {
		t.Errorf("in a directory: %v", err)
	}
}
