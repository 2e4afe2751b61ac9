package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Tally counts files and the bytes of their content. Several names of one
// inode count once.
type Tally struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

func (t *Tally) add(bytes int64) { t.Files++; t.Bytes += bytes }

// Comparison is what a prefix B has in common with an older one, A: by what
// their files.jsonl list, and by what is on disk.
type Comparison struct {
	A Compared `json:"a"`
	B Compared `json:"b"`

	// Each regular file of B is one of these.
	Same    Tally `json:"same"`    // equal under the same path: content and mode
	Moved   Tally `json:"moved"`   // equal to a file of A under another path
	Changed Tally `json:"changed"` // A has another file under its path
	Added   Tally `json:"added"`   // A has nothing under its path
	Removed Tally `json:"removed"` // of A: B has nothing under its path

	TimeOnly  Tally            `json:"time_only"`  // of Same: another mtime
	ModeOnly  Tally            `json:"mode_only"`  // of Changed: equal content
	EditsOnly Tally            `json:"edits_only"` // of Changed: the tarballs have equal ones, which were edited in different ways
	Rules     map[string]Tally `json:"rules"`      // of EditsOnly: by the rules that edited them
	Other     int              `json:"other"`      // directories and symlinks that only one has, or that differ

	Largest []Change `json:"largest"` // of Changed and Added, at most 20

	HardLinked Tally `json:"hard_linked"` // of Same and Moved: one inode
	Reflinked  Tally `json:"reflinked"`   // of Same and Moved: inodes of their own; bytes that lie in the same place
	Unshared   Tally `json:"unshared"`    // of Same and Moved: what dedup could still save, without holes
	Missing    int   `json:"missing"`     // of Same and Moved: not on disk as listed
	// ReflinksUnknown says that the file system does not tell where files lie.
	ReflinksUnknown bool `json:"reflinks_unknown,omitempty"`
}

// Compared is one side of a Comparison.
type Compared struct {
	Dir     string `json:"dir"`
	Version string `json:"version,omitempty"`
	Recipe  string `json:"recipe,omitempty"`
	Tally
}

// Change is a file of B that is not in A as it is.
type Change struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	Before int64  `json:"before"` // bytes of the file of that path in A; 0 if there is none
	Why    string `json:"why"`    // added, content, edits or mode
}

// maxLargest bounds Comparison.Largest.
const maxLargest = 20

// Compare compares two prefixes, a the older one. Each is a directory with a
// files.jsonl: a generation, or what repack made with the layout root. Files
// are looked at, and never read.
func Compare(ctx context.Context, a, b string) (*Comparison, error) {
	c := &comparer{ctx: ctx, res: Comparison{Rules: map[string]Tally{}, Largest: []Change{}}}
	defer func() {
		for _, s := range []*side{&c.a, &c.b} {
			if s.root != nil {
				s.root.Close() // opened for reading
			}
		}
	}()
	if err := errors.Join(c.a.read(a), c.b.read(b)); err != nil {
		return nil, fmt.Errorf("compare two prefixes: %w", err)
	}
	c.res.A, c.res.B = c.a.Compared, c.b.Compared
	c.extents = mayReflink(b)
	for i := range c.b.files {
		if err := c.file(&c.b.files[i]); err != nil {
			return nil, fmt.Errorf("compare two prefixes: %w", err)
		}
	}
	c.rest()
	slices.SortStableFunc(c.res.Largest, func(x, y Change) int { return cmp.Compare(y.Bytes, x.Bytes) })
	c.res.Largest = c.res.Largest[:min(len(c.res.Largest), maxLargest)]
	return &c.res, nil
}

// side is one of the two prefixes.
type side struct {
	Compared
	root   *os.Root
	files  []manifest.File
	byPath map[string]*manifest.File
	byKey  map[content]*manifest.File // the first of each
}

// read reads what a prefix lists.
func (s *side) read(dir string) (err error) {
	if s.Dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if s.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	err = eachListed(s.root, nil, func(f *manifest.File) error {
		if !fs.ValidPath(f.Path) {
			return fmt.Errorf("read %s: %q is no path", manifest.FilesName, f.Path)
		}
		s.files = append(s.files, *f)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no %s: it is no prefix of rocm-nightly, or one of --layout tree: %w", dir, manifest.FilesName, fs.ErrNotExist)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	s.byPath, s.byKey = make(map[string]*manifest.File, len(s.files)), map[content]*manifest.File{}
	for i := range s.files {
		f := &s.files[i]
		s.byPath[f.Path] = f
		if f.Kind != manifest.Regular || f.Same != "" {
			continue
		}
		s.add(f.Size)
		if key, ok := contentOf(f); ok && s.byKey[key] == nil {
			s.byKey[key] = f
		}
	}
	if m, err := readManifest(dir); err == nil {
		s.Version, s.Recipe = m.Version, m.Recipe
	}
	return nil
}

type comparer struct {
	ctx     context.Context // of one Compare
	a, b    side
	extents bool
	res     Comparison
}

// file judges one entry of B.
func (c *comparer) file(f *manifest.File) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	old := c.a.byPath[f.Path]
	if f.Kind != manifest.Regular {
		if old == nil || old.Kind != f.Kind || old.Link != f.Link || old.Mode != f.Mode {
			c.res.Other++
		}
		return nil
	}
	if f.Same != "" {
		return nil
	}
	if old != nil && old.Kind != manifest.Regular {
		old = nil
	}
	key, sharable := contentOf(f)
	switch twin := c.a.byKey[key]; {
	case old != nil && old.SHA256 == f.SHA256 && old.Size == f.Size && old.Mode == f.Mode:
		c.res.Same.add(f.Size)
		if old.MTime != f.MTime {
			c.res.TimeOnly.add(f.Size)
		}
		c.disk(f, old)
	case sharable && twin != nil:
		c.res.Moved.add(f.Size)
		c.disk(f, twin)
	case old != nil:
		c.changed(f, old)
	default:
		c.res.Added.add(f.Size)
		c.large(Change{Path: f.Path, Bytes: f.Size, Why: "added"})
	}
	return nil
}

// changed says in what way a file differs from that of the same path.
func (c *comparer) changed(f, old *manifest.File) {
	c.res.Changed.add(f.Size)
	why := "content"
	switch {
	case old.SHA256 == f.SHA256:
		why = "mode"
		c.res.ModeOnly.add(f.Size)
	case published(old) == published(f):
		why = "edits"
		c.res.EditsOnly.add(f.Size)
		rules := append(slices.Clone(old.Edits), f.Edits...)
		slices.Sort(rules)
		for _, rule := range slices.Compact(rules) {
			t := c.res.Rules[rule]
			t.add(f.Size)
			c.res.Rules[rule] = t
		}
	}
	c.large(Change{Path: f.Path, Bytes: f.Size, Before: old.Size, Why: why})
}

// published is the digest that a file has in the tarball.
func published(f *manifest.File) string { return cmp.Or(f.Before, f.SHA256) }

// large keeps the largest changes.
func (c *comparer) large(ch Change) {
	if c.res.Largest = append(c.res.Largest, ch); len(c.res.Largest) < 4*maxLargest {
		return
	}
	slices.SortStableFunc(c.res.Largest, func(x, y Change) int { return cmp.Compare(y.Bytes, x.Bytes) })
	c.res.Largest = c.res.Largest[:maxLargest]
}

// rest counts what only A has.
func (c *comparer) rest() {
	for i := range c.a.files {
		f := &c.a.files[i]
		if c.b.byPath[f.Path] != nil {
			continue
		}
		switch {
		case f.Kind != manifest.Regular:
			c.res.Other++
		case f.Same == "":
			c.res.Removed.add(f.Size)
		}
	}
}

// disk looks whether two equal files share anything.
func (c *comparer) disk(f, old *manifest.File) {
	fi, err := c.b.root.Lstat(f.Path)
	was, oerr := c.a.root.Lstat(old.Path)
	switch {
	case err != nil || oerr != nil || !fi.Mode().IsRegular() || !was.Mode().IsRegular() || fi.Size() != f.Size || was.Size() != old.Size:
		c.res.Missing++
	case os.SameFile(fi, was):
		c.res.HardLinked.add(f.Size)
	case f.Size == 0:
	case c.extents && statOf(fi).Dev == statOf(was).Dev:
		c.reflinked(f, old, onDisk(fi))
	default:
		c.res.Unshared.add(onDisk(fi))
	}
}

// onDisk is how many bytes of a file its holes leave to be shared.
func onDisk(fi fs.FileInfo) int64 { return min(fi.Size(), statOf(fi).Blocks*512) }

// reflinked asks where two files lie, of which the first has so many bytes on
// disk.
func (c *comparer) reflinked(f, old *manifest.File, bytes int64) {
	one, err := c.b.extents(f.Path)
	two, oerr := c.a.extents(old.Path)
	if err != nil || oerr != nil {
		c.res.ReflinksUnknown = true
	}
	n := min(overlap(one, two), f.Size)
	if n == 0 {
		c.res.Unshared.add(bytes)
		return
	}
	c.res.Reflinked.add(n)
	c.res.Unshared.Bytes += max(0, bytes-n) // the file itself is counted above
}

func (s *side) extents(path string) ([]extent, error) {
	f, err := openRegular(s.root, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return extentsOf(f, false)
}

// overlap is how many bytes two lists of extents have in common.
func overlap(a, b []extent) (n int64) {
	byStart := func(x, y extent) int { return cmp.Compare(x.start, y.start) }
	slices.SortFunc(a, byStart)
	slices.SortFunc(b, byStart)
	for len(a) > 0 && len(b) > 0 {
		if start, end := max(a[0].start, b[0].start), min(a[0].end, b[0].end); start < end {
			n += int64(end - start)
		}
		if a[0].end < b[0].end {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return n
}
