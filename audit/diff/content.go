package diff

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// contents settles the state of every pair: by digests where both sides have
// them, else by what is on the disk.
func (c *comparer) contents(ctx context.Context) error {
	var read []int
	for i := range c.pairs {
		p := &c.pairs[i]
		if p.state = compareListed(p); p.state == unknown {
			read = append(read, i)
		}
	}
	return c.each(ctx, len(read), func(i int) {
		p := &c.pairs[read[i]]
		if p.a.err != nil || p.b.err != nil {
			c.note("files that cannot be read", p.b.Path, cmpErr(p.a.err, p.b.err))
			return
		}
		var err error
		if p.state, err = c.compareRead(p); err != nil {
			c.note("files that cannot be read", p.b.Path, err)
		}
	})
}

// compareListed compares what is known without reading a file.
func compareListed(p *pair) state {
	switch {
	case p.a.Kind != p.b.Kind:
		return kinds
	case p.a.err != nil || p.b.err != nil:
		return unknown
	case p.a.Kind == manifest.Symlink:
		if p.a.Link != p.b.Link {
			return target
		}
		return same
	case !p.a.regular():
		return same
	case p.a.SHA256 != "" && p.b.SHA256 != "":
		switch {
		case p.a.SHA256 == p.b.SHA256:
			return same
		case published(p.a) == published(p.b):
			return edits
		}
		return changed
	}
	// What was not edited has the size that it had in the tarball.
	if p.a.Before == "" && p.b.Before == "" && p.a.Size != p.b.Size {
		return changed
	}
	return unknown
}

// compareRead compares two files of which one has no digest, at least.
func (c *comparer) compareRead(p *pair) (state, error) {
	if p.a.SHA256 == "" && p.b.SHA256 == "" {
		equal, err := c.equal(p.a.Path, p.b.Path)
		switch {
		case err != nil:
			return unknown, err
		case equal:
			return same, nil
		}
		return changed, nil
	}
	listed, on, f := p.b, c.a, p.a
	if p.a.SHA256 != "" {
		listed, on, f = p.a, c.b, p.b
	}
	digest, err := on.hash(f.Path)
	switch {
	case err != nil:
		return unknown, err
	case digest == listed.SHA256:
		return same, nil
	case digest == published(listed):
		return edits, nil
	}
	return changed, nil
}

// hash is the SHA-256 of a file of the ROCm tree, in hex.
func (s *side) hash(p string) (string, error) {
	if !s.here {
		return "", errNoContent
	}
	return s.digest(path.Join(s.rocm, p))
}

// digest is the SHA-256 of a file of the directory, in hex.
func (s *side) digest(name string) (string, error) {
	f, err := s.open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return hashOf(f)
}

// hashOf is the SHA-256 of all that r holds, in hex.
func hashOf(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.CopyBuffer(h, onlyReader{r}, make([]byte, blockSize)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// onlyReader hides everything else that a file can do.
type onlyReader struct{ io.Reader }

// blockSize is how much of a file is read at once, bytes.
const blockSize = 256 << 10

// equal compares two files to the first byte that differs.
func (c *comparer) equal(a, b string) (bool, error) {
	fa, err := c.a.openIn(a)
	if err != nil {
		return false, err
	}
	defer fa.Close()
	fb, err := c.b.openIn(b)
	if err != nil {
		return false, err
	}
	defer fb.Close()
	if sameFile(fa, fb) {
		return true, nil
	}
	return equalReaders(fa, fb, c.a.byPath[a].Size)
}

// equalReaders compares what two readers give; size is about how much that is.
func equalReaders(a, b io.Reader, size int64) (bool, error) {
	block := max(1, min(blockSize, size+1))
	ba, bb := make([]byte, block), make([]byte, block)
	for {
		na, erra := io.ReadFull(a, ba)
		nb, errb := io.ReadFull(b, bb)
		if !bytes.Equal(ba[:na], bb[:nb]) {
			return false, nil
		}
		for _, err := range []error{erra, errb} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
		}
		if erra != nil || errb != nil {
			return true, nil // both have ended: what they had is equal
		}
	}
}

// wrapping counts what differs beside the ROCm trees of two prefixes.
func (c *comparer) wrapping(ctx context.Context) error {
	if c.a.rocm == "" || c.b.rocm == "" {
		return nil
	}
	w := &Wrapping{}
	c.r.Wrapping = w
	for p, f := range c.b.beside {
		was := c.a.beside[p]
		switch {
		case ownList(p) || f.Kind == manifest.Dir && was != nil && was.Kind == f.Kind:
		case was == nil:
			w.Added++
		case was.Kind != f.Kind || was.Link != f.Link || was.Mode != f.Mode && c.a.Listed && c.b.Listed:
			w.Changed++
		case f.regular():
			if !c.sameBeside(p, was, f) {
				w.Changed++
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	for p := range c.a.beside {
		if c.b.beside[p] == nil && !ownList(p) {
			w.Removed++
		}
	}
	return nil
}

// ownList tells whether a name is of what describes a prefix.
func ownList(p string) bool {
	return p == manifest.Name || p == manifest.FilesName || p == manifest.OmittedName
}

// maxBeside bounds a file beside the ROCm tree: wrappers and hooks are small.
const maxBeside = 4 << 20

// sameBeside compares a file beside the ROCm tree.
func (c *comparer) sameBeside(p string, a, b *file) bool {
	if a.SHA256 != "" && b.SHA256 != "" {
		return a.SHA256 == b.SHA256
	}
	if a.Size != b.Size || a.Size > maxBeside {
		return false
	}
	fa, err := c.a.open(path.Clean(p))
	if err != nil {
		return false
	}
	defer fa.Close()
	var fb *os.File
	if fb, err = c.b.open(path.Clean(p)); err != nil {
		return false
	}
	defer fb.Close()
	equal, err := equalReaders(fa, fb, a.Size)
	return err == nil && equal
}
