package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// A download is whole on disk once it was read to its end, and not before, nor
// when something of it is missing.
func TestFindWhole(t *testing.T) {
	dir := t.TempDir()
	served := filepath.Join(t.TempDir(), "x.tar.gz")
	data := append([]byte(gzipMagic), make([]byte, 300<<10)...)
	if err := os.WriteFile(served, data, 0o644); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 9, 30, 6, 0, 0, 0, time.UTC)
	if err := os.Chtimes(served, at, at); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"one"`)
		http.ServeFile(w, r, served)
	}))
	defer server.Close()
	c, err := New(Options{SegmentSize: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if w := FindWhole(filepath.Join(dir, "none")); w != nil {
		t.Errorf("%+v", w)
	}
	dl, err := c.Download(context.Background(), release.Release{Name: "x.tar.gz", URL: server.URL + "/x.tar.gz"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, dl)
	if err := errors.Join(err, dl.Close()); err != nil {
		t.Fatal(err)
	}
	w := FindWhole(dir)
	if w == nil || w.Size != int64(len(data)) || w.PartSize != 64<<10 || w.PartSize != dl.PartSize() || w.ETag != `"one"` || !w.LastModified.Equal(at) || w.Dir != dir {
		t.Fatalf("%+v", w)
	}
	for _, spoil := range []func(string) error{
		func(p string) error { return os.Truncate(p, 5) },
		func(p string) error { return errors.Join(os.Remove(p), os.Symlink("0000", p)) },
		os.Remove,
		func(string) error {
			return os.WriteFile(filepath.Join(dir, stateName), []byte(`{"schema":1,"size":-1,"part_size":0}`), 0o644)
		},
		func(string) error {
			return os.WriteFile(filepath.Join(dir, stateName), []byte(`{"schema":1,"size":9223372036854775807,"part_size":1}`), 0o644)
		},
		func(string) error { return os.Remove(filepath.Join(dir, stateName)) },
	} {
		if err := spoil(filepath.Join(dir, "0002")); err != nil {
			t.Fatal(err)
		}
		if w := FindWhole(dir); w != nil {
			t.Errorf("%+v", w)
		}
	}
}
