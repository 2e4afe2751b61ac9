package pgunzip

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

func TestParallelSized(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 5 {
		want := sample(r, 3<<20)
		var z bytes.Buffer
		w, _ := gzip.NewWriterLevel(&z, 2*i-1)
		w.Write(want)
		w.Close()
		for name, src := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "half": iotest.HalfReader, "dataerr": iotest.DataErrReader} {
			for _, n := range []int{2, 5} {
				e := newParallelSized(context.Background(), src(bytes.NewReader(z.Bytes())), n, 96<<10, 80<<10)
				zr := &Reader{ctx: context.Background(), engine: e}
				got, err := io.ReadAll(zr)
				if err != nil || !bytes.Equal(got, want) {
					t.Fatal(i, name, n, err, len(got), len(want))
				}
				zr.Close()
			}
		}
	}
}
