package wrap

import (
	"path"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// Needed tells which of the entries that nobody asked for a tree cannot do
// without: for each, by its index in files, the path of a file that needs it.
// unwanted is asked about each entry below base, which is "opt/rocm", or ""
// when files are relative to the tree.
//
// What a file needs is every library of the tree that has a name that its
// NEEDED lists, as a file, a link or a SONAME, wherever it lies: run paths are
// planned afterwards, from what is left, and a run path of a program reaches
// further than the library that it is asked for. With a library go the links
// that lead to it by that name, and what it needs itself. What is only opened
// at run time, and what scripts name, is not known.
func Needed(files []manifest.File, base string, unwanted func(i int) bool) map[int]string {
	n := &needs{tree: newTree(files, base), base: base, kept: map[int]string{}, unwanted: map[int]bool{}, named: map[string][]int{}, asked: map[string]bool{}}
	var todo []int
	for i := range files {
		p, ok := below(files[i].Path, base)
		if !ok || p == "" || files[i].Kind == manifest.Dir {
			continue
		}
		n.name(i, p)
		if unwanted(i) {
			n.unwanted[i] = true
		} else {
			todo = append(todo, i)
		}
	}
	for at := 0; at < len(todo); at++ {
		todo = n.follow(todo[at], todo)
	}
	return n.kept
}

// needs is one search for what is needed.
type needs struct {
	*tree
	base     string
	unwanted map[int]bool
	kept     map[int]string
	named    map[string][]int // entries by the names that a NEEDED can mean
	asked    map[string]bool  // names that were followed
}

// name records the names by which an entry may be asked for.
func (n *needs) name(i int, p string) {
	n.named[path.Base(p)] = append(n.named[path.Base(p)], i)
	f := &n.files[i]
	if f.Kind != manifest.Regular {
		return
	}
	if e := n.elf(f, n.base); e != nil && e.Soname != "" && e.Soname != path.Base(p) {
		n.named[e.Soname] = append(n.named[e.Soname], i)
	}
}

// follow takes in what one kept entry needs, and adds to todo what is kept for
// its sake.
func (n *needs) follow(i int, todo []int) []int {
	f := &n.files[i]
	if f.Kind != manifest.Regular {
		return todo
	}
	e := n.elf(f, n.base)
	if e == nil {
		return todo
	}
	for _, name := range e.Needed {
		// One with a slash is a path from wherever the program is started.
		name = path.Base(name)
		if n.asked[name] {
			continue
		}
		n.asked[name] = true
		for _, j := range n.named[name] {
			todo = n.keep(j, f.Path, todo)
		}
	}
	return todo
}

// keep keeps an entry, the links that it leads through and what is at their end.
func (n *needs) keep(i int, by string, todo []int) []int {
	p, _ := below(n.files[i].Path, n.base)
	var way []string
	real, _, ok := n.walk("", p, func(link string) { way = append(way, link) })
	if !ok || n.nodes[real].kind != manifest.Regular {
		return todo // it is no library, for the loader too
	}
	for _, p := range append(way, real) {
		j := n.nodes[p].index
		if j < 0 || !n.unwanted[j] {
			continue
		}
		if _, known := n.kept[j]; known {
			continue
		}
		n.kept[j] = by
		todo = append(todo, j)
	}
	return todo
}

// Stranded finds the symbolic links below base that lead nowhere because a name
// is gone: by their index in files, that name. One that never led anywhere is none
// of them. gone is asked about the path of a name that is not there, as files has
// them, and what was to follow it.
func Stranded(files []manifest.File, base string, gone func(path, rest string) bool) map[int]string {
	t := newTree(files, base)
	found := map[int]string{}
	for i := range files {
		p, ok := below(files[i].Path, base)
		if !ok || files[i].Kind != manifest.Symlink {
			continue
		}
		at, rest, ok := t.walk("", p, func(string) {})
		if at = path.Join(base, at); !ok && gone(at, rest) {
			found[i] = at
		}
	}
	return found
}
