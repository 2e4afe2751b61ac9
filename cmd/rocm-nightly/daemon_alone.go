package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// alone keeps a second daemon off root: two would each overwrite what the other
// remembers of its runs. It is a lock on the directory itself, which leaves nothing
// behind; the kernel takes it back when the process ends, however it does. Where
// directories cannot be locked (NFS) two are not told from one: their runs still
// wait for each other.
func alone(root string) (io.Closer, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return io.NopCloser(nil), nil // a run will say so, and better
	}
	dir, err := os.OpenFile(root, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return io.NopCloser(nil), nil
	}
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("another daemon is at work in %s (end it, or give this one a root of its own; see it with: fuser %s)", root, root), dir.Close())
	}
	return dir, nil
}
