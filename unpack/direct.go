package unpack

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/directio"
)

// direct says whether large files of the directory go past the page cache.
func direct(root *os.Root) bool {
	dir, err := root.Open(".")
	if err != nil {
		return false
	}
	defer dir.Close() // opened for reading
	return directio.Known(int(dir.Fd()))
}

// writeDirect writes of p, at off, what a direct write can, and returns the
// rest. A file that does not take it is written as others are from then on:
// there are disks with larger blocks, and drivers with a mind of their own.
func (f *file) writeDirect(p []byte, off int64) ([]byte, int64, error) {
	for f.direct && off%directio.Align == 0 && len(p) >= directio.Align {
		var n int
		err := call("write", f.name, func() (err error) {
			n, err = unix.Pwrite(f.fd, p[:len(p)&^(directio.Align-1)], off)
			if err == unix.EINVAL {
				n, err = 0, f.cached()
			}
			return err
		})
		if err != nil {
			return p, off, err
		}
		p, off = p[n:], off+int64(n)
	}
	if f.direct && len(p) > 0 {
		return p, off, call("write", f.name, f.cached)
	}
	return p, off, nil
}

// cached ends direct writing.
func (f *file) cached() error {
	f.direct = false
	return directio.Stop(f.fd)
}
