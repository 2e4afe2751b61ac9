package diff

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// walk lists the tree of a side, and reads the headers of its ELF files, but for
// those of which a list, if there is one, still tells the truth. Directories that
// may not be read are noted, and returned.
func (s *side) walk(ctx context.Context, jobs int, listed *listing) (all []file, closed []string, err error) {
	w := &walker{side: s, listed: listed}
	level := []string{"."}
	for len(level) > 0 {
		lists := make([][]file, len(level))
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(jobs)
		for i, dir := range level {
			g.Go(func() (err error) {
				if err := ctx.Err(); err != nil {
					return err
				}
				lists[i], err = w.dir(dir)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, nil, err
		}
		level = level[:0:0]
		for _, list := range lists {
			for i := range list {
				if f := &list[i]; f.Kind == manifest.Dir {
					level = append(level, f.Path)
				}
			}
			w.all = append(w.all, list...)
		}
	}
	slices.SortFunc(w.all, func(a, b file) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	w.hardLinks()
	return w.all, w.closed, nil
}

type walker struct {
	side   *side
	listed *listing // nil where there is no list
	count  atomic.Int64
	all    []file
	mu     sync.Mutex
	inode  map[string]fs.FileInfo // of files with several names, by path
	closed []string               // directories that could not be read
}

// dir reads one directory and the heads of its files.
func (w *walker) dir(dir string) ([]file, error) {
	d, err := w.side.root.Open(dir)
	if err != nil {
		if dir == "." {
			return nil, err
		}
		w.unread(dir, err)
		return nil, nil
	}
	defer d.Close()
	var list []file
	for {
		names, err := d.ReadDir(4096)
		if w.count.Add(int64(len(names))) > maxEntries {
			return nil, errTooMany
		}
		for _, n := range names {
			if was := w.untouched(d, path.Join(dir, n.Name())); was != nil {
				list = append(list, *was)
			} else {
				list = append(list, w.entry(dir, n))
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return list, nil
		case err != nil && dir == ".":
			return nil, err
		case err != nil:
			w.unread(dir, err)
			return list, nil
		}
	}
}

// entry describes one name.
func (w *walker) entry(dir string, n fs.DirEntry) file {
	f := file{File: manifest.File{Path: path.Join(dir, n.Name())}}
	root := w.side.root
	fi, err := root.Lstat(f.Path)
	if err != nil {
		f.Kind, f.err = other, err
		return f
	}
	f.Mode = bits(fi.Mode())
	switch {
	case fi.IsDir():
		f.Kind = manifest.Dir
	case fi.Mode()&fs.ModeSymlink != 0:
		f.Kind, f.Mode = manifest.Symlink, 0
		f.Link, f.err = root.Readlink(f.Path)
	case fi.Mode().IsRegular():
		f.Kind, f.Size = manifest.Regular, fi.Size()
	default:
		f.Kind = other
	}
	if was := w.settled(&f, fi); was != nil {
		return *was
	}
	w.drift(&f)
	if f.regular() {
		f.ELF, f.err = w.side.facts(f.Path, fi.Size())
		w.several(f.Path, fi)
	}
	return f
}

// bits turns the bits of package fs into the twelve of a manifest.
func bits(m fs.FileMode) manifest.Mode {
	out := manifest.Mode(m.Perm())
	for bit, mode := range map[manifest.Mode]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&mode != 0 {
			out |= bit
		}
	}
	return out
}

// facts reads what an ELF file says of itself; nil for any other file.
func (s *side) facts(name string, size int64) (*manifest.ELF, error) {
	if size < 4 {
		return nil, nil
	}
	f, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x, err := patchelf.Parse(f, size)
	var malformed *patchelf.FormatError
	switch {
	case errors.Is(err, patchelf.ErrNotELF):
		return nil, nil
	case errors.As(err, &malformed):
		return &manifest.ELF{}, nil // without a class, as a manifest has it
	case err != nil:
		return nil, err
	}
	return x.Facts(), nil
}

// unread notes a directory of which names are missing.
func (w *walker) unread(dir string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.side.notes.add("directories that cannot be read: "+w.side.Name, dir, err)
	w.closed = append(w.closed, dir)
}

// several remembers files with several names.
func (w *walker) several(p string, fi fs.FileInfo) {
	if links(fi) < 2 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inode == nil {
		w.inode = map[string]fs.FileInfo{}
	}
	w.inode[p] = fi
}

// hardLinks makes of the names of one file all but the first hard links. Names
// of other trees are no concern.
func (w *walker) hardLinks() {
	first := map[inode]string{}
	for i := range w.all {
		f := &w.all[i]
		fi := w.inode[f.Path]
		if fi == nil {
			continue
		}
		key := inodeOf(fi)
		if name, seen := first[key]; seen {
			f.Same = name
		} else {
			first[key] = f.Path
		}
	}
}

// sameFile tells whether two open files are one.
func sameFile(a, b *os.File) bool {
	fa, err := a.Stat()
	fb, berr := b.Stat()
	return err == nil && berr == nil && os.SameFile(fa, fb)
}
