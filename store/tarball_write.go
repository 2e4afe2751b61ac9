package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// ErrOccupied is matched when a file is in the way, and is not what would be
// written.
var ErrOccupied = errors.New("it is there, and is something else")

// WriteFile writes the tarball to path, whole: nothing has that name before all
// of it was read back with the right digest and is on the disk. Where the file
// system can, the file shares the blocks of the parts. A path that has these
// very bytes already is done, and here is true; any other file there is replaced
// if that is asked for, and else an error that matches ErrOccupied.
func (t *Tarball) WriteFile(ctx context.Context, path string, replace bool) (here bool, err error) {
	here, err = t.writeFile(ctx, path, replace)
	if err != nil {
		err = fmt.Errorf("write %s to %s: %w", t.Name, path, err)
	}
	return here, err
}

func (t *Tarball) writeFile(ctx context.Context, path string, replace bool) (here bool, err error) {
	if here, err := t.isAt(ctx, path); here || err != nil && !(replace && errors.Is(err, ErrOccupied)) {
		return here, err
	}
	root, err := os.OpenRoot(t.Dir)
	if err != nil {
		return false, t.gone(err)
	}
	defer root.Close()
	out, temp, err := unnamed(path)
	if err != nil {
		return false, err
	}
	defer func() {
		err = errors.Join(err, out.Close())
		if temp != "" { // under its final name, or not wanted
			err = errors.Join(err, os.Remove(temp))
		}
	}()
	for i := range t.Parts {
		if err := t.appendPart(ctx, root, out, i); err != nil {
			return false, err
		}
	}
	err = t.readBack(ctx, out)
	var mismatch *release.MismatchError
	if errors.As(err, &mismatch) {
		err = t.damage(ctx, mismatch)
	}
	if err != nil {
		return false, err
	}
	if err := errors.Join(out.Chmod(fileMode), out.Sync()); err != nil {
		return false, err
	}
	name := path
	if replace {
		name = temporary(path)
	}
	if err := giveName(out, temp, name); err != nil {
		return false, err
	}
	if replace {
		if err := os.Rename(name, path); err != nil {
			return false, errors.Join(err, os.Remove(name))
		}
	}
	return false, syncDir(filepath.Dir(path))
}

// isAt reports whether the file at path is the tarball; if it is something
// else, that is an error.
func (t *Tarball) isAt(ctx context.Context, path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(path); lerr == nil {
			return false, fmt.Errorf("%w: a link that leads nowhere (remove it, or name another file)", ErrOccupied)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() // opened for reading
	fi, err := f.Stat()
	if err != nil {
		return false, err
	}
	if fi.Mode().IsRegular() && fi.Size() == t.Size {
		err := t.readBack(ctx, f)
		if err == nil || !errors.As(err, new(*release.MismatchError)) {
			return err == nil, err
		}
	}
	return false, fmt.Errorf("%w (remove it, or name another file)", ErrOccupied)
}

// unnamed makes a file in the directory of path that has no name there, or,
// where the file system has none such, a temporary one.
func unnamed(path string) (f *os.File, temp string, err error) {
	dir := filepath.Dir(path)
	err = uninterrupted(func() (err error) {
		f, err = os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
		return err
	})
	for _, no := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOSYS} {
		if errors.Is(err, no) {
			temp = temporary(path)
			f, err = os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
			break
		}
	}
	if err != nil {
		return nil, "", err
	}
	return f, temp, nil
}

// temporary is a name beside path that nobody else uses.
func temporary(path string) string {
	base := filepath.Base(path)
	return filepath.Join(filepath.Dir(path), "."+base[:min(len(base), maxName)]+"."+random())
}

// giveName links f, or its temporary name, to path, which must be free.
func giveName(f *os.File, temp, path string) error {
	var err error
	if temp != "" {
		err = os.Link(temp, path)
	} else {
		err = unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: somebody else has just made it (remove it, or name another file)", ErrOccupied)
	}
	return err
}

// appendPart copies part i to the end of out. The kernel does it, and shares
// the blocks where the file system can: io.Copy is copy_file_range(2) here.
func (t *Tarball) appendPart(ctx context.Context, root *os.Root, out *os.File, i int) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	f, err := t.openPart(root, i)
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading
	want := t.partSize(i)
	n, err := io.Copy(out, io.LimitReader(f, want))
	if err == nil && n != want {
		return t.damaged([]string{partName(i)}, io.ErrUnexpectedEOF)
	}
	return err
}

// readBack compares what a file holds with the tarball: other bytes are a
// *release.MismatchError.
func (t *Tarball) readBack(ctx context.Context, f *os.File) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	v := release.NewVerifiedReader(&ctxReader{ctx, f}, release.Expectation{Digest: t.Digest, Source: recordSource})
	_, err := io.CopyBuffer(onlyWriter{io.Discard}, v, make([]byte, 1<<20))
	return err
}
