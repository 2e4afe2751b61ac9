package fetch

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// BenchmarkDownload compares a download, to disk and read back while it
// arrives, with a bare GET that keeps nothing.
func BenchmarkDownload(b *testing.B) {
	const size = 256 << 20
	data := random(1, size)
	o := newOrigin(b, data)
	b.Run("http.Get", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			resp, err := http.Get(o.url)
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			if resp.Body.Close(); err != nil || n != size {
				b.Fatalf("%d bytes, %v", n, err)
			}
		}
	})
	for _, connections := range []int{1, 4} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) {
			c := testClient(b, func(o *Options) { o.Connections, o.SegmentSize = connections, DefaultSegmentSize })
			buf := make([]byte, 1<<20)
			b.SetBytes(size)
			for b.Loop() {
				d, err := c.Download(b.Context(), o.release(), b.TempDir())
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.CopyBuffer(io.Discard, readOnce{d}, buf)
				if err != nil || n != size {
					b.Fatalf("%d bytes, %v", n, err)
				}
				if err := d.Discard(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPage reads a page as long as the longest of AMD's.
func BenchmarkPage(b *testing.B) {
	var list bytes.Buffer
	for i := range 4540 {
		fmt.Fprintf(&list, `{"name": "therock-dist-linux-gfx1151-10.2.0a%08d.tar.gz", "mtime": 1790737964.5}, `, 20260930+i)
	}
	body := []byte(page1("const files = [" + list.String() + one + "];"))
	base := mustURL(b, "https://h/d/")
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		p, err := parsePage(body, base, testNow)
		if err != nil || len(p.releases) != 4541 {
			b.Fatal(err)
		}
	}
}
