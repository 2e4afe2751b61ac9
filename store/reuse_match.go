package store

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Bounds on what a files.jsonl may hold.
const (
	maxListing = 2 << 30 // bytes
	maxListed  = 2_001_000
)

// content is what two files must have in common to share it.
type content struct {
	sum  [32]byte
	size int64
	mode manifest.Mode
}

// want is one inode of the staged tree.
type want struct {
	file   *manifest.File
	names  []*manifest.File // all of them, file first
	key    content
	ages   bool   // its time is on record elsewhere in the tree
	why    string // why it was not shared, "" if it was or no donor has it
	shared bool

	donor string // path of an equal file, in the generation that is looked at
	from  int    // index of the donor in Reused.From, once shared
	mtime int64  // of the hard link, Unix seconds
}

// contentOf returns what f would share; false if it is no file to be shared.
func contentOf(f *manifest.File) (content, bool) {
	c := content{size: f.Size, mode: f.Mode}
	if f.Kind != manifest.Regular || f.Size <= 0 || f.Mode&0o7222 != 0 || len(f.SHA256) != hex.EncodedLen(len(c.sum)) {
		return c, false
	}
	_, err := hex.Decode(c.sum[:], []byte(f.SHA256))
	return c, err == nil
}

// eachListed reads the files.jsonl of a prefix, an entry at a time: all, or
// those of the digests that wanted accepts.
func eachListed(root *os.Root, wanted func(digest []byte) bool, do func(*manifest.File) error) error {
	f, err := openRegular(root, manifest.FilesName)
	if err != nil {
		return err
	}
	defer f.Close()
	n := 0
	return manifest.EachFile(io.LimitReader(f, maxListing), wanted, func(f *manifest.File) error {
		if n++; n > maxListed {
			return fmt.Errorf("read %s: it has more lines than a prefix has files", manifest.FilesName)
		}
		return do(f)
	})
}

// list reads what is staged.
func (r *reuser) list() error {
	err := eachListed(r.root, nil, func(f *manifest.File) error {
		r.files = append(r.files, *f)
		r.newest = max(r.newest, f.MTime)
		return nil
	})
	if err != nil {
		return err
	}
	wants := map[string]*want{}
	compiled := map[string]bool{}
	for i := range r.files {
		f := &r.files[i]
		if name, ok := compiledOf(f.Path); ok {
			compiled[name] = true
		}
		if key, ok := contentOf(f); ok && f.Same == "" {
			w := &want{file: f, names: []*manifest.File{f}, key: key}
			wants[f.Path] = w
			r.todo = append(r.todo, w)
		}
	}
	for i := range r.files {
		if f := &r.files[i]; f.Same != "" && wants[f.Same] != nil {
			wants[f.Same].names = append(wants[f.Same].names, f)
		}
	}
	r.todo = slices.DeleteFunc(r.todo, func(w *want) bool {
		w.ages = slices.ContainsFunc(w.names, func(f *manifest.File) bool { return compiled[f.Path] })
		return slices.ContainsFunc(w.names, func(f *manifest.File) bool { return r.o.Own(f.Path) })
	})
	// A large file that is begun last keeps one worker busy and the others idle.
	slices.SortStableFunc(r.todo, func(a, b *want) int { return cmp.Compare(b.file.Size, a.file.Size) })
	return nil
}

// compiledOf returns the Python source whose time is in a compiled file:
// dir/__pycache__/name.cpython-311.pyc has that of dir/name.py (PEP 3147).
func compiledOf(p string) (source string, ok bool) {
	dir, base := path.Split(p)
	parent, in := strings.CutSuffix(dir, "__pycache__/")
	name, _, dotted := strings.Cut(base, ".")
	if !in || !dotted || !strings.HasSuffix(base, ".pyc") {
		return "", false
	}
	return parent + name + ".py", true
}

// donate shares what g has. Only the end of ctx is an error.
func (r *reuser) donate(ctx context.Context, g *Generation) error {
	name := slotOf(g.Dir) + "/" + g.Name
	root, err := os.OpenRoot(g.Dir)
	if err != nil {
		r.note("%s is passed over: %v", name, err)
		return nil
	}
	defer root.Close()
	batch, err := r.match(ctx, root)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		r.note("%s is passed over: %v", name, err)
		return nil
	}
	if len(batch) == 0 {
		return nil
	}
	r.res.From = append(r.res.From, ReusedFrom{Slot: slotOf(g.Dir), Generation: g.Name})
	d := &donor{root: root, name: name, from: len(r.res.From) - 1}
	// The first one alone shows whether there are reflinks.
	if err := r.shareAll(ctx, d, batch[:1]); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(r.o.Jobs)
	for _, some := range portions(batch[1:]) {
		group.Go(func() error { return r.shareAll(gctx, d, some) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.todo = slices.DeleteFunc(r.todo, func(w *want) bool { return w.shared })
	return ctx.Err()
}

// portion is how many bytes one worker takes at once. Files of a directory are
// taken together: to find the directory costs as much as a small file.
const portion = 1 << 20

// portions divides batch, which begins with the largest file.
func portions(batch []*want) [][]*want {
	small := len(batch)
	for i, w := range batch {
		if w.file.Size < portion {
			small = i
			break
		}
	}
	var all [][]*want
	for i := range small {
		all = append(all, batch[i:i+1])
	}
	rest := batch[small:]
	slices.SortStableFunc(rest, func(a, b *want) int { return cmp.Compare(path.Dir(a.file.Path), path.Dir(b.file.Path)) })
	from, bytes := 0, int64(0)
	for i, w := range rest {
		if bytes += w.file.Size; bytes >= portion || i+1 == len(rest) {
			all, from, bytes = append(all, rest[from:i+1]), i+1, 0
		}
	}
	return all
}

// match finds, in the list of a donor, a file for each want that it can serve:
// that of the same path where it is equal, else one that no other takes if
// there is one. It is bounded by what is wanted, whatever the list holds.
func (r *reuser) match(ctx context.Context, root *os.Root) ([]*want, error) {
	wanted := map[content][]*want{}
	byPath := map[string]*want{}
	for _, w := range r.todo {
		w.donor = ""
		wanted[w.key] = append(wanted[w.key], w)
		byPath[w.file.Path] = w
	}
	spare, served := map[content][]string{}, map[content]string{}
	digests := make(map[string]bool, len(wanted))
	for key := range wanted {
		digests[hex.EncodeToString(key.sum[:])] = true
	}
	known := func(digest []byte) bool { return digests[string(digest)] }
	err := eachListed(root, known, func(f *manifest.File) error {
		key, ok := contentOf(f)
		if !ok || f.Same != "" || len(wanted[key]) == 0 || !fs.ValidPath(f.Path) {
			return ctx.Err()
		}
		if w := byPath[f.Path]; w != nil && w.key == key {
			w.donor, served[key] = f.Path, f.Path
		} else if len(spare[key]) < len(wanted[key]) {
			spare[key] = append(spare[key], f.Path)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var batch []*want
	for _, w := range r.todo {
		if free := spare[w.key]; w.donor == "" && len(free) > 0 {
			w.donor = free[0]
			spare[w.key], served[w.key] = free[1:], free[0]
		}
		if w.donor == "" { // one may serve several: reflinks can
			w.donor = served[w.key]
		}
		if w.donor != "" {
			batch = append(batch, w)
		}
	}
	return batch, nil
}
