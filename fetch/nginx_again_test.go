package fetch

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// counted counts what comes back over a client's connections.
type counted struct {
	mu   sync.Mutex
	said []string // "status bytes" of each answer, in order
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	at := len(c.said)
	c.said = append(c.said, "")
	c.mu.Unlock()
	resp.Body = &countedBody{ReadCloser: resp.Body, done: func(n int) {
		c.mu.Lock()
		c.said[at] = fmt.Sprint(resp.StatusCode, " ", n)
		c.mu.Unlock()
	}}
	return resp, nil
}

type countedBody struct {
	io.ReadCloser
	n    int
	done func(n int)
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.n += n
	return n, err
}

func (b *countedBody) Close() error {
	b.done(b.n)
	return b.ReadCloser.Close()
}

// Who looks every hour costs a real server a few bytes: the second look of another
// process is answered without a page, be it AMD's page or the listing of a bucket.
// What changes is seen.
func TestLookingAgainIsCheapForNginx(t *testing.T) {
	const page = `<html><script>const files = [{"name":"therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz","mtime":1790000000}];</script></html>`
	const bucket = `<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz</Key><Size>7</Size><LastModified>2026-09-30T03:00:00.000Z</LastModified></Contents></ListBucketResult>`
	dir, err := os.MkdirTemp("", "again") // TempDir's parents may be closed to nginx's user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	url := startNginx(t, dir, "html")
	for name, body := range map[string]string{"page": page, "bucket": bucket} {
		t.Run(name, func(t *testing.T) {
			index := filepath.Join(dir, name, "index.html")
			if err := os.MkdirAll(filepath.Dir(index), 0o755); err != nil {
				t.Fatal(err)
			}
			old := time.Now().Add(-time.Hour)
			if err := os.WriteFile(index, []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(index, old, old); err != nil {
				t.Fatal(err)
			}
			cache := t.TempDir()
			list := func(unchanged bool, want string) {
				t.Helper()
				var c counted
				client := testClient(t, func(o *Options) { o.CacheDir, o.HTTP = cache, &http.Client{Transport: &c} })
				l, err := client.List(t.Context(), "nightly", Sources(url+name+"/"))
				if err != nil || len(l.Releases) != 1 || l.Sources[0].Unchanged != unchanged {
					t.Fatalf("%+v, %v", l, err)
				}
				if got := fmt.Sprint(c.said); got != want {
					t.Errorf("the server said %s, want %s", got, want)
				}
			}
			list(false, fmt.Sprintf("[200 %d]", len(body)))
			list(true, "[304 0]")
			list(true, "[304 0]")
			if err := os.WriteFile(index, []byte(body+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			list(false, fmt.Sprintf("[200 %d]", len(body)+1))
		})
	}
}

// ForgetPages takes its own files, and leaves others.
func TestForgetPages(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "indexes")
	if err := ForgetPages(cache); err != nil {
		t.Error(err)
	}
	e := &editable{body: oneNight, etag: `"1"`}
	index := indexServer(t, e.ServeHTTP)
	if _, _, err := cached(t, cache, index, time.Now()); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(cache, "notes")
	if err := os.WriteFile(own, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := ForgetPages(cache); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	if err := ForgetPages(cache); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(cache); !os.IsNotExist(err) {
		t.Error(err)
	}
}
