package repack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/repack"
)

func ExampleRun() {
	var tarball bytes.Buffer
	gz := gzip.NewWriter(&tarball)
	tw := tar.NewWriter(gz)
	script := "#!/bin/sh\necho hello from ROCm\n"
	tw.WriteHeader(&tar.Header{Name: "./bin/hello", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(script))})
	tw.Write([]byte(script))
	tw.Close()
	gz.Close()

	parent, err := os.MkdirTemp("", "rocm")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(parent)
	prefix := filepath.Join(parent, "rocm")
	res, err := repack.Run(context.Background(), &tarball, prefix, repack.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = os.Stat(filepath.Join(prefix, "bin/hello"))
	fmt.Println(res.Files, res.Audit.Refused, err)
	// Output: 1 false <nil>
}
