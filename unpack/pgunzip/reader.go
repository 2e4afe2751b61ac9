package pgunzip

import (
	"context"
	"errors"
	"io"
	"runtime"
)

// Options says how to decompress. The zero Options is right for all.
type Options struct {
	// Workers is how many threads there are to be busy. 1: all is done within
	// Read. 2: a goroutine decodes ahead, in order. From 3 on, so many
	// goroutines decode pieces of the input. 0: as many as there are
	// processors, eight at most, but with three as if there were two, since
	// decoding pieces takes a third more processor time. No more than 64 are used.
	//
	// So goes the memory: some 10 MiB up to 2; then 220 MiB with 4, 410 MiB with
	// 16 and 870 MiB with 64 for a tarball like AMD's, and for no input more than
	// 128 MiB and 80 MiB for each.
	Workers int
}

// leastParallel is the number of processors from which on it pays to decode
// pieces.
const leastParallel = 4

// usefulWorkers is how many workers are chosen at most, and maxWorkers how many
// can be asked for. Eight give more than disks take; each holds tens of
// megabytes.
const (
	usefulWorkers = 8
	maxWorkers    = 64
)

func (o Options) workers() int {
	if o.Workers > 0 {
		return min(o.Workers, maxWorkers)
	}
	if n := runtime.GOMAXPROCS(0); n < leastParallel {
		return min(n, 2)
	}
	return min(runtime.GOMAXPROCS(0), usefulWorkers)
}

// Reader decompresses gzip. It is not safe for concurrent use.
type Reader struct {
	ctx    context.Context
	engine engine
	ready  []byte // to be read
	taken  int64
	err    error
}

// engine is what decodes.
type engine interface {
	// next returns the bytes that follow and how much input they came from,
	// in all. They are valid until the next call. At least one byte comes
	// with a nil error.
	next() (p []byte, taken int64, err error)
	close()
}

// NewReader returns a Reader of the gzip stream that r yields. With one worker r
// is read within Read, else by a goroutine of its own.
func NewReader(ctx context.Context, r io.Reader, o Options) *Reader {
	z := &Reader{ctx: ctx}
	switch n := o.workers(); n {
	case 1:
		z.engine = newSerial(ctx, r)
	case 2:
		z.engine = newAhead(ctx, newSerial(ctx, r))
	default:
		z.engine = newParallel(ctx, r, n)
	}
	return z
}

// Read implements io.Reader. Bytes and an error never come together.
func (z *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := z.more(); err != nil {
		return 0, err
	}
	n := copy(p, z.ready)
	z.ready = z.ready[n:]
	return n, nil
}

// WriteTo implements io.WriterTo.
func (z *Reader) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for {
		err := z.more()
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		n, err := w.Write(z.ready)
		total += int64(n)
		z.ready = z.ready[n:]
		if err != nil {
			return total, err
		}
	}
}

// more makes sure that something is ready.
func (z *Reader) more() error {
	if len(z.ready) > 0 {
		return nil
	}
	if z.err == nil {
		z.err = z.ctx.Err()
	}
	if z.err != nil {
		return z.err
	}
	z.ready, z.taken, z.err = z.engine.next()
	return z.err
}

// Taken returns how many bytes of the input what has been read came from, and
// at most a few chunks more.
func (z *Reader) Taken() int64 { return z.taken }

// errClosed is what Read says after Close.
var errClosed = errors.New("pgunzip: the reader is closed")

// Close ends the work. It waits for goroutines, and so for a Read of the source
// that is under way: a source that can hang should stop when the context ends.
func (z *Reader) Close() error {
	z.ready = nil
	if z.err == nil {
		z.err = errClosed
	}
	z.engine.close()
	return nil
}
