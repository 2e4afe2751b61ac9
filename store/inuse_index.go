package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// mask is a set of generations of one index: bit i is gens[i].
type mask uint64

const maskBits = 64

// index knows which inodes are whose.
type index struct {
	gens  []Generation
	root  string   // of the store, without links
	dirs  []string // of gens, without links; "" for one that is gone
	homes []*home
}

// home is a file system that has generations.
type home struct {
	dev   uint64          // as stat shows it
	super uint64          // as maps and mountinfo show it: on btrfs another
	odd   bool            // dev and super, or inodes, may not be what they are elsewhere
	files map[uint64]mask // by inode; directories too
	where []string        // of each generation, its path in the file system; "" if on another
	root  string          // the path of the store in it, "" if on another
}

// newIndex lists the inodes of gens, at most maskBits. What is gone meanwhile
// has none.
func newIndex(ctx context.Context, root string, gens []Generation) (*index, error) {
	x := &index{gens: gens, dirs: make([]string, len(gens)), root: realPath(root)}
	own, err := mountsOf(procDir + "/self/mountinfo")
	if err != nil {
		return nil, err
	}
	found := make([]map[uint64]struct{}, len(gens))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	at := make([]*home, len(gens))
	for i, g := range gens {
		x.dirs[i] = realPath(g.Dir)
		st, err := statAt(unix.AT_FDCWD, x.dirs[i], unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, fs.ErrNotExist) {
			x.dirs[i] = ""
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "stat", Path: x.dirs[i], Err: err}
		}
		at[i] = x.home(own, st, i)
		group.Go(func() (err error) {
			found[i], err = inodesOf(gctx, x.dirs[i], at[i].odd)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, inos := range found {
		for ino := range inos {
			at[i].files[ino] |= 1 << i
		}
	}
	return x, nil
}

// home returns the file system of generation i.
func (x *index) home(own mounts, st stat, i int) *home {
	on := own.holding(st.mount, x.dirs[i])
	h := &home{dev: st.dev, super: st.dev, odd: true}
	if on != nil {
		h.super = on.dev
		h.odd = on.dev != st.dev || !plainInodes(x.dirs[i])
	}
	for _, have := range x.homes {
		if have.dev == h.dev && have.super == h.super {
			h = have
		}
	}
	if h.files == nil {
		h.files, h.where = map[uint64]mask{}, make([]string, len(x.gens))
		x.homes = append(x.homes, h)
	}
	if on != nil {
		h.where[i] = on.inside(x.dirs[i])
		if st, err := statAt(unix.AT_FDCWD, x.root, 0); err == nil && st.mount == on.id {
			h.root = on.inside(x.root)
		}
	}
	return h
}

// plainInodes reports that a directory of this file system lists the inodes
// that stat shows: of overlays and what is not known, that is not certain.
func plainInodes(path string) bool {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false
	}
	const f2fs = 0xf2f52010
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, f2fs:
		return true
	}
	return false
}

// owner is whose a file at path (without links) is, as one of those of m: the
// generation below which it lies, none if that is another generation of the
// store, and all if it lies elsewhere.
func (x *index) owner(path string, m mask) mask {
	return ownerBelow(x.dirs, x.root, path, m)
}

// ownerInside is owner for a path inside of the file system.
func (h *home) ownerInside(path string, m mask) mask {
	return ownerBelow(h.where, h.root, path, m)
}

func ownerBelow(dirs []string, root, path string, m mask) mask {
	for i, dir := range dirs {
		if dir != "" && below(path, dir) {
			return m & (1 << i)
		}
	}
	if root == "" || !below(path, root) {
		return m
	}
	rest := strings.Split(strings.Trim(strings.TrimPrefix(path, root), "/"), "/")
	if len(rest) > 3 && rest[0] == slotsName && rest[2] == generationsName {
		return 0
	}
	return m
}

// below reports whether path is dir or in it.
func below(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}

// stat is what is asked of a file.
type stat struct {
	dev, ino uint64
	mount    uint64 // the identity of the mount that it was found through; 0: not told
	mode     uint16
	links    uint32
}

// statAt asks for what the kernel knows already: a server that is away must not
// hold us up.
func statAt(dir int, path string, flags int) (stat, error) {
	var st unix.Statx_t
	const want = unix.STATX_TYPE | unix.STATX_INO | unix.STATX_NLINK | unix.STATX_MNT_ID
	err := uninterrupted(func() error {
		return unix.Statx(dir, path, flags|unix.AT_STATX_DONT_SYNC|unix.AT_NO_AUTOMOUNT, want, &st)
	})
	if err != nil {
		return stat{}, err
	}
	got := stat{dev: unix.Mkdev(st.Dev_major, st.Dev_minor), ino: st.Ino, mode: st.Mode, links: st.Nlink}
	if st.Mask&unix.STATX_MNT_ID != 0 {
		got.mount = st.Mnt_id
	}
	return got, nil
}

// direntBytes is how much of a directory is read at once.
const direntBytes = 64 << 10

// dirent is an entry of a directory; name is valid until the next one.
type dirent struct {
	ino  uint64
	kind byte // DT_…
	name []byte
}

// eachEntry calls do for each entry of the directory fd but . and .. (struct
// linux_dirent64 of getdents64(2): inode, offset, length of the record, type,
// name). It saves the stat of every file, where the inode is all that is wanted.
func eachEntry(fd int, buf []byte, do func(dirent) error) error {
	const head = 19
	for {
		n, err := unix.ReadDirent(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return err
		}
		for rest := buf[:n]; len(rest) >= head; {
			size := int(binary.NativeEndian.Uint16(rest[16:]))
			if size < head || size > len(rest) {
				return errors.New("a directory that contradicts itself")
			}
			e := dirent{ino: binary.NativeEndian.Uint64(rest), kind: rest[18], name: rest[head:size]}
			rest = rest[size:]
			if i := bytes.IndexByte(e.name, 0); i >= 0 {
				e.name = e.name[:i]
			}
			if s := string(e.name); s == "." || s == ".." {
				continue
			}
			if err := do(e); err != nil {
				return err
			}
		}
	}
}

// inodesOf lists the inodes of dir and all below it. With ask, the entries of
// directories are not believed.
func inodesOf(ctx context.Context, dir string, ask bool) (map[uint64]struct{}, error) {
	w := &inodeWalk{ctx: ctx, ask: ask, found: map[uint64]struct{}{}}
	return w.found, w.dir(unix.AT_FDCWD, dir)
}

type inodeWalk struct {
	ctx   context.Context // of one look
	ask   bool
	found map[uint64]struct{}
}

func (w *inodeWalk) dir(at int, name string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // gone meanwhile
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	st, err := statAt(fd, "", unix.AT_EMPTY_PATH)
	if err != nil {
		return &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	w.found[st.ino] = struct{}{}
	var subs []string
	err = eachEntry(fd, make([]byte, direntBytes/4), func(e dirent) error {
		if w.ask || e.kind == unix.DT_UNKNOWN {
			st, err := statAt(fd, string(e.name), unix.AT_SYMLINK_NOFOLLOW)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return &fs.PathError{Op: "stat", Path: string(e.name), Err: err}
			}
			e.ino, e.kind = st.ino, byte(st.mode>>12)
		}
		w.found[e.ino] = struct{}{}
		if e.kind == unix.DT_DIR {
			subs = append(subs, string(e.name))
		}
		return nil
	})
	for _, sub := range subs {
		if err == nil {
			err = w.dir(fd, sub)
		}
	}
	return err
}
