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

const (
	readAheadSize  = 1 << 20 // bytes of one read of the source
	readAheadDepth = 4       // reads that may wait for the decompressor
	tarBlock       = 512     // POSIX pax interchange format, ustar: all is in blocks of this
	tarEnd         = 2 * tarBlock
)

// stream is the decompressed tar. It reads ahead of the decompressor in its
// own goroutine, so that fetching and hashing the source run beside inflating,
// and remembers what is needed to tell whether the archive was complete.
type stream struct {
	ahead  *readAhead
	gz     *gzip.Reader
	limits Limits
	out    int64 // bytes decompressed
	zeros  int64 // NUL bytes at the end of what has been decompressed
}

func newStream(ctx context.Context, r io.Reader, limits Limits) (*stream, error) {
	ahead := newReadAhead(ctx, r)
	buffered := bufio.NewReaderSize(ahead, 64<<10)
	head, err := buffered.Peek(512)
	if err != nil && err != io.EOF {
		ahead.Close()
		return nil, fmt.Errorf("unpack: read the tarball: %w", err)
	}
	if err := notGzip(head); err != nil {
		ahead.Close()
		return nil, fmt.Errorf("unpack: %w", err)
	}
	gz, err := gzip.NewReader(buffered)
	if err != nil {
		ahead.Close()
		return nil, fmt.Errorf("unpack: read the gzip header: %w", truncated(err))
	}
	return &stream{ahead: ahead, gz: gz, limits: limits}, nil
}

// notGzip explains what the stream is when it is not gzip.
func notGzip(head []byte) error {
	trimmed := strings.ToLower(string(bytes.TrimSpace(head)))
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return nil
	case len(head) == 0:
		return fmt.Errorf("%w: it is empty", ErrTruncated)
	case len(head) == 1 && head[0] == 0x1f:
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

// Read implements io.Reader over the tar.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.gz.Read(p)
	s.count(p[:n])
	if s.out > s.limits.ratioFrom && float64(s.out) > s.limits.MaxRatio*float64(s.ahead.taken()) {
		return n, fmt.Errorf("%w: more than %.0f bytes out for each byte in, as a decompression bomb has (raise unpack.max_ratio if this is right)", ErrRefused, s.limits.MaxRatio)
	}
	return n, err
}

func (s *stream) count(p []byte) {
	s.out += int64(len(p))
	content := len(bytes.TrimRight(p, "\x00"))
	if content > 0 {
		s.zeros = 0
	}
	s.zeros += int64(len(p) - content)
}

// finish reads what follows the last entry, to the end of the source, and
// checks that the tar had its end: archive/tar takes a stream that just stops
// between two entries for a whole one.
func (s *stream) finish() error {
	buf := make([]byte, 64<<10)
	for {
		_, err := s.Read(buf)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("unpack: read to the end of the tarball: %w", truncated(err))
		}
	}
	if s.zeros < tarEnd || s.out%tarBlock != 0 {
		return fmt.Errorf("unpack: %w: the archive has no end-of-archive blocks; fetch it again", ErrTruncated)
	}
	return nil
}

// Close stops the goroutine that reads ahead and waits for it.
func (s *stream) Close() {
	s.gz.Close()
	s.ahead.Close()
}

// readAhead reads its source in its own goroutine, in large pieces.
type readAhead struct {
	cancel context.CancelFunc
	full   chan piece
	free   chan []byte
	done   chan struct{}
	cur    piece
	off    int
	n      int64 // bytes handed out
}

type piece struct {
	data []byte
	err  error
}

func newReadAhead(ctx context.Context, r io.Reader) *readAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &readAhead{
		cancel: cancel,
		full:   make(chan piece, readAheadDepth),
		free:   make(chan []byte, readAheadDepth+1),
		done:   make(chan struct{}),
	}
	for range readAheadDepth + 1 {
		a.free <- nil
	}
	go a.run(ctx, r)
	return a
}

func (a *readAhead) run(ctx context.Context, r io.Reader) {
	defer close(a.done)
	defer close(a.full)
	for {
		var buf []byte
		select {
		case buf = <-a.free:
		case <-ctx.Done():
			a.full <- piece{err: ctx.Err()}
			return
		}
		if buf == nil {
			buf = make([]byte, readAheadSize)
		}
		n, err := readSome(r, buf)
		select {
		case a.full <- piece{buf[:n], err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// readSome reads until buf is full or the source ends, and returns the source's
// own error: io.ReadFull would not tell its end from its failure.
func readSome(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var k int
		k, err = r.Read(buf[n:])
		n += k
	}
	return n, err
}

// Read implements io.Reader.
func (a *readAhead) Read(p []byte) (int, error) {
	for a.off == len(a.cur.data) {
		if a.cur.err != nil {
			return 0, a.cur.err
		}
		if a.cur.data != nil {
			a.free <- a.cur.data[:cap(a.cur.data)]
		}
		next, ok := <-a.full
		if !ok {
			next.err = context.Canceled
		}
		a.cur, a.off = next, 0
	}
	n := copy(p, a.cur.data[a.off:])
	a.off += n
	a.n += int64(n)
	return n, nil
}

// taken returns how many bytes of the source the decompressor has been given.
func (a *readAhead) taken() int64 { return a.n }

// Close stops reading. The source's Read, if one is under way, is waited for.
func (a *readAhead) Close() {
	a.cancel()
	for range a.full { // unblock the sender
	}
	<-a.done
}
