package patchelf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"golang.org/x/sys/unix"
)

// CopyOptions says how EditCopy treats what is not the content.
type CopyOptions struct {
	BreakLinks bool // dst has other names: replace this one, the others keep the old file
	Sync       bool // do not return before the file and its name are on disk
	KeepTime   bool // keep the modification time of src
}

// EditCopy edits a copy of src and gives it the name dst in one step: whoever
// opens dst, or runs it, sees the old file or the new one, and a process that
// has the old one open or mapped keeps it. dst may be src. Where nothing would
// change and dst is src, nothing is written.
//
// The copy shares its blocks with src where the file system can do that, and
// has holes where src has them. It is made beside dst, under a name that
// follows from dst: what a killed run leaves there, the next run removes.
//
// Where dst is src, the copy has its mode, owner, extended attributes and
// access lists; what the system does not permit to keep is told in
// Result.Lost, and without the owner it has no setuid bits. Where dst is
// another name, it has the permission bits of src, and what anybody may copy
// of the rest. A dst that Streams is written to.
//
// Symbolic links are refused, and so is a dst with several hard links, unless
// BreakLinks says otherwise.
func EditCopy(src, dst string, e Edit, o CopyOptions) (Result, error) {
	return EditCopyFunc(src, dst, always(e), o)
}

// EditCopyFunc is EditCopy for an edit that follows from what the file says:
// edit is given the file as it was read, and if another edit comes between,
// dst stays as it was. An error of it ends the edit.
func EditCopyFunc(src, dst string, edit func(f *File) (Edit, error), o CopyOptions) (Result, error) {
	res, err := editCopy(src, dst, edit, o)
	if err != nil {
		return Result{}, fmt.Errorf("edit %s: %w", src, err)
	}
	return res, nil
}

func editCopy(src, dst string, edit func(f *File) (Edit, error), o CopyOptions) (Result, error) {
	f, info, err := openSource(src)
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return Result{}, errLocked
	}
	there, err := lookAt(dst)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		there = nil
	case err != nil:
		return Result{}, err
	case there.IsDir():
		return Result{}, &fs.PathError{Op: "open", Path: dst, Err: unix.EISDIR}
	case !there.Mode().IsRegular() && !Streams(dst):
		return Result{}, refuse("%s is not a regular file", dst)
	}
	same := there != nil && os.SameFile(info, there)
	p, res, err := planWith(f, func(g *File) (Edit, error) {
		e, err := edit(g)
		e.Sync = false // the copy is synced as a whole
		return e, err
	})
	if err != nil {
		return Result{}, err
	}
	if there != nil && Streams(dst) {
		if same {
			return Result{}, refuse("%s is the file itself, which would be written while it is read", dst)
		}
		res.How, res.Written = "copied, "+res.How, p.after
		return res, stream(f, p, dst)
	}
	if same && p.Empty() {
		return res, nil
	}
	if there != nil && links(there) > 1 && !o.BreakLinks {
		return Result{}, refuse("%s has %d hard links, and a copy would be one of its own", dst, links(there))
	}
	c := &copying{src: f, info: info, plan: p, dst: dst, same: same, o: o}
	if err := c.run(); err != nil {
		return Result{}, err
	}
	return c.result(res), nil
}

// openSource opens a regular file for reading.
func openSource(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, nil, refuse("it is a symbolic link")
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = refuse("it is not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// lookAt is lstat(2), but that it looks through a link that is written through.
func lookAt(dst string) (fs.FileInfo, error) {
	if Streams(dst) {
		return os.Stat(dst)
	}
	return os.Lstat(dst)
}

// Streams tells whether EditCopy writes to dst as it is, and does not replace
// it: a device or a pipe, or a file that this process has open, by its name
// under /proc (/dev/stdout leads there).
func Streams(dst string) bool {
	info, err := os.Stat(dst)
	if err != nil {
		return false
	}
	return info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe) != 0 || (info.Mode().IsRegular() && isDescriptor(dst))
}

// isDescriptor tells whether a name leads to an entry of /proc/PID/fd.
func isDescriptor(name string) bool {
	for range 8 {
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			return false
		}
		if ok, _ := filepath.Match("/proc/[0-9]*/fd", dir); ok {
			return true
		}
		to, err := os.Readlink(name)
		if err != nil {
			return false
		}
		if name = to; !filepath.IsAbs(to) {
			name = filepath.Join(dir, to)
		}
	}
	return false
}

func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*unixStat); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// stream writes what a plan makes of src to a device, a pipe or an open file,
// from its start.
func stream(src io.ReaderAt, p *Plan, dst string) (err error) {
	w, err := os.OpenFile(dst, os.O_WRONLY|os.O_TRUNC|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	_, err = io.Copy(w, io.NewSectionReader(&overlay{base: src, size: p.before, after: p.after, writes: p.writes}, 0, p.after))
	return err
}

// copying is one copy on its way to its name.
type copying struct {
	src  *os.File
	info fs.FileInfo // of src
	plan *Plan
	dst  string
	same bool // dst is src
	o    CopyOptions

	copied int64    // bytes that were copied, not shared
	shared bool     // the copy shares its blocks with src
	lost   []string // what the copy could not be given
}

func (c *copying) run() (err error) {
	temp, t, err := createTemp(c.dst)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(temp) // still locked: nobody else has taken the name
		}
		err = errors.Join(err, t.Close())
	}()
	// Who holds the temporary file is alone to take the name: no other copy
	// has come between, and the lock on src keeps edits in place away.
	if c.same && !isAt(c.src, c.dst) {
		return errChanged
	}
	if err := c.fill(t); err != nil {
		return err
	}
	if err := c.dress(t); err != nil {
		return err
	}
	if c.o.Sync {
		if err := t.Sync(); err != nil {
			return fmt.Errorf("sync copy: %w", err)
		}
	}
	if err := os.Rename(temp, c.dst); err != nil {
		return err
	}
	if c.o.Sync {
		return syncDir(filepath.Dir(c.dst))
	}
	return nil
}

// fill copies the content, edits it, and looks at what has become of it.
func (c *copying) fill(t *os.File) error {
	var err error
	if c.shared, c.copied, err = copyContent(t, c.src, c.info.Size()); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	now, err := c.src.Stat()
	if err != nil {
		return err
	}
	if now.Size() != c.info.Size() || !now.ModTime().Equal(c.info.ModTime()) {
		return refuse("it changed while it was copied")
	}
	if err := c.plan.Apply(t); err != nil {
		return err
	}
	return landed(t, c.plan)
}

// landed reads an edited file again and compares it with what was planned.
func landed(f *os.File, p *Plan) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != p.after {
		return fmt.Errorf("check edit: the file has %d bytes, not %d", info.Size(), p.after)
	}
	g, err := Parse(f, info.Size())
	if err != nil {
		return fmt.Errorf("check edit: %w", err)
	}
	if !sameHeaders(g, p.result) {
		return errors.New("check edit: the file does not say what was planned")
	}
	return nil
}

// sameHeaders tells whether two files have the same headers and say the same:
// those of the one were verified.
func sameHeaders(f, g *File) bool {
	return reflect.DeepEqual(f.Facts(), g.Facts()) && slices.Equal(f.phdrs, g.phdrs) && slices.Equal(f.dyns, g.dyns) &&
		f.phoff == g.phoff && f.shoff == g.shoff && f.shnum == g.shnum && f.strOff == g.strOff && f.strSize == g.strSize
}

func (c *copying) result(res Result) Result {
	how := "copied"
	if c.shared {
		how = "copied by sharing blocks"
	}
	res.How, res.Lost = how+", "+res.How, c.lost
	res.Written += c.copied
	return res
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
