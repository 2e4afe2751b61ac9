package unpack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
)

// maxDict is the largest dictionary, in bytes, that a block may ask for: xz -9
// takes 64 MiB. Memory for it is taken as the output grows.
const maxDict = 256 << 20

// unxz is xz: the container as The .xz File Format 1.2 has it, with LZMA2 as the
// only filter, as xz -0 to -9 write it. Streams may follow each other. It is
// made for tarballs that are handed over, not for speed: half that of xz(1), on
// one thread.
type unxz struct {
	in    *input
	lzma2 lzma2
	crc64 *crc64.Table

	flags  [2]byte // of the stream
	block  *xzBlock
	blocks int64     // of the stream
	sizes  hash.Hash // of what the index must say of each
	bare   bool      // a stream had no checksum
	err    error
}

// xzBlock is the block that is being decoded.
type xzBlock struct {
	header       int64 // bytes
	packed, size int64 // as the header says, -1 for nothing
	out          int64
	check        hash.Hash // nil for none
	sum          int       // bytes of the check
}

var errXz = errors.New("xz: the stream is damaged")

func newXz(in *input) (*unxz, error) {
	z := &unxz{in: in, lzma2: lzma2{in: in}, crc64: crc64.MakeTable(crc64.ECMA), sizes: sha256.New()}
	if err := z.stream(); err != nil {
		return nil, fmt.Errorf("read the xz header: %w", truncated(err))
	}
	return z, nil
}

func (z *unxz) Taken() int64 { return z.in.taken() }

func (z *unxz) Close() error { return nil }

// checked says whether every stream had a checksum.
func (z *unxz) checked() bool { return !z.bare }

// Read implements io.Reader.
func (z *unxz) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if n := z.lzma2.pull(p); n > 0 {
			z.block.out += int64(n)
			if z.block.check != nil {
				z.block.check.Write(p[:n])
			}
			return n, nil
		}
		if z.err == nil {
			z.err = z.step()
		}
		if z.err != nil {
			return 0, z.err
		}
	}
	return 0, nil
}

// step goes on to the next chunk, block or stream.
func (z *unxz) step() error {
	if z.block == nil {
		return z.header()
	}
	if z.block.size >= 0 && z.block.out > z.block.size {
		return errXz
	}
	err := z.lzma2.next()
	if err == io.EOF {
		return z.endBlock()
	}
	return err
}

// take reads n bytes.
func (z *unxz) take(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(z.in, b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// sealed reads n bytes and the CRC-32 of them that follows.
func (z *unxz) sealed(n int) ([]byte, error) {
	b, err := z.take(n + 4)
	if err == nil && crc32.ChecksumIEEE(b[:n]) != binary.LittleEndian.Uint32(b[n:]) {
		err = errXz
	}
	return b[:n], err
}

// sums lists the size of each kind of check (section 2.1.1.2).
var sums = map[byte]int{0: 0, 1: 4, 4: 8, 10: 32}

// stream reads the header of a stream.
func (z *unxz) stream() error {
	magic, err := z.take(len(xzMagic))
	if err != nil {
		return err
	}
	if !bytes.Equal(magic, xzMagic) {
		return errXz
	}
	flags, err := z.sealed(2)
	if err != nil {
		return err
	}
	z.flags = [2]byte(flags)
	if _, known := sums[flags[1]]; !known || flags[0] != 0 {
		return fmt.Errorf("%w: xz with a check of kind %d, which is not known; recompress it with xz --check=crc64", ErrRefused, flags[1])
	}
	z.bare = z.bare || flags[1] == 0
	z.blocks = 0
	z.sizes.Reset()
	return nil
}

// header reads the header of a block, or, at the end of a stream, all to the
// next block.
func (z *unxz) header() error {
	head, err := z.in.Peek(1)
	if err != nil {
		return unexpected(err)
	}
	if head[0] == 0 {
		if err := z.index(); err != nil {
			return err
		}
		return z.after()
	}
	size := (int(head[0]) + 1) * 4
	b, err := z.sealed(size - 4)
	if err != nil {
		return err
	}
	z.block = &xzBlock{header: int64(size), packed: -1, size: -1, sum: sums[z.flags[1]]}
	switch z.flags[1] {
	case 1:
		z.block.check = crc32.NewIEEE()
	case 4:
		z.block.check = crc64.New(z.crc64)
	case 10:
		z.block.check = sha256.New()
	}
	dict, err := z.block.parse(b)
	if err != nil {
		return err
	}
	z.lzma2.begin(dict)
	return nil
}

// parse reads the header of a block (section 3.1), and returns how large its
// dictionary is.
func (k *xzBlock) parse(b []byte) (dict int, err error) {
	flags, rest := b[1], bytes.NewReader(b[2:])
	number := func() int64 {
		var n uint64
		if err == nil {
			n, err = binary.ReadUvarint(rest)
		}
		if err == nil && n >= 1<<63 {
			err = errXz
		}
		return int64(n)
	}
	if flags&0x40 != 0 {
		k.packed = number()
	}
	if flags&0x80 != 0 {
		k.size = number()
	}
	filter := number()
	switch {
	case err != nil || flags&0x3c != 0:
		return 0, errXz
	case flags&3 != 0 || filter != 0x21:
		return 0, fmt.Errorf("%w: xz with another filter than LZMA2; recompress it with xz -6", ErrRefused)
	case number() != 1:
		return 0, errXz
	}
	bits, err := rest.ReadByte()
	if err != nil || bits > 40 {
		return 0, errXz
	}
	for rest.Len() > 0 {
		if pad, _ := rest.ReadByte(); pad != 0 {
			return 0, errXz
		}
	}
	size := int64(2|bits&1) << (bits/2 + 11) // section 5.3.1
	if size > maxDict {
		return 0, fmt.Errorf("%w: it needs an xz dictionary of %d MiB, more than %d MiB; recompress it with xz -9 or less", ErrRefused, size>>20, maxDict>>20)
	}
	return int(size), nil
}

// endBlock compares a block with what its header and its check say.
func (z *unxz) endBlock() error {
	k := z.block
	z.block = nil
	packed := z.lzma2.taken
	if k.packed >= 0 && k.packed != packed || k.size >= 0 && k.size != k.out {
		return errXz
	}
	pad, err := z.take(int(-packed & 3))
	if err != nil {
		return err
	}
	if len(bytes.Trim(pad, "\x00")) > 0 {
		return errXz
	}
	says, err := z.take(k.sum)
	if err != nil {
		return err
	}
	if k.check != nil {
		is := k.check.Sum(nil)
		if k.sum < sha256.Size { // the CRCs are little-endian, Go's are not
			for i, b := range k.check.Sum(nil) {
				is[k.sum-1-i] = b
			}
		}
		if !bytes.Equal(is, says) {
			return errors.New("xz: wrong checksum")
		}
	}
	z.blocks++
	z.record(k.header+packed+int64(k.sum), k.out)
	return nil
}

// record takes down what the index says of a block.
func (z *unxz) record(unpadded, size int64) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], uint64(unpadded))
	binary.LittleEndian.PutUint64(b[8:], uint64(size))
	z.sizes.Write(b[:])
}

// index reads the index and the footer of a stream (sections 4 and 2.1.2), and
// compares them with what was decoded.
func (z *unxz) index() error {
	in := &summed{in: z.in}
	were, blocks := z.sizes.Sum(nil), uint64(z.blocks)
	z.sizes.Reset()
	if _, err := in.ReadByte(); err != nil {
		return unexpected(err)
	}
	n, err := binary.ReadUvarint(in)
	if err != nil {
		return unexpected(err)
	}
	if n != blocks {
		return errXz
	}
	for range blocks {
		unpadded, err := binary.ReadUvarint(in)
		if err != nil {
			return unexpected(err)
		}
		size, err := binary.ReadUvarint(in)
		if err != nil {
			return unexpected(err)
		}
		z.record(int64(unpadded), int64(size))
	}
	for in.n%4 != 0 {
		if pad, err := in.ReadByte(); err != nil || pad != 0 {
			return errors.Join(errXz, unexpected(err))
		}
	}
	sum, err := z.take(4)
	if err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(sum) != in.sum || !bytes.Equal(were, z.sizes.Sum(nil)) {
		return errXz
	}
	return z.footer(in.n + 4)
}

// footer reads what ends a stream.
func (z *unxz) footer(index int64) error {
	b, err := z.take(12)
	if err != nil {
		return err
	}
	switch {
	case crc32.ChecksumIEEE(b[4:10]) != binary.LittleEndian.Uint32(b),
		int64(binary.LittleEndian.Uint32(b[4:])) != index/4-1,
		[2]byte(b[8:10]) != z.flags, string(b[10:]) != "YZ":
		return errXz
	}
	return nil
}

// after goes past NULs to another stream or to the end.
func (z *unxz) after() error {
	for skipped := 0; ; skipped++ {
		head, err := z.in.Peek(1)
		switch {
		case len(head) == 0:
			return err
		case head[0] == 0:
			z.in.Discard(1) // it is there
		case head[0] == xzMagic[0] && skipped%4 == 0:
			if head, _ = z.in.Peek(len(xzMagic)); bytes.HasPrefix(xzMagic, head) {
				return z.stream()
			}
			fallthrough
		default:
			_, err = padding(z.in, formatXz.name)
			return err
		}
	}
}

// unexpected is err, but for an end of the source.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// summed reads byte by byte, and sums up.
type summed struct {
	in  *input
	sum uint32
	n   int64
}

func (s *summed) ReadByte() (byte, error) {
	b, err := s.in.ReadByte()
	if err == nil {
		s.sum = crc32.Update(s.sum, crc32.IEEETable, []byte{b})
		s.n++
	}
	return b, err
}
