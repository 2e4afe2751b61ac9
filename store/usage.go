package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Usage is what generations occupy on disk, in bytes: blocks, not content.
type Usage struct {
	Total       int64            // of all together, what they share once
	Slots       map[string]int64 // of the generations of a slot together, by its name
	Generations map[string]GenerationUsage
	// AtMost says that files may share extents (reflinks) in a way that could
	// not be found out in time: then all figures are upper bounds.
	AtMost bool
}

// GenerationUsage is what one generation occupies, by its Dir.
type GenerationUsage struct {
	Disk int64 // what it would occupy alone
	Own  int64 // of that, what no other generation of the store has: what its removal frees
}

// Usage looks at every file of every generation of the store; 100,000 files
// that the kernel has in memory take about a second. It takes no lock: what is
// removed meanwhile counts as far as it was seen. When ctx ends while it looks
// at inodes, that is the error; while it looks at extents, the figures are
// upper bounds.
func (s *Store) Usage(ctx context.Context) (*Usage, error) {
	slots, err := s.Slots()
	if err != nil {
		return nil, err
	}
	var seen []*tree
	for _, sl := range slots {
		names, err := sl.generationNames()
		if err != nil {
			continue
		}
		for _, name := range names {
			seen = append(seen, &tree{slot: sl.Name(), dir: sl.path(generationsName, name)})
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	extents := mayReflink(s.root)
	for _, t := range seen {
		group.Go(func() error { return t.walk(gctx, extents) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	u := &Usage{Slots: map[string]int64{}, Generations: map[string]GenerationUsage{}}
	if extents {
		u.AtMost = mapAll(ctx, seen) != nil
	}
	u.sum(seen)
	return u, nil
}

// tree is what was seen of one generation.
type tree struct {
	slot, dir string
	alone     int64 // blocks of what has one name and shares nothing
	shared    []piece
	files     []string         // those to be asked for their extents
	names     map[inode]uint64 // how often each inode of shared was seen
}

// piece is something on the disk that several trees may have: an inode, or a
// range of bytes of the device.
type piece struct {
	id    inode // ino 0: not an inode
	ext   extent
	size  int64
	links uint64 // names that the inode has anywhere
}

// walk adds up the inodes of one generation.
func (t *tree) walk(ctx context.Context, extents bool) error {
	root, err := os.OpenFile(t.dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed meanwhile
	}
	if err != nil {
		return err
	}
	defer root.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: t.dir, Err: err}
	}
	t.alone += st.Blocks * 512
	t.names = map[inode]uint64{}
	w := &walker{ctx: ctx, tree: t, extents: extents}
	return w.dir(root, t.dir)
}

// walker looks at the entries of a tree by their directories: with full paths
// it would take several times as long.
type walker struct {
	ctx     context.Context // of one Usage
	tree    *tree
	extents bool
}

// dir looks at the entries of d, and closes what it opens.
func (w *walker) dir(d *os.File, name string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	entries, err := d.Readdirnames(-1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		var st unix.Stat_t
		err := unix.Fstatat(int(d.Fd()), e, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "stat", Path: filepath.Join(name, e), Err: err}
		}
		w.add(&st, name, e)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		if err := w.enter(d, filepath.Join(name, e), e); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) enter(d *os.File, name, base string) error {
	fd, err := unix.Openat(int(d.Fd()), base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	sub := os.NewFile(uintptr(fd), name)
	defer sub.Close()
	return w.dir(sub, name)
}

// add counts one entry.
func (w *walker) add(st *unix.Stat_t, dir, base string) {
	kind, size := st.Mode&unix.S_IFMT, st.Blocks*512
	id := inode{st.Dev, st.Ino}
	switch {
	case kind == unix.S_IFDIR || st.Nlink == 1:
		w.tree.alone += size
	case w.tree.names[id] > 0:
		w.tree.names[id]++
		return
	default:
		w.tree.names[id] = 1
		w.tree.shared = append(w.tree.shared, piece{id: id, size: size, links: uint64(st.Nlink)}) // 32 bits wide on arm64
	}
	if w.extents && kind == unix.S_IFREG && size > 0 {
		w.tree.files = append(w.tree.files, filepath.Join(dir, base))
	}
}

// mapAll asks for the shared extents of every file. When it fails, nothing has
// changed.
func mapAll(ctx context.Context, trees []*tree) error {
	found := make([]*mapped, len(trees))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range trees {
		group.Go(func() (err error) {
			found[i], err = t.mapped(gctx)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, t := range trees {
		t.alone -= found[i].alone
		for j := range t.shared {
			t.shared[j].size -= found[i].inodes[t.shared[j].id]
		}
		t.shared = append(t.shared, found[i].extents...)
	}
	return nil
}

// mapped is the shared extents of a tree, and the bytes that were counted as
// what has one name, or as an inode with several.
type mapped struct {
	extents []piece
	alone   int64
	inodes  map[inode]int64
}

func (t *tree) mapped(ctx context.Context) (*mapped, error) {
	m := &mapped{inodes: map[inode]int64{}}
	for _, path := range t.files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := m.add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return m, nil
}

func (m *mapped) add(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	list, err := extentsOf(f, true)
	if err != nil {
		return err
	}
	var bytes int64
	for _, e := range list {
		n := int64(e.end - e.start)
		m.extents, bytes = append(m.extents, piece{ext: e, size: n}), bytes+n
	}
	if st := statOf(fi); st.Nlink > 1 {
		m.inodes[inode{st.Dev, st.Ino}] = bytes
	} else {
		m.alone += bytes
	}
	return nil
}

// sum counts what is shared once.
func (u *Usage) sum(trees []*tree) {
	own := make([]int64, len(trees))
	disk := make([]int64, len(trees))
	for i, t := range trees {
		own[i], disk[i] = t.alone, t.alone
		u.Total += t.alone
		u.Slots[t.slot] += t.alone
	}
	count := func(size int64, owners []int) {
		u.Total += size
		bySlot := map[string]bool{}
		for _, i := range owners {
			disk[i] += size
			bySlot[trees[i].slot] = true
		}
		for slot := range bySlot {
			u.Slots[slot] += size
		}
		if len(owners) == 1 {
			own[owners[0]] += size
		}
	}
	inodes := map[inode][]int{}
	sizes := map[inode]int64{}
	var marks []mark
	for i, t := range trees {
		for _, p := range t.shared {
			if p.id.ino != 0 {
				inodes[p.id], sizes[p.id] = append(inodes[p.id], i), p.size
				continue
			}
			marks = append(marks, mark{p.ext.start, i, 1}, mark{p.ext.end, i, -1})
		}
	}
	for id, owners := range inodes {
		count(sizes[id], owners)
	}
	sweep(marks, count)
	for i, t := range trees {
		u.Generations[t.dir] = GenerationUsage{Disk: disk[i], Own: own[i]}
	}
}

// mark is where a range of a tree begins (1) or ends (-1).
type mark struct {
	at   uint64
	tree int
	step int
}

// sweep calls count for each stretch between two marks, with the trees that
// have it.
func sweep(marks []mark, count func(size int64, owners []int)) {
	slices.SortFunc(marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	open := map[int]int{}
	for i, m := range marks {
		if i > 0 && len(open) > 0 && m.at > marks[i-1].at {
			owners := make([]int, 0, len(open))
			for t := range open {
				owners = append(owners, t)
			}
			count(int64(m.at-marks[i-1].at), owners)
		}
		if open[m.tree] += m.step; open[m.tree] == 0 {
			delete(open, m.tree)
		}
	}
}
