package wrap

import (
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// maxLinks bounds the symbolic links followed in one path, as the kernel does
// (MAXSYMLINKS).
const maxLinks = 40

// maxSteps bounds the elements walked for one path, links included.
const maxSteps = 4096

// tree is a ROCm tree as its manifest tells it, for questions that the kernel
// would answer on disk. Paths are relative to the tree; "" is the tree itself.
type tree struct {
	files []manifest.File
	nodes map[string]node
	dirs  map[string]walked // memory of resolve, for directories asked often
}

// node is one name. Directories that only stand in the paths of others count.
type node struct {
	kind  manifest.Kind
	index int // in files; -1 for an implied directory
}

type walked struct {
	path string
	ok   bool
}

// newTree reads the files below base ("" for all).
func newTree(files []manifest.File, base string) *tree {
	t := &tree{files: files, nodes: make(map[string]node, len(files)+1), dirs: map[string]walked{}}
	t.nodes[""] = node{manifest.Dir, -1}
	for i := range files {
		p, ok := below(files[i].Path, base)
		if !ok || p == "" {
			continue
		}
		t.nodes[p] = node{files[i].Kind, i}
		for d := parent(p); d != ""; d = parent(d) {
			if _, known := t.nodes[d]; known {
				break
			}
			t.nodes[d] = node{manifest.Dir, -1}
		}
	}
	return t
}

// below is p relative to base, and whether it is base or in it.
func below(p, base string) (string, bool) {
	if base == "" {
		return p, true
	}
	rest, ok := strings.CutPrefix(p, base)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(rest, "/"), true
}

// parent is the directory of a path; "" for one at the top.
func parent(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

// resolve walks p from the directory dir, which is already free of links, the
// way the kernel does: a link is followed before the ".." that comes after it.
// ok is false when nothing is there, when the walk leaves the tree, or when
// links go round.
func (t *tree) resolve(dir, p string) (real string, ok bool) {
	if real, _, ok = t.walk(dir, p, func(string) {}); !ok {
		return "", false
	}
	return real, true
}

// walk is resolve, for those who want to know each link that is followed, and
// where the walk ended: at a name that is not there, with rest still to go, or
// "".
func (t *tree) walk(dir, p string, follows func(link string)) (at, rest string, ok bool) {
	if strings.HasPrefix(p, "/") {
		return "", "", false
	}
	todo := strings.Split(p, "/")
	links, steps := 0, 0
	for len(todo) > 0 {
		if steps++; steps > maxSteps {
			return "", "", false
		}
		elem := todo[0]
		todo = todo[1:]
		switch elem {
		case "", ".":
			continue
		case "..":
			if dir == "" {
				return "", "", false
			}
			dir = parent(dir)
			continue
		}
		next := path.Join(dir, elem)
		n, found := t.nodes[next]
		switch {
		case !found:
			return next, strings.Join(todo, "/"), false
		case n.kind == manifest.Dir:
			dir = next
		case n.kind == manifest.Symlink:
			follows(next)
			link := t.files[n.index].Link
			if links++; links > maxLinks || strings.HasPrefix(link, "/") {
				return "", "", false
			}
			todo = append(strings.Split(link, "/"), todo...)
		case len(todo) > 0:
			return "", "", false
		default:
			return next, "", true
		}
	}
	return dir, "", true
}

// resolveDir is resolve for a directory, remembered.
func (t *tree) resolveDir(dir, p string) (real string, ok bool) {
	key := dir + "\x00" + p
	if w, known := t.dirs[key]; known {
		return w.path, w.ok
	}
	real, ok = t.resolve(dir, p)
	if ok && t.nodes[real].kind != manifest.Dir {
		real, ok = "", false
	}
	t.dirs[key] = walked{real, ok}
	return real, ok
}

// file is the manifest entry at a path free of links; nil for an implied
// directory or nothing.
func (t *tree) file(real string) *manifest.File {
	if n, ok := t.nodes[real]; ok && n.index >= 0 {
		return &t.files[n.index]
	}
	return nil
}

// children maps each directory to the names in it, sorted.
func (t *tree) children() map[string][]string {
	names := make(map[string][]string)
	for p := range t.nodes {
		if p != "" {
			d := parent(p)
			names[d] = append(names[d], p[len(d):])
		}
	}
	for _, list := range names {
		for i := range list {
			list[i] = strings.TrimPrefix(list[i], "/")
		}
		slices.Sort(list)
	}
	return names
}

// elf is the facts of a file, those of its first name when it is a hard link.
func (t *tree) elf(f *manifest.File, base string) *manifest.ELF {
	if f.ELF != nil || f.Same == "" {
		return f.ELF
	}
	if p, ok := below(f.Same, base); ok {
		if first := t.file(p); first != nil {
			return first.ELF
		}
	}
	return nil
}

// isDir reports whether a path leads to a directory of the tree.
func (t *tree) isDir(p string) bool {
	_, ok := t.resolveDir("", p)
	return ok
}

// isFile reports whether a path leads to a regular file of the tree.
func (t *tree) isFile(p string) bool {
	real, ok := t.resolve("", p)
	return ok && t.nodes[real].kind == manifest.Regular
}
