package patchelf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// openFlags are those of every file that is opened by name: no link is
// followed, and a pipe does not block.
const openFlags = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK

// errLocked is what a second edit of a file meets.
var errLocked = errors.New("another edit of it is running")

// inPlace edits a file by name.
type inPlace struct {
	name  string
	open  func(flag int) (*os.File, error)
	flags int
	want  func(f *File) (Edit, error)
	ok    func(f *os.File, p *Plan) error // asked before the first write, unless nil
}

// edit plans on a file open for reading, and opens it for writing only if
// there is something to write.
func (i inPlace) edit() (Result, error) {
	f, err := i.open(os.O_RDONLY | i.flags)
	if errors.Is(err, unix.ELOOP) {
		return Result{}, fmt.Errorf("edit %s: %w", i.name, refuse("it is a symbolic link"))
	}
	if err != nil {
		return Result{}, fmt.Errorf("edit: %w", err)
	}
	defer f.Close()
	p, res, err := planWith(f, i.want)
	if err != nil {
		return Result{}, fmt.Errorf("edit %s: %w", i.name, err)
	}
	if p.Empty() {
		return res, nil
	}
	if i.ok != nil {
		if err := i.ok(f, p); err != nil {
			return Result{}, err
		}
	}
	if res.Lost, err = i.apply(f, p, res.Before); err != nil {
		return Result{}, fmt.Errorf("edit %s: %w", i.name, err)
	}
	return res, nil
}

// applyWritable is apply for a plan that is not older than the file.
func applyWritable(f *os.File, p *Plan, open func(flag int) (*os.File, error), flags int) error {
	_, err := inPlace{open: open, flags: flags}.apply(f, p, nil)
	return err
}

// apply opens for writing what is open for reading as f, and applies p. before,
// unless nil, is what the file said when it was planned for. What a write takes
// from a file, setuid bits and capabilities, is given back. It returns what the
// system does not permit to keep.
func (i inPlace) apply(f *os.File, p *Plan, before *manifest.ELF) (lost []string, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	caps := capabilityOf(f)
	if caps != nil && !effective(unix.CAP_SETFCAP) {
		return nil, refuse("it has capabilities, which an edit in place would take from it and only root could give back")
	}
	if !mayRestoreMode(info) {
		return nil, refuse("it has setuid or setgid bits, which an edit in place would take from it and only its owner could give back")
	}
	w, err := i.openWritable(f, info)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := lock(w); err != nil {
		return nil, err
	}
	if err := i.unchanged(w, info, before); err != nil {
		return nil, err
	}
	lost, err = applyTo(w, p)
	return lost, errors.Join(err, restore(w, info, caps))
}

// openWritable opens the file for reading and writing. One whose mode forbids
// that is made writable for a moment: the mode is asked for when it is opened.
func (i inPlace) openWritable(f *os.File, info fs.FileInfo) (*os.File, error) {
	w, err := i.open(os.O_RDWR | i.flags)
	if !errors.Is(err, fs.ErrPermission) || info.Mode()&0o200 != 0 {
		return w, err
	}
	if err := f.Chmod(info.Mode() | 0o200); err != nil {
		return nil, err
	}
	w, err = i.open(os.O_RDWR | i.flags)
	if err := f.Chmod(info.Mode()); err != nil {
		if w != nil {
			w.Close()
		}
		return nil, err
	}
	return w, err
}

// unchanged checks, under the lock, that what was opened for reading, what was
// opened for writing and what has the name now is one file, and that it says
// what it said: an edit of a copy takes the name, one in place the content.
func (i inPlace) unchanged(w *os.File, info fs.FileInfo, before *manifest.ELF) error {
	files := []*os.File{w}
	n, err := i.open(os.O_RDONLY | i.flags)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse("it was removed meanwhile")
	case err == nil:
		defer n.Close()
		files = append(files, n)
	}
	for _, f := range files {
		now, err := f.Stat()
		if err != nil {
			return err
		}
		if !os.SameFile(info, now) {
			return refuse("another file took its name meanwhile")
		}
	}
	if before == nil {
		return nil
	}
	g, err := parseFile(w)
	if err == nil && !reflect.DeepEqual(g.Facts(), before) {
		err = errChanged
	}
	return err
}

var errChanged = refuse("the file has changed since it was read")

// lock locks an open file against other edits, until it is closed. A file
// system without locks is no reason not to edit.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return errLocked
	}
	return nil
}

// applyTo applies p to an open file under a lock, looks at the result, and
// restores the modification time, as far as that is permitted: who may write
// to a file need not own it. Where the edit fails, the file is put back.
func applyTo(f *os.File, p *Plan) (lost []string, err error) {
	fd := int(f.Fd())
	if err := lock(f); err != nil {
		return nil, err
	}
	defer func() { _ = unix.Flock(fd, unix.LOCK_UN) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != p.before {
		return nil, errChanged
	}
	err = p.Apply(f)
	var refused *RefusedError
	if errors.As(err, &refused) {
		return nil, err // before its first write
	}
	if err == nil {
		err = landed(f, p)
	}
	if err != nil {
		err = errors.Join(err, p.undo(f))
	}
	kept := keepTime(fd, info)
	if errors.Is(kept, fs.ErrPermission) {
		return []string{"modification time"}, err
	}
	return nil, errors.Join(err, kept)
}

// undo puts back what was there before Apply.
func (p *Plan) undo(f *os.File) error {
	for i := len(p.writes) - 1; i >= 0; i-- {
		w := p.writes[i]
		if _, err := f.WriteAt(w.old, w.off); err != nil {
			return fmt.Errorf("put the file back: %w", err)
		}
	}
	if err := f.Truncate(p.before); err != nil {
		return fmt.Errorf("put the file back: %w", err)
	}
	if p.sync {
		return f.Sync()
	}
	return nil
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
