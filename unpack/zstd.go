package unpack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest window, in bytes, that a frame may ask for: zstd
// --ultra -22 takes 128 MiB of a large file, --long=27 as much. The decoder
// keeps the window, and as much again, in memory.
const maxWindow = 128 << 20

// unzstd is zstd by klauspost/compress, which is fed frame by frame. On its own
// it takes a magic number that was cut for a clean end.
type unzstd struct {
	frames *zstdFrames
	dec    *zstd.Decoder
}

func newZstd(in *input, cores int) (*unzstd, error) {
	frames := &zstdFrames{in: in}
	// With one, it would fill up what Read is given before it returns, while
	// the source hangs.
	dec, err := zstd.NewReader(frames, zstd.WithDecoderConcurrency(min(max(cores, 2), 4)), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("read zstd: %w", err)
	}
	return &unzstd{frames, dec}, nil
}

// Read implements io.Reader.
func (z *unzstd) Read(p []byte) (int, error) {
	n, err := z.dec.Read(p)
	if err == io.EOF && !z.frames.ended.Load() {
		err = io.ErrUnexpectedEOF
	}
	if errors.Is(err, zstd.ErrCRCMismatch) {
		err = fmt.Errorf("zstd: wrong checksum: %w", err)
	}
	return n, err
}

func (z *unzstd) Taken() int64 { return z.frames.in.taken() }

// checked says whether every frame had a checksum.
func (z *unzstd) checked() bool { return !z.frames.bare.Load() }

func (z *unzstd) Close() error {
	z.dec.Close()
	return nil
}

// zstdFrames reads a zstd stream and knows where in it it is (RFC 8878, section
// 3.1). It is the decoder's source: a window that is too large, what comes
// behind the last frame, and the end itself are judged before the decoder sees
// them. It is read by a goroutine of the decoder.
type zstdFrames struct {
	in       *input
	left     int64 // bytes to pass on before the next header
	inFrame  bool
	checksum bool // of the frame: 4 bytes behind its last block
	err      error

	ended atomic.Bool // the stream has a right end
	bare  atomic.Bool // a frame had no checksum
}

// Read implements io.Reader.
func (z *zstdFrames) Read(p []byte) (int, error) {
	for z.left == 0 && z.err == nil {
		if z.inFrame {
			z.err = z.block()
		} else {
			z.err = z.frame()
			z.ended.Store(z.err == io.EOF)
		}
	}
	if z.left == 0 {
		return 0, z.err
	}
	n, err := z.in.Read(p[:min(int64(len(p)), z.left)])
	z.left -= int64(n)
	return n, cut(err)
}

// errCut stands for the end of the source where there must not be one. The
// decoder takes io.ErrUnexpectedEOF itself for an end in some places.
var errCut = fmt.Errorf("zstd: %w", io.ErrUnexpectedEOF)

func cut(err error) error {
	if err == io.EOF {
		return errCut
	}
	return err
}

// header peeks at just n bytes.
func (z *zstdFrames) header(n int) ([]byte, error) {
	head, err := z.in.Peek(n)
	return head, cut(err)
}

// frame reads the header of a frame, or finds the end of the stream.
func (z *zstdFrames) frame() error {
	head, err := z.in.Peek(1)
	if len(head) == 0 {
		return err
	}
	if head[0] == 0 {
		_, err := padding(z.in, formatZstd.name)
		return err
	}
	if head, err = z.in.Peek(4); err != nil && err != io.EOF {
		return err
	}
	switch {
	case isSkippable(head):
		if head, err = z.header(8); err == nil {
			z.left = 8 + int64(little(head[4:]))
		}
		return err
	case len(head) == 4 && !bytes.Equal(head, zstdMagic), len(head) < 4 && !maybeFrame(head):
		_, err := padding(z.in, formatZstd.name)
		return err
	}
	return z.data()
}

// isSkippable says whether a frame is one that decoders skip: 0x184D2A50 to
// 0x184D2A5F. pzstd begins with one.
func isSkippable(magic []byte) bool {
	return len(magic) >= 4 && magic[0]&0xf0 == 0x50 && string(magic[1:4]) == "\x2a\x4d\x18"
}

// maybeFrame says whether a magic number was cut.
func maybeFrame(head []byte) bool {
	return bytes.HasPrefix(zstdMagic, head) || head[0]&0xf0 == 0x50 && bytes.HasPrefix([]byte("\x2a\x4d\x18"), head[1:])
}

// data reads the header of a frame that has data (section 3.1.1.1).
func (z *zstdFrames) data() error {
	head, err := z.header(5)
	if err != nil {
		return err
	}
	flags := head[4]
	single := flags>>5&1 == 1
	dict := [4]int{0, 1, 2, 4}[flags&3]
	content := [4]int{0, 2, 4, 8}[flags>>6]
	size := 5 + dict
	if single {
		content = max(content, 1)
	} else {
		size++
	}
	if head, err = z.header(size + content); err != nil {
		return err
	}
	window := little(head[size:])
	if content == 2 {
		window += 256
	}
	if !single {
		exponent, mantissa := head[5]>>3, uint64(head[5]&7)
		window = (8 + mantissa) << (10 + exponent) / 8
	}
	switch id := little(head[size-dict : size]); {
	case id != 0:
		return fmt.Errorf("%w: it was compressed with zstd's dictionary %d; recompress it without one", ErrRefused, id)
	case window > maxWindow:
		return fmt.Errorf("%w: it needs a zstd window of %d MiB, more than %d MiB; recompress it without --long, or with --long=27", ErrRefused, window>>20, maxWindow>>20)
	}
	if z.checksum = flags>>2&1 == 1; !z.checksum {
		z.bare.Store(true)
	}
	z.left, z.inFrame = int64(size+content), true
	return nil
}

// block reads the header of a block (section 3.1.1.2).
func (z *zstdFrames) block() error {
	head, err := z.header(3)
	if err != nil {
		return err
	}
	b := int64(little(head))
	z.left = 3 + b>>3
	if kind := b >> 1 & 3; kind == 1 { // one byte, repeated
		z.left = 3 + 1
	}
	if b&1 == 1 { // the last
		z.inFrame = false
		if z.checksum {
			z.left += 4
		}
	}
	return nil
}
