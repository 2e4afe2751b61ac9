package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// donor is the generation that is looked at.
type donor struct {
	root *os.Root
	name string // SLOT/GENERATION
	from int    // index in Reused.From

	linked  atomic.Bool  // a hard link to one of its files was made
	refused atomic.Int32 // how many were not
}

// maxBarren is how many refused hard links show that a donor has none to
// give: it lies on another file system, is immutable, or links are unknown
// there. To hash the rest of it would be in vain.
const maxBarren = 3

// barren reports whether no hard link to d is to be had.
func (d *donor) barren() bool { return !d.linked.Load() && d.refused.Load() >= maxBarren }

// means are the calls by which files are shared. Tests have others.
type means struct {
	dedupe func(dst, src *os.File, off, n int64) (done int64, same bool, err error)
	hash   func(ctx context.Context, f *os.File, size int64) (sum [32]byte, err error)
	link   func(src, dir *os.File, name string) error
}

var linuxMeans = means{dedupe: dedupeRange, hash: hashFile, link: linkFile}

// dedupeRange makes n bytes of dst at off share their extents with those of
// src, if the kernel finds them equal (ioctl_fideduperange(2)).
func dedupeRange(dst, src *os.File, off, n int64) (int64, bool, error) {
	arg := unix.FileDedupeRange{Src_offset: uint64(off), Src_length: uint64(n),
		Info: []unix.FileDedupeRangeInfo{{Dest_fd: int64(dst.Fd()), Dest_offset: uint64(off)}}}
	err := uninterrupted(func() error { return unix.IoctlFileDedupeRange(int(src.Fd()), &arg) })
	if err != nil {
		return 0, false, err
	}
	info := &arg.Info[0]
	if info.Status < 0 {
		return 0, false, syscall.Errno(-info.Status)
	}
	return int64(info.Bytes_deduped), info.Status == unix.FILE_DEDUPE_RANGE_SAME, nil
}

// linkFile gives src, which was looked at, one more name, and not what has
// come into its place since.
func linkFile(src, dir *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(src.Fd())), int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
}

const (
	// A file that fits into one block has little to gain from a reflink, and
	// btrfs keeps small ones in its metadata, where they cannot be shared.
	minReflink = 4 << 10
	// What btrfs compares in one call at most; a multiple of every block size.
	dedupeStep = 16 << 20
)

// Why an equal file was not shared. Errors of the kernel are reasons too.
const (
	whyGone      = "the older file is gone"
	whyDamaged   = "the older file is damaged"
	whyBusy      = "the older file was changed while it was read"
	whyForeign   = "the older file is of another owner"
	whyAttrs     = "the older file has other extended attributes"
	whyTime      = "the older file is newer than the tarball"
	whySource    = "a compiled form of it has its time on record"
	whyTaken     = "the older file serves another one"
	whyStaged    = "the new file is not as files.jsonl says"
	whyBarren    = "hard links to the older generation were refused"
	whyNoReflink = "the file system has no reflinks"
	whySmall     = "it is too small for a reflink"
)

// shareAll is one worker's portion.
func (r *reuser) shareAll(ctx context.Context, d *donor, wants []*want) error {
	staged, donated := &opener{root: r.root}, &opener{root: d.root}
	defer staged.close()
	defer donated.close()
	for _, w := range wants {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.share(ctx, d, w, staged, donated)
	}
	return ctx.Err()
}

// share makes w share its content with d's file, or says why not.
func (r *reuser) share(ctx context.Context, d *donor, w *want, staged, donated *opener) {
	w.why = r.try(ctx, d, w, staged, donated)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done += w.file.Size
	r.o.Event(r.done)
	if w.why != "" {
		return
	}
	w.shared, w.from = true, d.from
	r.res.Files++
	r.res.Bytes += w.file.Size
	r.res.From[d.from].Files++
	r.res.From[d.from].Bytes += w.file.Size
}

// try is share; it returns the reason, "" when it is done.
func (r *reuser) try(ctx context.Context, d *donor, w *want, staged, donated *opener) string {
	dst, to, err := r.staged(w, staged)
	if err != nil {
		return because(err, whyStaged)
	}
	defer dst.Close() // opened for reading
	src, from, why := r.donated(d, w, donated)
	if why != "" {
		return why
	}
	defer src.Close()
	if r.o.Dedup != DedupHardLink && !r.noReflink.Load() {
		why, fell := r.reflink(ctx, d, w, dst, src)
		if !fell || r.o.Dedup == DedupReflink {
			return why
		}
	} else if r.o.Dedup == DedupReflink {
		return whyNoReflink
	}
	return r.hardLink(ctx, d, w, pair{dst, src, to, from})
}

// pair is a staged file and an equal one.
type pair struct {
	dst, src *os.File
	to, from fs.FileInfo
}

// because is the reason that an error of a call is, or other.
func because(err error, other string) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	return other
}

// staged opens the file that w is, if it is what files.jsonl says, by all of
// its names and no other.
func (r *reuser) staged(w *want, in *opener) (*os.File, fs.FileInfo, error) {
	f, err := in.open(w.file.Path)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil && (fi.Size() != w.file.Size || fi.Mode() != fs.FileMode(w.file.Mode) || uint64(statOf(fi).Nlink) != uint64(len(w.names))) {
		err = errors.New(whyStaged)
	}
	for _, name := range w.names[1:] {
		if other, lerr := r.root.Lstat(name.Path); err == nil && (lerr != nil || !os.SameFile(fi, other)) {
			err = errors.New(whyStaged)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, fi, nil
}

// donated opens the equal file of d, if it looks like one.
func (r *reuser) donated(d *donor, w *want, in *opener) (*os.File, fs.FileInfo, string) {
	f, err := in.open(w.donor)
	if err != nil {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, whyGone // perhaps all of the generation: it may be pruned by now
		case errors.Is(err, errNotRegular), errors.Is(err, unix.ELOOP):
			r.damaged(d.name + "/" + w.donor)
			return nil, nil, whyDamaged
		}
		r.note("%s of %s cannot be read: %v", w.donor, d.name, err)
		return nil, nil, because(err, whyDamaged)
	}
	fi, err := f.Stat()
	why := ""
	switch {
	case err != nil:
		why = because(err, whyDamaged)
	case fi.Size() != w.file.Size || fi.Mode() != fs.FileMode(w.file.Mode):
		r.damaged(d.name + "/" + w.donor)
		why = whyDamaged
	case int(statOf(fi).Uid) != r.uid && statOf(fi).Uid != 0:
		why = whyForeign
	default:
		return f, fi, ""
	}
	f.Close() // opened for reading
	return nil, nil, why
}

func statOf(fi fs.FileInfo) *syscall.Stat_t {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return st
	}
	return &syscall.Stat_t{} // of no file on Linux
}

// reflink lets the kernel compare and share. fell says that another way may
// be tried.
func (r *reuser) reflink(ctx context.Context, d *donor, w *want, dst, src *os.File) (why string, fell bool) {
	if w.file.Size < minReflink && r.reflinks.Load() {
		return whySmall, false
	}
	for off := int64(0); off < w.file.Size; {
		if ctx.Err() != nil {
			return "canceled", false
		}
		n, same, err := r.by.dedupe(dst, src, off, min(dedupeStep, w.file.Size-off))
		switch {
		case err == nil && !same:
			r.damaged(d.name + "/" + w.donor)
			return whyDamaged, false
		case err == nil && n > 0:
			off += min(n, w.file.Size-off)
			r.count(func(res *Reused) { res.Read += n })
			continue
		case err == nil:
			err = syscall.EINVAL // it says that they are equal, and shares nothing
		}
		for _, never := range []error{unix.EOPNOTSUPP, unix.ENOTTY, unix.ENOSYS} {
			if errors.Is(err, never) {
				r.noReflink.Store(true)
				return whyNoReflink, true
			}
		}
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EXDEV) {
			return because(err, whyNoReflink), off == 0
		}
		r.note("%s shares no extents with that of %s: %v", w.file.Path, d.name, err)
		return because(err, whyNoReflink), false
	}
	r.reflinks.Store(true)
	r.count(func(res *Reused) { res.Reflinked++ })
	return "", false
}

func (r *reuser) count(add func(*Reused)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add(&r.res)
}

// hardLink makes names for src, which wait to take the places of w's.
func (r *reuser) hardLink(ctx context.Context, d *donor, w *want, p pair) (why string) {
	if why := r.linkable(w, p); why != "" {
		return why
	}
	if d.barren() {
		return whyBarren
	}
	st := statOf(p.from)
	id := inode{st.Dev, st.Ino}
	r.mu.Lock()
	taken := r.used[id]
	r.used[id] = true
	r.mu.Unlock()
	if taken {
		return whyTaken
	}
	defer func() {
		if why != "" && why != whyDamaged { // it serves nobody yet: by its name in another donor it may
			r.mu.Lock()
			delete(r.used, id)
			r.mu.Unlock()
		}
	}()
	sum, err := r.by.hash(ctx, p.src, w.file.Size)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return because(err, whyBusy)
	}
	r.count(func(res *Reused) { res.Read += w.file.Size })
	if err != nil || sum != w.key.sum {
		r.damaged(d.name + "/" + w.donor)
		return whyDamaged
	}
	if now, err := p.src.Stat(); err != nil || !untouched(st, statOf(now)) {
		return whyBusy
	}
	if err := r.prepare(p.src, w); err != nil {
		d.refused.Add(1)
		return because(err, "it could not be linked")
	}
	d.linked.Store(true)
	w.mtime = p.from.ModTime().Unix()
	r.count(func(res *Reused) { res.HardLinked++ })
	return ""
}

// prepare makes the place where hard links wait, once, and those of w in it.
func (r *reuser) prepare(src *os.File, w *want) error {
	r.mu.Lock()
	if r.swap == nil {
		s, err := newSwap(r.root)
		if err != nil {
			r.mu.Unlock()
			return err
		}
		r.swap = s
	}
	r.mu.Unlock()
	return r.swap.add(w, func(dir *os.File, name string) error { return r.by.link(src, dir, name) })
}

// linkable says why src cannot be the inode of dst: mode, owner, attributes
// and time are the inode's. That it is on another file system, the kernel says.
func (r *reuser) linkable(w *want, p pair) string {
	to, from := statOf(p.to), statOf(p.from)
	mtime := p.from.ModTime()
	switch {
	case to.Dev == from.Dev && to.Ino == from.Ino:
		return whyTaken
	case to.Uid != from.Uid || to.Gid != from.Gid:
		return whyForeign
	case mtime.Unix() < 0 || mtime.Unix() > r.newest || mtime.Nanosecond() != 0:
		return whyTime
	case w.ages && !mtime.Equal(p.to.ModTime()):
		return whySource
	case !sameAttrs(p.dst, p.src):
		return whyAttrs
	}
	return ""
}
