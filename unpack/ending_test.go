package unpack

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// zip compresses each of members into a gzip member of its own.
func zip(t testing.TB, members ...[]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	for _, m := range members {
		gz := gzip.NewWriter(&buf)
		gz.Name = "x.tar"
		if _, err := gz.Write(m); err != nil {
			t.Fatal(err)
		}
		if err := gz.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return buf.Bytes()
}

func TestDataAfterTheEnd(t *testing.T) {
	one := rawTar(t, entry{name: "./a", body: "one"})
	two := rawTar(t, entry{name: "./b", body: "two"})
	nuls := make([]byte, 100_001)
	for what, in := range map[string][]byte{
		"tar in the same member": zip(t, slices.Concat(one, two)),
		"tar in another member":  zip(t, one, two),
		"tar behind NULs":        zip(t, one, nuls, two),
		"one byte":               zip(t, slices.Concat(one, []byte("x"))),
	} {
		if _, _, err := untar(t, in, Options{}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "data after the end of the archive") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, n := range []int{1, 511, 512, 10240, len(nuls)} {
		for what, in := range map[string][]byte{
			"same member":    zip(t, slices.Concat(one, nuls[:n])),
			"another member": zip(t, one, nuls[:n]),
		} {
			if _, _, err := untar(t, in, Options{}); err != nil {
				t.Errorf("%d NULs in the %s: %v", n, what, err)
			}
		}
	}
	if _, _, err := untar(t, zip(t, one[:300], one[300:700], nil, one[700:]), Options{}); err != nil {
		t.Errorf("one tar in several members: %v", err)
	}
}

func TestBytesAfterTheGzipStream(t *testing.T) {
	whole := archive(t, entry{name: "./a", body: "one"})
	for _, garbage := range []string{"x", "garbage of some length", "\x1fx", "\x00\x00x", strings.Repeat("\x00", 1<<17) + "x", "\x00\x1f\x8b"} {
		_, _, err := untar(t, append(slices.Clone(whole), garbage...), Options{})
		if err == nil || !strings.Contains(err.Error(), "bytes after the end of the gzip stream") || errors.Is(err, ErrTruncated) {
			t.Errorf("%.20q: %v", garbage, err)
		}
	}
	for _, n := range []int{1, 2, 512, 1 << 17} {
		in := append(slices.Clone(whole), make([]byte, n)...)
		verified := release.NewVerifiedReader(bytes.NewReader(in))
		root, _ := openRoot(t)
		if _, err := Tree(context.Background(), verified, root, Options{}); err != nil {
			t.Errorf("%d NULs: %v", n, err)
		}
		if verified.Size() != int64(len(in)) {
			t.Errorf("%d NULs: read %d of %d bytes", n, verified.Size(), len(in))
		}
		wrong := release.Expectation{Digest: release.NewVerifiedReader(nil).Digest()}
		root, _ = openRoot(t)
		_, err := Tree(context.Background(), release.NewVerifiedReader(bytes.NewReader(in), wrong), root, Options{})
		if mismatch := new(release.MismatchError); !errors.As(err, &mismatch) {
			t.Errorf("%d NULs, another digest: %v", n, err)
		}
	}
}

// A second member that is cut anywhere is noticed, in the name in its header too.
func TestCutInALaterMember(t *testing.T) {
	raw := rawTar(t, entry{name: "./a", body: "one"})
	first := zip(t, raw)
	whole := append(slices.Clone(first), zip(t, make([]byte, 512))...)
	for n := len(first) + 1; n < len(whole); n++ {
		if _, _, err := untar(t, whole[:n], Options{}); !errors.Is(err, ErrTruncated) {
			t.Errorf("cut at %d of %d: %v", n, len(whole), err)
		}
	}
}

// The zeros at the end of a file are not the end of an archive.
func TestZerosOfContentEndNoArchive(t *testing.T) {
	for _, size := range []int{1024, 2048, 5000, 3 << 20} {
		raw := rawTar(t, entry{name: "./a", body: "a"}, entry{name: "./zeros", body: string(make([]byte, size))})
		end := len(raw) - tarEnd
		for _, n := range []int{end, end + 512, end - 512} {
			if _, _, err := untar(t, zip(t, raw[:n]), Options{}); !errors.Is(err, ErrTruncated) {
				t.Errorf("%d zeros, cut at %d of %d: %v", size, n, len(raw), err)
			}
		}
	}
}

// GNU tar fills sparse archives with headers of its own; their end is found too.
func TestSparseArchiveThatJustStops(t *testing.T) {
	for _, format := range []string{"gnu", "pax"} {
		raw := gnuSparse(t, format, 4<<20)
		content := len(bytes.TrimRight(raw, "\x00"))
		end := (content + 511) / 512 * 512
		if _, _, err := untar(t, zip(t, raw[:end+1024]), Options{}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		for n := end - 512; n < end+1024; n += 512 {
			if _, _, err := untar(t, zip(t, raw[:n]), Options{}); !errors.Is(err, ErrTruncated) {
				t.Errorf("%s cut at %d: %v", format, n, err)
			}
		}
	}
}

// tarEnd is the size of the two blocks that end an archive.
const tarEnd = 1024

// gnuSparse is the tar of one file "hole" of size bytes, of which just the last
// ten are no hole.
func gnuSparse(t *testing.T, format string, size int64) []byte {
	t.Helper()
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("tar is not installed (Debian package tar)")
	}
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "hole"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("the end..."), size-10)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	var raw, complaint bytes.Buffer
	cmd := exec.Command("tar", "--format="+format, "-cS", "-C", dir, "hole")
	cmd.Stdout, cmd.Stderr = &raw, &complaint
	if err := cmd.Run(); err != nil {
		t.Fatal(err, complaint.String())
	}
	if raw.Len() > 1<<20 {
		t.Skip("the file system of the test has no holes")
	}
	return raw.Bytes()
}
