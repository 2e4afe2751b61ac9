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
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// check is one generation that is compared with its lists.
type check struct {
	p    *prover
	root *os.Root
	at   *os.File // the same directory
	dir  unix.Stat_t
	fast bool

	owner unix.Stat_t // of the directory that it is in: who makes generations owns that
	was   *seal       // what to compare with; nil: nothing
	list  *listing

	lists  [3]item // manifest.json, files.jsonl and omitted.jsonl
	top    item    // the generation's own directory
	differ bool    // a list is not as the seal says
	about  *manifest.Manifest

	read  atomic.Int64
	mu    sync.Mutex // for what follows
	extra []string
	more  int
}

func (p *prover) open(g *Generation) (*check, error) {
	c := &check{p: p, fast: p.o.Fast}
	var err error
	if c.at, err = os.OpenFile(g.Dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0); err != nil {
		return nil, err
	}
	if c.root, err = os.OpenRoot(g.Dir); err == nil {
		err = errors.Join(unix.Fstat(int(c.at.Fd()), &c.dir), unix.Fstatat(int(c.at.Fd()), "..", &c.owner, 0))
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *check) close() {
	c.at.Close() // opened for reading
	if c.root != nil {
		c.root.Close()
	}
}

// run compares, and fills v.
func (c *check) run(ctx context.Context, v *Verification, with *seal) error {
	if c.was = with; with == nil {
		c.was, _ = c.p.store.readSeal(&v.gen, c.dir.Ino) // one that cannot be read is as good as none
	}
	if c.fast {
		v.Method = MethodSeal
		if c.was == nil {
			v.Method = MethodManifest
		}
	}
	c.top = item{path: ".", kind: manifest.Dir, mode: dirMode}
	c.mode(&c.top, &c.dir)
	if err := c.readLists(ctx); err != nil {
		return err
	}
	if c.list != nil {
		if c.was != nil && len(c.was.stamps) != c.list.files {
			c.was = nil
		}
		v.Files, v.Bytes = c.list.files, c.list.bytes
		c.p.begin(&v.gen, v.Files, v.Bytes)
		if err := c.walk(ctx); err != nil {
			return err
		}
		c.twins()
	}
	c.report(v)
	c.reseal(v)
	return ctx.Err()
}

func (p *prover) begin(g *Generation, files int, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += bytes
	p.o.Next(g, files)
}

// readLists reads manifest.json and files.jsonl, and compares them with the seal
// and with each other.
func (c *check) readLists(ctx context.Context) error {
	for i, name := range []string{manifest.Name, manifest.FilesName, manifest.OmittedName} {
		e := &c.lists[i]
		*e = item{path: name, kind: manifest.Regular, mode: 0o444}
		f, err := openRegular(c.root, name)
		if errors.Is(err, fs.ErrNotExist) && name == manifest.OmittedName && (c.was == nil || c.was.lists[i] == [32]byte{}) {
			continue // most prefixes have none
		}
		if err != nil {
			c.unopened(e, err)
			continue
		}
		err = c.readList(ctx, i, f)
		f.Close() // opened for reading
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && errorNumber(err) != 0 {
			e.flaw(flawUnreadable, "%v", plainly(err))
		} else if err != nil {
			e.flaw(flawList, "%v", err)
		}
		if c.was != nil && e.found.bad&wantsBytes == 0 && e.sum != c.was.lists[i] {
			e.found.detail = ""
			e.flaw(flawContent, "it is not what it was when it was sealed")
		}
		c.differ = c.differ || c.was != nil && e.sum != c.was.lists[i]
	}
	if l := &c.lists[1]; c.about != nil && c.list != nil && c.about.Counts != c.list.counts && c.was == nil {
		l.flaw(flawList, "%s counts other files than it lists", manifest.Name)
	}
	return nil
}

// readList reads one of the lists, which is open.
func (c *check) readList(ctx context.Context, i int, f *os.File) error {
	e := &c.lists[i]
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	c.mode(e, &st)
	e.size, e.mtime = st.Size, st.Mtim.Sec
	e.found.dev, e.found.nlink, e.found.stamp = st.Dev, uint64(st.Nlink), stamp{st.Ino, st.Mtim.Nano(), st.Size}
	h := sha256.New()
	in := io.TeeReader(f, h)
	switch i {
	case 0:
		m, err := manifest.Read(in)
		if err != nil {
			return err
		}
		c.about = m
		if _, err := io.Copy(io.Discard, io.LimitReader(in, maxListing)); err != nil {
			return err
		}
	case 1:
		l, err := readListing(ctx, f)
		if err != nil {
			return err
		}
		c.list, e.sum = l, l.sum
		return nil
	default:
		if _, err := io.Copy(io.Discard, io.LimitReader(in, maxListing)); err != nil {
			return err
		}
	}
	h.Sum(e.sum[:0])
	return nil
}

// big is from which size on a file is taken by a worker for itself, and before
// all others: one that is begun last keeps one worker busy and the others idle.
const big = 4 << 20

// walk looks at everything that is listed, and at what else there is.
func (c *check) walk(ctx context.Context) error {
	var large []int
	for i := range c.list.entries {
		if c.list.entries[i].large() {
			large = append(large, i)
		}
	}
	slices.SortStableFunc(large, func(a, b int) int { return cmp.Compare(c.list.entries[b].size, c.list.entries[a].size) })
	regular := c.list.ordinals()
	var next atomic.Int64
	group, gctx := errgroup.WithContext(ctx)
	for range min(c.p.o.Jobs, len(large)+len(c.list.dirs)) {
		group.Go(func() error {
			w := &worker{check: c, ordinals: regular}
			for gctx.Err() == nil {
				switch n := int(next.Add(1)) - 1; {
				case n < len(large):
					w.alone(gctx, large[n])
				case n < len(large)+len(c.list.dirs):
					w.directory(gctx, c.list.dirs[n-len(large)])
				default:
					return nil
				}
			}
			return gctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	slices.Sort(c.extra)
	return nil
}

// ordinals numbers the regular files, as seals do.
func (l *listing) ordinals() []int32 {
	all, n := make([]int32, len(l.entries)), int32(0)
	for i := range l.entries {
		if l.entries[i].kind == manifest.Regular {
			all[i] = n
			n++
		}
	}
	return all
}

// twins compares the names of each inode.
func (c *check) twins() {
	for i := range c.list.entries {
		e := &c.list.entries[i]
		if e.same == "" || e.found.bad&wantsBytes != 0 {
			continue
		}
		first := c.list.first(e)
		if first.found.ino != e.found.ino || first.found.dev != e.found.dev {
			e.flaw(flawHardLink, "it is not the same file as %s", e.same)
		}
	}
}

// report lists what was found.
func (c *check) report(v *Verification) {
	add := func(e *item) {
		if e.found.bad != 0 {
			v.Damage = append(v.Damage, Damage{Path: e.path, What: e.found.bad.names(), Detail: e.found.detail})
		}
	}
	add(&c.top)
	for i := range c.lists {
		add(&c.lists[i])
	}
	if c.list != nil {
		for i := range c.list.entries {
			add(&c.list.entries[i])
		}
	}
	slices.SortFunc(v.Damage, func(a, b Damage) int { return cmp.Compare(a.Path, b.Path) })
	v.Extra, v.ExtraMore, v.Read = append(v.Extra, c.extra...), c.more, c.read.Load()
	if len(v.Damage) > 0 {
		v.top, v.lists, v.list = c.top, c.lists, c.list
	}
	if c.was != nil {
		v.sealed = c.was.lists
	}
}

// stranger notes what is there and not listed.
func (c *check) stranger(p string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.extra) >= maxExtra {
		c.more++
		return
	}
	c.extra = append(c.extra, p)
}

// mode compares permissions, and whose it is: who owns a file can change it whatever
// its mode. Directories may have a group that they hand down.
func (c *check) mode(e *item, st *unix.Stat_t) {
	got := st.Mode & 0o7777
	if e.kind == manifest.Dir {
		got &^= unix.S_ISGID
	}
	if got != e.mode {
		e.flaw(flawMode, "its mode is %04o, not %04o", got, e.mode)
	}
	if st.Uid != 0 && st.Uid != c.owner.Uid {
		e.flaw(flawOwner, "it belongs to user %d, not to %d", st.Uid, c.owner.Uid)
	}
}

// unopened says why something could not be opened.
func (c *check) unopened(e *item, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.flaw(flawMissing, "it is not there")
	case errors.Is(err, errNotRegular), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		e.flaw(flawKind, "it is no regular file any more")
	default:
		e.flaw(flawUnreadable, "%v", plainly(err))
	}
}

// errorNumber is the error of the system call in err, 0 if there is none.
func errorNumber(err error) unix.Errno {
	var n unix.Errno
	errors.As(err, &n)
	return n
}

// plainly is an error without the name of a file.
func plainly(err error) error {
	if n := errorNumber(err); n != 0 {
		return n
	}
	return err
}

// nameShared says of each damaged inode with further names, in which other
// generations it is damaged too.
func (s *Store) nameShared(ctx context.Context, v *Verification) error {
	damaged := map[inode]*Damage{}
	digests := map[string]bool{}
	for i := range v.Damage {
		d := &v.Damage[i]
		if v.list == nil {
			return nil
		}
		e := v.list.at(d.Path)
		if e == nil || e.kind != manifest.Regular || e.found.nlink < 2 || e.found.ino == 0 || e.found.bad&^flawHardLink == 0 {
			continue
		}
		damaged[inode{e.found.dev, e.found.ino}] = d
		digests[fmt.Sprintf("%x", e.sum)] = true
	}
	if len(damaged) == 0 {
		return nil
	}
	gens, err := s.everyGeneration()
	if err != nil {
		return nil // they cannot be named
	}
	for _, g := range gens {
		if g.Dir == v.Prefix {
			continue
		}
		s.nameIn(ctx, &g, damaged, digests)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// nameIn finds names of damaged inodes in one more generation. What cannot be
// read of it is not named.
func (s *Store) nameIn(ctx context.Context, g *Generation, damaged map[inode]*Damage, digests map[string]bool) {
	root, err := os.OpenRoot(g.Dir)
	if err != nil {
		return
	}
	defer root.Close()
	_ = eachListed(root, func(digest []byte) bool { return digests[string(digest)] }, func(f *manifest.File) error {
		if !fs.ValidPath(f.Path) {
			return ctx.Err()
		}
		if fi, err := root.Lstat(f.Path); err == nil {
			if d := damaged[inode{statOf(fi).Dev, statOf(fi).Ino}]; d != nil {
				d.Shared = append(d.Shared, path.Join(slotOf(g.Dir), g.Name, f.Path))
			}
		}
		return ctx.Err()
	})
}
