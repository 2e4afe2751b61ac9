package pgunzip_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

func ExampleNewReader() {
	in, out := io.Pipe()
	go func() {
		z := gzip.NewWriter(out)
		_, err := io.Copy(z, strings.NewReader("a night in pieces"))
		if err == nil {
			err = z.Close()
		}
		out.CloseWithError(err)
	}()
	z := pgunzip.NewReader(context.Background(), in, pgunzip.Options{})
	defer z.Close()
	content, err := io.ReadAll(z)
	fmt.Printf("%s, %v\n", content, err)
	// Output: a night in pieces, <nil>
}
