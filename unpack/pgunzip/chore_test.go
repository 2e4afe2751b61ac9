//go:build bench

package pgunzip_test

import (
	stdgzip "compress/gzip"
	"flag"
	"io"
	"os"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

var (
	file    = flag.String("file", "", "a .gz file, to be decompressed to nowhere")
	decoder = flag.String("decoder", "pgunzip", "pgunzip, klauspost or std")
	workers = flag.Int("workers", 0, "of pgunzip; 0: its choice")
)

// TestBenchChore is a program for scripts/bench-unpack.sh: it decompresses
// -file to /dev/null, as gzip -dc does there.
func TestBenchChore(t *testing.T) {
	if *file == "" {
		t.Skip("scripts/bench-unpack.sh runs this with -file")
	}
	in, err := os.Open(*file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var from io.Reader
	switch *decoder {
	case "std":
		from, err = stdgzip.NewReader(in)
	case "klauspost":
		from, err = gzip.NewReader(in)
	default:
		z := pgunzip.NewReader(t.Context(), in, pgunzip.Options{Workers: *workers})
		defer z.Close()
		from = z
	}
	if err != nil {
		t.Fatal(err)
	}
	// Writes are of 256 KiB for all, so that none is slowed down by many small ones.
	buf := make([]byte, 256<<10)
	if _, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{from}, buf); err != nil {
		t.Fatal(err)
	}
}
