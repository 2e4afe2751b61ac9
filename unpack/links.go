package unpack

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// link is a symlink or hard link of the archive, made after all files.
type link struct {
	path   string
	target string // as in the archive for symlinks, cleaned for hard links
	hard   bool
	mtime  int64
}

// maxExpand bounds how many symlinks one name may lead through, as the kernel does.
const maxExpand = 40

var (
	errEscape  = errors.New("leads out of the tree")
	errMissing = errors.New("leads to nothing in the tree")
)

// link takes the place of a link; links makes it.
func (u *unpacker) link(l link) error {
	if l.target == "" {
		return fmt.Errorf("%w: link to nothing", ErrRefused)
	}
	if strings.ContainsRune(l.target, 0) || len(l.target) > maxPath {
		return fmt.Errorf("%w: link target of %d bytes", ErrRefused, len(l.target))
	}
	if err := u.claim(l.path, manifest.Symlink); err != nil {
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
	files := make(map[string]*manifest.File, len(u.files))
	for _, f := range u.files {
		files[f.Path] = f
	}
	for i := range u.late {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		if l := &u.late[i]; l.hard {
			if err := u.hardLink(l, byPath, files); err != nil {
				return &EntryError{l.path, err}
			}
		}
	}
	t := &tree{kinds: u.kinds, links: byPath}
	if err := u.relativeLinks(t); err != nil {
		return err
	}
	return u.symlinks(t)
}

// maxChain bounds hard links to hard links. An archiver names the first file of
// an inode each time, so that real chains have one step.
const maxChain = 40

// hardLink makes l, or turns it into the symlink that it is a hard link to.
func (u *unpacker) hardLink(l *link, byPath map[string]*link, files map[string]*manifest.File) error {
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
	f := files[target]
	if f == nil || f.Kind != manifest.Regular {
		return fmt.Errorf("%w: hard link to %q, which is no regular file of the archive", ErrRefused, l.target)
	}
	if err := u.root.Link(target, l.path); err != nil {
		return err
	}
	twin := *f
	twin.Path, twin.Same = l.path, target
	u.kinds[l.path] = manifest.Regular
	u.files = append(u.files, &twin)
	return nil
}

// relativeLinks turns absolute symlinks that mean something in the tree into
// relative ones and drops the others.
func (u *unpacker) relativeLinks(t *tree) error {
	for i := range u.late {
		l := &u.late[i]
		if l.hard || !strings.HasPrefix(l.target, "/") {
			continue
		}
		target, ok := t.inTree(l)
		if !ok {
			u.dropped = append(u.dropped, manifest.Dropped{Path: l.path, Reason: fmt.Sprintf("absolute link to %q, which is nothing in the tree", l.target)})
			delete(t.links, l.path)
			delete(t.kinds, l.path)
			l.path = ""
			continue
		}
		rel, err := filepath.Rel(path.Dir(l.path), target)
		if err != nil {
			return &EntryError{l.path, err}
		}
		l.target = rel
	}
	return nil
}

// symlinks makes the symlinks that are left.
func (u *unpacker) symlinks(t *tree) error {
	for _, l := range u.late {
		if l.hard || l.path == "" {
			continue
		}
		if err := u.ctx.Err(); err != nil {
			return err
		}
		if _, err := t.resolve(l.path); errors.Is(err, errEscape) {
			return &EntryError{l.path, fmt.Errorf("%w: link to %q would leave the prefix", ErrRefused, l.target)}
		}
		if err := u.root.Symlink(l.target, l.path); err != nil {
			return &EntryError{l.path, err}
		}
		if err := lutimes(u.root, l.path, l.mtime); err != nil {
			return &EntryError{l.path, err}
		}
		u.files = append(u.files, &manifest.File{Path: l.path, Kind: manifest.Symlink, Link: l.target, MTime: l.mtime})
	}
	return nil
}

func (u *unpacker) result() *Result {
	r := &Result{Dropped: u.dropped, Bytes: u.bytes, Files: make([]manifest.File, 0, len(u.files))}
	for _, f := range u.files {
		r.Files = append(r.Files, *f)
	}
	manifest.Sort(r.Files)
	slices.SortFunc(r.Dropped, func(a, b manifest.Dropped) int { return strings.Compare(a.Path, b.Path) })
	return r
}

// tree answers where a name leads, from memory: the disk is not asked, so
// that no link is ever followed.
type tree struct {
	kinds map[string]manifest.Kind
	links map[string]*link
}

// hostRoots are directories of every Linux. An absolute link below one means
// the machine's own file; that the last words of it also exist in the tree
// (/usr/lib and lib) is chance.
var hostRoots = []string{"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr", "var"}

// inTree finds what an absolute link of the build machine means: the longest
// end of its target that exists in the tree.
func (t *tree) inTree(l *link) (string, bool) {
	target := strings.TrimPrefix(path.Clean(l.target), "/")
	first, _, _ := strings.Cut(target, "/")
	if slices.Contains(hostRoots, first) {
		return "", false
	}
	for target != "" {
		if end, err := t.resolve(target); err == nil && end != "." && target != l.path && end != l.path {
			return target, true
		}
		_, target, _ = strings.Cut(target, "/")
	}
	return "", false
}

// resolve follows name through the tree's symlinks, component by component as
// the kernel does, and returns where it ends. Absolute links not yet made
// relative lead to nothing.
func (t *tree) resolve(name string) (string, error) {
	todo := strings.Split(name, "/")
	at, expanded := ".", 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if at == "." {
				return "", errEscape
			}
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		l, isLink := t.links[next]
		if !isLink || l.hard {
			if _, ok := t.kinds[next]; !ok {
				return t.missing(next, todo)
			}
			at = next
			continue
		}
		if expanded++; expanded > maxExpand || strings.HasPrefix(l.target, "/") {
			return "", errMissing
		}
		todo = append(strings.Split(l.target, "/"), todo...)
	}
	return at, nil
}

// missing decides for the rest of a name that leads through nothing: it stays
// dangling, but must not be able to leave the tree should the gap be filled.
func (t *tree) missing(at string, rest []string) (string, error) {
	depth := strings.Count(at, "/") + 1
	for _, part := range rest {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return "", errEscape
			}
		default:
			depth++
		}
	}
	return "", errMissing
}
