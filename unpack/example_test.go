package unpack_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"

	"github.com/rocm-nightly/rocm-nightly/unpack"
)

func ExampleTree() {
	var tarball bytes.Buffer
	gz := gzip.NewWriter(&tarball)
	tw := tar.NewWriter(gz)
	tw.WriteHeader(&tar.Header{Name: "./.info/version", Typeflag: tar.TypeReg, Mode: 0o4664, Size: 7})
	tw.Write([]byte("10.2.0\n"))
	tw.Close()
	gz.Close()

	dir, err := os.MkdirTemp("", "rocm")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()

	res, err := unpack.Tree(context.Background(), &tarball, root, unpack.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range res.Files {
		fmt.Println(f.Kind, os.FileMode(f.Mode), f.Path)
	}
	// Output:
	// dir -rwxr-xr-x .info
	// file -r--r--r-- .info/version
}
