package diff

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// pair is one name in both trees.
type pair struct {
	a, b    *file
	renamed bool
	state   state
}

// state says how the two files of a pair relate.
type state int

const (
	unknown state = iota // not compared yet, or it could not be done
	same
	edits   // what was published is equal; what we made of it is not
	changed // what was published differs
	kinds   // one is a file and the other a link, or the like
	target  // links to different names
)

// match pairs the names of both trees: equal ones first, then those that differ
// in a version, then those that have the same content or SONAME elsewhere.
func (c *comparer) match(context.Context) error {
	var gone, come []*file
	for i := range c.b.files {
		f := &c.b.files[i]
		if was := c.a.byPath[f.Path]; was != nil {
			c.pairs = append(c.pairs, pair{a: was, b: f})
		} else {
			come = append(come, f)
		}
	}
	for i := range c.a.files {
		if f := &c.a.files[i]; c.b.byPath[f.Path] == nil {
			gone = append(gone, f)
		}
	}
	for _, key := range []func(*file) string{
		func(f *file) string { return stem(f, false) }, func(f *file) string { return stem(f, true) }, sonameKey, contentKey,
	} {
		gone, come = c.join(gone, come, key)
	}
	c.removed, c.added = gone, come
	slices.SortFunc(c.pairs, func(x, y pair) int { return strings.Compare(x.b.Path, y.b.Path) })
	return nil
}

// join pairs files that alone have a key on both sides, and returns the others.
func (c *comparer) join(gone, come []*file, key func(*file) string) (stillGone, stillCome []*file) {
	left, right := unique(gone, key), unique(come, key)
	met := map[*file]bool{}
	for k, a := range left {
		if b := right[k]; a != nil && b != nil && a.Kind == b.Kind {
			c.pairs = append(c.pairs, pair{a: a, b: b, renamed: true})
			met[a], met[b] = true, true
		}
	}
	is := func(f *file) bool { return met[f] }
	return slices.DeleteFunc(gone, is), slices.DeleteFunc(come, is)
}

// unique maps keys to the file that has each, nil if there are several.
func unique(files []*file, key func(*file) string) map[string]*file {
	out := map[string]*file{}
	for _, f := range files {
		k := key(f)
		if k == "" {
			continue
		}
		if _, seen := out[k]; seen {
			out[k] = nil
		} else {
			out[k] = f
		}
	}
	return out
}

// sonameKey finds a library that was moved to another directory.
func sonameKey(f *file) string {
	if f.host() && f.ELF.Soname != "" {
		return f.ELF.Soname
	}
	return ""
}

// minMoved is how small a file may be, in bytes, that is known again by its
// content: small ones are often equal by chance.
const minMoved = 512

// contentKey finds a file that was moved as it was.
func contentKey(f *file) string {
	if f.regular() && f.Size >= minMoved && f.SHA256 != "" && f.Same == "" && kernelLibrary(f.Path) == "" {
		return published(f)
	}
	return ""
}

// published is the digest of what is in the tarball, "" if it is not known.
func published(f *file) string {
	if f.Before != "" {
		return f.Before
	}
	return f.SHA256
}

// stem is the path of f with its versions taken out, "" if it has none. A
// version is a number that begins a part of a name or stands behind a dot, a
// dash, an underscore or a name of what has versions; loose takes 1.2 and 1.2.3
// for the same. GPU code is left alone: its numbers are targets and types.
func stem(f *file, loose bool) string {
	if kernelLibrary(f.Path) != "" {
		return ""
	}
	var out strings.Builder
	found := false
	for i, part := range strings.Split(f.Path, "/") {
		if i > 0 {
			out.WriteByte('/')
		}
		n := stemPart(&out, part, loose)
		found = found || n > 0
	}
	if !found {
		return ""
	}
	return string(f.Kind) + " " + out.String()
}

// versioned are names that versions follow without a separator.
var versioned = []string{"python", "libpython", "py", "clang", "llvm", "libLLVM", "cp", "v"}

// stemPart writes part with # for versions, and returns how many it found.
func stemPart(out *strings.Builder, part string, loose bool) int {
	found := 0
	for i := 0; i < len(part); {
		end := i
		for end < len(part) && isDigit(part[end]) {
			end++
		}
		if end == i || !versionAt(part, i, end) {
			end = max(end, i+1)
			out.WriteString(part[i:end])
			i = end
			continue
		}
		if loose {
			for end+1 < len(part) && part[end] == '.' && isDigit(part[end+1]) {
				for end++; end < len(part) && isDigit(part[end]); end++ {
				}
			}
		}
		out.WriteByte('#')
		found++
		i = end
	}
	return found
}

// versionAt tells whether the digits part[i:end] are a version.
func versionAt(part string, i, end int) bool {
	if end-i > 1 && part[i] == '0' {
		return false
	}
	if i == 0 || strings.IndexByte(".-_", part[i-1]) >= 0 {
		return true
	}
	before := part[:i]
	return slices.ContainsFunc(versioned, func(name string) bool {
		rest, ok := strings.CutSuffix(before, name)
		return ok && (rest == "" || strings.IndexByte(".-_", rest[len(rest)-1]) >= 0)
	})
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// renames sums up pairs of which the names differ: where it is a directory that
// has another name, once for all of its files.
func (c *comparer) renames() []Rename {
	type names struct{ from, to string }
	sums := map[names]*Rename{}
	for i := range c.pairs {
		p := &c.pairs[i]
		if !p.renamed || p.b.Kind == manifest.Dir {
			continue
		}
		from, to, dir := renamedPart(p.a.Path, p.b.Path)
		r := sums[names{from, to}]
		if r == nil {
			r = &Rename{From: from, To: to, Dir: dir}
			sums[names{from, to}] = r
		}
		r.Files++
		if p.state == same || p.state == edits {
			r.Same++
		}
	}
	out := make([]Rename, 0, len(sums))
	for _, r := range sums {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(x, y Rename) int {
		if x.To != y.To {
			return strings.Compare(x.To, y.To)
		}
		return strings.Compare(x.From, y.From)
	})
	return out
}

// renamedPart cuts two paths behind the first part that differs, if they are
// equal from there on.
func renamedPart(a, b string) (from, to string, dir bool) {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	i := 0
	for i < min(len(as), len(bs)) && as[i] == bs[i] {
		i++
	}
	if i+1 < len(as) && i+1 < len(bs) && slices.Equal(as[i+1:], bs[i+1:]) {
		return path.Join(as[:i+1]...), path.Join(bs[:i+1]...), true
	}
	return a, b, false
}
