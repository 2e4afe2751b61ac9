package unpack

import (
	"bytes"
	"context"
	"fmt"
	"io"
)

// stream is the decompressed tar. It reads ahead of the decompressor in its
// own goroutine, so that fetching and hashing the source run beside inflating.
type stream struct {
	ahead  *readAhead
	dec    decompressor
	format format
	engine string // as Result.Decompressor
	limits Limits
	out    int64 // bytes decompressed
	ended  bool  // somebody asked for bytes after the last
}

func newStream(ctx context.Context, r io.Reader, limits Limits, decompressor string) (*stream, error) {
	s := &stream{ahead: newReadAhead(ctx, r), limits: limits}
	in := newInput(s.ahead)
	var err error
	if s.format, err = detect(in); err == nil {
		s.engine = engine(s.format, decompressor)
		s.dec, err = decompress(ctx, s.format, in, decompressor, cores())
	}
	if err != nil {
		s.ahead.Close()
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return s, nil
}

// Read implements io.Reader over the tar. It never returns bytes together with
// an error, so that ended means that a reader wanted more than there was.
func (s *stream) Read(p []byte) (int, error) {
	for len(p) > 0 {
		n, err := s.dec.Read(p) // its errors come again with the next call
		if n > 0 {
			s.out += int64(n)
			return n, s.judge(s.out)
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
	if out > s.limits.maxOut() {
		return fmt.Errorf("%w: more than %d bytes with all headers, far more than the entries need (raise unpack.max_bytes or unpack.max_entries if this is right)", ErrRefused, s.limits.maxOut())
	}
	if out <= s.limits.ratioFrom || float64(out) <= s.limits.MaxRatio*float64(s.dec.Taken()) {
		return nil
	}
	return fmt.Errorf("%w: more than %.0f bytes out for each byte in, as a decompression bomb has (raise unpack.max_ratio if this is right)", ErrRefused, s.limits.MaxRatio)
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

// checks lists what the stream has proved of itself once it was read to its end.
func (s *stream) checks() []string {
	if z, ok := s.dec.(interface{ checked() bool }); s.format.checksum == "" || ok && !z.checked() {
		return []string{endOfArchive}
	}
	return []string{s.format.checksum, endOfArchive}
}

const endOfArchive = "end of archive"

// Close stops reading ahead, and what decompresses.
func (s *stream) Close() {
	s.ahead.cancel() // a decompressor that waits for the source is free to end
	s.dec.Close()
	s.ahead.Close()
}
