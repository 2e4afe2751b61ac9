package demo

import (
	"archive/tar"
	"cmp"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// record is the unit that GNU tar pads an archive to, in bytes: 20 blocks.
const record = 10 << 10

// WriteTarball writes tree as AMD does: `tar cfz X.tar.gz .` in the directory.
// The bytes depend on the tree alone.
func WriteTarball(w io.Writer, tree *Tree) error {
	entries, err := tree.order()
	if err != nil {
		return fmt.Errorf("write tarball: %w", err)
	}
	zw := gzip.NewWriter(w)
	zw.OS = 3 // Unix, as gzip says of itself
	cw := &countWriter{w: zw}
	tw := tar.NewWriter(cw)
	root := &entry{kind: dir, mode: cmp.Or(tree.RootMode, 0o755)}
	for _, e := range append([]*entry{root}, entries...) {
		if err := writeEntry(tw, tree, e); err != nil {
			return fmt.Errorf("write tarball: ./%s: %w", e.name, err)
		}
	}
	if err := tw.Close(); err != nil {
		return fmt.Errorf("write tarball: %w", err)
	}
	if rest := cw.n % record; rest != 0 {
		if _, err := cw.Write(make([]byte, record-rest)); err != nil {
			return fmt.Errorf("write tarball: %w", err)
		}
	}
	if err := zw.Close(); err != nil {
		return fmt.Errorf("write tarball: %w", err)
	}
	return nil
}

func writeEntry(tw *tar.Writer, t *Tree, e *entry) error {
	h := &tar.Header{
		Format: tar.FormatGNU, Name: "./" + e.name, Mode: e.mode, ModTime: t.MTime,
		Uid: t.UID, Gid: t.GID, Uname: t.User, Gname: t.Group,
	}
	switch e.kind {
	case file:
		h.Typeflag, h.Size = tar.TypeReg, int64(len(e.data))
	case dir:
		h.Typeflag = tar.TypeDir
		if e.name != "" {
			h.Name += "/"
		}
	case symlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
	case hardlink:
		h.Typeflag, h.Linkname = tar.TypeLink, "./"+e.link
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := tw.Write(e.data)
	return err
}

// countWriter counts what passes.
type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
