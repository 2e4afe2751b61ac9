package repack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/wrap"
)

// ErrNotClonable is matched when a prefix cannot stand in for the tarball: it
// was made in another way, or is not as its manifest says. The directory to
// fill is then empty again, and Into does it from the tarball.
var ErrNotClonable = errors.New("the tarball is needed")

// unfit is an ErrNotClonable, and why.
func unfit(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNotClonable, fmt.Errorf(format, args...))
}

// Clone makes in dir, which must be an empty directory, what Into would make
// there with the same options from the tarball that the prefix from was made of
// with LayoutRoot: every file, link, mode, time and line of the manifest is the
// same; but times are those of from, where a store may have put an equal file
// of an older prefix in the place of one. The options may differ from those of
// from in nothing that shapes the bytes of the tree: FinalPrefix, Release, Env
// and the audit are free, and so is Target, unless what is of other targets is
// left out. Of the tarball nothing is needed; o.Expect is compared with the digest
// that from has on record.
//
// The content of the tree is shared as o.Dedup says. With hard links a file of
// both prefixes is one inode: it is read-only, and nothing here writes to it,
// but whoever edits it in place later edits both.
//
// from is only read, through an os.Root, and is believed no more than is
// necessary: everything in it that its manifest lists must be there, of the
// same kind, size, mode and, for files, time; what it does not list is not
// taken over. Content that is copied is hashed, content that is shared as far
// as a small budget goes, the small files first, or all of it if o.Verify is
// set. Whatever does not agree is an ErrNotClonable.
//
// On any other error the content of dir must be thrown away, and the caller
// makes a good one durable: as with Into.
func Clone(ctx context.Context, from, dir string, o Options) (*Result, error) {
	return clone(ctx, from, dir, o, linux)
}

func clone(ctx context.Context, from, dir string, o Options, by means) (*Result, error) {
	o, err := o.ready(dir)
	if err != nil {
		return nil, err
	}
	m, err := newMaker(dir, o)
	if err != nil {
		return nil, err
	}
	defer m.root.Close()
	c := &cloner{m: m, means: by, scripts: m.scripts(), count: &Sharing{}, linked: map[string]bool{}}
	if err := c.open(from); err != nil {
		return nil, fmt.Errorf("clone %s: %w", from, err)
	}
	defer c.src.Close()
	m.res.ClonedFrom, m.res.Shared = c.from, c.count
	res, err := m.make(ctx, c.read, c.fill, c.replan)
	if errors.Is(err, ErrNotClonable) {
		err = fmt.Errorf("clone %s: %w", c.from, err)
		if c.began {
			err = errors.Join(err, c.clear())
		}
	}
	return res, err
}

// cloner takes the place of the tarball in one repack.
type cloner struct {
	m      *maker
	means  means
	src    *os.Root
	from   string          // real path of src
	rest   []manifest.File // what src has and this makes itself
	began  bool            // something may be in dir
	hashed int64           // size up to which shared files are hashed

	scripts   *wrap.Scripts
	noReflink atomic.Bool // the file system has none

	mu     sync.Mutex // for what follows
	count  *Sharing
	linked map[string]bool // files that are hard links to those of src
	done   int64           // bytes in their place
}

// open opens from. A prefix cannot be made in itself.
func (c *cloner) open(from string) error {
	real, err := filepath.Abs(from)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return unfit("%w", err)
	}
	to, err := filepath.Abs(c.m.dir)
	if err == nil {
		to, err = filepath.EvalSymlinks(to)
	}
	if err != nil {
		return err
	}
	if strings.HasPrefix(to+"/", strings.TrimSuffix(real, "/")+"/") {
		return fmt.Errorf("%w: %s is in it", ErrOccupied, c.m.dir)
	}
	c.from = real
	if c.src, err = os.OpenRoot(real); err != nil {
		return unfit("%w", err)
	}
	return nil
}

// read takes over what the manifest of src says.
func (c *cloner) read(context.Context) error {
	was, err := readOrigin(c.src, c.m.o)
	if err != nil {
		return err
	}
	m := c.m
	m.identify(was.digest, was.manifest.Size)
	m.was, m.dropped = was.manifest, was.manifest.Dropped
	m.res.Dropped, m.res.Drops = len(m.dropped), m.dropped
	m.omitted = was.omitted
	m.summarise()
	m.files = wrap.WithoutAdded(was.files)
	for i := range m.files {
		f := &m.files[i]
		if f.Path == m.tree || !inTree(f.Path) {
			continue
		}
		m.tally(f)
		if f.Same != "" {
			continue
		}
		m.res.Bytes += f.Size
		if f.ELF != nil {
			m.res.ELF.Seen++
		}
		if patched(f) {
			m.res.ELF.Patched++
		}
	}
	c.rest = left(was.files, m.files)
	return nil
}

// left lists what of all is not among taken; both are sorted.
func left(all, taken []manifest.File) []manifest.File {
	var rest []manifest.File
	for _, f := range all {
		if len(taken) > 0 && taken[0].Path == f.Path {
			taken = taken[1:]
			continue
		}
		rest = append(rest, f)
	}
	return rest
}

// inTree reports whether a path of a prefix is the ROCm tree's or in it.
func inTree(p string) bool { return p == treeDir || strings.HasPrefix(p, treeDir+"/") }

// patched reports whether a rule for ELF files edited f.
func patched(f *manifest.File) bool {
	for _, rule := range f.Edits {
		if rule == wrap.RuleRunPath || rule == wrap.RuleELFInterpreter {
			return true
		}
	}
	return false
}

// clear takes back what was made in dir.
func (c *cloner) clear() error {
	d, err := c.m.root.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, c.m.root.RemoveAll(name))
	}
	return err
}
