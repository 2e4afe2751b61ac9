package unpack

import (
	"errors"
	"fmt"
	"io"

	"github.com/therootcompany/xz"
)

// maxDict is the largest dictionary, in bytes, that a block may ask for: xz -9
// takes 64 MiB.
const maxDict = 256 << 20

// unxz is xz (The .xz File Format 1.2). Streams may follow each other, with
// padding between them.
type unxz struct {
	src  *patient
	xz   *xz.Reader
	bare bool // a stream had no checksum
	err  error
}

func newXz(in *input) (*unxz, error) {
	z := &unxz{src: &patient{in: in}}
	dec, err := xz.NewReader(z.src, maxDict)
	for errors.Is(err, errWouldWait) {
		if err = z.wait(); err == nil {
			_, err = dec.Read(nil) // the header
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the xz header: %w", z.explain(err))
	}
	z.xz = dec
	z.begin()
	return z, nil
}

// begin is the beginning of a stream, whose header has been read.
func (z *unxz) begin() {
	z.xz.Multistream(false) // so that each stream shows what checksum it has
	z.bare = z.bare || z.xz.CheckType == xz.CheckNone
}

func (z *unxz) Taken() int64 { return z.src.in.taken() }

func (z *unxz) Close() error { return nil }

// checked says whether every stream had a checksum.
func (z *unxz) checked() bool { return !z.bare }

// Read implements io.Reader.
func (z *unxz) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if z.err != nil {
			return 0, z.err
		}
		n, err := z.xz.Read(p)
		switch {
		case errors.Is(err, errWouldWait):
			if n == 0 {
				z.err = z.wait()
			}
		case err == io.EOF:
			z.err = z.next()
		case err != nil:
			z.err = z.explain(err)
		}
		if n > 0 {
			return n, nil
		}
	}
	return 0, nil
}

// next goes on to another stream, or is io.EOF.
func (z *unxz) next() error {
	err := z.xz.Reset(nil)
	for errors.Is(err, errWouldWait) {
		if err = z.wait(); err == nil {
			_, err = z.xz.Read(nil)
		}
	}
	switch {
	case err == io.EOF:
		return io.EOF
	case errors.Is(err, xz.ErrFormat):
		return fmt.Errorf("%w: bytes after the end of the xz stream; fetch it again", ErrRefused)
	case err != nil:
		return z.explain(err)
	}
	z.begin()
	return nil
}

// explain says what an error of the package means.
func (z *unxz) explain(err error) error {
	switch {
	case errors.Is(err, xz.ErrBuf) && z.src.ended: // "truncated or corrupt"
		return truncated(io.ErrUnexpectedEOF)
	case errors.Is(err, xz.ErrMemlimit):
		return fmt.Errorf("%w: it asks for a dictionary of more than %d MiB; recompress it with xz -9 or less", ErrRefused, maxDict>>20)
	case errors.Is(err, xz.ErrOptions):
		return fmt.Errorf("%w: the xz stream uses a filter that is not known; recompress it with gzip, zstd or xz", ErrRefused)
	case errors.Is(err, xz.ErrUnsupportedCheck):
		return fmt.Errorf("%w: the xz stream has a checksum of an unknown kind; recompress it with gzip, zstd or xz", ErrRefused)
	}
	return err
}

// errWouldWait is how a patient reader says that nothing is there at the moment.
var errWouldWait = errors.New("nothing has come yet")

// patient reads what is buffered, and never waits for the source. The package
// fills the buffer that it is given before it returns: with the source itself,
// what has been decompressed would have to wait for what has not come.
type patient struct {
	in    *input
	ended bool
}

func (p *patient) Read(b []byte) (int, error) {
	n := min(p.in.Buffered(), len(b))
	switch {
	case n > 0:
		return p.in.Reader.Read(b[:n])
	case p.ended:
		return 0, io.EOF
	}
	return 0, errWouldWait
}

// wait waits until something has come, or nothing more will.
func (z *unxz) wait() error {
	_, err := z.src.in.Peek(1)
	if err == io.EOF {
		z.src.ended = true
		return nil
	}
	return err
}
