package pgunzip

import (
	"context"
	"errors"
	"io"
)

// inputSize is how much of the source is read at once.
const inputSize = 256 << 10

// serial decodes in the goroutine that reads.
type serial struct {
	ctx  context.Context
	src  io.Reader
	s    *stream
	m    member
	buf  []byte
	base int64 // bytes of the source before buf[0]
	err  error // of the source; io.EOF too
	fail error // what follows the bytes that were handed out
}

func newSerial(ctx context.Context, r io.Reader) *serial {
	return &serial{ctx: ctx, src: r, s: newStream(), buf: make([]byte, inputSize)}
}

// next implements engine.
func (z *serial) next() ([]byte, int64, error) {
	for {
		if z.fail != nil {
			return nil, z.taken(), z.fail
		}
		from := z.s.at
		var why stop
		why, z.fail = z.advance()
		switch p := z.s.out[from:z.s.at]; {
		case len(p) > 0:
			return p, z.taken(), nil // and what why asks for next time, when p is not needed any more
		case z.fail != nil:
		case why == roomless:
			z.s.makeRoom()
		case why == needInput:
			z.fail = z.fill()
		}
	}
}

// advance takes one step, and checks what it brings.
func (z *serial) advance() (stop, error) {
	from := z.s.at
	why, err := z.s.step(z.err == io.EOF)
	z.m.add(z.s.out[from:z.s.at])
	switch {
	case err != nil:
		return why, located(err, z.base)
	case why == atTrailer:
		return why, z.m.check(z.s.memberEnd.crc, z.s.memberEnd.size)
	case why == atEnd:
		return why, io.EOF
	}
	return why, nil
}

// fill reads more input behind what is left.
func (z *serial) fill() error {
	d := z.s.d
	if z.err != nil {
		return z.err // io.EOF comes as an error of step
	}
	z.base += int64(d.pos)
	left := copy(z.buf, d.in[d.pos:])
	for range maxEmptyReads {
		if err := z.ctx.Err(); err != nil {
			return err
		}
		n, err := z.src.Read(z.buf[left:])
		d.in, d.pos = z.buf[:left+n], 0
		z.err = err
		if n > 0 || err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// maxEmptyReads is how often a source may answer with nothing at all.
const maxEmptyReads = 100

func (z *serial) taken() int64 { return z.base + int64(z.s.d.pos) }

func (z *serial) close() {}

// located makes the offset of an error one of the whole input, of which the
// buffer begins at base.
func located(err error, base int64) error {
	var c *CorruptError
	if errors.As(err, &c) {
		return &CorruptError{Offset: base + c.Offset}
	}
	return err
}
