package demo

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// members reads a tarball back with the standard library.
func members(t testing.TB, tarball []byte) []tar.Header {
	t.Helper()
	zr, err := gzip.NewReader(bytes.NewReader(tarball))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw)%record != 0 {
		t.Errorf("the archive has %d bytes, not whole records of %d", len(raw), record)
	}
	var list []tar.Header
	tr := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, *h)
	}
}

func pack(t testing.TB, tree *Tree) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteTarball(&b, tree); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestTarballIsShapedLikeTar(t *testing.T) {
	long := strings.Repeat("d/", 140) + strings.Repeat("f", 250)
	build := func() *Tree {
		tree := &Tree{RootMode: 0o775, MTime: time.Unix(1790000000, 999), UID: 1004, User: "rocm-signer"}
		tree.File("lib/b.so.1", 0o755, []byte("library"))
		tree.Link("lib/a.so", "lib/b.so.1")
		tree.Link("lib/z.so", "lib/a.so")
		tree.Symlink("lib/link", "/__w/elsewhere")
		tree.File("lib.txt", 0o4755, nil)
		tree.File(long, 0o444, []byte("deep"))
		return tree
	}
	got := members(t, pack(t, build()))
	if h := got[0]; h.Name != "./" || h.Mode != 0o775 || h.Typeflag != tar.TypeDir {
		t.Errorf("first member: %q %o, want ./ with the builder's mode", h.Name, h.Mode)
	}
	var names []string
	for _, h := range got {
		if !strings.HasPrefix(h.Name, "./") || h.Uid != 1004 || h.Uname != "rocm-signer" || h.ModTime.Unix() != 1790000000 {
			t.Errorf("%s: owner %d, time %v", h.Name, h.Uid, h.ModTime)
		}
		switch strings.TrimPrefix(h.Name, "./") {
		case "lib/a.so":
			if h.Typeflag != tar.TypeReg || h.Size != 7 {
				t.Errorf("the first name of a file in order must be the file, got %c", h.Typeflag)
			}
		case "lib/b.so.1", "lib/z.so":
			if h.Typeflag != tar.TypeLink || h.Linkname != "./lib/a.so" {
				t.Errorf("%s: %c to %q, want a hard link to ./lib/a.so", h.Name, h.Typeflag, h.Linkname)
			}
		case "lib.txt":
			if h.Mode != 0o4755 {
				t.Errorf("%s: mode %o", h.Name, h.Mode)
			}
		}
		names = append(names, h.Name)
	}
	if !slices.Contains(names, "./"+long) {
		t.Error("the long name is missing")
	}
	if lib, txt := slices.Index(names, "./lib/z.so"), slices.Index(names, "./lib.txt"); lib > txt {
		t.Error("lib.txt comes before what is in lib")
	}
	if !bytes.Equal(pack(t, build()), pack(t, build())) {
		t.Error("the same tree gave two tarballs")
	}
}

func TestTarballRefusesWhatTarCouldNotWrite(t *testing.T) {
	for name, add := range map[string]func(*Tree){
		"absolute":          func(t *Tree) { t.File("/etc/passwd", 0o644, nil) },
		"parent":            func(t *Tree) { t.File("a/../b", 0o644, nil) },
		"root":              func(t *Tree) { t.Dir(".", 0o755) },
		"below a file":      func(t *Tree) { t.File("a", 0o644, nil); t.File("a/b", 0o644, nil) },
		"link to nothing":   func(t *Tree) { t.Link("a", "b") },
		"link to directory": func(t *Tree) { t.Dir("b", 0o755); t.Link("a", "b") },
		"links in a ring":   func(t *Tree) { t.Link("a", "b"); t.Link("b", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			var tree Tree
			add(&tree)
			if err := WriteTarball(io.Discard, &tree); err == nil {
				t.Error("no error")
			}
		})
	}
}

// GNU tar is the program that AMD packs with; it must agree with every byte
// of structure that this package writes.
func TestTarReadsTarball(t *testing.T) {
	if _, err := exec.LookPath("tar"); err != nil {
		t.Skip("no tar (Debian: tar)")
	}
	tree := &Tree{MTime: time.Unix(1790000000, 0)}
	tree.File("share/"+strings.Repeat("n", 200), 0o644, []byte("x"))
	tree.Link("share/hard", "share/"+strings.Repeat("n", 200))
	dir := t.TempDir()
	file := filepath.Join(dir, "x.tar.gz")
	if err := os.WriteFile(file, pack(t, tree), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "tar", "xzf", file, "-C", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("tar: %v %s", err, out)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "share/hard")); err != nil || string(b) != "x" {
		t.Errorf("hard link: %q %v", b, err)
	}
}
