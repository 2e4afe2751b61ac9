package pgunzip

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
)

// chunkSize is how much is decoded before it is handed on: small enough to
// stay in the cache, large enough that moving the window costs nothing.
const chunkSize = 256 << 10

// place is what of a gzip file comes next.
type place int

const (
	firstHeader place = iota
	nextHeader        // or padding, or the end
	padding
	deflate
	trailer
	ended
)

// stop is why step came back.
type stop int

const (
	needInput stop = iota // all that was there is used
	roomless              // the output is full: take it, and call makeRoom
	atBlock               // a block begins here
	atTrailer             // a member has ended: see memberEnd
	atEnd                 // the stream has ended
)

// stream decodes gzip members in order. Input is what d.in holds from d.pos on.
type stream struct {
	d     *inflater
	where place
	out   []byte // the window, then what is decoded, then room for copies that overshoot
	floor int    // where the window of the member begins: matches do not reach below
	at    int    // end of the output

	memberEnd struct{ crc, size uint32 }
}

func newStream() *stream {
	s := &stream{d: newInflater(), out: newBuffer()}
	s.floor, s.at = window, window
	return s
}

// newBuffer returns memory for the output of a stream.
func newBuffer() []byte { return make([]byte, window+chunkSize+maxMatch+slack) }

// makeRoom drops all of the output but the window.
func (s *stream) makeRoom() { s.moveTo(s.out) }

// moveTo makes out the memory of the output, and takes only the window along.
func (s *stream) moveTo(out []byte) {
	keep := min(s.at-s.floor, window)
	copy(out[window-keep:window], s.out[s.at-keep:s.at])
	s.out, s.floor, s.at = out, window-keep, window
}

// step decodes until there is something to say. New output is what lies
// between s.at before and after the call, whatever it says. eof means that no input
// follows that of d.
func (s *stream) step(eof bool) (stop, error) {
	for {
		var why stop
		var err error
		switch s.where {
		case firstHeader, nextHeader:
			why, err = s.header(eof)
		case padding:
			why, err = s.padding(eof)
		case deflate:
			why, err = s.deflate(eof)
		case trailer:
			why, err = s.trailer(eof)
		case ended:
			return atEnd, nil
		}
		if why != goOn || err != nil {
			return why, err
		}
	}
}

// goOn makes step go on.
const goOn stop = -1

// header takes the header of a member.
func (s *stream) header(eof bool) (stop, error) {
	in := s.d.in[s.d.pos:]
	if s.where == nextHeader && len(in) == 0 && eof {
		s.where = ended
		return atEnd, nil
	}
	if s.where == nextHeader && len(in) > 0 && in[0] == 0 {
		s.where = padding
		return goOn, nil
	}
	n := headerLen(in)
	switch {
	case n < 0 && s.where == nextHeader && !bytes.HasPrefix(in, magic[:2]):
		return 0, ErrTrailing
	case n < 0:
		return 0, ErrHeader
	case n == 0 && eof:
		return 0, io.ErrUnexpectedEOF
	case n == 0:
		return needInput, nil
	}
	s.d.pos += n
	s.d.reset()
	s.floor = s.at
	s.where = deflate
	return goOn, nil
}

// padding passes over NULs up to the end.
func (s *stream) padding(eof bool) (stop, error) {
	for _, b := range s.d.in[s.d.pos:] {
		if b != 0 {
			return 0, ErrTrailing
		}
	}
	s.d.pos = len(s.d.in)
	if !eof {
		return needInput, nil
	}
	s.where = ended
	return atEnd, nil
}

func (s *stream) deflate(eof bool) (stop, error) {
	limit := len(s.out) - maxMatch - slack
	if s.at >= limit {
		return roomless, nil
	}
	var was outcome
	s.at, was = inflate(s.d, s.out, s.floor, s.at, limit)
	switch {
	case was == full:
		return roomless, nil
	case was == blockEnd:
		return atBlock, nil
	case was == finished:
		s.d.align()
		s.where = trailer
		return goOn, nil
	case was == corrupt:
		return 0, &CorruptError{Offset: int64(s.d.pos)} // the caller knows where d.in begins
	case eof:
		return 0, io.ErrUnexpectedEOF
	}
	return needInput, nil
}

// trailer takes CRC-32 and length of a member.
func (s *stream) trailer(eof bool) (stop, error) {
	in := s.d.in[s.d.pos:]
	if len(in) < trailerSize {
		if eof {
			return 0, io.ErrUnexpectedEOF
		}
		return needInput, nil
	}
	s.memberEnd.crc = binary.LittleEndian.Uint32(in)
	s.memberEnd.size = binary.LittleEndian.Uint32(in[4:])
	s.d.pos += trailerSize
	s.where = nextHeader
	return atTrailer, nil
}

// member is what came out of one so far.
type member struct {
	crc  uint32
	size int64
}

func (m *member) add(p []byte) {
	m.crc = crc32.Update(m.crc, crc32.IEEETable, p)
	m.size += int64(len(p))
}

// check compares the member with its trailer and begins the next.
func (m *member) check(crc, size uint32) error {
	was := *m
	*m = member{}
	switch {
	case was.crc != crc:
		return fmt.Errorf("%w: the content has CRC-32 %08x, its trailer says %08x", ErrChecksum, was.crc, crc)
	case uint32(was.size) != size:
		return fmt.Errorf("%w: the content has %d bytes, its trailer says %d modulo 2^32", ErrChecksum, was.size, size)
	}
	return nil
}
