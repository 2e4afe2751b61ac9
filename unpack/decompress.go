package unpack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// The values of Options.Decompressor.
const (
	DecompressorAuto      = "auto"      // the fastest that there is for the format
	DecompressorKlauspost = "klauspost" // gzip by klauspost/compress, whatever the machine
)

// decompressor turns a compressed stream into the bytes of a tar. Read returns
// io.EOF only where the stream has a right end and the source ends with it:
// what was cut is io.ErrUnexpectedEOF, what is damaged or has something else
// behind it another error. What can be decompressed of the bytes that the
// source has given is returned before the source is waited for again.
type decompressor interface {
	io.Reader
	Taken() int64 // compressed bytes that it has been through, or is about to
	Close() error // ends its goroutines; the source returns an error by then
}

// input is the compressed stream, of which a little can be looked at ahead.
type input struct {
	*bufio.Reader
	src *counter
}

func newInput(r io.Reader) *input {
	src := &counter{r: r}
	return &input{bufio.NewReaderSize(src, 64<<10), src}
}

// taken returns how many bytes have been read of the source.
func (in *input) taken() int64 { return in.src.n.Load() }

// counter counts what is read through it.
type counter struct {
	r io.Reader
	n atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// A format is how a tar is compressed.
type format struct {
	name     string // as a user writes it
	checksum string // what the stream proves of its content; "" for nothing
}

var (
	formatGzip = format{"gzip", "gzip checksum"}
	formatZstd = format{"zstd", "zstd checksum"}
	formatXz   = format{"xz", "xz checksum"}
	formatTar  = format{"tar", ""}
)

var (
	// gzipMagic begins each member (RFC 1952, section 2.3.1: ID1, ID2).
	gzipMagic = []byte{0x1f, 0x8b}
	// zstdMagic begins each frame (RFC 8878, section 3.1.1).
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	// xzMagic begins each stream (The .xz File Format 1.2, section 2.1.1.1).
	xzMagic = []byte{0xfd, '7', 'z', 'X', 'Z', 0}
)

// detect tells the format by the first bytes. It asks for no more of them than
// it needs: a source may stall behind few.
func detect(in *input) (format, error) {
	for _, n := range []int{2, 4, 6, tarBlock} {
		head, err := in.Peek(n)
		if err != nil && err != io.EOF {
			return format{}, fmt.Errorf("read the tarball: %w", err)
		}
		switch {
		case bytes.HasPrefix(head, gzipMagic):
			return formatGzip, nil
		case bytes.HasPrefix(head, zstdMagic), isSkippable(head):
			return formatZstd, nil
		case bytes.HasPrefix(head, xzMagic):
			return formatXz, nil
		case isTar(head):
			return formatTar, nil
		case err == io.EOF:
			return format{}, explain(head)
		}
	}
	head, _ := in.Peek(tarBlock)
	return format{}, explain(head)
}

// tarBlock is the size of a header of a tar, in bytes.
const tarBlock = 512

// isTar says whether a block is a header of POSIX's or GNU's tar: "ustar" at
// 257 and the sum of all bytes, as if those of the sum were spaces, in octal
// at 148 (pax(1), ustar Interchange Format).
func isTar(block []byte) bool {
	if len(block) < tarBlock || !bytes.HasPrefix(block[257:], []byte("ustar")) {
		return false
	}
	sum := 8 * int(' ')
	for i, b := range block[:tarBlock] {
		if i < 148 || i >= 156 {
			sum += int(b)
		}
	}
	says, err := strconv.ParseInt(string(bytes.Trim(block[148:156], " \x00")), 8, 32)
	return err == nil && int(says) == sum
}

// otherMagics begin what people may hold for a tarball.
var otherMagics = []struct{ magic, what string }{
	{"PK\x03\x04", "a zip file, as AMD publishes for Windows; only Linux tarballs can be unpacked"},
	{"BZh", "bzip2, which is not read: recompress it with gzip, zstd or xz"},
	{"\x04\x22\x4d\x18", "lz4, which is not read: recompress it with gzip, zstd or xz"},
	{"LZIP", "lzip, which is not read: recompress it with gzip, zstd or xz"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive, which is not read: make a .tar.gz, .tar.zst or .tar.xz of it"},
	{"!<arch>\n", "a .deb package or an ar archive, not a tarball"},
	{"\xed\xab\xee\xdb", "an RPM package, not a tarball"},
}

// explain says what a stream is that cannot be read.
func explain(head []byte) error {
	for _, magic := range [][]byte{gzipMagic, zstdMagic, xzMagic} {
		if len(head) > 0 && bytes.HasPrefix(magic, head) {
			return ErrTruncated
		}
	}
	if len(head) > 1 && len(head) < 4 && maybeFrame(head) {
		return ErrTruncated
	}
	for _, o := range otherMagics {
		if bytes.HasPrefix(head, []byte(o.magic)) {
			return fmt.Errorf("this is %s", o.what)
		}
	}
	trimmed := strings.ToLower(string(bytes.TrimSpace(head)))
	html := func(prefix string) bool { return strings.HasPrefix(trimmed, prefix) }
	switch {
	case len(head) == 0:
		return fmt.Errorf("%w: it is empty", ErrTruncated)
	case slices.ContainsFunc([]string{"<!doctype html", "<html", "<?xml"}, html):
		return errors.New("this is a web page, not a tarball: the server answered with an error page; try again later or check the URL")
	case len(head) < tarBlock && len(head) > 262 && bytes.HasPrefix(head[257:], []byte("ustar")):
		return ErrTruncated
	case len(head) == tarBlock && bytes.HasPrefix(head[257:], []byte("ustar")):
		return errors.New("this is a tar whose first header is damaged: fetch it again")
	}
	return fmt.Errorf("this is not a tarball (.tar.gz, .tar.zst, .tar.xz or .tar): it begins with %.16q", head)
}

// decompress begins to decompress in. cores is how many threads may be busy.
func decompress(ctx context.Context, f format, in *input, name string, cores int) (decompressor, error) {
	switch name {
	case "", DecompressorAuto, DecompressorKlauspost:
	default:
		return nil, fmt.Errorf("decompressor %q is neither %s nor %s", name, DecompressorAuto, DecompressorKlauspost)
	}
	switch f {
	case formatZstd:
		return newZstd(in, cores)
	case formatXz:
		return newXz(in)
	case formatTar:
		return plain{in}, nil
	}
	if name == DecompressorKlauspost {
		return newGzip(in)
	}
	return newFastGzip(ctx, in), nil
}

// engine names what decompress takes for a format.
func engine(f format, name string) string {
	switch {
	case f == formatTar:
		return "none"
	case f == formatXz:
		return "therootcompany/xz"
	case f == formatZstd, name == DecompressorKlauspost:
		return "klauspost/compress"
	}
	return "pgunzip"
}

// cores is how many threads there are to be busy.
func cores() int { return runtime.GOMAXPROCS(0) }

// plain is a tar that is not compressed.
type plain struct{ *input }

func (p plain) Taken() int64 { return p.taken() }

func (p plain) Close() error { return nil }

// padding reads what follows the end of a compressed stream: nothing, or NULs,
// with which tapes and gzip(1) allow a file to be filled up. It returns io.EOF
// then, and n, how many NULs there were.
func padding(in *input, what string) (n int64, err error) {
	for {
		head, err := in.Peek(max(1, in.Buffered()))
		if len(bytes.TrimLeft(head, "\x00")) > 0 {
			return n, fmt.Errorf("%w: bytes after the end of the %s stream; fetch it again", ErrRefused, what)
		}
		if len(head) == 0 {
			return n, err
		}
		discarded, err := in.Discard(len(head))
		n += int64(discarded)
		if err != nil {
			return n, err
		}
	}
}

// little reads a little-endian number of 0 to 8 bytes.
func little(b []byte) uint64 {
	var full [8]byte
	copy(full[:], b)
	return binary.LittleEndian.Uint64(full[:])
}
