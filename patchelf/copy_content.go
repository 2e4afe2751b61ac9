package patchelf

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copyContent makes dst, which is empty, a copy of the first size bytes of
// src: by sharing blocks where the file system can, else extent by extent, so
// that holes stay holes. It returns how many bytes were copied.
func copyContent(dst, src *os.File, size int64) (shared bool, copied int64, err error) {
	if unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) == nil {
		return true, 0, nil
	}
	if err := dst.Truncate(size); err != nil {
		return false, 0, err
	}
	for at := int64(0); at < size; {
		lo, hi, err := dataRange(src, at, size)
		if err != nil {
			return false, copied, err
		}
		if err := copyRange(dst, src, lo, hi); err != nil {
			return false, copied, err
		}
		copied += hi - lo
		at = hi
	}
	return false, copied, nil
}

// dataRange returns the next range with data at or behind at. Where the file
// system does not know, all is data.
func dataRange(f *os.File, at, size int64) (lo, hi int64, err error) {
	fd := int(f.Fd())
	lo, err = unix.Seek(fd, at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // only a hole is left
		return size, size, nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.EOPNOTSUPP):
		return at, size, nil
	case err != nil:
		return 0, 0, err
	}
	hi, err = unix.Seek(fd, lo, unix.SEEK_HOLE)
	if err != nil {
		return 0, 0, err
	}
	return min(lo, size), min(hi, size), nil
}

// copyRange copies [lo, hi) to the same place in dst: in the kernel where it
// can.
func copyRange(dst, src *os.File, lo, hi int64) error {
	const most = 1 << 30 // in one call
	from, to := lo, lo
	for from < hi {
		n, err := unix.CopyFileRange(int(src.Fd()), &from, int(dst.Fd()), &to, int(min(hi-from, most)), 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 { // other file systems, old kernels
			_, err := io.Copy(io.NewOffsetWriter(dst, from), io.NewSectionReader(src, from, hi-from))
			return err
		}
	}
	return nil
}
