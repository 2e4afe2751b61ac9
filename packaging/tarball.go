package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// tarball packs a directory under its own name.
func tarball(dir string, o options) error {
	f, err := os.Create(o.out)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(f, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	// WalkDir goes by name, so that the order is that of no file system.
	err = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.Dir(filepath.Clean(dir)), p)
		if err != nil {
			return err
		}
		return addToTar(t, p, filepath.ToSlash(rel), e, o)
	})
	for _, c := range []io.Closer{t, z, f} {
		if cerr := c.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	return nil
}

func addToTar(t *tar.Writer, file, name string, e fs.DirEntry, o options) error {
	if e.IsDir() {
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: o.when, Uname: "root", Gname: "root", Format: tar.FormatUSTAR})
	}
	text, mode, err := regular(file, e)
	if err != nil {
		return err
	}
	err = t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path.Clean(name), Size: int64(len(text)), Mode: int64(mode), ModTime: o.when, Uname: "root", Gname: "root", Format: tar.FormatUSTAR})
	if err != nil {
		return err
	}
	_, err = t.Write(text)
	return err
}

// regular reads a file, and says which of two modes it has.
func regular(file string, e fs.DirEntry) ([]byte, fs.FileMode, error) {
	info, err := e.Info()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s is no regular file", file)
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	text, err := os.ReadFile(file)
	return text, mode, err
}
