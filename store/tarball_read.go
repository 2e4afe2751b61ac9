package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"

	digest "github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// recordSource is who says which digest a kept tarball has.
const recordSource = "the record of the kept tarball"

// Open returns the bytes of the tarball, in order. The end of the stream becomes
// a *TarballError, which names the damaged parts, unless the digest is right;
// so does a part that is missing or of another length, when it is reached.
func (t *Tarball) Open() (io.ReadCloser, error) {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the kept tarball: %w", t.gone(err))
	}
	parts := &partsReader{t: t, root: root}
	return &tarballReader{
		parts: parts,
		v:     release.NewVerifiedReader(parts, release.Expectation{Digest: t.Digest, Source: recordSource}),
	}, nil
}

// gone says of an error why a kept tarball may not be there any more.
func (t *Tarball) gone(err error) error {
	if !isRealDir(t.Dir) {
		return fmt.Errorf("%w (it was removed meanwhile: see keep_tarballs)", err)
	}
	return err
}

// tarballReader is a Tarball that is read and verified.
type tarballReader struct {
	parts *partsReader
	v     *release.VerifiedReader
	err   error
}

// Read implements io.Reader.
func (r *tarballReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.v.Read(p)
	var mismatch *release.MismatchError
	if errors.As(err, &mismatch) {
		err = r.parts.t.damage(context.Background(), mismatch)
	}
	r.err = err
	return n, err
}

// Close implements io.Closer.
func (r *tarballReader) Close() error { return r.parts.Close() }

// Check reads the whole tarball; damage is a *TarballError.
func (t *Tarball) Check(ctx context.Context) (err error) {
	r, err := t.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	_, err = io.CopyBuffer(onlyWriter{io.Discard}, &ctxReader{ctx, r}, make([]byte, 1<<20))
	return err
}

// ctxReader ends with its context.
type ctxReader struct {
	ctx context.Context // of one call
	r   io.Reader
}

// Read implements io.Reader.
func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// partsReader reads the parts one after the other.
type partsReader struct {
	t    *Tarball
	root *os.Root
	next int // the part to open
	f    *os.File
	left int64 // of f, bytes
}

// Read implements io.Reader.
func (r *partsReader) Read(p []byte) (int, error) {
	for r.left == 0 {
		if err := r.drop(); err != nil {
			return 0, err
		}
		if r.next == len(r.t.Parts) {
			return 0, io.EOF
		}
		f, err := r.t.openPart(r.root, r.next)
		if err != nil {
			return 0, err
		}
		r.f, r.left = f, r.t.partSize(r.next)
		r.next++
	}
	n, err := r.f.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return 0, r.t.damaged([]string{partName(r.next - 1)}, err)
}

func (r *partsReader) drop() error {
	if r.f == nil {
		return nil
	}
	f := r.f
	r.f = nil
	return f.Close()
}

// Close implements io.Closer.
func (r *partsReader) Close() error { return errors.Join(r.drop(), r.root.Close()) }

func (t *Tarball) damaged(parts []string, err error) error {
	return &TarballError{Dir: t.Dir, Name: t.Name, Parts: parts, Err: t.gone(err)}
}

// openPart opens part i, a regular file of the right length.
func (t *Tarball) openPart(root *os.Root, i int) (*os.File, error) {
	f, err := openRegular(root, partName(i))
	if err != nil {
		return nil, t.damaged([]string{partName(i)}, err)
	}
	fi, err := f.Stat()
	if err == nil && fi.Size() != t.partSize(i) {
		err = fmt.Errorf("it has %d of %d bytes", fi.Size(), t.partSize(i))
	}
	if err != nil {
		return nil, errors.Join(t.damaged([]string{partName(i)}, err), f.Close())
	}
	return f, nil
}

// damage finds out which parts are not what they were.
func (t *Tarball) damage(ctx context.Context, why error) error {
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return fmt.Errorf("look at the kept tarball: %w", t.gone(err))
	}
	defer root.Close()
	bad := make([]bool, len(t.Parts))
	var mu sync.Mutex
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range t.Parts {
		group.Go(func() error {
			sum, err := t.sum(gctx, root, i)
			if gctx.Err() != nil {
				return gctx.Err()
			}
			mu.Lock()
			defer mu.Unlock()
			bad[i] = err != nil || sum != t.Parts[i]
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var parts []string
	for i, is := range bad {
		if is {
			parts = append(parts, partName(i))
		}
	}
	if len(parts) == 0 { // each is as it was: then it is the record that is wrong
		return &TarballError{Dir: t.Dir, Name: t.Name, Err: why}
	}
	return t.damaged(parts, why)
}

// sum hashes part i.
func (t *Tarball) sum(ctx context.Context, root *os.Root, i int) (release.Digest, error) {
	f, err := t.openPart(root, i)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(onlyWriter{h}, &ctxReader{ctx, f}, make([]byte, 256<<10)); err != nil {
		return "", err
	}
	return digest.NewDigestFromBytes(digest.SHA256, h.Sum(nil)), nil
}

// onlyWriter hides what else a writer can do, so that the buffer is used.
type onlyWriter struct{ io.Writer }

// PartSums is an io.Writer that computes the digests of the parts of what is
// written to it.
type PartSums struct {
	size int64 // of a part, bytes
	left int64
	h    digest.Digester
	sums []release.Digest
}

// NewPartSums returns a PartSums for parts of so many bytes, at least 1.
func NewPartSums(partSize int64) *PartSums { return &PartSums{size: max(1, partSize)} }

// Write never fails.
func (s *PartSums) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if s.left == 0 {
			s.end()
			s.h, s.left = digest.SHA256.Digester(), s.size
		}
		k := min(int64(len(p)), s.left)
		s.h.Hash().Write(p[:k]) // a hash never fails
		p, s.left = p[k:], s.left-k
	}
	return n, nil
}

func (s *PartSums) end() {
	if s.h != nil {
		s.sums = append(s.sums, s.h.Digest())
		s.h = nil
	}
}

// Sums returns the digests, after everything was written.
func (s *PartSums) Sums() []release.Digest {
	s.end()
	s.left = 0
	return s.sums
}
