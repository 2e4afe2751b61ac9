package unpack

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// stream is the decompressed tar. It reads ahead of the decompressor in its
// own goroutine, so that fetching and hashing the source run beside inflating.
type stream struct {
	ahead  *readAhead
	in     *bufio.Reader // what the decompressor reads: it stops just after a member
	gz     *gzip.Reader
	limits Limits
	out    int64 // bytes decompressed
	ended  bool  // somebody asked for bytes after the last
}

func newStream(ctx context.Context, r io.Reader, limits Limits) (*stream, error) {
	s := &stream{ahead: newReadAhead(ctx, r), limits: limits}
	s.in = bufio.NewReaderSize(s.ahead, 64<<10)
	if err := s.open(); err != nil {
		s.ahead.Close()
		return nil, err
	}
	return s, nil
}

// open reads the header of the first gzip member.
func (s *stream) open() error {
	head, err := s.in.Peek(len(gzipMagic)) // no more: a source may stall behind few bytes
	if err == nil && !bytes.Equal(head, gzipMagic) {
		head, err = s.in.Peek(512)
	}
	if err != nil && err != io.EOF {
		return fmt.Errorf("unpack: read the tarball: %w", err)
	}
	if err := notGzip(head); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	s.gz = new(gzip.Reader)
	if err := s.member(); err != nil {
		return fmt.Errorf("unpack: read the gzip header: %w", truncated(err))
	}
	return nil
}

// member begins the gzip member that comes next. Members are taken one by one
// because the package reads a header cut in its file name as a clean end, and
// calls NULs after the last member damage.
func (s *stream) member() error {
	err := s.gz.Reset(s.in)
	s.gz.Multistream(false)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// notGzip explains what the stream is when it is not gzip.
func notGzip(head []byte) error {
	trimmed := strings.ToLower(string(bytes.TrimSpace(head)))
	switch {
	case bytes.HasPrefix(head, gzipMagic):
		return nil
	case len(head) == 0:
		return fmt.Errorf("%w: it is empty", ErrTruncated)
	case len(head) == 1 && head[0] == gzipMagic[0]:
		return ErrTruncated
	case strings.HasPrefix(trimmed, "<!doctype html"), strings.HasPrefix(trimmed, "<html"), strings.HasPrefix(trimmed, "<?xml"):
		return errors.New("this is a web page, not a tarball: the server answered with an error page; try again later or check the URL")
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return errors.New("this is a zip file, as AMD publishes for Windows; only Linux tarballs can be unpacked")
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}), bytes.HasPrefix(head, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return errors.New("this is zstd or xz, not gzip: AMD publishes .tar.gz; recompress it with gzip")
	}
	return fmt.Errorf("this is not a gzip file: it begins with %.16q", head)
}

// gzipMagic begins each member (RFC 1952, section 2.3.1: ID1, ID2).
var gzipMagic = []byte{0x1f, 0x8b}

// Read implements io.Reader over the tar. It never returns bytes together with
// an error, so that ended means that a reader wanted more than there was.
func (s *stream) Read(p []byte) (int, error) {
	for len(p) > 0 {
		n, err := s.gz.Read(p) // its errors come again with the next call
		if n > 0 {
			s.out += int64(n)
			return n, s.judge(s.out)
		}
		if err == io.EOF {
			err = s.next()
		}
		if err != nil {
			s.ended = err == io.EOF
			return 0, err
		}
	}
	return 0, nil
}

// judge refuses what is a decompression bomb when out bytes have come of those
// taken so far.
func (s *stream) judge(out int64) error {
	if out <= s.limits.ratioFrom || float64(out) <= s.limits.MaxRatio*float64(s.ahead.taken()) {
		return nil
	}
	return fmt.Errorf("%w: more than %.0f bytes out for each byte in, as a decompression bomb has (raise unpack.max_ratio if this is right)", ErrRefused, s.limits.MaxRatio)
}

// next goes on after a gzip member: to another member, or past NULs, with
// which tapes and gzip(1) allow a file to be filled up, to io.EOF.
func (s *stream) next() error {
	head, err := s.in.Peek(len(gzipMagic))
	if len(head) > 0 && bytes.HasPrefix(gzipMagic, head) {
		return s.member()
	}
	if len(head) == 0 {
		return err
	}
	for {
		head, err = s.in.Peek(max(1, s.in.Buffered()))
		if len(bytes.TrimLeft(head, "\x00")) > 0 {
			return fmt.Errorf("%w: bytes after the end of the gzip stream; fetch it again", ErrRefused)
		}
		if len(head) == 0 {
			return err
		}
		if _, err := s.in.Discard(len(head)); err != nil {
			return err
		}
	}
}

// finish reads what follows the last entry, to the end of the source, and
// checks that the tar had its end: archive/tar takes a stream that just stops
// between two entries for a whole one, and looks at nothing after the two
// blocks of zeros that end an archive.
func (s *stream) finish() error {
	if s.ended {
		return fmt.Errorf("unpack: %w: the archive has no end-of-archive blocks; fetch it again", ErrTruncated)
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := s.Read(buf)
		if len(bytes.TrimLeft(buf[:n], "\x00")) > 0 {
			return fmt.Errorf("unpack: %w: data after the end of the archive; fetch it again", ErrRefused)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack: read to the end of the tarball: %w", truncated(err))
		}
	}
}

// Close stops reading ahead.
func (s *stream) Close() {
	s.gz.Close()
	s.ahead.Close()
}
