package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/directio"
	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// worker looks at directories and files, one at a time.
type worker struct {
	*check
	ordinals []int32
	buf      []byte
	hash     hash.Hash
}

// capability is the extended attribute that gives a program rights that its
// user does not have (capabilities(7)). A tarball cannot bring it.
const capability = "security.capability"

// openBeneath opens a directory below another one; no link on the way is
// followed.
func openBeneath(dir *os.File, name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	var fd int
	how := unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH}
	err := uninterrupted(func() (err error) {
		fd, err = unix.Openat2(int(dir.Fd()), name, &how)
		return err
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EAGAIN) {
		fd, err = openSteps(int(dir.Fd()), name, flags) // before Linux 5.6, or forbidden by a sandbox
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openSteps is openBeneath, one directory after the other.
func openSteps(at int, name string, flags int) (int, error) {
	fd, own := at, false
	for part := range strings.SplitSeq(name, "/") {
		var next int
		err := uninterrupted(func() (err error) {
			next, err = unix.Openat(fd, part, flags, 0)
			return err
		})
		if own {
			unix.Close(fd)
		}
		if err != nil {
			return -1, err
		}
		fd, own = next, true
	}
	return fd, nil
}

// directory looks at what one directory should hold, and at what else it does.
func (w *worker) directory(ctx context.Context, dir string) {
	at, err := openBeneath(w.at, dir)
	entries := w.list.byDir[dir]
	if err != nil {
		for _, i := range entries {
			if e := &w.list.entries[i]; !e.large() { // who reads those says it of them
				w.undirected(e, err)
			}
		}
		return
	}
	defer at.Close() // opened for reading
	w.strangers(at, dir)
	for _, i := range entries {
		if ctx.Err() != nil {
			return
		}
		e := &w.list.entries[i]
		switch {
		case e.kind == manifest.Dir:
			w.subdirectory(at, e)
		case e.kind == manifest.Symlink:
			w.symlink(at, e)
		case e.same != "":
			w.twin(at, e)
		case !e.large():
			w.regular(ctx, at, i)
		}
	}
}

// large reports whether a file is one that a worker takes for itself.
func (e *item) large() bool { return e.kind == manifest.Regular && e.same == "" && e.size >= big }

// alone looks at one large file.
func (w *worker) alone(ctx context.Context, i int) {
	at, err := openBeneath(w.at, path.Dir(w.list.entries[i].path))
	if err != nil {
		w.undirected(&w.list.entries[i], err)
		return
	}
	defer at.Close() // opened for reading
	w.regular(ctx, at, i)
}

// undirected is for an entry whose directory cannot be opened.
func (w *worker) undirected(e *item, err error) {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
		e.flaw(flawMissing, "what should be its directory is none")
		return
	}
	w.unopened(e, err)
}

// strangers names what is in a directory and not listed.
func (w *worker) strangers(at *os.File, dir string) {
	for {
		names, err := at.Readdirnames(1024)
		for _, name := range names {
			p := path.Join(dir, name)
			if _, known := w.list.byPath[p]; known || isList(p) {
				continue
			}
			w.stranger(p)
		}
		if err != nil {
			return // io.EOF; of a directory that the disk does not give, the files are named
		}
	}
}

// statAt looks at a name in a directory.
func (w *worker) statAt(at *os.File, e *item, st *unix.Stat_t) bool {
	err := uninterrupted(func() error {
		return unix.Fstatat(int(at.Fd()), path.Base(e.path), st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		w.unopened(e, err)
		return false
	}
	return true
}

func (w *worker) subdirectory(at *os.File, e *item) {
	var st unix.Stat_t
	if !w.statAt(at, e, &st) {
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		e.flaw(flawKind, "it is no directory any more")
		return
	}
	w.mode(e, &st)
}

func (w *worker) symlink(at *os.File, e *item) {
	buf := make([]byte, unix.PathMax+1)
	var n int
	err := uninterrupted(func() (err error) {
		n, err = unix.Readlinkat(int(at.Fd()), path.Base(e.path), buf)
		return err
	})
	switch {
	case errors.Is(err, unix.EINVAL):
		e.flaw(flawKind, "it is no symlink any more")
	case err != nil:
		w.unopened(e, err)
	case string(buf[:n]) != e.link:
		e.flaw(flawLink, "it leads to %q, not to %q", buf[:n], e.link)
	}
}

// twin looks at a further name of an inode; what the inode is, its first name
// tells.
func (w *worker) twin(at *os.File, e *item) {
	var st unix.Stat_t
	if !w.statAt(at, e, &st) {
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		e.flaw(flawKind, "it is no regular file any more")
		return
	}
	e.found.take(&st)
}

func (f *found) take(st *unix.Stat_t) {
	f.dev, f.nlink, f.stamp = st.Dev, uint64(st.Nlink), stamp{st.Ino, st.Mtim.Nano(), st.Size}
}

// regular looks at a file, and reads it unless it is known to be what it was.
func (w *worker) regular(ctx context.Context, at *os.File, i int) {
	e := &w.list.entries[i]
	var st unix.Stat_t
	if w.fast {
		if !w.statAt(at, e, &st) {
			return
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG && w.unchanged(i, &st) {
			e.found.take(&st)
			w.mode(e, &st)
			w.p.moved(e.size)
			return
		}
	}
	var fd int
	err := uninterrupted(func() (err error) {
		fd, err = unix.Openat(int(at.Fd()), path.Base(e.path), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		w.closed(at, e, err)
		return
	}
	defer unix.Close(fd) // opened for reading
	if err := unix.Fstat(fd, &st); err != nil {
		w.unopened(e, err)
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		e.flaw(flawKind, "it is no regular file any more")
		return
	}
	e.found.take(&st)
	w.compare(ctx, fd, e, &st)
	w.p.moved(e.size)
}

// closed says of a file that cannot be opened what can be seen from outside.
func (w *worker) closed(at *os.File, e *item, err error) {
	var st unix.Stat_t
	if !w.statAt(at, e, &st) {
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		e.flaw(flawKind, "it is no regular file any more")
		return
	}
	e.found.take(&st)
	w.unopened(e, err)
	w.mode(e, &st)
}

// unchanged compares a file with the seal, or with files.jsonl where there is no
// seal.
func (w *worker) unchanged(i int, st *unix.Stat_t) bool {
	e := &w.list.entries[i]
	if st.Size != e.size || st.Mtim.Nano() != e.mtime*1e9 {
		return false
	}
	return w.was == nil || w.was.stamps[w.ordinals[i]] == stamp{st.Ino, st.Mtim.Nano(), st.Size}
}

// compare compares an open file with what is listed, its content first.
func (w *worker) compare(ctx context.Context, fd int, e *item, st *unix.Stat_t) {
	if st.Size != e.size {
		e.flaw(flawSize, "it has %d bytes, not %d", st.Size, e.size)
	} else {
		w.content(ctx, fd, e, st)
	}
	w.mode(e, st)
	if n, err := unix.Fgetxattr(fd, capability, nil); err == nil && n > 0 {
		e.flaw(flawCapability, "it has file capabilities")
	}
	if st.Mtim.Nano() != e.mtime*1e9 {
		e.flaw(flawTime, "its time is another")
	}
}

// content compares what is in a file of the right size.
func (w *worker) content(ctx context.Context, fd int, e *item, st *unix.Stat_t) {
	sum, err := w.sum(ctx, fd, st)
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.flaw(flawSize, "it became shorter while it was read")
	case err != nil:
		e.flaw(flawUnreadable, "%v", err)
	case sum != e.sum:
		e.flaw(flawContent, "it has other bytes than were installed")
	}
}

// sum hashes a file, or knows what it has hashed by another name.
func (w *worker) sum(ctx context.Context, fd int, st *unix.Stat_t) ([32]byte, error) {
	id := inode{st.Dev, st.Ino}
	now := proof{size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano()}
	if st.Nlink > 1 {
		w.p.mu.Lock()
		was, ok := w.p.known[id]
		w.p.mu.Unlock()
		if now.sum = was.sum; ok && was == now {
			return was.sum, nil
		}
	}
	sum, err := w.digest(ctx, fd, st.Size)
	w.read.Add(st.Size)
	if now.sum = sum; err == nil && st.Nlink > 1 {
		w.p.mu.Lock()
		if len(w.p.known) < maxProofs {
			w.p.known[id] = now
		}
		w.p.mu.Unlock()
	}
	return sum, err
}

// step is the size of one read, and a multiple of directio.Align.
const step = 1 << 20

// digest reads a file to its end.
func (w *worker) digest(ctx context.Context, fd int, size int64) (sum [32]byte, err error) {
	if w.buf == nil {
		w.buf, w.hash = make([]byte, step), sha256.New()
	}
	r := reading{fd: fd, size: size, read: w.p.o.read, cached: size >= directio.Least && directio.Known(fd)}
	w.hash.Reset()
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		n, err := r.next(w.buf, off)
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return sum, fmt.Errorf("read at %d: %w", off, err)
		}
		n = int(min(int64(n), size-off))
		w.hash.Write(w.buf[:n])
		off += int64(n)
	}
	w.hash.Sum(sum[:0])
	return sum, nil
}

// reading is a large file that is read from the page cache as far as it is there,
// and past it from then on: what the machine has in its cache stays there.
type reading struct {
	fd     int
	size   int64
	read   func(fd int, b []byte, off int64) (int, error)
	cached bool // it was, as far as it was read
	direct bool
}

func (r *reading) next(buf []byte, off int64) (int, error) {
	if r.cached {
		n, err := unix.Preadv2(r.fd, [][]byte{buf}, off, unix.RWF_NOWAIT)
		if n = max(n, 0); off+int64(n) < r.size {
			n -= n % directio.Align // the rest of the block is read from the disk
		}
		if err == nil && n > 0 {
			return n, nil
		}
		r.cached = false
		r.direct = off%directio.Align == 0 && directio.Start(r.fd)
	}
	for {
		n, err := r.read(r.fd, buf, off)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EINVAL) && r.direct:
			r.direct = false
			if err := directio.Stop(r.fd); err != nil {
				return 0, err
			}
		default:
			return n, err
		}
	}
}

func pread(fd int, b []byte, off int64) (int, error) { return unix.Pread(fd, b, off) }
