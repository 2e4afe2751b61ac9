package repack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// fill makes the tree in dir: directories, then files and symlinks in
// parallel, then the further names of files. When it returns, nothing of the
// tree is open, and nothing after it writes to a file of the tree.
func (c *cloner) fill(ctx context.Context) error {
	c.m.o.Event(Event{Stage: "clone"})
	tree, err := c.m.openTree()
	if err != nil {
		return fmt.Errorf("repack: %w", err)
	}
	c.began = true
	if err := errors.Join(tree.Close(), c.around()); err != nil {
		return err
	}
	if err := c.dirs(ctx); err != nil {
		return err
	}
	c.hashed = withinBudget(c.m.files, hashBudget, c.m.o.Verify)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(c.m.jobs)
	for _, b := range batches(c.m.files) {
		g.Go(func() error { return c.batch(gctx, b) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return c.twins(ctx)
}

// around looks at what is not taken over: where that is damaged, the rest is not
// to be trusted.
func (c *cloner) around() error {
	for i := range c.rest {
		f := &c.rest[i]
		if err := c.look(f, func(fs.FileInfo) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// look compares one entry of src with the manifest, and does more with it.
func (c *cloner) look(f *manifest.File, more func(fs.FileInfo) error) error {
	fi, err := c.src.Lstat(f.Path)
	if err != nil {
		return unfit("%w", err)
	}
	if err := matches(fi, f); err != nil {
		return unfit("%w", err)
	}
	if f.Kind == manifest.Symlink {
		if to, err := c.src.Readlink(f.Path); err != nil || to != f.Link {
			return unfit("%s leads to %q, not to %q", f.Path, to, f.Link)
		}
	}
	return more(fi)
}

// dirs makes the directories of the tree, parents first.
func (c *cloner) dirs(ctx context.Context) error {
	for i := range c.m.files {
		f := &c.m.files[i]
		if f.Kind != manifest.Dir {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.look(f, func(fs.FileInfo) error { return c.dir(f) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *cloner) dir(f *manifest.File) error {
	if f.Path == treeDir || f.Path == path.Dir(treeDir) {
		return nil // openTree has made them
	}
	if err := c.m.root.Mkdir(f.Path, 0o755); err != nil {
		return err
	}
	return c.m.root.Chmod(f.Path, 0o755) // whatever the umask says
}

// hashBudget is how many bytes of shared content are read back to be sure:
// enough for all files but the large ones, and little beside the download.
const hashBudget = 64 << 20

// withinBudget says up to which size, in bytes, shared files are hashed: the
// small ones first, as far as the budget goes.
func withinBudget(files []manifest.File, budget int64, all bool) int64 {
	var sizes []int64
	for i := range files {
		if f := &files[i]; f.Kind == manifest.Regular && f.Same == "" {
			sizes = append(sizes, f.Size)
		}
	}
	slices.Sort(sizes)
	limit := int64(-1)
	for i, size := range sizes {
		budget -= size
		if budget < 0 && !all {
			break
		}
		if i+1 == len(sizes) || sizes[i+1] != size {
			limit = size
		}
	}
	return limit
}

// batchSize bounds what one worker takes at once: a directory may have half of
// the tree's files.
const batchSize = 256

// batch is some files and symlinks of one directory. Only the first name of an
// inode is in it.
type batch struct {
	dir   string
	files []*manifest.File
}

func batches(files []manifest.File) []*batch {
	var list []*batch
	open := map[string]*batch{}
	for i := range files {
		f := &files[i]
		if f.Kind == manifest.Dir || f.Same != "" {
			continue
		}
		dir := path.Dir(f.Path)
		b := open[dir]
		if b == nil || len(b.files) == batchSize {
			b = &batch{dir: dir}
			open[dir] = b
			list = append(list, b)
		}
		b.files = append(b.files, f)
	}
	return list
}

// place is one directory in both prefixes.
type place struct {
	src, dst *os.Root
	at       *os.File // dst
	buf      []byte   // of chunkSize, made on first use
}

func (c *cloner) batch(ctx context.Context, b *batch) (err error) {
	p := &place{}
	if p.src, err = c.src.OpenRoot(b.dir); err != nil {
		return unfit("%w", err)
	}
	defer p.src.Close()
	if p.dst, err = c.m.root.OpenRoot(b.dir); err != nil {
		return err
	}
	defer p.dst.Close()
	if p.at, err = p.dst.Open("."); err != nil {
		return err
	}
	defer p.at.Close()
	var done int64
	for _, f := range b.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.Kind == manifest.Symlink {
			err = c.symlink(p, f)
		} else {
			err = c.file(p, f)
		}
		if err != nil {
			return fmt.Errorf("take over %s: %w", f.Path, err)
		}
		done += f.Size
	}
	c.progress(done)
	return nil
}

func (c *cloner) progress(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done += bytes
	c.m.o.Event(Event{Stage: "clone", Done: c.done})
}

func (c *cloner) symlink(p *place, f *manifest.File) error {
	name := path.Base(f.Path)
	to, err := p.src.Readlink(name)
	if err != nil {
		return unfit("%w", err)
	}
	if to != f.Link {
		return unfit("it leads to %q, not to %q", to, f.Link)
	}
	if err := p.dst.Symlink(f.Link, name); err != nil {
		return err
	}
	return utimes(int(p.at.Fd()), name, f.MTime)
}

// twins gives files their further names.
func (c *cloner) twins(ctx context.Context) error {
	groups := map[string][]*manifest.File{}
	var order []string
	for i := range c.m.files {
		f := &c.m.files[i]
		if f.Same == "" {
			continue
		}
		if groups[f.Same] == nil {
			order = append(order, f.Same)
		}
		groups[f.Same] = append(groups[f.Same], f)
	}
	for _, first := range order {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.group(first, groups[first]); err != nil {
			return fmt.Errorf("take over %s: %w", first, err)
		}
	}
	return nil
}

// group makes the other names of one inode, which are names of one in src too.
func (c *cloner) group(first string, twins []*manifest.File) error {
	same, err := c.src.Lstat(first)
	if err != nil {
		return unfit("%w", err)
	}
	for _, f := range twins {
		err := c.look(f, func(fi fs.FileInfo) error {
			if !os.SameFile(fi, same) {
				return unfit("%s is another file than %s", f.Path, first)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	err = c.names(first, twins)
	if !errors.Is(err, unix.EMLINK) || !c.linked[first] {
		return err
	}
	// The inode that is shared has as many names as it can: these get one of
	// their own.
	if err := c.private(first, twins); err != nil {
		return err
	}
	return c.names(first, twins)
}

func (c *cloner) names(first string, twins []*manifest.File) error {
	for _, f := range twins {
		if err := c.means.twin(c.m.root, first, f.Path); err != nil {
			return err
		}
	}
	return nil
}

// private puts a copy in the place of a hard link to src.
func (c *cloner) private(first string, twins []*manifest.File) error {
	for _, f := range twins {
		if err := c.m.root.Remove(f.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := c.m.root.Remove(first); err != nil {
		return err
	}
	i := slices.IndexFunc(c.m.files, func(f manifest.File) bool { return f.Path == first })
	f := &c.m.files[i]
	p := &place{}
	var err error
	if p.src, err = c.src.OpenRoot(path.Dir(first)); err != nil {
		return unfit("%w", err)
	}
	defer p.src.Close()
	if p.dst, err = c.m.root.OpenRoot(path.Dir(first)); err != nil {
		return err
	}
	defer p.dst.Close()
	in, err := openPlain(p.src, path.Base(first))
	if err != nil {
		return unfit("%w", err)
	}
	defer in.Close()
	c.count.HardLinked--
	delete(c.linked, first)
	return c.copy(p, f, in)
}

// tally counts how a file came over.
func (c *cloner) tally(add func(*Sharing)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(c.count)
}
