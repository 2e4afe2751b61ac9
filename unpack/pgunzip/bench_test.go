package pgunzip_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// BenchmarkCorpus decompresses $ROCM_NIGHTLY_CORPUS_TARBALL from memory. The
// figures are MB/s of output, and the processor seconds of one pass.
func BenchmarkCorpus(b *testing.B) {
	name := os.Getenv("ROCM_NIGHTLY_CORPUS_TARBALL")
	if name == "" {
		b.Skip("set ROCM_NIGHTLY_CORPUS_TARBALL to a .tar.gz, as scripts/bench-unpack.sh does")
	}
	in, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	open := map[string]func(io.Reader) (io.Reader, error){
		"std":       func(r io.Reader) (io.Reader, error) { return stdgzip.NewReader(r) },
		"klauspost": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	}
	for _, n := range []int{1, 2, 4, 8} {
		open[fmt.Sprintf("pgunzip-%d", n)] = func(r io.Reader) (io.Reader, error) {
			return pgunzip.NewReader(context.Background(), r, pgunzip.Options{Workers: n}), nil
		}
	}
	for _, k := range []string{"std", "klauspost", "pgunzip-1", "pgunzip-2", "pgunzip-4", "pgunzip-8"} {
		b.Run(k, func(b *testing.B) { pass(b, in, open[k]) })
	}
}

func pass(b *testing.B, in []byte, open func(io.Reader) (io.Reader, error)) {
	begin := cpu(b)
	for b.Loop() {
		r, err := open(bytes.NewReader(in))
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, r)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(n)
	}
	b.ReportMetric((cpu(b)-begin)/float64(b.N), "cpu-s/op")
}

func cpu(b *testing.B) float64 {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
}
