package unpack

import (
	"encoding/binary"
	"io"
)

// lzma2 decodes the chunks of one block (The .xz File Format, section 5.3.1;
// the form of a chunk is that of XZ Embedded's description). Each chunk but the
// first may go on with what the one before it has learned.
type lzma2 struct {
	in     *input
	window window
	model  model
	rc     rangeDecoder
	buf    []byte // a compressed chunk: at most maxPacked

	needDict  bool // the next chunk must begin the dictionary
	needProps bool // the next compressed one must have properties
	taken     int64
	out       []byte // of the window: what was decoded and not yet returned
	rest      []byte // what follows it, where the window is a ring
}

const (
	maxPacked = 1 << 16 // bytes of a chunk, compressed
	maxChunk  = 2 << 20 // and decompressed
)

// begin prepares for a block with a dictionary of so many bytes.
func (z *lzma2) begin(dict int) {
	z.window.reset(max(dict, maxChunk))
	z.needDict, z.needProps, z.taken = true, true, 0
}

// next decodes one chunk. It returns io.EOF after the last.
func (z *lzma2) next() error {
	var head [6]byte
	if err := z.read(head[:1]); err != nil {
		return err
	}
	control := head[0]
	switch {
	case control == 0:
		return io.EOF
	case control >= 0xe0 || control == 1:
		z.window.reset(z.window.max)
		z.needDict = false
	case z.needDict:
		return errLZMA
	}
	if control < 0x80 {
		if control > 2 {
			return errLZMA
		}
		return z.stored()
	}
	if err := z.read(head[1:5]); err != nil {
		return err
	}
	size := int(control&0x1f)<<16 + int(binary.BigEndian.Uint16(head[1:])) + 1
	packed := int(binary.BigEndian.Uint16(head[3:])) + 1
	switch {
	case control >= 0xc0:
		if err := z.read(head[5:6]); err != nil {
			return err
		}
		if err := z.model.setProps(head[5]); err != nil {
			return err
		}
		z.needProps = false
		z.model.reset()
	case z.needProps:
		return errLZMA
	case control >= 0xa0:
		z.model.reset()
	}
	return z.packed(size, packed)
}

// packed decodes a compressed chunk.
func (z *lzma2) packed(size, packed int) error {
	if z.buf == nil {
		z.buf = make([]byte, maxPacked)
	}
	if err := z.read(z.buf[:packed]); err != nil {
		return err
	}
	if err := z.rc.start(z.buf[:packed]); err != nil {
		return err
	}
	z.window.room(size)
	at := z.window.at
	if err := z.model.decode(&z.rc, &z.window, size); err != nil {
		return err
	}
	z.show(at, size)
	return nil
}

// stored takes over a chunk that is not compressed: at most 64 KiB.
func (z *lzma2) stored() error {
	var head [2]byte
	if err := z.read(head[:]); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint16(head[:])) + 1
	z.window.room(size)
	at := z.window.at
	z.show(at, size)
	for _, p := range [][]byte{z.out, z.rest} {
		if err := z.read(p); err != nil {
			return err
		}
	}
	z.window.at = (at + size) % len(z.window.buf)
	z.window.total += int64(size)
	return nil
}

// show makes size bytes of the window, from at on, those to be returned.
func (z *lzma2) show(at, size int) {
	n := min(size, len(z.window.buf)-at)
	z.out, z.rest = z.window.buf[at:at+n], z.window.buf[:size-n]
}

// pull returns what was decoded, as much as fits.
func (z *lzma2) pull(p []byte) int {
	n := copy(p, z.out)
	if z.out = z.out[n:]; len(z.out) == 0 {
		z.out, z.rest = z.rest, nil
	}
	return n
}

// read reads all of p. The stream cannot end in it.
func (z *lzma2) read(p []byte) error {
	n, err := io.ReadFull(z.in, p)
	z.taken += int64(n)
	if err == io.EOF && len(p) > 0 {
		err = io.ErrUnexpectedEOF
	}
	return err
}
