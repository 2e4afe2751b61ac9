package pgunzip

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

func sample(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n)
	for len(b) < n {
		switch r.IntN(4) {
		case 0:
			for range r.IntN(300) {
				b = append(b, byte(r.Uint32()))
			}
		case 1:
			b = append(b, bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(1000))...)
		case 2:
			b = append(b, fmt.Sprintf("the quick %d brown fox jumps %x", r.Uint32(), r.Uint64())...)
		case 3:
			if len(b) > 0 {
				back := r.IntN(min(len(b), 1<<16)) + 1
				k := r.IntN(back) + 1
				b = append(b, b[len(b)-back:len(b)-back+k]...)
			}
		}
	}
	return b[:n]
}

func TestSerial(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		want := sample(r, r.IntN(2<<20))
		var z bytes.Buffer
		w, _ := gzip.NewWriterLevel(&z, i%11-2)
		w.Write(want)
		w.Close()
		for name, src := range map[string]io.Reader{"whole": bytes.NewReader(z.Bytes()), "bytes": iotest.OneByteReader(bytes.NewReader(z.Bytes())), "half": iotest.HalfReader(bytes.NewReader(z.Bytes()))} {
			for _, n := range []int{1, 2, 4} {
				zr := NewReader(context.Background(), src, Options{Workers: n})
				got, err := io.ReadAll(zr)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatal(i, name, n, err, len(got), len(want))
				}
				zr.Close()
				if name != "whole" {
					break
				}
				src = bytes.NewReader(z.Bytes())
			}
		}
	}
}
