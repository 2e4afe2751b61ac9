package directio

import (
	"golang.org/x/sys/unix"
)

const (
	// Least is the size of a file, in bytes, from which on it is worth it.
	Least = 1 << 20
	// Align is what offset, length and memory must be multiples of: the block
	// size of the file systems that are known here, and of most disks.
	Align = 4 << 10
)

// Known says whether the file system of an open file is one on which it is
// worth it.
func Known(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return false
	}
	return st.Type == unix.EXT4_SUPER_MAGIC || st.Type == unix.XFS_SUPER_MAGIC
}

// Start makes reads and writes of an open file go past the cache. It says
// whether that is possible.
func Start(fd int) bool { return set(fd, unix.O_DIRECT, 0) == nil }

// Stop makes them go through the cache again.
func Stop(fd int) error { return set(fd, 0, unix.O_DIRECT) }

func set(fd, with, without int) error {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&^without|with)
	}
	return err
}
