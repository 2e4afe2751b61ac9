package repack

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrOccupied is matched when there is something where the prefix should be.
var ErrOccupied = errors.New("it is not empty")

// occupied is an ErrOccupied in the words of the case.
type occupied string

func (o occupied) Error() string { return string(o) }

// Is lets errors.Is find ErrOccupied.
func (o occupied) Is(target error) bool { return target == ErrOccupied }

// Vacant reports whether Run could make dir: nothing is there, or an empty
// directory. Anything else, a link to an empty directory too, is an error that
// matches ErrOccupied; so much as a mount point is one as well, since a rename
// cannot take its place. The same is asked again when the prefix is finished.
func Vacant(dir string) error {
	// A trailing slash would have lstat(2) follow a link.
	dir = filepath.Clean(dir)
	fi, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case fi.Mode()&fs.ModeSymlink != 0:
		return occupied("it is a symlink, and a prefix does not replace one: name the directory itself, or remove the link")
	case !fi.IsDir():
		return occupied("it is a file, not a directory")
	}
	if mounted(dir) {
		return mountPoint(dir)
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() // opened for reading
	if _, err = d.Readdirnames(1); err == nil {
		return fmt.Errorf("%w: name a directory that does not exist yet, or remove it first", ErrOccupied)
	}
	if err == io.EOF {
		return nil
	}
	return err
}

func mountPoint(dir string) error {
	return occupied(fmt.Sprintf("it is a mount point, which a rename cannot replace: name a directory in it, such as %s", filepath.Join(dir, "rocm")))
}

// mounted reports whether dir is where something is mounted. A bind mount of
// the same file system has its parent's st_dev; kernels since 5.8 tell it.
func mounted(dir string) bool {
	var at, above unix.Statx_t
	err := errors.Join(
		unix.Statx(unix.AT_FDCWD, dir, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &at),
		unix.Statx(unix.AT_FDCWD, filepath.Dir(dir), 0, unix.STATX_BASIC_STATS, &above),
	)
	if err != nil {
		return false // then the rename will tell
	}
	return at.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 ||
		at.Dev_major != above.Dev_major || at.Dev_minor != above.Dev_minor
}
