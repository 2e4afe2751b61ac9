package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// untouched compares a file before and after it was read.
func untouched(a, b *syscall.Stat_t) bool {
	return a.Size == b.Size && a.Mode == b.Mode && a.Uid == b.Uid && a.Gid == b.Gid && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// hashStep is how much is read at once.
const hashStep = 1 << 20

// hashFile hashes the size bytes that f has.
func hashFile(ctx context.Context, f *os.File, size int64) (sum [32]byte, err error) {
	h, buf := sha256.New(), make([]byte, min(hashStep, size))
	for off := int64(0); off < size; off += int64(len(buf)) {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		chunk := buf[:min(int64(len(buf)), size-off)]
		if _, err := f.ReadAt(chunk, off); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return sum, err
		}
		h.Write(chunk)
	}
	h.Sum(sum[:0])
	return sum, nil
}

// maxAttr bounds the names of extended attributes, and each value (xattr(7)).
const maxAttr = 64 << 10

// sameAttrs reports whether two files have the same extended attributes, ACLs
// and labels among them. What cannot be read is not the same.
func sameAttrs(a, b *os.File) bool {
	names, err := attrNames(a)
	others, oerr := attrNames(b)
	if err != nil || oerr != nil || names != others {
		return false
	}
	if names == "" {
		return true
	}
	one, two := make([]byte, maxAttr), make([]byte, maxAttr)
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		n, err := unix.Fgetxattr(int(a.Fd()), name, one)
		m, oerr := unix.Fgetxattr(int(b.Fd()), name, two)
		if err != nil || oerr != nil || !bytes.Equal(one[:n], two[:m]) {
			return false
		}
	}
	return true
}

// attrNames lists the names of the attributes, each ended by a zero.
func attrNames(f *os.File) (string, error) {
	var buf [1 << 10]byte // almost always enough
	n, err := unix.Flistxattr(int(f.Fd()), buf[:])
	if errors.Is(err, unix.ENOTSUP) {
		return "", nil
	}
	if !errors.Is(err, unix.ERANGE) {
		return string(buf[:max(n, 0)]), err
	}
	all := make([]byte, maxAttr)
	n, err = unix.Flistxattr(int(f.Fd()), all)
	return string(all[:max(n, 0)]), err
}
