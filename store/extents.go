package store

import (
	"encoding/binary"
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// extent is a range of bytes on the device.
type extent struct {
	start, end uint64
}

// extentsOf lists where the content of f lies, as far as that can be said:
// what is not written yet, or is kept among the metadata, is left out. Only
// those that the file system calls shared are listed if shared is set. The
// file system decides what it is asked: an error says that it cannot answer.
//
// The layout is that of struct fiemap and struct fiemap_extent in
// linux/fiemap.h; of the 56 bytes of an extent the first three words are its
// offset in the file, its place and its length, all in bytes.
func extentsOf(f *os.File, shared bool) ([]extent, error) {
	const (
		fsIocFiemap = 0xc020660b
		header      = 32
		size        = 56
		count       = 64

		last    = 0x1
		nowhere = 0x2 | 0x4 | 0x200 // unknown, delayed, inline
		packed  = 0x8               // compressed: its length on the device is not told
		isOther = 0x2000            // shared
	)
	var list []extent
	var buf [header + count*size]byte
	order := binary.NativeEndian
	for at := uint64(0); ; {
		clear(buf[:header])
		order.PutUint64(buf[0:], at)
		order.PutUint64(buf[8:], ^uint64(0)-at)
		order.PutUint32(buf[24:], count)
		err := uninterrupted(func() error {
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), fsIocFiemap, uintptr(unsafe.Pointer(&buf)))
			if errno != 0 {
				return errno
			}
			return nil
		})
		if err != nil {
			return nil, &os.PathError{Op: "map", Path: f.Name(), Err: err}
		}
		n := order.Uint32(buf[20:])
		for i := range min(n, count) {
			e := buf[header+int(i)*size:]
			logical, place, length, flags := order.Uint64(e), order.Uint64(e[8:]), order.Uint64(e[16:]), order.Uint32(e[40:])
			if length == 0 || logical+length <= at {
				return nil, errors.New("map " + f.Name() + ": the file system contradicts itself")
			}
			at = logical + length
			if shared && flags&packed != 0 && flags&isOther != 0 {
				return nil, errPacked
			}
			if flags&nowhere == 0 && (!shared || flags&isOther != 0) {
				list = append(list, extent{place, place + length})
			}
			if flags&last != 0 {
				return list, nil
			}
		}
		if n == 0 {
			return list, nil
		}
	}
}

// errPacked says that extents are shared and compressed, so that nobody can
// tell how much of the device they take.
var errPacked = errors.New("shared extents are compressed")

// mayReflink reports whether files of the file system of dir may share extents.
func mayReflink(dir string) bool {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.BTRFS_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, bcachefsMagic, zfsMagic, unix.OVERLAYFS_SUPER_MAGIC, ocfs2Magic:
		return true
	}
	return false
}

// Of statfs(2), and of the file systems' own sources.
const (
	bcachefsMagic = 0xca451a4e
	zfsMagic      = 0x2fc12fc1
	ocfs2Magic    = 0x7461636f
)
