package repack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/unpack"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// Sharing says how the files of a clone came to be, each inode once.
type Sharing struct {
	Reflinked   int   `json:"reflinked"`    // inodes of their own with the same extents
	HardLinked  int   `json:"hard_linked"`  // the same inodes
	Copied      int   `json:"copied"`       // neither
	CopiedBytes int64 `json:"copied_bytes"` // content of those
	HashedBytes int64 `json:"hashed_bytes"` // content that was read and compared with the manifest
}

// means is how a clone shares files, and which not. Tests have others.
type means struct {
	reflink   func(dst, src *os.File) error
	link      func(src, dir *os.File, name string) error
	twin      func(root *os.Root, first, name string) error
	perPrefix func(path string) bool // files of the tree that are copied because a later step writes to them
}

var linux = means{
	reflink: func(dst, src *os.File) error { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) },
	// The file that was looked at gets the name, and not what has come into
	// its place since.
	link: func(src, dir *os.File, name string) error {
		return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(src.Fd())), int(dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	},
	twin:      (*os.Root).Link,
	perPrefix: wrap.PerPrefix,
}

// PerPrefix reports whether a file of a prefix, by its path there, is of that
// prefix alone: a later step writes to it, so that it must share its content
// with no other.
func PerPrefix(path string) bool { return wrap.PerPrefix(strings.TrimPrefix(path, treeDir+"/")) }

// chunkSize is the size of one read. What was a hole in the unpacked file is one
// again.
const chunkSize = 1 << 20

// file takes over one regular file.
func (c *cloner) file(p *place, f *manifest.File) error {
	in, err := openPlain(p.src, path.Base(f.Path))
	if err != nil {
		return unfit("%w", err)
	}
	defer in.Close() // opened for reading
	fi, err := in.Stat()
	if err == nil {
		err = matches(fi, f)
	}
	if err != nil {
		return unfit("%w", err)
	}
	if err := c.settled(f, in); err != nil {
		return err
	}
	shared, err := c.share(p, f, in, fi)
	if err != nil || shared {
		return err
	}
	return c.copy(p, f, in)
}

// share gives f the content of in without a copy, if there is a way.
func (c *cloner) share(p *place, f *manifest.File, in *os.File, fi fs.FileInfo) (bool, error) {
	if c.means.perPrefix(strings.TrimPrefix(f.Path, treeDir+"/")) {
		return false, nil
	}
	dedup := c.m.o.Dedup
	if dedup == DedupAuto || dedup == DedupReflink {
		if ok, err := c.reflink(p, f, in); ok || err != nil {
			return ok, err
		}
	}
	if dedup == DedupAuto || dedup == DedupHardLink {
		return c.hardLink(p, f, in, fi)
	}
	return false, nil
}

// reflink makes f an inode of its own that has the extents of in.
func (c *cloner) reflink(p *place, f *manifest.File, in *os.File) (done bool, err error) {
	if c.noReflink.Load() {
		return false, nil
	}
	name := path.Base(f.Path)
	out, err := p.dst.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := c.means.reflink(out, in); err != nil {
		for _, never := range []error{unix.EOPNOTSUPP, unix.ENOTTY, unix.EXDEV, unix.ENOSYS} {
			if errors.Is(err, never) {
				c.noReflink.Store(true)
			}
		}
		return false, p.dst.Remove(name)
	}
	if err := c.compare(f, out); err != nil {
		return false, err
	}
	c.tally(func(s *Sharing) { s.Reflinked++ })
	return true, finish(out, f)
}

// hardLink makes f another name of in's inode. Mode, time and owner are the
// inode's, so that all must be right: one of another user could be changed by
// that user.
func (c *cloner) hardLink(p *place, f *manifest.File, in *os.File, fi fs.FileInfo) (bool, error) {
	if !own(fi) {
		return false, nil
	}
	if err := c.means.link(in, p.at, path.Base(f.Path)); err != nil {
		return false, nil // EXDEV, EMLINK, EPERM, no /proc: a copy does
	}
	if err := c.compare(f, in); err != nil {
		return false, err
	}
	c.tally(func(s *Sharing) {
		s.HardLinked++
		c.linked[f.Path] = true
	})
	return true, nil
}

// compare hashes a shared file if the budget reaches it.
func (c *cloner) compare(f *manifest.File, shared *os.File) error {
	fi, err := shared.Stat()
	if err != nil {
		return err
	}
	if fi.Size() != f.Size {
		return unfit("%s has %d bytes, not %d", f.Path, fi.Size(), f.Size)
	}
	if f.Size > c.hashed {
		return nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(shared, 0, f.Size)); err != nil {
		return unfit("%w", err)
	}
	return c.agree(f, h.Sum(nil))
}

// agree compares a digest with that of the manifest.
func (c *cloner) agree(f *manifest.File, sum []byte) error {
	if hex.EncodeToString(sum) != f.SHA256 {
		return unfit("%s was changed after it was made", f.Path)
	}
	c.tally(func(s *Sharing) { s.HashedBytes += f.Size })
	return nil
}

// copy makes f a file with the bytes of in, which are hashed on the way.
func (c *cloner) copy(p *place, f *manifest.File, in *os.File) (err error) {
	out, err := p.dst.OpenFile(path.Base(f.Path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if p.buf == nil {
		p.buf = make([]byte, chunkSize)
	}
	h := sha256.New()
	for off := int64(0); off < f.Size; off += chunkSize {
		chunk := p.buf[:min(chunkSize, f.Size-off)]
		if _, err := in.ReadAt(chunk, off); err != nil {
			return unfit("%w", err)
		}
		h.Write(chunk)
		for at, data := range unpack.Data(chunk) {
			if _, err := out.WriteAt(data, off+int64(at)); err != nil {
				return err
			}
		}
	}
	if err := c.agree(f, h.Sum(nil)); err != nil {
		return err
	}
	if err := out.Truncate(f.Size); err != nil {
		return err
	}
	c.tally(func(s *Sharing) { s.Copied++; s.CopiedBytes += f.Size })
	return finish(out, f)
}

// finish gives a new file its mode and time.
func finish(out *os.File, f *manifest.File) error {
	if err := out.Chmod(fs.FileMode(f.Mode)); err != nil {
		return err
	}
	return utimes(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(out.Fd())), f.MTime)
}

// utimes sets both times, in Unix seconds.
func utimes(dirfd int, name string, unixTime int64) error {
	ts, err := unix.TimeToTimespec(time.Unix(unixTime, 0))
	if err != nil {
		return fmt.Errorf("set times: %w", err)
	}
	var flags int
	if dirfd != unix.AT_FDCWD {
		flags = unix.AT_SYMLINK_NOFOLLOW
	}
	if err := unix.UtimesNanoAt(dirfd, name, []unix.Timespec{ts, ts}, flags); err != nil {
		return fmt.Errorf("set times: %w", err)
	}
	return nil
}
