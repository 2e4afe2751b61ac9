package unpack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// fastGunzip is gzip by our own package.
type fastGunzip struct{ *pgunzip.Reader }

func newFastGzip(ctx context.Context, in *input) fastGunzip {
	return fastGunzip{pgunzip.NewReader(ctx, in.Reader, pgunzip.Options{})}
}

// Read implements io.Reader.
func (g fastGunzip) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if errors.Is(err, pgunzip.ErrTrailing) {
		err = fmt.Errorf("%w: %w; fetch it again", ErrRefused, err)
	}
	return n, err
}

// gunzip is gzip by klauspost/compress.
type gunzip struct {
	in *input // the package stops just after a member
	gz *gzip.Reader
}

func newGzip(in *input) (*gunzip, error) {
	g := &gunzip{in: in, gz: new(gzip.Reader)}
	if err := g.member(); err != nil {
		return nil, fmt.Errorf("read the gzip header: %w", truncated(err))
	}
	return g, nil
}

// member begins the gzip member that comes next. Members are taken one by one
// because the package reads a header cut in its file name as a clean end, and
// calls NULs after the last member damage.
func (g *gunzip) member() error {
	err := g.gz.Reset(g.in.Reader) // the package is faster where it knows the type
	g.gz.Multistream(false)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Read implements io.Reader.
func (g *gunzip) Read(p []byte) (int, error) {
	for len(p) > 0 {
		n, err := g.gz.Read(p) // its errors come again with the next call
		if n > 0 {
			return n, nil
		}
		if err == io.EOF {
			err = g.next()
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// next goes on after a gzip member: to another member, or past NULs to io.EOF.
func (g *gunzip) next() error {
	head, err := g.in.Peek(len(gzipMagic))
	if len(head) > 0 && bytes.HasPrefix(gzipMagic, head) {
		return g.member()
	}
	if len(head) == 0 {
		return err
	}
	_, err = padding(g.in, formatGzip.name)
	return err
}

func (g *gunzip) Taken() int64 { return g.in.taken() }

func (g *gunzip) Close() error { return g.gz.Close() }
