package fetch

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// s3ETag makes the ETag that S3 gives to data uploaded in parts of so many bytes.
func s3ETag(data []byte, part int) string {
	var all []byte
	n := 0
	for chunk := range slices.Chunk(data, part) {
		sum := md5.Sum(chunk)
		all = append(all, sum[:]...)
		n++
	}
	sum := md5.Sum(all)
	return fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(sum[:]), n)
}

func plainETag(data []byte) string {
	sum := md5.Sum(data)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func TestETagSum(t *testing.T) {
	data := random(3, 21<<20+12345)
	for _, c := range []struct {
		etag, want string // "" is no match
	}{
		{plainETag(data), "S3 ETag (MD5)"},
		{plainETag(data)[1:33], "S3 ETag (MD5)"},
		{s3ETag(data, 8<<20), "S3 ETag (MD5 of 3 parts of 8 MiB)"},
		{s3ETag(data, 5<<20), "S3 ETag (MD5 of 5 parts of 5 MiB)"},
		{s3ETag(data, 16<<20), "S3 ETag (MD5 of 2 parts of 16 MiB)"},
		{s3ETag(data, 6<<20), "S3 ETag (MD5 of 4 parts of 6 MiB)"}, // even parts, in whole MiB
		{s3ETag(data, 3<<20), "S3 ETag (MD5 of 8 parts of 3 MiB)"},
		{s3ETag(data, 64<<20), "S3 ETag (MD5 of 1 part)"},
		{s3ETag(data, 8e6), ""}, // 8 and 10 MiB make three parts as well, and come first
		{s3ETag(data[1:], 8<<20), ""},
		{plainETag(data[1:]), ""},
		{s3ETag(data, 100000), ""},
	} {
		s := NewETagSum(int64(len(data)), c.etag)
		if s == nil || len(s.sums) > maxETagSums {
			t.Errorf("%s: %+v", c.etag, s)
			continue
		}
		if _, err := io.CopyBuffer(struct{ io.Writer }{s}, iotest.HalfReader(bytes.NewReader(data)), make([]byte, 1<<20+1)); err != nil {
			t.Fatal(err)
		}
		text, matched := s.Result()
		if c.want == "" && (matched || text != "S3 ETag could not be recomputed") || c.want != "" && (!matched || text != c.want) {
			t.Errorf("%s: %s, %v, want %s", c.etag, text, matched, c.want)
		}
	}
	for _, etag := range []string{"", `"66f9c1a2-1b0000"`, `W/` + plainETag(data), `"` + hexA + `"`, `"` + hexA[:31] + `"`, s3ETag(data, 8<<20)[:34] + `-0"`,
		s3ETag(data, 8<<20)[:34] + `-03"`, s3ETag(data, 8<<20)[:33] + `-10001"`, s3ETag(data, 8<<20)[:33] + `--3"`, `"v1"`, `"` + hexA[:32] + `-3-gzip"`} {
		if s := NewETagSum(int64(len(data)), etag); s != nil {
			t.Errorf("%s is taken for an ETag of S3", etag)
		}
	}
	if NewETagSum(0, plainETag(nil)) != nil {
		t.Error("an empty object")
	}
}

// TestPartSizes: of AMD's objects, and of the tools that upload mirrors.
func TestPartSizes(t *testing.T) {
	for _, c := range []struct {
		size int64
		n    int
		want []int64
	}{
		{1794376103, 14, []int64{128 * mib}},
		{1794376103, 214, []int64{8 * mib}},
		{1794376103, 225, []int64{8 * mb}},
		{15 * gib, 3, []int64{5 * gib}},
		{15*gib + 1, 4, []int64{5 * gib, 4 * gib}},
		{100, 1, []int64{100}},
		{25 * mib, 2, []int64{16 * mib, 15 * mib}},
		{25 * mib, 25, []int64{mib}},
		{100, 2, nil},
		{1 << 40, 9987, []int64{105 * mib}},
		{1 << 40, 10000, nil},
	} {
		if got := partSizes(c.size, c.n); !slices.Equal(got, c.want) {
			t.Errorf("%d in %d parts: %v", c.size, c.n, got)
		}
	}
}

func FuzzETagSum(f *testing.F) {
	f.Add(plainETag([]byte("x")), []byte("x"))
	f.Add(s3ETag([]byte("xyz"), 5<<20), []byte("xyz"))
	f.Add(`"66f9c1a2-1b0000"`, []byte("x"))
	f.Fuzz(func(t *testing.T, etag string, data []byte) {
		s := NewETagSum(int64(len(data)), etag)
		if s == nil {
			return
		}
		s.Write(data)
		if _, matched := s.Result(); matched && len(data) > 0 && s.want != plainETag(data)[1:33] && s.want != s3ETag(data, 5<<20)[1:35] {
			t.Errorf("%s matches %q", etag, data)
		}
	})
}

// TestChecked: what a download was checked against, once it is at its end.
func TestChecked(t *testing.T) {
	data := random(4, 6<<20+5)
	for name, c := range map[string]struct {
		etag   string
		ranges bool
		want   string
	}{
		"parts":     {s3ETag(data, 5<<20), true, "[length S3 ETag (MD5 of 2 parts of 5 MiB)]"},
		"whole":     {plainETag(data), true, "[length S3 ETag (MD5)]"},
		"one piece": {plainETag(data), false, "[length S3 ETag (MD5)]"},
		"of others": {plainETag(data[1:]), true, "[length]"},
		"weak":      {"W/" + plainETag(data), true, "[length]"},
		"nginx":     {`"66f9c1a2-1b0000"`, true, "[length]"},
		"none":      {"", true, "[length]"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigin(t, data)
			o.etag = c.etag
			if !c.ranges {
				o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
					r.Header.Del("Range")
					w.Header().Set("ETag", c.etag)
					w.Header().Set("Accept-Ranges", "none")
					w.Header().Set("Content-Length", fmt.Sprint(len(data)))
					w.Write(data)
					return true
				}
			}
			d, err := testClient(t, func(o *Options) { o.SegmentSize = 1 << 20 }).Download(t.Context(), o.release(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if _, err := io.CopyN(io.Discard, d, int64(len(data))); err != nil || d.Checked() != nil {
				t.Errorf("before the end: %v, %v", d.Checked(), err)
			}
			for range 2 {
				if _, err := d.Read(make([]byte, 1)); err != io.EOF || fmt.Sprint(d.Checked()) != c.want {
					t.Errorf("at the end: %v, %v, want %s", d.Checked(), err, c.want)
				}
			}
		})
	}
}

// TestCheckedAcrossRuns: bytes that an earlier run left are checked as well.
func TestCheckedAcrossRuns(t *testing.T) {
	data := random(4, 5*testSegment)
	o := newOrigin(t, data)
	o.etag = plainETag(data)
	dir := t.TempDir()
	for range 2 {
		d, err := testClient(t, nil).Download(t.Context(), o.release(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, d); err != nil || len(d.Checked()) != 2 {
			t.Errorf("%v, %v", d.Checked(), err)
		}
		must(t, d.Close())
	}
}

// TestCloseEndsTheCheck: of a download that was not read to its end.
func TestCloseEndsTheCheck(t *testing.T) {
	data := random(4, 5*testSegment)
	o := newOrigin(t, data)
	o.etag = plainETag(data)
	d, err := testClient(t, nil).Download(t.Context(), o.release(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, d, 1000); err != nil {
		t.Fatal(err)
	}
	stacks := func() string {
		buf := make([]byte, 1<<20)
		return string(buf[:runtime.Stack(buf, true)])
	}
	const worker = "(*etagCheck).start"
	if d.reader.etag == nil || len(d.reader.etag.in) != 1 {
		t.Error("nothing is checked")
	}
	must(t, d.Close())
	if strings.Contains(stacks(), worker) || d.Checked() != nil {
		t.Errorf("after Close: %v", d.Checked())
	}
}

// BenchmarkDownloadChecked is BenchmarkDownload with an ETag to recompute.
func BenchmarkDownloadChecked(b *testing.B) {
	const size = 256 << 20
	data := random(1, size)
	for name, etag := range map[string]string{"no MD5": `"v1"`, "one part size": plainETag(data), "two part sizes": s3ETag(data, 128<<20-1)} {
		b.Run(name, func(b *testing.B) {
			o := newOrigin(b, data)
			o.etag = etag
			b.SetBytes(size)
			for b.Loop() {
				d, err := testClient(b, func(o *Options) { o.SegmentSize = 0 }).Download(b.Context(), o.release(), b.TempDir())
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, d); err != nil {
					b.Fatal(err)
				}
				d.Close()
			}
		})
	}
}
