package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// maxHops is how many links the kernel follows in one name (path_resolution(7)).
const maxHops = 40

// maxEntries bounds a tree: AMD's have about 30,000 files.
const maxEntries = 4 << 20

// entry is one name of the tree.
type entry struct {
	path string // relative to the tree's root, slash-separated
	typ  fs.FileMode
	mode fs.FileMode // permission and set-id bits; not of symlinks
	size int64
	link string // target of a symlink
	err  error  // why it could not be read
	content
}

func (e *entry) isDir() bool      { return e.typ == fs.ModeDir }
func (e *entry) isFile() bool     { return e.typ == 0 }
func (e *entry) isLink() bool     { return e.typ == fs.ModeSymlink }
func (e *entry) executable() bool { return e.isFile() && e.mode&0o111 != 0 }

// tree is the audited directory: every name of it, and what the files are.
type tree struct {
	root    *os.Root
	abs     string // real path of root
	rocm    string // the ROCm tree: "opt/rocm", or "" when it is the root itself
	known   map[string]*manifest.File
	entries map[string]*entry
	all     []*entry            // sorted by path
	in      map[string][]*entry // by directory, sorted
	files   int
	links   int
	count   atomic.Int64    // names read so far
	unread  map[string]bool // directories that could not be read, or not searched
	own     [][]byte        // where the tree stands or will stand: no leak, wherever that is
}

func newTree(root *os.Root, abs string, files []manifest.File) *tree {
	t := &tree{root: root, abs: abs, known: map[string]*manifest.File{}, entries: map[string]*entry{}, in: map[string][]*entry{}, unread: map[string]bool{}}
	for i := range files {
		t.known[files[i].Path] = &files[i]
	}
	return t
}

func (t *tree) layout() string {
	if t.rocm != "" {
		return "root"
	}
	return "tree"
}

// inROCm is the path of a name of the ROCm tree.
func (t *tree) inROCm(name string) string { return path.Join(t.rocm, name) }

// ofROCm is a path relative to the ROCm tree, and whether it is in there.
func (t *tree) ofROCm(p string) (string, bool) {
	if t.rocm == "" {
		return p, true
	}
	return strings.CutPrefix(p, t.rocm+"/")
}

// read lists every directory, then looks into every file.
func (t *tree) read(ctx context.Context, jobs int) error {
	if err := t.list(ctx, jobs); err != nil {
		return err
	}
	if e := t.entries["opt/rocm"]; e != nil && e.isDir() {
		t.rocm = "opt/rocm"
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(jobs)
	for dir, names := range t.in {
		// A directory's files share one open directory; a large one is split.
		for part := range slices.Chunk(names, 128) {
			g.Go(func() error { return t.inspect(ctx, dir, part) })
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, e := range t.all {
		if e.err != nil && e.isDir() {
			t.unread[e.path] = true
		}
	}
	return nil
}

// hides tells whether something of a directory may be where nothing could be
// read: in it, above it or below it.
func (t *tree) hides(dir string) bool {
	for u := range t.unread {
		if within(u, dir) || within(dir, u) {
			return true
		}
	}
	return false
}

// within tells whether p is dir or below it.
func within(p, dir string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir+"/")
}

// list reads the directories, one level after the other.
func (t *tree) list(ctx context.Context, jobs int) error {
	level := []string{"."}
	for len(level) > 0 {
		lists := make([][]*entry, len(level))
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(jobs)
		for i, dir := range level {
			g.Go(func() (err error) {
				if err := ctx.Err(); err != nil {
					return err
				}
				lists[i], err = t.readDir(dir)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		level = t.add(level, lists)
	}
	slices.SortFunc(t.all, func(a, b *entry) int { return strings.Compare(a.path, b.path) })
	return nil
}

// add records one level and returns the directories of the next.
func (t *tree) add(dirs []string, lists [][]*entry) []string {
	var next []string
	for i, list := range lists {
		t.in[dirs[i]] = list
		for _, e := range list {
			t.entries[e.path] = e
			t.all = append(t.all, e)
			switch {
			case e.isDir():
				next = append(next, e.path)
			case e.isLink():
				t.links++
			default:
				t.files++
			}
		}
	}
	return next
}

// readDir lists one directory. One that may not be read is a finding of its
// own later, not the end of the audit; only the root must be readable.
func (t *tree) readDir(dir string) ([]*entry, error) {
	// It may be a pipe by now.
	d, err := t.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	var names []fs.DirEntry
	if err == nil {
		names, err = t.names(d)
		d.Close()
	}
	if err != nil {
		if dir == "." || errors.Is(err, errTooMany) {
			return nil, err
		}
		t.entries[dir].err = err
		return nil, nil
	}
	list := make([]*entry, 0, len(names))
	for _, n := range names {
		list = append(list, &entry{path: path.Join(dir, n.Name()), typ: n.Type()})
	}
	slices.SortFunc(list, func(a, b *entry) int { return strings.Compare(a.path, b.path) })
	return list, nil
}

// errTooMany stops the reading of a tree that would fill the memory.
var errTooMany = fmt.Errorf("it has more than %d names", maxEntries)

// names reads a directory in pieces, so that the limit holds in a huge one too.
func (t *tree) names(d *os.File) ([]fs.DirEntry, error) {
	var all []fs.DirEntry
	for {
		part, err := d.ReadDir(4096)
		all = append(all, part...)
		switch {
		case t.count.Add(int64(len(part))) > maxEntries:
			return nil, errTooMany
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
	}
}

// inspect fills the entries of one directory.
func (t *tree) inspect(ctx context.Context, dir string, names []*entry) error {
	d, err := t.root.OpenRoot(dir)
	if err != nil {
		// It was listed before, so it may be read but not searched, or it is gone.
		for _, e := range names {
			e.err = err
		}
		return nil
	}
	defer d.Close()
	for _, e := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		base := path.Base(e.path)
		known := t.known[e.path]
		if e.isLink() {
			e.link, e.err = d.Readlink(base)
			continue
		}
		if known != nil && known.Kind != manifest.Symlink {
			e.mode, e.size = bits(known.Mode), known.Size
		} else if info, err := d.Lstat(base); err != nil {
			e.err = err
			continue
		} else {
			e.mode, e.size = info.Mode(), info.Size()
		}
		if e.isFile() && e.err == nil {
			e.err = t.look(d, base, e, known)
		}
	}
	return nil
}

// bits turns the twelve bits of a manifest into those of package fs.
func bits(m manifest.Mode) fs.FileMode {
	out := fs.FileMode(m) & fs.ModePerm
	for bit, mode := range map[manifest.Mode]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&bit != 0 || fs.FileMode(m)&mode != 0 {
			out |= mode
		}
	}
	return out
}

// place is where a name leads.
type place struct {
	entry   *entry // what is there; nil for nothing, for the root and outside
	path    string // within the tree, links resolved; "." is the root
	outside string // absolute path, when it leads out of the tree
	via     string // the last link on the way, "" for none
	hidden  bool   // it leads through a directory that cannot be read
	loop    bool
}

// found tells whether something of the tree is there.
func (p place) found() bool { return p.entry != nil || p.path == "." }

// follow resolves a name the way the kernel does, from a directory of the tree
// ("." is its root): each link as it comes, .. from where a link led.
func (t *tree) follow(dir, name string) place {
	var at []string
	if dir != "." && dir != "" && !path.IsAbs(name) {
		name = dir + "/" + name
	}
	todo, out := t.enter(name)
	if out != "" {
		return place{outside: out}
	}
	var p place
	for hops := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(at) == 0 {
				// A name that leaves through .. and comes back by the root's own
				// name depends on where the tree stands: it counts as outside.
				p.outside = path.Join(append([]string{t.abs, ".."}, todo...)...)
				return p
			}
			at = at[:len(at)-1]
			continue
		}
		here := strings.Join(append(at, part), "/")
		e := t.entries[here]
		if e == nil || !e.isLink() {
			if e == nil || !e.isDir() && len(todo) > 0 {
				return place{via: p.via, hidden: t.unread[strings.Join(at, "/")]}
			}
			at = append(at, part)
			continue
		}
		if hops++; hops > maxHops {
			return place{via: here, loop: true}
		}
		p.via = here
		more, out := t.enter(e.link)
		if out != "" {
			p.outside = path.Join(append([]string{out}, todo...)...)
			return p
		}
		if path.IsAbs(e.link) {
			at = at[:0]
		}
		todo = append(slices.Clip(more), todo...)
	}
	p.path = path.Join(append([]string{"."}, at...)...)
	p.entry = t.entries[p.path]
	return p
}

// enter splits a name. An absolute one that is not below the root is outside.
func (t *tree) enter(name string) (parts []string, outside string) {
	if path.IsAbs(name) {
		rel, ok := t.within(name)
		if !ok {
			return nil, path.Clean(name)
		}
		name = rel
	}
	return strings.Split(name, "/"), ""
}

// within makes an absolute name relative to the root. What follows the root's
// own name is left as it is: links in it decide what .. means.
func (t *tree) within(name string) (string, bool) {
	base := strings.TrimSuffix(t.abs, "/") + "/"
	if rel, ok := strings.CutPrefix(name, base); ok {
		return rel, true
	}
	name = path.Clean(name)
	if name == t.abs {
		return ".", true
	}
	return strings.CutPrefix(name, base)
}
