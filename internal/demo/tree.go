package demo

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Tree is what a tarball holds, in memory. Names are slash-separated and
// relative to the root, without a leading "./". Directories that lead to an
// entry need not be added: they get DirMode. A name that is added twice keeps
// the later content. Modes are the twelve bits that tar stores, so that
// 0o4755 is a setuid program.
type Tree struct {
	RootMode int64     // mode of the first member, ./; 0 means 0755
	DirMode  int64     // mode of directories that were not added; 0 means 0755
	MTime    time.Time // of every member, cut to seconds
	UID, GID int       // owner of every member
	User     string    // name of the owner, and of the group
	Group    string

	entries map[string]*entry
}

type kind int

const (
	file kind = iota
	dir
	symlink
	hardlink
)

type entry struct {
	name string
	kind kind
	mode int64
	data []byte
	link string // target of a symlink as written, or name of the file a hard link is equal to
}

// Dir adds a directory.
func (t *Tree) Dir(name string, mode int64) { t.add(&entry{name: name, kind: dir, mode: mode}) }

// File adds a regular file. The data are not copied.
func (t *Tree) File(name string, mode int64, data []byte) {
	t.add(&entry{name: name, kind: file, mode: mode, data: data})
}

// Symlink adds a symbolic link; the target is written as it is.
func (t *Tree) Symlink(name, target string) {
	t.add(&entry{name: name, kind: symlink, mode: 0o777, link: target})
}

// Link adds another name of the regular file first.
func (t *Tree) Link(name, first string) {
	t.add(&entry{name: name, kind: hardlink, link: first})
}

func (t *Tree) add(e *entry) {
	if t.entries == nil {
		t.entries = make(map[string]*entry)
	}
	t.entries[e.name] = e
}

// order returns the entries as tar meets them when it walks directories in
// name order: a directory before what is in it, and of the names of one file
// the first as the file, whichever name it was added by.
func (t *Tree) order() ([]*entry, error) {
	all := make(map[string]*entry, len(t.entries))
	for name, e := range t.entries {
		if !fs.ValidPath(name) || name == "." {
			return nil, fmt.Errorf("order tree: %q is not a name below the root", name)
		}
		c := *e
		all[name] = &c
	}
	for name := range t.entries {
		if err := addParents(all, name, cmp.Or(t.DirMode, 0o755)); err != nil {
			return nil, err
		}
	}
	list := make([]*entry, 0, len(all))
	for _, e := range all {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(sortKey(a.name), sortKey(b.name)) })
	if err := settleHardLinks(all, list); err != nil {
		return nil, err
	}
	return list, nil
}

// sortKey makes the slash sort below every other byte.
func sortKey(name string) string { return strings.ReplaceAll(name, "/", "\x00") }

func addParents(all map[string]*entry, name string, mode int64) error {
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name[:i], '/') {
		parent := name[:i]
		switch e := all[parent]; {
		case e == nil:
			all[parent] = &entry{name: parent, kind: dir, mode: mode}
		case e.kind != dir:
			return fmt.Errorf("order tree: %s is below %s, which is no directory", name, parent)
		}
	}
	return nil
}

// settleHardLinks gives the content of each group of names to the one that
// comes first and points the others at it.
func settleHardLinks(all map[string]*entry, list []*entry) error {
	first := make(map[string]string) // name that holds the data as added -> name that comes first
	for _, e := range list {
		if e.kind != hardlink {
			continue
		}
		held := all[e.link]
		if held == nil || (held.kind != file && first[e.link] == "") {
			return fmt.Errorf("order tree: %s is a link to %s, which is no file", e.name, e.link)
		}
		if first[e.link] == "" {
			first[e.link] = e.link
			if sortKey(e.name) < sortKey(held.name) {
				e.kind, e.mode, e.data = file, held.mode, held.data
				held.kind, held.data, held.link = hardlink, nil, e.name
				first[e.link], e.link = e.name, ""
				continue
			}
		}
		e.link = first[e.link]
	}
	return nil
}
