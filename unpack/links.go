package unpack

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// link is a symlink or hard link of the archive, made after all files.
type link struct {
	path   string
	target string // as in the archive for symlinks, cleaned for hard links
	hard   bool
	mtime  int64

	omitted bool // has its place among the names, and is not made

	means string // what an absolute target turned out to be in the tree
	gone  bool   // an absolute target that is nothing in the tree
}

// link takes the place of a link; links makes it.
func (u *unpacker) link(l link) error {
	kind := manifest.Symlink
	if l.hard {
		kind = manifest.Regular
	}
	reason := u.omit(l.path, kind, 0)
	l.omitted = reason != ""
	if err := u.claim(&manifest.File{Path: l.path, Kind: manifest.Symlink}, reason); err != nil {
		return err
	}
	u.late = append(u.late, l)
	return nil
}

// links makes hard links first, then symlinks, once every file is written and
// the whole tree is known.
func (u *unpacker) links() error {
	byPath := make(map[string]*link, len(u.late))
	for i := range u.late {
		byPath[u.late[i].path] = &u.late[i]
	}
	for i := range u.late {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		if l := &u.late[i]; l.hard {
			if err := u.hardLink(l, byPath); err != nil {
				return &EntryError{l.path, err}
			}
		}
	}
	w := newWeb(u.nodes, byPath)
	if err := u.relativeLinks(w); err != nil {
		return err
	}
	return u.symlinks(w)
}

// maxChain bounds hard links to hard links. An archiver names the first file of
// an inode each time, so that real chains have one step.
const maxChain = 40

// hardLink makes l, or turns it into the symlink that it is a hard link to.
func (u *unpacker) hardLink(l *link, byPath map[string]*link) error {
	target := l.target
	for range maxChain {
		next, ok := byPath[target]
		if !ok {
			break
		}
		if !next.hard {
			// Two names of one symlink: the same text in both places.
			l.hard, l.target = false, next.target
			return nil
		}
		target = next.target
	}
	f := u.nodes[target]
	if next := byPath[target]; f == nil || f.Kind != manifest.Regular || next != nil && next.hard {
		return fmt.Errorf("%w: hard link to %q, which is no regular file of the archive", ErrRefused, l.target)
	}
	if l.omitted {
		return nil
	}
	if reason, gone := u.omitted[target]; gone {
		return fmt.Errorf("%w: hard link to %q, which is %w (%s): its content has passed; leave out both or neither", ErrRefused, target, ErrOmitted, reason)
	}
	if err := u.root.Link(target, l.path); err != nil {
		return err
	}
	twin := *f
	twin.Path, twin.Same = l.path, target
	u.nodes[l.path] = &twin
	return nil
}

// relativeLinks turns absolute symlinks that mean something in the tree into
// relative ones and drops the others.
func (u *unpacker) relativeLinks(w *web) error {
	var absolute []*link
	for i := range u.late {
		if l := &u.late[i]; l.absolute() {
			absolute = append(absolute, l)
		}
	}
	if err := w.settle(u.ctx, absolute); err != nil {
		return err
	}
	for _, l := range absolute {
		if l.omitted {
			continue
		}
		if l.gone {
			u.dropped = append(u.dropped, manifest.Dropped{Path: l.path, Reason: fmt.Sprintf("absolute link to %q, which is nothing in the tree", l.target)})
			delete(w.links, l.path)
			delete(w.nodes, l.path)
			continue
		}
		rel, err := filepath.Rel(path.Dir(l.path), l.means)
		if err != nil {
			return &EntryError{l.path, err}
		}
		l.target = rel
	}
	return nil
}

// symlinks makes the symlinks that are left.
func (u *unpacker) symlinks(w *web) error {
	for i := range u.late {
		l := &u.late[i]
		if l.hard || l.gone || l.omitted {
			continue
		}
		if err := u.ctx.Err(); err != nil {
			return err
		}
		if err := u.makeSymlink(w, l); err != nil {
			return &EntryError{l.path, err}
		}
	}
	return nil
}

func (u *unpacker) makeSymlink(w *web, l *link) error {
	_, err := w.resolve(l.path, nil)
	if errors.Is(err, errEscape) {
		return fmt.Errorf("%w: link to %q would leave the prefix", ErrRefused, l.target)
	}
	if errors.Is(err, ErrRefused) {
		return err
	}
	in, err := u.dirs.open(path.Dir(l.path))
	if err != nil {
		return err
	}
	f := u.nodes[l.path]
	f.Link, f.MTime = l.target, l.mtime
	return in.symlink(l.target, path.Base(l.path), l.mtime)
}
