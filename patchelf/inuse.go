package patchelf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// InUse tells whether a process maps f, a library or a program that runs, as
// far as this process may see: those of other users are shown to root only.
// f must be the only descriptor of the file that this process has.
//
// A process that maps a library sees what is written to it in place, in the
// pages that it has not written to itself. Edits of this package do not change
// what such a process has read already, its loader's work, but nobody can
// promise that it does not read it again: edit a copy (EditCopy).
func InUse(f *os.File) (bool, error) {
	if alone(f) {
		return false, nil
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	st, ok := info.Sys().(*unixStat)
	if !ok {
		return false, nil
	}
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return false, fmt.Errorf("look for users: %w (is /proc mounted?)", err)
	}
	return anyMaps(mappedFile{dev: uint64(st.Dev), ino: st.Ino, name: name})
}

// alone tells whether the kernel is sure that nobody else has the file open,
// and so that nobody maps it: only then does it grant a write lease. It is not
// asked on overlays, where what is mapped is a file of another file system.
func alone(f *os.File) bool {
	fd := f.Fd()
	var fs unix.Statfs_t
	if unix.Fstatfs(int(fd), &fs) != nil || fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return false
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}

// mappedFile is a file as /proc/PID/maps shows it.
type mappedFile struct {
	dev, ino uint64
	name     string
}

func anyMaps(m mappedFile) (bool, error) {
	maps, err := filepath.Glob("/proc/[0-9]*/maps")
	if err != nil {
		return false, err
	}
	for _, path := range maps {
		f, err := os.Open(path)
		if err != nil {
			continue // it has ended, or is not ours to see
		}
		found, err := m.in(f)
		f.Close()
		if found {
			return true, nil
		}
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, os.ErrPermission) {
			return false, fmt.Errorf("look for users: %w", err)
		}
	}
	return false, nil
}

const maxMaps = 64 << 20 // bytes of one process's maps

// in looks for the file in the maps of one process. Its lines are: addresses,
// permissions, offset, device, inode and name (proc(5)).
func (m mappedFile) in(r io.Reader) (bool, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxMaps))
	inode := []byte(" " + strconv.FormatUint(m.ino, 10) + " ")
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, inode) && m.is(line) {
			return true, nil
		}
	}
	return false, err
}

// is compares a line with the file. Some file systems show processes another
// device than they show stat(2); there the name counts.
func (m mappedFile) is(line []byte) bool {
	f := bytes.Fields(line)
	if len(f) < 6 || string(f[4]) != strconv.FormatUint(m.ino, 10) {
		return false
	}
	dev := fmt.Sprintf("%02x:%02x", unix.Major(m.dev), unix.Minor(m.dev))
	return string(f[3]) == dev || bytes.HasSuffix(bytes.TrimRight(line, "\n"), []byte(" "+m.name))
}
