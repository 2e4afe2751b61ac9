package diskspace

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Unknown is a number that a file system does not tell.
const Unknown = -1

// Space is what a file system has left.
type Space struct {
	Path      string // the directory that was asked for, absolute
	Mount     string // where the file system of Path is mounted
	Dev       uint64 // equal for two paths on one file system
	Bytes     int64  // that this user may have; Unknown if that is not limited
	Inodes    int64  // files and directories that can be made; Unknown if that is not limited
	ReadOnly  bool
	Compress  bool // it may store less than is written
	BlockSize int64
}

// Statfs looks at the file system on which dir is, or would be made: at the
// nearest of its ancestors that exists.
func Statfs(dir string) (Space, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Space{}, fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	at, err := existing(abs)
	if err != nil {
		return Space{}, fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	var st unix.Statfs_t
	for {
		if err = unix.Statfs(at, &st); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return Space{}, fmt.Errorf("look at the file system of %s: %w", at, err)
	}
	s := spaceOf(&st)
	s.Path = abs
	s.Mount, s.Dev = mountOf(at)
	return s, nil
}

// existing returns the nearest ancestor of path, or path, that is there. Links
// are followed, as making the path would.
func existing(path string) (string, error) {
	for {
		real, err := filepath.EvalSymlinks(path)
		switch {
		case err == nil:
			return real, nil
		case !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path):
			return "", err
		}
		path = filepath.Dir(path)
	}
}

// Magic numbers of statfs(2) that package unix does not have.
const (
	magicZFS      = 0x2fc12fc1
	magicBcachefs = 0xca451a4e
)

// spaceOf reads what statfs(2) says. A file system that knows no limit says 0
// of all it has: a tmpfs without size=, btrfs of its inodes, some of FUSE.
func spaceOf(st *unix.Statfs_t) Space {
	block := int64(st.Frsize)
	if block <= 0 {
		block = int64(st.Bsize)
	}
	s := Space{Bytes: Unknown, Inodes: Unknown, BlockSize: block, ReadOnly: st.Flags&unix.ST_RDONLY != 0}
	if st.Blocks > 0 && block > 0 {
		s.Bytes = product(st.Bavail, uint64(block))
	}
	if st.Files > 0 {
		s.Inodes = product(st.Ffree, 1) // Linux has no f_favail of its own
	}
	switch uint64(uint32(st.Type)) { // sign-extended on some machines
	case unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, magicZFS, magicBcachefs:
		s.Compress = true
	}
	return s
}

// product multiplies without wrapping round. A file system whose reserve is
// broken into has less than nothing left, and says so as a huge number.
func product(n, size uint64) int64 {
	switch {
	case int64(n) < 0:
		return 0
	case n > math.MaxInt64/size:
		return math.MaxInt64
	}
	return int64(n * size)
}

// mountOf walks up to where the file system of path is mounted. dev is 0 where
// nothing can be told.
func mountOf(path string) (mount string, dev uint64) {
	var at unix.Stat_t
	if unix.Stat(path, &at) != nil {
		return path, 0
	}
	for path != "/" && !isMount(path) {
		var above unix.Stat_t
		if unix.Stat(filepath.Dir(path), &above) != nil || above.Dev != at.Dev {
			break
		}
		path = filepath.Dir(path)
	}
	return path, uint64(at.Dev)
}

// isMount reports whether something is mounted at path; kernels before 5.8 do
// not tell of a bind mount of the same file system.
func isMount(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}

// Used is what a directory with all below it takes of its file system: blocks,
// holes left out, in bytes, and inodes, each once.
func Used(dir string) (bytes, inodes int64, err error) {
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return &os.PathError{Op: "lstat", Path: path, Err: err}
		}
		if st.Nlink > 1 && !e.IsDir() {
			id := inode{uint64(st.Dev), st.Ino}
			if seen[id] {
				return nil
			}
			seen[id] = true
		}
		bytes += st.Blocks * 512 // whatever the block size (stat(2))
		inodes++
		return nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("measure %s: %w", dir, err)
	}
	return bytes, inodes, nil
}
