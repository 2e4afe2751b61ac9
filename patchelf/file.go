package patchelf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Result says what an edit did to a file.
type Result struct {
	Changed       bool
	Before, After *manifest.ELF
	Written       int64  // bytes written
	Growth        int64  // bytes that the file became longer
	How           string // how the edit was made, for people
}

// EditPath edits the ELF file at path in place: the inode, the mode and the
// modification time stay, and so do hard links. A file that is read-only is
// made writable for the edit. Symbolic links and whatever else is not a
// regular file are refused, and so is a file that another edit has locked.
//
// It returns ErrNotELF, a *FormatError, a *RefusedError, or what the system
// says. In the first three cases nothing was written.
func EditPath(path string, e Edit) (Result, error) {
	return editOpen(path, e, func(flag int) (*os.File, error) { return os.OpenFile(path, flag, 0) })
}

// EditIn is EditPath for a name under root, which it does not leave.
func EditIn(root *os.Root, name string, e Edit) (Result, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return Result{}, fmt.Errorf("edit: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Result{}, fmt.Errorf("edit %s: %w", name, refuse("it is not a regular file"))
	}
	return editOpen(name, e, func(flag int) (*os.File, error) { return root.OpenFile(name, flag, 0) })
}

// EditFile edits an open file, which must be open for reading and writing if
// the edit changes anything. The modification time stays.
func EditFile(f *os.File, e Edit) (Result, error) {
	p, res, err := planFile(f, e)
	if err != nil || p.Empty() {
		return res, err
	}
	return res, applyTo(f, p)
}

// editOpen plans on a file open for reading, and opens it for writing only if
// there is something to write.
func editOpen(name string, e Edit, open func(flag int) (*os.File, error)) (res Result, err error) {
	const flags = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	f, err := open(os.O_RDONLY | flags)
	if errors.Is(err, unix.ELOOP) {
		return Result{}, fmt.Errorf("edit %s: %w", name, refuse("it is a symbolic link"))
	}
	if err != nil {
		return Result{}, fmt.Errorf("edit: %w", err)
	}
	defer f.Close()
	p, res, err := planFile(f, e)
	if err != nil {
		return Result{}, fmt.Errorf("edit %s: %w", name, err)
	}
	if p.Empty() {
		return res, nil
	}
	if err := applyWritable(f, p, open, flags); err != nil {
		return Result{}, fmt.Errorf("edit %s: %w", name, err)
	}
	return res, nil
}

func planFile(f *os.File, e Edit) (*Plan, Result, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, Result{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, Result{}, refuse("it is not a regular file")
	}
	g, err := Parse(f, info.Size())
	if err != nil {
		return nil, Result{}, err
	}
	p, err := g.Plan(e)
	if err != nil {
		return nil, Result{}, err
	}
	return p, Result{Changed: !p.Empty(), Before: g.Facts(), After: p.After().Facts(), Written: p.Written(), Growth: p.Growth(), How: p.String()}, nil
}

// applyWritable opens for writing what is open for reading as f, and applies
// p. The mode is restored: a write clears setuid bits.
func applyWritable(f *os.File, p *Plan, open func(flag int) (*os.File, error), flags int) (err error) {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w, err := open(os.O_RDWR | flags)
	if errors.Is(err, fs.ErrPermission) && info.Mode()&0o200 == 0 {
		if err := f.Chmod(info.Mode() | 0o200); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Chmod(info.Mode())) }()
		w, err = open(os.O_RDWR | flags)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	now, err := w.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(info, now) {
		return refuse("another file took its name meanwhile")
	}
	if err := applyTo(w, p); err != nil {
		return err
	}
	if now, err = w.Stat(); err == nil && now.Mode() != info.Mode() && info.Mode()&0o200 != 0 {
		err = w.Chmod(info.Mode())
	}
	return err
}

// applyTo applies p to an open file under a lock, and restores its
// modification time.
func applyTo(f *os.File, p *Plan) error {
	fd := int(f.Fd())
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("lock (is another edit of it running?): %w", err)
	}
	defer func() { _ = unix.Flock(fd, unix.LOCK_UN) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != p.before {
		return refuse("the file has changed since it was read")
	}
	if err := p.Apply(f); err != nil {
		return err
	}
	return keepTime(fd, info)
}

// keepTime sets the modification time back to the nanosecond. It needs Linux
// 5.8 for AT_EMPTY_PATH, and falls back to microseconds.
func keepTime(fd int, info fs.FileInfo) error {
	mtime, err := unix.TimeToTimespec(info.ModTime())
	if err != nil {
		return err
	}
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, mtime}
	if err = unix.UtimesNanoAt(fd, "", ts, unix.AT_EMPTY_PATH); err == nil {
		return nil
	}
	tv := unix.NsecToTimeval(info.ModTime().UnixNano())
	if err := unix.Futimes(fd, []unix.Timeval{tv, tv}); err != nil {
		return fmt.Errorf("keep modification time: %w", err)
	}
	return nil
}
