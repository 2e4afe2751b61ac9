package aur

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// tree is what a list of files says, by path in the ROCm tree.
type tree struct {
	has     map[string]bool
	objects []object
	byName  map[string][]int // objects by the names that others need them by
}

// object is a dynamic ELF file for the host.
type object struct {
	path   string
	soname string
	needed []string
}

// newTree reads a list of files. Paths of a prefix begin with opt/rocm/, of
// which what is not in it is left out; those of a bare tree do not.
func newTree(files []manifest.File) *tree {
	t := &tree{has: map[string]bool{}, byName: map[string][]int{}}
	const below = "opt/rocm/"
	prefix := slices.ContainsFunc(files, func(f manifest.File) bool { return strings.HasPrefix(f.Path, below) })
	links := map[string]string{}
	for _, f := range files {
		name := f.Path
		if prefix {
			var in bool
			if name, in = strings.CutPrefix(name, below); !in {
				continue
			}
		}
		t.has[name] = true
		switch e := f.ELF; {
		case f.Kind == manifest.Symlink && !path.IsAbs(f.Link):
			links[name] = path.Join(path.Dir(name), f.Link)
		case e != nil && e.Dynamic && e.Class == 64 && e.Machine == "x86_64":
			t.objects = append(t.objects, object{name, e.Soname, e.Needed})
		}
	}
	slices.SortFunc(t.objects, func(a, b object) int { return strings.Compare(a.path, b.path) })
	byPath := map[string]int{}
	for i, o := range t.objects {
		byPath[o.path] = i
		t.name(path.Base(o.path), i)
		if o.soname != "" {
			t.name(o.soname, i)
		}
	}
	t.follow(links, byPath)
	return t
}

// maxHops bounds a chain of links, as the kernel does.
const maxHops = 40

// follow makes the names of links those of the objects they lead to.
func (t *tree) follow(links map[string]string, byPath map[string]int) {
	for name := range links {
		at := name
		for range maxHops {
			next, link := links[at]
			if !link {
				break
			}
			at = next
		}
		if i, ok := byPath[at]; ok {
			t.name(path.Base(name), i)
		}
	}
}

func (t *tree) name(name string, i int) {
	if !slices.Contains(t.byName[name], i) {
		t.byName[name] = append(t.byName[name], i)
	}
}

// hostNeeds returns what the objects that roots names, and what they need in
// turn, want of the host: by library, the roots that want it.
func (t *tree) hostNeeds(root func(object) bool) map[string][]string {
	wants := map[string][]string{}
	for i, o := range t.objects {
		if root(o) {
			for _, name := range t.missing(i) {
				wants[name] = append(wants[name], o.path)
			}
		}
	}
	return wants
}

// missing lists the libraries in the process of an object that the tree lacks.
func (t *tree) missing(i int) []string {
	var out []string
	seen, queue := map[int]bool{i: true}, []int{i}
	for len(queue) > 0 {
		o := t.objects[queue[0]]
		queue = queue[1:]
		for _, name := range o.needed {
			if len(t.byName[name]) == 0 {
				out = add(out, name)
			}
			for _, j := range t.byName[name] {
				if !seen[j] {
					seen[j] = true
					queue = append(queue, j)
				}
			}
		}
	}
	return out
}

// any reports whether the tree has a path that matches.
func (t *tree) any(re *regexp.Regexp) bool {
	for name := range t.has {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}
