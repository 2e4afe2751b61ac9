package unpack

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// by runs a compressor of the system over in.
func by(t testing.TB, in []byte, name string, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed (Debian packages xz-utils, zstd)", name)
	}
	var out, complaint bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &complaint
	if err := cmd.Run(); err != nil {
		t.Fatal(name, args, err, complaint.String())
	}
	return out.Bytes()
}

func zstdBy(t testing.TB, in []byte, args ...string) []byte {
	return by(t, in, "zstd", append([]string{"-q", "-c"}, args...)...)
}

func xzBy(t testing.TB, in []byte, args ...string) []byte {
	return by(t, in, "xz", append([]string{"-q", "-c"}, args...)...)
}

// varied is content of n bytes with matches near and far, runs and noise.
func varied(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 0, n+1000)
	for len(b) < n {
		switch r.IntN(4) {
		case 0:
			for range r.IntN(300) {
				b = append(b, byte(r.Uint32()))
			}
		case 1:
			b = append(b, bytes.Repeat([]byte{byte(r.IntN(3))}, r.IntN(600))...)
		case 2:
			b = fmt.Appendf(b, "line %d of a file of text\n", r.IntN(1000))
		default:
			if len(b) > 0 {
				from := r.IntN(len(b))
				b = append(b, b[from:min(len(b), from+r.IntN(500))]...)
			}
		}
	}
	return string(b[:n])
}

// A format is one way to compress a tar; the checks are those that it must prove.
type packing struct {
	name   string
	pack   func(testing.TB, []byte) []byte
	checks []string
}

func packings() []packing {
	gz, zst, xz, end := "gzip checksum", "zstd checksum", "xz checksum", "end of archive"
	zstd := func(args ...string) func(testing.TB, []byte) []byte {
		return func(t testing.TB, raw []byte) []byte { return zstdBy(t, raw, args...) }
	}
	xzBy := func(args ...string) func(testing.TB, []byte) []byte {
		return func(t testing.TB, raw []byte) []byte { return xzBy(t, raw, args...) }
	}
	return []packing{
		{"gzip", func(t testing.TB, raw []byte) []byte { return zip(t, raw) }, []string{gz, end}},
		{"tar", func(_ testing.TB, raw []byte) []byte { return raw }, []string{end}},
		{"zstd", zstd(), []string{zst, end}},
		{"zstd -1", zstd("-1"), []string{zst, end}},
		{"zstd --no-check", zstd("--no-check"), []string{end}},
		{"xz", xzBy(), []string{xz, end}},
		{"xz -0", xzBy("-0"), []string{xz, end}},
		{"xz small dictionary", xzBy("--lzma2=dict=4KiB,lc=0,lp=4,pb=0"), []string{xz, end}},
		{"xz crc32", xzBy("--check=crc32"), []string{xz, end}},
		{"xz sha256", xzBy("--check=sha256"), []string{xz, end}},
		{"xz none", xzBy("--check=none"), []string{end}},
		{"xz x86", xzBy("--x86", "--lzma2"), []string{xz, end}},
		{"xz blocks", xzBy("-T2", "--block-size=100000"), []string{xz, end}},
		{"zstd of two frames", func(t testing.TB, raw []byte) []byte {
			return slices.Concat([]byte("\x53\x2a\x4d\x18\x03\x00\x00\x00abc"), zstdBy(t, raw[:700]), []byte("\x50\x2a\x4d\x18\x00\x00\x00\x00"), zstdBy(t, raw[700:]))
		}, []string{zst, end}},
		{"xz of two streams", func(t testing.TB, raw []byte) []byte {
			return slices.Concat(xzBy()(t, raw[:700]), make([]byte, 8), xzBy("--check=sha256")(t, raw[700:]))
		}, []string{xz, end}},
	}
}

func TestFormats(t *testing.T) {
	raw := rawTar(t, append(amdLike(), entry{name: "./varied", body: varied(1 << 20)}, entry{name: "./late", body: "late"})...)
	want, _, err := untar(t, zip(t, raw), Options{})
	if err != nil {
		t.Fatal(err)
	}
	slow := []packing{
		{"zstd --long", func(t testing.TB, raw []byte) []byte { return zstdBy(t, raw, "--long=27") }, []string{"zstd checksum", "end of archive"}},
		// With small tables, that take less to clear: the window is as it is without.
		{"zstd --ultra -22", func(t testing.TB, raw []byte) []byte {
			return zstdBy(t, raw, "--ultra", "-22", "--zstd=hlog=17,clog=17")
		}, []string{"zstd checksum", "end of archive"}},
		{"xz -9e", func(t testing.TB, raw []byte) []byte { return xzBy(t, raw, "-9e") }, []string{"xz checksum", "end of archive"}},
	}
	for _, p := range append(packings(), slow...) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			in := p.pack(t, raw)
			res, _, err := untar(t, in, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(res.Checks, p.checks) {
				t.Errorf("checks %q", res.Checks)
			}
			if res.Checks, res.Decompressor = want.Checks, want.Decompressor; !reflect.DeepEqual(res, want) {
				t.Error("another tree")
			}
			c, err := Check(context.Background(), bytes.NewReader(in), Options{})
			if err != nil || !slices.Equal(c.Checks, p.checks) || c.Bytes != int64(len(raw)) {
				t.Errorf("Check: %+v, %v", c, err)
			}
		})
	}
}

// What is cut anywhere, has something behind it, or is read to less than its
// end is noticed in each format.
func TestEndOfEachFormat(t *testing.T) {
	raw := rawTar(t, entry{name: "./a", body: varied(5000)}, entry{name: "./b", body: "b"})
	for _, p := range packings() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			whole := p.pack(t, raw)
			for n := 0; n < len(whole); n++ {
				if n > 30 && n < len(whole)-30 && n%97 != 0 {
					continue
				}
				_, err := Check(context.Background(), bytes.NewReader(whole[:n]), Options{})
				switch {
				case p.name == "tar" && n >= len(whole)-512 && err == nil:
					// the second block of zeros may lack
				case p.name == "zstd of two frames" && n == 1:
				case p.name == "tar" && n > 0 && n < 263 && err != nil && !errors.Is(err, ErrTruncated):
					// nothing says yet that it is one
				case !errors.Is(err, ErrTruncated) || strings.Count(err.Error(), ErrTruncated.Error()) != 1:
					t.Errorf("cut at %d of %d: %v", n, len(whole), err)
				}
			}
			for _, garbage := range []string{"x", "garbage", "\x00\x00x", "\x00\x00\x00\x00\x1f\x8b", "(", "\xfd7", "P*"} {
				in := append(slices.Clone(whole), garbage...)
				if _, err := Check(context.Background(), bytes.NewReader(in), Options{}); err == nil {
					t.Errorf("%q behind it is accepted", garbage)
				}
			}
			for _, n := range []int{1, 4, 512, 1 << 17} {
				if n == 1 && strings.HasPrefix(p.name, "xz") {
					continue // its padding comes in fours
				}
				in := append(slices.Clone(whole), make([]byte, n)...)
				verified := release.NewVerifiedReader(bytes.NewReader(in))
				if _, err := Check(context.Background(), verified, Options{}); err != nil || verified.Size() != int64(len(in)) {
					t.Errorf("%d NULs: %v, read %d of %d", n, err, verified.Size(), len(in))
				}
			}
		})
	}
}

// A flipped bit is an error, wherever it is: but for a tar, and for streams that
// have no checksum.
func TestDamageInEachFormat(t *testing.T) {
	raw := rawTar(t, entry{name: "./a", body: varied(3000)})
	for _, p := range packings() {
		if len(p.checks) == 1 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			whole := p.pack(t, raw)
			for i := 0; i < len(whole); i += max(1, len(whole)/60) {
				if p.name == "gzip" && i >= 3 && i < 16 || p.name == "zstd of two frames" && i >= 8 && i < 11 {
					continue // the header's time, system and name; what is skipped
				}
				in := slices.Clone(whole)
				in[i] ^= 1 << (i % 8)
				c, err := Check(context.Background(), bytes.NewReader(in), Options{})
				if err == nil && (!slices.Equal(c.Checks, p.checks) || c.Bytes == int64(len(raw)) && same(t, in, raw)) {
					continue // a flag that means nothing here
				}
				if err == nil {
					t.Errorf("a flipped bit at %d of %d is accepted", i, len(whole))
				}
			}
		})
	}
}

// same says whether what was damaged decompresses to raw all the same.
func same(t *testing.T, in, raw []byte) bool {
	t.Helper()
	s, err := newStream(context.Background(), bytes.NewReader(in), Limits{}.withDefaults(), "")
	if err != nil {
		return false
	}
	defer s.Close()
	out, err := io.ReadAll(s)
	return err == nil && bytes.Equal(out, raw)
}

func TestRefusedFormats(t *testing.T) {
	raw := rawTar(t, entry{name: "./a", body: varied(2000)})
	broken := slices.Clone(raw)
	broken[0] ^= 1
	for what, c := range map[string]struct {
		in   []byte
		want string
	}{
		"zip":              {[]byte("PK\x03\x04rest"), "zip file"},
		"bzip2":            {[]byte("BZh91AY&SYrest"), "bzip2"},
		"deb":              {[]byte("!<arch>\ndebian-binary"), ".deb"},
		"a damaged tar":    {broken, "first header is damaged"},
		"a cut tar":        {raw[:300], "ends too early"},
		"words":            {[]byte("random bytes"), "not a tarball"},
		"a far window":     {[]byte("\x28\xb5\x2f\xfd\x00\x90" + "rest of it"), "zstd window of 256 MiB, more than 128 MiB"},
		"zstd --long=31":   {zstdBy(t, raw, "--long=31", "--no-content-size"), ""},
		"a dictionary":     {[]byte("\x28\xb5\x2f\xfd\x21\x07\x09rest"), "dictionary 7"},
		"xz with 4 GiB":    {xzClaim(40), "dictionary of more than 256 MiB"},
		"xz with 384 MiB":  {xzClaim(33), "dictionary of more than 256 MiB"},
		"xz with a filter": {xzWith(0x20), "a filter that is not known"},
	} {
		_, err := Check(context.Background(), bytes.NewReader(c.in), Options{})
		if c.want == "" {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// xzClaim is an xz stream whose block asks for a dictionary of so many bits.
func xzClaim(bits byte) []byte { return xzBlock(2, 0, 0x21, 1, bits, 0, 0, 0) }

// xzWith is an xz stream whose block asks for another filter than LZMA2 alone.
func xzWith(filter byte) []byte { return xzBlock(2, 0, filter, 1, 0, 0, 0, 0) }

// xzBlock is an xz stream as far as the header of its first block.
func xzBlock(header ...byte) []byte {
	seal := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }
	return slices.Concat(xzMagic, seal([]byte{0, 1}), seal(header), make([]byte, 100))
}

func TestUnknownDecompressor(t *testing.T) {
	in := archive(t, entry{name: "./a"})
	for name, ok := range map[string]bool{"": true, "auto": true, "klauspost": true, "igzip": false} {
		if _, _, err := untar(t, in, Options{Decompressor: name}); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// What has come of a stalled source is judged, in each format.
func TestRefusalWhileTheSourceOfAnyFormatHangs(t *testing.T) {
	raw := rawTar(t, entry{name: "./../victim", body: varied(150_000)}, entry{name: "./b", body: varied(1 << 19)})
	for _, p := range packings() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			whole := p.pack(t, raw)
			root, _ := openRoot(t)
			if err := soon(t, context.Background(), newHung(t, whole[:len(whole)-100]), root); !errors.Is(err, ErrRefused) {
				t.Errorf("error %v", err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			h := newHung(t, whole[:len(whole)/100])
			go func() {
				<-h.stalled
				cancel()
			}()
			root, _ = openRoot(t)
			if err := soon(t, ctx, h, root); !errors.Is(err, context.Canceled) && !errors.Is(err, ErrRefused) {
				t.Errorf("cancelled: %v", err)
			}
		})
	}
}

func FuzzXz(f *testing.F) {
	if _, err := exec.LookPath("xz"); err == nil {
		raw := rawTar(f, entry{name: "./a", body: varied(2000)})
		f.Add(xzBy(f, raw))
		f.Add(xzBy(f, raw, "-0", "--check=sha256"))
		f.Add(xzBy(f, raw, "--block-size=700"))
	}
	f.Add(xzClaim(0))
	f.Fuzz(func(t *testing.T, in []byte) {
		z, err := newXz(newInput(bytes.NewReader(in)))
		if err != nil {
			return
		}
		n, err := io.Copy(io.Discard, io.LimitReader(z, 64<<20))
		if err == nil && n == 0 && len(in) < 32 {
			t.Error("nothing is a stream")
		}
	})
}

func FuzzZstd(f *testing.F) {
	if _, err := exec.LookPath("zstd"); err == nil {
		raw := rawTar(f, entry{name: "./a", body: varied(2000)})
		f.Add(zstdBy(f, raw))
		f.Add(append([]byte("\x53\x2a\x4d\x18\x03\x00\x00\x00abc"), zstdBy(f, raw, "--no-check")...))
	}
	f.Add([]byte("\x28\xb5\x2f\xfd\x21\x07\x09rest"))
	f.Fuzz(func(t *testing.T, in []byte) {
		z, err := newZstd(newInput(bytes.NewReader(in)), 2)
		if err != nil {
			return
		}
		defer z.Close()
		if _, err := io.Copy(io.Discard, io.LimitReader(z, 64<<20)); err == nil && !z.frames.ended.Load() {
			return // more than the limit
		}
	})
}
