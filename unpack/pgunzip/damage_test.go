package pgunzip_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// zip compresses with compress/gzip.
func zip(t testing.TB, content []byte, level int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := stdgzip.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// prose is text that compresses as text does.
func prose(r *rand.Rand, n int) []byte {
	words := []string{"the", "stream", "of", "bits", "begins", "again", "where", "it", "ended", "window", "length", "distance", "and", "symbol", "\n"}
	var b []byte
	for len(b) < n {
		if b = append(append(b, words[r.IntN(len(words))]...), ' '); r.IntN(9) == 0 {
			b = fmt.Appendf(b, "%d ", r.Uint32()>>r.IntN(30))
		}
	}
	return b[:n]
}

// smallFiles are of all kinds of blocks and headers, and short enough for
// every one of their bits to be flipped.
func smallFiles(t testing.TB) map[string][]byte {
	r := rand.New(rand.NewPCG(9, 9))
	var mixed bitWriter
	content := []byte(nil)
	for _, kind := range []int{0, 1, 2} {
		ops := append(literals("abcab"), match(5, 3), match(9, 1), endOp)
		switch kind {
		case 0:
			mixed.stored(false, []byte("stored"))
			content = append(content, "stored"...)
			continue
		case 1:
			mixed.fixed(false, ops...)
		default:
			used := []int{'a', 'b', 'c', 256, 259, 263}
			mixed.dynamic(true, completeCode(r, 264, used), completeCode(r, 3, []int{0, 2}), ops...)
		}
		content = apply(content, ops...)
	}
	text := prose(r, 200)
	return map[string][]byte{
		"mixed":   member(plainHeader, mixed.bytes(), content),
		"text":    zip(t, text, 9),
		"stored":  zip(t, text[:30], 0),
		"empty":   zip(t, nil, 6),
		"two":     slices.Concat(zip(t, text[:30], 1), zip(t, text[30:70], -2)),
		"header":  member(fullHeader(), []byte{3, 0}, nil),
		"padding": slices.Concat(zip(t, text[:10], 6), make([]byte, 20)),
	}
}

// TestEveryBit flips every bit of small files.
func TestEveryBit(t *testing.T) {
	t.Parallel()
	for name, file := range smallFiles(t) {
		o := new(oracle)
		for bit := range len(file) * 8 {
			damaged := bytes.Clone(file)
			damaged[bit/8] ^= 1 << (bit % 8)
			var workers []int
			if bit%64 == 5 {
				workers = []int{2}
			}
			o.compare(t, fmt.Sprintf("%s, bit %d", name, bit), damaged, workers...)
		}
	}
}

// TestEveryLength cuts small files after each of their bytes.
func TestEveryLength(t *testing.T) {
	t.Parallel()
	for name, file := range smallFiles(t) {
		o := new(oracle)
		for n := range len(file) {
			o.compare(t, fmt.Sprintf("%s, %d bytes of %d", name, n, len(file)), file[:n], 2)
		}
	}
}

// manyBlocks is a file of more than 32 KiB of content and many pieces of
// smallPiece, in which workers find blocks.
func manyBlocks(t testing.TB, r *rand.Rand) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, 5)
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		if _, err := w.Write(prose(r, 4<<10)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestDamageInPieces flips a bit of, or cuts, a file that is decoded in parallel.
func TestDamageInPieces(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(10, 10))
	file := manyBlocks(t, r)
	o := new(oracle)
	for i := range fewer(60) {
		damaged, bit := bytes.Clone(file), r.IntN(len(file)*8)
		damaged[bit/8] ^= 1 << (bit % 8)
		o.compare(t, fmt.Sprintf("bit %d", bit), damaged, 1+i%4)
		n := r.IntN(len(file))
		o.compare(t, fmt.Sprintf("%d bytes", n), file[:n], 1+i%4)
		for range 20 {
			damaged[r.IntN(len(file))] = byte(r.Uint32())
		}
		o.compare(t, fmt.Sprintf("bytes, %d", i), damaged, 1+i%4)
	}
}

// TestTail puts things behind the last member.
func TestTail(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	text := prose(r, 100)
	small, large := zip(t, text, 6), manyBlocks(t, r)
	nuls := make([]byte, 3*smallPiece)
	tests := []struct {
		name string
		tail []byte
		end  ending
	}{
		{"nothing", nil, clean},
		{"a NUL", []byte{0}, clean},
		{"NULs", nuls, clean},
		{"NULs and garbage", append(bytes.Clone(nuls), 'x'), trailing},
		{"NULs and a member", slices.Concat(nuls[:512], small), trailing},
		{"garbage", []byte("garbage, and more than a header of it"), trailing},
		{"a byte", []byte{'x'}, trailing},
		{"a newline", []byte{'\n'}, trailing},
		{"the first byte of a member", small[:1], truncated},
		{"two bytes of a member", small[:2], truncated},
		{"a header", small[:10], truncated},
		{"half of a member", small[:len(small)/2], truncated},
		{"another magic", []byte("\x1f\x9d\x90 compress, as of old"), trailing},
		{"another method", []byte("\x1f\x8b\x09\x00\x00\x00\x00\x00\x00\x00"), noHeader},
	}
	for _, tt := range tests {
		for name, before := range map[string][]byte{"small": small, "large": large} {
			file := slices.Concat(before, tt.tail)
			got := new(oracle).compare(t, tt.name+" behind "+name, file, 2, 8)
			if got.end != tt.end {
				t.Errorf("%s behind %s: %q, want %q", tt.name, name, got.end, tt.end)
			}
		}
	}
}

// TestNothing reads files without a member.
func TestNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		end  ending
	}{
		"empty":      {"", truncated},
		"one byte":   {"\x1f", truncated},
		"NULs":       {"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", noHeader},
		"text":       {"<html>not found</html>", noHeader},
		"short text": {"no", noHeader},
		"zstd":       {"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00\x00\x00\x00", noHeader},
	} {
		for _, n := range workersUsed {
			got := run(t, pgunzip.NewReader(t.Context(), whole([]byte(tt.file)), pgunzip.Options{Workers: n}))
			wanted(t, fmt.Sprintf("%s, %d workers", name, n), got, result{nil, tt.end})
		}
	}
}

// TestSums damages each byte of a trailer, behind contents of many sizes.
func TestSums(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 12))
	for _, n := range []int{0, 1, 1000, 300 << 10} {
		content := prose(r, n)
		file := zip(t, content, 1)
		for i := range 8 {
			damaged := bytes.Clone(file)
			damaged[len(damaged)-1-i] ^= 0x80
			got := new(oracle).compare(t, fmt.Sprintf("%d bytes, byte %d of the trailer", n, 8-i), damaged, 3)
			wanted(t, "compress/gzip", got, result{content, badSum})
		}
	}
}
