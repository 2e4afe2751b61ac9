package repack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/directio"
)

// hash reads a file again after its edit: a file's digest is always that of
// bytes that were read back.
func (m *maker) hash(name string) (sum string, size int64, err error) {
	in, err := m.root.Open(name)
	if err != nil {
		return "", 0, fmt.Errorf("hash: %w", err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	fi, err := in.Stat()
	if err != nil {
		return "", 0, fmt.Errorf("hash: %w", err)
	}
	h := sha256.New()
	r := newReread(in, fi.Size())
	if size, err = r.all(h); err != nil {
		return "", 0, fmt.Errorf("hash %s: %w", name, err)
	}
	return hex.EncodeToString(h.Sum(nil)), size, nil
}

// reread reads a file from its beginning to its end, one block ahead of what is
// done with them. Large ones were written past the page cache, and are read so.
type reread struct {
	in     *os.File
	size   int64
	direct bool
}

// rereadStep is the size of one read.
const rereadStep = 1 << 20

func newReread(in *os.File, size int64) *reread {
	r := &reread{in: in, size: size}
	if fd := int(in.Fd()); size >= directio.Least && directio.Known(fd) {
		r.direct = directio.Start(fd)
	}
	return r
}

// block is what one read brought.
type block struct {
	buf []byte
	n   int
	err error // io.EOF at the end
}

// all writes the file to w, and returns how many bytes that were.
func (r *reread) all(w io.Writer) (int64, error) {
	if r.size < rereadStep {
		return io.Copy(w, r.in)
	}
	full, free := make(chan block), make(chan []byte, 2)
	for range cap(free) {
		free <- make([]byte, rereadStep)
	}
	go func() {
		defer close(full)
		for off := int64(0); ; {
			b := block{buf: <-free}
			b.n, b.err = r.read(b.buf, off)
			off += int64(b.n)
			full <- b
			if b.err != nil {
				return
			}
		}
	}()
	var total int64
	var failed error
	for b := range full { // to its end, whatever fails: the goroutine waits for that
		if failed == nil {
			_, failed = w.Write(b.buf[:b.n])
			total += int64(b.n)
		}
		if failed == nil && b.err != io.EOF {
			failed = b.err
		}
		free <- b.buf
	}
	return total, failed
}

// read fills buf, but for the last of the file.
func (r *reread) read(buf []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(int(r.in.Fd()), buf, off)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL) && r.direct:
			// A read of less than a block leaves an offset that is none.
			r.direct = false
			if err := directio.Stop(int(r.in.Fd())); err != nil {
				return 0, err
			}
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}
