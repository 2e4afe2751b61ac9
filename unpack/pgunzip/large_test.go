package pgunzip_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// mixture is n bytes of what tarballs have in them: programs of this machine, text, small files
// of a tar, base64, zeros, runs, and what does not compress.
func mixture(t testing.TB, n int) []byte {
	t.Helper()
	r := rand.New(rand.NewPCG(40, 40))
	programs := machine(t, n/2)
	b := make([]byte, 0, n+1<<20)
	for i := 0; len(b) < n; i++ {
		size := r.IntN(256 << 10)
		switch i % 8 {
		case 0, 1, 2:
			size = min(size*2, len(programs))
			b, programs = append(b, programs[:size]...), programs[size:]
		case 3:
			b = append(b, prose(r, size)...)
		case 4:
			b = base64.StdEncoding.AppendEncode(b, noise(r, size/2))
		case 5:
			b = append(b, noise(r, size)...)
		case 6:
			b = append(b, bytes.Repeat([]byte{byte(r.IntN(3))}, size)...)
		case 7:
			b = append(b, tiny(t, r, size)...)
		}
	}
	return b[:n]
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// machine is up to n bytes of the programs and libraries of this machine.
func machine(t testing.TB, n int) []byte {
	var b []byte
	for _, pattern := range []string{"/usr/lib/*/*.so*", "/usr/bin/*"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
				continue
			}
			p, err := os.ReadFile(name)
			if err != nil {
				continue
			}
			if b = append(b, p...); len(b) >= n {
				return b
			}
		}
	}
	return b
}

// tiny is a tar of tiny files.
func tiny(t testing.TB, r *rand.Rand, n int) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; b.Len() < n; i++ {
		p := prose(r, r.IntN(600))
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("share/rocm/%d/%x.h", i%7, r.Uint32()), Size: int64(len(p)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestLarge decodes what has more than eight of the pieces that NewReader
// makes, and damages one of them.
func TestLarge(t *testing.T) {
	content := mixture(t, 24<<20)
	for _, level := range []int{1, 6, 9} {
		if raced && level != 6 {
			continue
		}
		t.Run(fmt.Sprintf("level %d", level), func(t *testing.T) {
			t.Parallel()
			var file []byte
			if level > 6 { // which takes long: a member of it
				file = quick(t, content[:4<<20], level)
				file = append(file, quick(t, content[4<<20:], 5)...)
			} else {
				file = quick(t, content, level)
			}
			if len(file) < 8*pgunzip.PieceSize {
				t.Fatalf("the file has %d bytes only", len(file))
			}
			for _, n := range workersUsed {
				if raced && n != 3 {
					continue
				}
				equal(t, pgunzip.NewReader(t.Context(), whole(file), pgunzip.Options{Workers: n}), content)
			}
			if raced {
				return
			}
			equal(t, pgunzip.NewGuessed(t.Context(), whole(file), 2, pgunzip.PieceSize), content)
			damaged := file
			damaged[len(damaged)*2/3] ^= 1
			serial := run(t, pgunzip.NewReader(context.Background(), whole(damaged), pgunzip.Options{Workers: 1}))
			wanted(t, "damaged", run(t, pgunzip.NewReader(context.Background(), whole(damaged), pgunzip.Options{Workers: 3})), serial)
		})
	}
}

// quick compresses with klauspost's package.
func quick(t *testing.T, content []byte, level int) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := gzip.NewWriterLevel(&file, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.Write(content); err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// equal reads all of a stream.
func equal(t *testing.T, z *pgunzip.Reader, want []byte) {
	t.Helper()
	defer z.Close()
	buf := make([]byte, 256<<10)
	at := 0
	for {
		n, err := z.Read(buf)
		if !bytes.Equal(buf[:n], want[at:min(at+n, len(want))]) {
			t.Fatalf("%d bytes from byte %d on are wrong", n, at)
		}
		if at += n; err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d bytes of %d: %v", at, len(want), err)
		}
	}
	if at != len(want) {
		t.Fatalf("%d bytes, want %d", at, len(want))
	}
}
