package diff

import (
	"io/fs"
	"syscall"
)

// inode names a file whatever it is called.
type inode struct{ dev, ino uint64 }

func inodeOf(fi fs.FileInfo) inode {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{uint64(st.Dev), st.Ino}
}

// links is how many names a file has.
func links(fi fs.FileInfo) uint64 {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(st.Nlink)
}
