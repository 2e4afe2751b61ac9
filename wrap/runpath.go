package wrap

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// The rules that RunPaths applies.
const (
	RuleRunPath        = "run-path"
	RuleELFInterpreter = "elf-interpreter"
)

// origin is how an entry of a run path names the directory of its object.
const origin = "$ORIGIN"

// RunPathOptions says what the run paths of a tree should look like.
type RunPathOptions struct {
	Tree     string       // where the tree lies in the paths of files: "opt/rocm", or "" when they are relative to it
	Tag      patchelf.Tag // the kind of path wanted; 0 keeps each file's own
	AddRPath []string     // entries put after all others, as they are
	Interp   string       // PT_INTERP for the files that have one; "" keeps it
}

// RunPathEdit is one ELF file to edit.
type RunPathEdit struct {
	Path  string // as in files
	Edit  patchelf.Edit
	Rules []string
}

// RunPaths plans the run path of every dynamic x86-64 ELF file from the facts of
// the whole tree, and lists the files that need an edit, sorted by path. It
// looks at no file. A group of hard links is listed once, by its first name.
//
// A new path is what stood there already and exists in the tree, in its order,
// because dlopen may rely on it; then a directory for each NEEDED that the tree
// provides and that no entry reaches; then AddRPath. Absolute entries, empty
// ones and those that lead out of the tree go. An entry is right when it is
// right from each name that the loader can take $ORIGIN from: the loader uses
// the directory under which it found a library, without following a link of the
// library's own (glibc elf/dl-object.c). A program is different, its $ORIGIN
// is where /proc/self/exe points (elf/dl-origin.c), so links to it do not count.
func RunPaths(files []manifest.File, o RunPathOptions) []RunPathEdit {
	p := newPlanner(files, o)
	var edits []RunPathEdit
	for _, i := range p.objects {
		if e, ok := p.plan(i); ok {
			edits = append(edits, e)
		}
	}
	slices.SortFunc(edits, func(a, b RunPathEdit) int { return cmp.Compare(a.Path, b.Path) })
	return edits
}

// planner holds what RunPaths knows of the whole tree.
type planner struct {
	*tree
	o         RunPathOptions
	objects   []int               // indexes in files of the ELF files to plan, each group once
	origins   map[int][]string    // of an object: the directories it is named in, its own first
	providers map[string][]string // of a file name: the directories that have such a library
}

func newPlanner(files []manifest.File, o RunPathOptions) *planner {
	p := &planner{
		tree:      newTree(files, o.Tree),
		o:         o,
		origins:   map[int][]string{},
		providers: map[string][]string{},
	}
	first := p.groups()
	for i := range files {
		f := &files[i]
		name, ok := below(f.Path, o.Tree)
		if !ok || name == "" {
			continue
		}
		switch f.Kind {
		case manifest.Regular:
			p.addFile(i, first, name)
		case manifest.Symlink:
			p.addLink(name, first)
		}
	}
	for _, dirs := range p.providers {
		slices.Sort(dirs)
	}
	for i, dirs := range p.origins {
		own, _ := below(files[i].Path, o.Tree)
		p.origins[i] = ownFirst(parent(own), dirs)
	}
	return p
}

// groups maps the path of the first name of a hard-link group to its index.
func (p *planner) groups() map[string]int {
	first := make(map[string]int)
	for i := range p.files {
		if same := p.files[i].Same; same != "" {
			first[same] = -1
		}
	}
	for i := range p.files {
		if _, ok := first[p.files[i].Path]; ok {
			first[p.files[i].Path] = i
		}
	}
	return first
}

// object is the index that stands for a regular file's inode; false when the
// file is not an ELF object that the loader of this machine takes.
func (p *planner) object(i int, first map[string]int) (int, bool) {
	if same := p.files[i].Same; same != "" {
		j, ok := first[same]
		if !ok || j < 0 {
			return 0, false
		}
		i = j
	}
	e := p.files[i].ELF
	ok := e != nil && e.Class == 64 && e.Machine == "x86_64" && e.Dynamic && (e.Type == "dyn" || e.Type == "exec")
	return i, ok
}

func (p *planner) addFile(i int, first map[string]int, name string) {
	obj, ok := p.object(i, first)
	if !ok {
		return
	}
	if obj == i {
		p.objects = append(p.objects, i)
	}
	p.addName(obj, name)
}

// addLink records the name that a symbolic link gives to an object.
func (p *planner) addLink(name string, first map[string]int) {
	real, ok := p.resolve("", name)
	if !ok {
		return
	}
	n := p.nodes[real]
	if n.kind != manifest.Regular || n.index < 0 {
		return
	}
	obj, ok := p.object(n.index, first)
	if !ok {
		return
	}
	if isProgram(p.files[obj].ELF) {
		return
	}
	p.addName(obj, name)
}

// addName records that an object can be found as name.
func (p *planner) addName(obj int, name string) {
	base := path.Base(name)
	dir, ok := p.resolveDir("", parent(name))
	if !ok {
		return
	}
	if !slices.Contains(p.origins[obj], dir) {
		p.origins[obj] = append(p.origins[obj], dir)
	}
	if p.files[obj].ELF.Type == "dyn" && !isProgram(p.files[obj].ELF) && !slices.Contains(p.providers[base], dir) {
		p.providers[base] = append(p.providers[base], dir)
	}
}

// isProgram tells a program from a library: it names an interpreter and no
// SONAME. Libraries that can be run, as libc.so.6 can, have both.
func isProgram(e *manifest.ELF) bool { return e.Interp != "" && e.Soname == "" }

// ownFirst sorts directories, the object's own before the others.
func ownFirst(own string, dirs []string) []string {
	slices.SortFunc(dirs, func(a, b string) int {
		if (a == own) != (b == own) {
			if a == own {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	return dirs
}

// plan is the edit that an object needs, if any.
func (p *planner) plan(i int) (RunPathEdit, bool) {
	e := p.files[i].ELF
	edit := RunPathEdit{Path: p.files[i].Path}
	old, tag := e.RunPath, patchelf.RunPath
	if old == "" {
		old, tag = e.RPath, patchelf.RPath
	}
	value := p.value(i, old)
	wrongTag := old != "" && p.o.Tag != 0 && tag != p.o.Tag
	both := e.RPath != "" && e.RunPath != ""
	if value != old || value != "" && (wrongTag || both) {
		edit.Edit.RunPath = &value
		if edit.Edit.Tag = p.o.Tag; p.o.Tag == 0 && both {
			edit.Edit.Tag = tag
		}
		edit.Rules = append(edit.Rules, RuleRunPath)
	}
	if p.o.Interp != "" && e.Interp != "" && e.Interp != p.o.Interp {
		edit.Edit.Interp = p.o.Interp
		edit.Rules = append(edit.Rules, RuleELFInterpreter)
	}
	return edit, len(edit.Rules) > 0
}

// value is the run path that an object should have; "" for none.
func (p *planner) value(i int, old string) string {
	origins := p.origins[i]
	entries := p.kept(origins, old)
	kept := len(entries)
	for _, need := range p.files[i].ELF.Needed {
		dirs := p.providers[need]
		if len(dirs) == 0 || strings.Contains(need, "/") {
			continue
		}
		for _, from := range origins {
			if !p.reaches(from, entries, dirs) {
				entries = appendNew(entries, p.nearest(origins, from, entries, dirs))
			}
		}
	}
	p.inTreeFirst(origins, entries[kept:])
	if old != "" || len(p.files[i].ELF.Needed) > 0 {
		for _, add := range p.o.AddRPath {
			if add != "" {
				entries = appendNew(entries, add)
			}
		}
	}
	return strings.Join(entries, ":")
}

// inTreeFirst sorts new entries. An object that is named at two depths may need
// an entry that is right from the deeper name and leaves the tree from the
// other: that is searched last, when every library of the tree has been found,
// so that nothing beside the tree can take its place.
func (p *planner) inTreeFirst(origins []string, entries []string) {
	leaves := func(entry string) int {
		rel, _ := cutOrigin(entry)
		for _, from := range origins {
			if climbs(from, rel) {
				return 1
			}
		}
		return 0
	}
	slices.SortStableFunc(entries, func(a, b string) int { return cmp.Compare(leaves(a), leaves(b)) })
}

// climbs reports whether a relative path, from a directory of the tree, leads
// above the tree.
func climbs(from, rel string) bool {
	depth := len(splitPath(from))
	for part := range strings.SplitSeq(rel, "/") {
		switch part {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}

// kept is the entries of an old path that stay.
func (p *planner) kept(origins []string, old string) []string {
	var entries []string
	for raw := range strings.SplitSeq(old, ":") {
		rel, ok := cutOrigin(raw)
		if !ok || !p.anyDir(origins, rel) {
			continue
		}
		text := withOrigin(p.tidy(origins, rel))
		if text != raw && slices.Contains(p.o.AddRPath, raw) {
			continue // it comes back, as it is, at the end
		}
		entries = appendNew(entries, text)
	}
	return entries
}

// cutOrigin is an entry without its $ORIGIN. False for every other kind: the
// absolute, the empty and the relative, which mean the working directory, and
// those with $LIB or $PLATFORM, whose meaning differs between machines.
func cutOrigin(entry string) (rel string, ok bool) {
	rest, ok := strings.CutPrefix(entry, "${ORIGIN}")
	if !ok {
		rest, ok = strings.CutPrefix(entry, origin)
	}
	if !ok || rest != "" && rest[0] != '/' || strings.ContainsRune(rest, '$') {
		return "", false
	}
	return strings.TrimLeft(rest, "/"), true
}

func withOrigin(rel string) string {
	if rel == "" || rel == "." {
		return origin
	}
	return origin + "/" + rel
}

// tidy writes an entry in its shortest form, unless a link on the way gives
// ".." another meaning than the text suggests.
func (p *planner) tidy(origins []string, rel string) string {
	short := path.Clean(rel)
	for _, from := range origins {
		a, aok := p.resolveDir(from, rel)
		b, bok := p.resolveDir(from, short)
		if a != b || aok != bok {
			return strings.TrimRight(rel, "/")
		}
	}
	return short
}

// anyDir reports whether an entry is a directory of the tree from any name.
func (p *planner) anyDir(origins []string, rel string) bool {
	return slices.ContainsFunc(origins, func(from string) bool {
		_, ok := p.resolveDir(from, rel)
		return ok
	})
}

// reaches reports whether an entry, seen from a directory, is one of dirs.
func (p *planner) reaches(from string, entries, dirs []string) bool {
	return slices.ContainsFunc(entries, func(entry string) bool {
		rel, _ := cutOrigin(entry)
		dir, ok := p.resolveDir(from, rel)
		return ok && slices.Contains(dirs, dir)
	})
}

// nearest is the entry by which one of dirs is best reached from a directory: a
// directory already named from another name of the object, else the one with
// the fewest steps, else the first in byte order.
func (p *planner) nearest(origins []string, from string, entries, dirs []string) string {
	best := slices.MinFunc(dirs, func(a, b string) int {
		if na, nb := p.named(origins, entries, a), p.named(origins, entries, b); na != nb {
			if na {
				return -1
			}
			return 1
		}
		ra, rb := relDir(from, a), relDir(from, b)
		return cmp.Or(cmp.Compare(steps(ra), steps(rb)), cmp.Compare(ra, rb))
	})
	return withOrigin(relDir(from, best))
}

// named reports whether a directory is reached by an entry from some name.
func (p *planner) named(origins, entries []string, dir string) bool {
	return slices.ContainsFunc(origins, func(from string) bool {
		return p.reaches(from, entries, []string{dir})
	})
}

// steps counts the elements of a relative path; none for ".".
func steps(rel string) int {
	if rel == "." {
		return 0
	}
	return strings.Count(rel, "/") + 1
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
