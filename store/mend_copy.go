package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// FromStore takes good copies from this and other generations of the store: files
// with a wanted digest, of another inode than any that is damaged, which are
// hashed again while they are copied. What cannot be read of a generation is
// passed over.
func (m *Mending) FromStore(ctx context.Context) error {
	gens, err := m.slot.store.everyGeneration()
	if err != nil {
		return fmt.Errorf("repair %s: %w", m.v.Generation, err)
	}
	for i := len(gens) - 1; i >= 0 && len(m.wanted) > 0; i-- {
		if err := m.FromPrefix(ctx, gens[i].Dir, slotOf(gens[i].Dir)+"/"+gens[i].Name); err != nil {
			return err
		}
	}
	return nil
}

// FromPrefix takes good copies from any prefix that has a files.jsonl, called
// source in what is reported.
func (m *Mending) FromPrefix(ctx context.Context, dir, source string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil // it went meanwhile
	}
	defer root.Close()
	at, err := root.Open(".")
	if err != nil {
		return nil
	}
	defer at.Close() // opened for reading
	from := MendedFrom{Source: source}
	for _, name := range []string{manifest.Name, manifest.FilesName, manifest.OmittedName} {
		if sum, err := digestOf(root, name); err == nil && len(m.wanted[sum]) > 0 {
			m.offer(ctx, at, name, sum, &from)
		}
	}
	wanted := make(map[string]bool, len(m.wanted))
	for sum := range m.wanted {
		wanted[fmt.Sprintf("%x", sum)] = true
	}
	_ = eachListed(root, func(digest []byte) bool { return wanted[string(digest)] }, func(f *manifest.File) error {
		if sum, ok := sumOf(f.SHA256); ok && f.Kind == manifest.Regular && fs.ValidPath(f.Path) {
			m.offer(ctx, at, f.Path, sum, &from)
		}
		return ctx.Err()
	}) // a list that cannot be read to its end has served as far as it goes
	if from.Files > 0 {
		m.res.From = append(m.res.From, from)
	}
	return ctx.Err()
}

// offer takes one file for all that want its digest, if it is what it should be.
func (m *Mending) offer(ctx context.Context, at *os.File, name string, sum [32]byte, from *MendedFrom) {
	items := m.wanted[sum]
	if len(items) == 0 {
		return
	}
	src, st, err := m.openGood(at, name)
	if err != nil {
		return
	}
	defer src.Close() // opened for reading
	for len(items) > 0 {
		e := items[0]
		temp, err := m.copy(ctx, src, e, st)
		if err != nil {
			if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EROFS) {
				m.note(e, err)
			}
			break
		}
		m.copies = append(m.copies, waiting{e, temp})
		from.Files++
		from.Bytes += st.Size
		items = items[1:]
	}
	if m.wanted[sum] = items; len(items) == 0 {
		delete(m.wanted, sum)
	}
}

// openGood opens a regular file that no damaged inode is.
func (m *Mending) openGood(at *os.File, name string) (*os.File, *unix.Stat_t, error) {
	dir, err := openBeneath(at, filepath.Dir(name))
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close() // opened for reading
	fd, err := unix.Openat(int(dir.Fd()), filepath.Base(name), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || m.bad[inode{st.Dev, st.Ino}]) {
		err = errNotRegular
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, &st, nil
}

var errOtherBytes = errors.New("it has other bytes")

// copy makes a file of its own with the bytes of src, if they are those that e
// should have. A copy by reflink is read back.
func (m *Mending) copy(ctx context.Context, src *os.File, e *item, st *unix.Stat_t) (name string, err error) {
	m.next++
	name = strconv.Itoa(m.next)
	fd, err := unix.Openat(int(m.temp.Fd()), name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return "", err
	}
	out := os.NewFile(uintptr(fd), name)
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			_ = unix.Unlinkat(int(m.temp.Fd()), name, 0) // it goes with the staging otherwise
		}
	}()
	var sum [32]byte
	if unix.IoctlFileClone(fd, int(src.Fd())) == nil {
		sum, err = hashFile(ctx, out, st.Size)
	} else {
		sum, err = copyHashed(ctx, out, src, st.Size)
	}
	if err == nil && sum != e.sum {
		err = errOtherBytes
	}
	if err != nil {
		return "", err
	}
	when := e.mtime
	if isList(e.path) { // one of the lists, whose time nobody has on record
		when = st.Mtim.Sec
	}
	m.label(name, e)
	return name, errors.Join(m.own(out), chmod(out, e.mode), setTime(out, when))
}

// copyHashed copies size bytes and hashes what it has copied.
func copyHashed(ctx context.Context, dst, src *os.File, size int64) (sum [32]byte, err error) {
	h, buf := sha256.New(), make([]byte, min(hashStep, max(size, 1)))
	for off := int64(0); off < size; {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		n, err := src.ReadAt(buf[:min(int64(len(buf)), size-off)], off)
		if n == 0 {
			return sum, cmp.Or(err, io.ErrUnexpectedEOF)
		}
		h.Write(buf[:n])
		if _, err := dst.WriteAt(buf[:n], off); err != nil {
			return sum, err
		}
		off += int64(n)
	}
	h.Sum(sum[:0])
	return sum, nil
}

// digestOf hashes a file of a prefix.
func digestOf(root *os.Root, name string) (sum [32]byte, err error) {
	f, err := openRegular(root, name)
	if err != nil {
		return sum, err
	}
	defer f.Close() // opened for reading
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}
