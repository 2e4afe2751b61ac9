package pgunzip_test

import (
	"bytes"
	"compress/flate"
	stdgzip "compress/gzip"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// FuzzDecompress compares with compress/gzip and klauspost: in order, in pieces,
// and in pieces that have all been guessed at. What the fuzzer brings is used
// as a file, and as deflate behind a window of content, since chunks are taken
// only there.
func FuzzDecompress(f *testing.F) {
	for _, file := range smallFiles(f) {
		f.Add(file)
		f.Add(file[10:])
	}
	r := rand.New(rand.NewPCG(30, 30))
	for range 8 {
		file, _ := randomFile(r, 1+r.IntN(2), 1+r.IntN(4), 60)
		f.Add(file)
		f.Add(file[10:])
	}
	var w bitWriter
	before := far(&w, 40000)
	prefix := slices.Concat(plainHeader, w.bytes())
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 1<<18 {
			return
		}
		o := new(oracle)
		o.compare(t, "as a file", in)
		if got := o.compare(t, "behind a window", slices.Concat(prefix, in), 2); !bytes.HasPrefix(got.content, before) {
			t.Errorf("the %d bytes before are not what they were", len(before))
		}
	})
}

// FuzzRoundTrip compresses what the fuzzer brings, as often as it says, with a
// level and a pattern of flushes of its choice.
func FuzzRoundTrip(f *testing.F) {
	r := rand.New(rand.NewPCG(31, 31))
	f.Add(prose(r, 100), int8(6), uint64(0), uint16(1))
	f.Add(prose(r, 300), int8(9), uint64(5), uint16(900))
	f.Add([]byte("a"), int8(1), uint64(1<<40), uint16(65535))
	f.Add([]byte{}, int8(0), uint64(0), uint16(0))
	f.Add([]byte("ab"), int8(-2), uint64(0xffff), uint16(1000))
	f.Fuzz(func(t *testing.T, part []byte, level int8, flushes uint64, times uint16) {
		var file bytes.Buffer
		lev := int(level)%12 - 2
		w, err := stdgzip.NewWriterLevel(&file, min(max(lev, flate.HuffmanOnly), flate.BestCompression))
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(flushes, uint64(times)))
		var content []byte
		for i := range int(times) + 1 {
			next := bytes.Clone(part)
			if len(next) > 0 && i%3 == 1 {
				next[r.IntN(len(next))] ^= byte(1 + r.Uint32())
			}
			if len(content)+len(next) > 1<<18 {
				break
			}
			content = append(content, next...)
			must(t, second(w.Write(next)))
			if flushes>>(i%64)&1 != 0 {
				must(t, w.Flush())
			}
			if flushes>>(i%61)&7 == 7 {
				must(t, w.Close())
				w.Reset(&file)
			}
		}
		must(t, w.Close())
		got := run(t, pgunzip.NewPieces(t.Context(), whole(file.Bytes()), 3, smallPiece<<(flushes%4)))
		wanted(t, "in pieces", got, result{content, clean})
		got = run(t, pgunzip.NewGuessed(t.Context(), whole(file.Bytes()), 2, smallPiece<<(flushes%4)))
		wanted(t, "guessed", got, result{content, clean})
		got = run(t, pgunzip.NewReader(t.Context(), whole(file.Bytes()), pgunzip.Options{Workers: 1}))
		wanted(t, "serial", got, result{content, clean})
	})
}

func second(_ int, err error) error { return err }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
