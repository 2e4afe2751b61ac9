package store

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

var errNotRegular = errors.New("not a regular file")

// opener opens regular files of a prefix for reading, and remembers the
// directory of the last one: to find that costs as much as a small file.
type opener struct {
	root *os.Root
	dir  string
	at   *os.File // dir, or nil
}

// open opens a file. No link is followed to it, and nothing else that may be in
// its place is waited for. (An os.Root would follow a link that stays in it.)
func (o *opener) open(name string) (*os.File, error) {
	dir, base := path.Dir(name), path.Base(name)
	if !fs.ValidPath(name) || base == "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if o.at == nil || o.dir != dir {
		at, err := o.root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		o.close()
		o.dir, o.at = dir, at
	}
	var fd int
	err := uninterrupted(func() (err error) {
		fd, err = unix.Openat(int(o.at.Fd()), base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (o *opener) close() {
	if o.at != nil {
		o.at.Close() // opened for reading
		o.at = nil
	}
}

// openRegular opens one file as an opener does.
func openRegular(root *os.Root, name string) (*os.File, error) {
	o := &opener{root: root}
	defer o.close()
	return o.open(name)
}
