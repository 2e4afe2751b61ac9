package patchelf

import "io"

// overlay reads a file as it is once writes are made.
type overlay struct {
	base   io.ReaderAt
	size   int64 // of base
	after  int64
	writes []write
}

// ReadAt implements io.ReaderAt.
func (o *overlay) ReadAt(b []byte, off int64) (int, error) {
	if off >= o.after {
		return 0, io.EOF
	}
	var end error
	if left := o.after - off; int64(len(b)) > left {
		b, end = b[:left], io.EOF
	}
	have := max(0, min(int64(len(b)), o.size-off))
	if have > 0 {
		if n, err := o.base.ReadAt(b[:have], off); n < int(have) {
			return n, err
		}
	}
	clear(b[have:])
	for _, w := range o.writes {
		lo, hi := max(off, w.off), min(off+int64(len(b)), w.off+int64(len(w.data)))
		if lo < hi {
			copy(b[lo-off:hi-off], w.data[lo-w.off:hi-w.off])
		}
	}
	return len(b), end
}
