package unpack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// openDirs is how many directories one goroutine keeps open: archives go
// through a tree depth first, and come back to the few above.
const openDirs = 16

// dirs opens directories of the tree, and keeps those that were used last:
// [os.Root] walks from its directory to the file each time, and a file in a
// deep one would cost a dozen system calls to find. Nothing is renamed or
// removed while the tree is made. A dirs is for one goroutine.
type dirs struct {
	root *os.Root
	kept []*dir // the one used last comes first
}

// dir is an open directory of the tree, that was found by way of the root. What
// it makes has a name without a slash, is new, and no link is followed to it.
// The system is called without package os, which asks for five calls more for
// each file, to find out that none is a pipe.
type dir struct {
	name string
	file *os.File
	fd   int // of file
}

func newDirs(root *os.Root) *dirs { return &dirs{root: root} }

// open returns a directory, which is good until the next call.
func (d *dirs) open(name string) (*dir, error) {
	for i, k := range d.kept {
		if k.name == name {
			copy(d.kept[1:i+1], d.kept[:i])
			d.kept[0] = k
			return k, nil
		}
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	if len(d.kept) == openDirs {
		d.kept[openDirs-1].file.Close()
		d.kept = d.kept[:openDirs-1]
	}
	k := &dir{name, f, int(f.Fd())}
	d.kept = slices.Insert(d.kept, 0, k)
	return k, nil
}

// close closes what is open. Nothing was written through it.
func (d *dirs) close() {
	for _, k := range d.kept {
		k.file.Close()
	}
	d.kept = nil
}

// mkdir makes a directory.
func (k *dir) mkdir(base string, mode uint32) error {
	return call("mkdir", base, func() error { return unix.Mkdirat(k.fd, base, mode) })
}

// has says whether a file's type and mode are just these.
func (k *dir) has(base string, mode uint32) (bool, error) {
	var st unix.Stat_t
	err := call("stat", base, func() error { return unix.Fstatat(k.fd, base, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st.Mode == mode, err
}

// symlink makes a symlink, and sets both its times.
func (k *dir) symlink(target, base string, unixTime int64) error {
	if err := call("symlink", base, func() error { return unix.Symlinkat(target, k.fd, base) }); err != nil {
		return err
	}
	return utimes(k.fd, base, unixTime, unix.AT_SYMLINK_NOFOLLOW)
}

// create makes a file for writing.
func (k *dir) create(base string, mode fs.FileMode) (*file, error) {
	f := &file{name: base}
	err := call("create", base, func() (err error) {
		f.fd, err = unix.Openat(k.fd, base, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(mode))
		return err
	})
	return f, err
}

// file is an open file of the tree.
type file struct {
	name   string
	fd     int
	direct bool // writes go past the page cache
}

func (f *file) writeAt(p []byte, off int64) error {
	p, off, err := f.writeDirect(p, off)
	if err != nil {
		return err
	}
	for len(p) > 0 {
		var n int
		err := call("write", f.name, func() (err error) {
			n, err = unix.Pwrite(f.fd, p, off)
			return err
		})
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

func (f *file) truncate(size int64) error {
	return call("truncate", f.name, func() error { return unix.Ftruncate(f.fd, size) })
}

func (f *file) chmod(mode fs.FileMode) error {
	return call("chmod", f.name, func() error { return unix.Fchmod(f.fd, uint32(mode)) })
}

// close reports what some file systems find out no earlier: that the disk or a
// quota is full. It is not tried again: on Linux the descriptor is gone.
func (f *file) close() error {
	if err := unix.Close(f.fd); err != nil && !errors.Is(err, unix.EINTR) {
		return fmt.Errorf("close %s: %w", f.name, err)
	}
	return nil
}

// call repeats what a signal interrupted.
func call(what, name string, do func() error) error {
	for {
		err := do()
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("%s %s: %w", what, name, err)
		}
	}
}
