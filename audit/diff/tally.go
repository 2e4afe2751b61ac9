package diff

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// tally counts files, and lists those that differ.
func (c *comparer) tally(context.Context) error {
	r, groups := c.r, map[string]*Group{}
	group := func(f *file) *Group {
		name := groupOf(f.Path)
		if groups[name] == nil {
			groups[name] = &Group{Path: name}
		}
		return groups[name]
	}
	for i := range c.a.files {
		if f := &c.a.files[i]; f.Kind != manifest.Dir {
			group(f).From += content(f)
		}
	}
	for i := range c.b.files {
		if f := &c.b.files[i]; f.Kind != manifest.Dir {
			group(f).To += content(f)
		}
	}
	for i := range c.pairs {
		c.tallyPair(&c.pairs[i], group)
	}
	for _, f := range c.added {
		if f.Kind != manifest.Dir {
			r.Files.Added.add(content(f))
			group(f).Added++
			r.Added = append(r.Added, Entry{f.Path, f.Kind, f.Size})
		}
	}
	for _, f := range c.removed {
		if f.Kind != manifest.Dir {
			r.Files.Removed.add(content(f))
			group(f).Removed++
			r.Removed = append(r.Removed, Entry{f.Path, f.Kind, f.Size})
		}
	}
	r.Files.Delta = c.b.Bytes - c.a.Bytes
	r.Renamed = c.renames()
	for _, g := range groups {
		if g.Added+g.Removed+g.Changed+g.Renamed > 0 {
			r.Groups = append(r.Groups, *g)
		}
	}
	c.sortLists()
	return nil
}

// content is the bytes that count once for several names of a file.
func content(f *file) int64 {
	if f.Same != "" || !f.regular() {
		return 0
	}
	return f.Size
}

// tallyPair counts one pair.
func (c *comparer) tallyPair(p *pair, group func(*file) *Group) {
	r := c.r
	if p.b.Kind == manifest.Dir && p.state == same {
		return
	}
	ch := Change{Path: p.b.Path, From: p.a.Size, To: p.b.Size}
	if p.renamed {
		ch.Was = p.a.Path
		r.Files.Renamed.add(content(p.b))
		group(p.b).Renamed++
	}
	if p.state == same && p.b.Kind == manifest.Symlink || p.state == same && p.b.regular() {
		if !p.renamed {
			r.Files.Same.add(content(p.b))
		}
	}
	switch p.state {
	case unknown:
		r.Files.Unknown++
	case edits:
		r.Files.Edits.add(content(p.b))
	case changed:
		ch.Why = "content"
		r.Files.Changed.add(content(p.b))
	case kinds:
		ch.Why, ch.Known = "kind", fmt.Sprintf("%s, now %s", p.a.Kind, p.b.Kind)
		r.Files.Kind++
	case target:
		r.Files.Retargeted++
		if !p.renamed && stemText(p.a.Link) != stemText(p.b.Link) {
			ch.Why, ch.Known = "link", fmt.Sprintf("%s, now %s", p.a.Link, p.b.Link)
		}
	}
	if was, is := c.modes(p); was != is && p.state != kinds && p.b.Kind != manifest.Symlink {
		r.Files.Mode++
		if ch.Why == "" {
			ch.Why, ch.Known = "mode", fmt.Sprintf("%04o, now %04o", uint32(p.a.Mode), uint32(p.b.Mode))
		}
	}
	if ch.Why == "" {
		return
	}
	if !p.renamed {
		group(p.b).Changed++
	}
	r.Changed = append(r.Changed, ch)
	if p.b.regular() && p.a.regular() && p.b.Same == "" && p.b.Size > p.a.Size {
		r.Grown = append(r.Grown, ch)
	}
}

// stemText is a name without its versions.
func stemText(s string) string {
	var out strings.Builder
	stemPart(&out, s, true)
	return out.String()
}

// modes are the permissions of a pair, as far as they compare: a prefix of ours
// is read-only but where its owner made it writable, a tree that somebody unpacked
// is what their umask made of it.
func (c *comparer) modes(p *pair) (was, is manifest.Mode) {
	mask := manifest.Mode(0o7111)
	if c.a.Recipe != "" && c.b.Recipe != "" {
		mask = 0o7577
	}
	return p.a.Mode & mask, p.b.Mode & mask
}

// twoParts are the directories of which a group names what is below them.
var twoParts = []string{"lib", "lib64", "share", "include", "libexec", "opt"}

// groupOf is the directory that a file counts for.
func groupOf(p string) string {
	parts := strings.SplitN(p, "/", 3)
	switch {
	case len(parts) == 1:
		return "."
	case len(parts) == 2 || !slices.Contains(twoParts, parts[0]):
		return parts[0]
	}
	return parts[0] + "/" + parts[1]
}

// minGrowth is how many bytes a file must have grown by to be listed for its
// percentage.
const minGrowth = 64 << 10

// grownListed bounds the lists of what grew.
const grownListed = 50

// sortLists puts the lists in order and cuts them.
func (c *comparer) sortLists() {
	r := c.r
	slices.SortFunc(r.Groups, func(x, y Group) int {
		return cmp.Or(cmp.Compare(abs(y.To-y.From), abs(x.To-x.From)), strings.Compare(x.Path, y.Path))
	})
	large := func(x, y Entry) int { return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), strings.Compare(x.Path, y.Path)) }
	slices.SortFunc(r.Added, large)
	slices.SortFunc(r.Removed, large)
	slices.SortFunc(r.Changed, func(x, y Change) int { return strings.Compare(x.Path, y.Path) })
	for _, ch := range r.Grown {
		if ch.To-ch.From >= minGrowth && ch.From > 0 {
			r.GrownMost = append(r.GrownMost, ch)
		}
	}
	slices.SortFunc(r.Grown, func(x, y Change) int {
		return cmp.Or(cmp.Compare(y.To-y.From, x.To-x.From), strings.Compare(x.Path, y.Path))
	})
	slices.SortFunc(r.GrownMost, func(x, y Change) int {
		return cmp.Or(cmp.Compare(growth(y), growth(x)), strings.Compare(x.Path, y.Path))
	})
	r.Grown, r.GrownMost = cut(r.Grown, grownListed), cut(r.GrownMost, grownListed)
	r.Groups, r.Renamed = cut(r.Groups, c.limit), cut(r.Renamed, c.limit)
	r.Added, r.Removed, r.Changed = cut(r.Added, c.limit), cut(r.Removed, c.limit), cut(r.Changed, c.limit)
}

func abs(n int64) int64 { return max(n, -n) }

// growth is by how much a file grew, as a part of what it was.
func growth(ch Change) float64 { return float64(ch.To-ch.From) / float64(ch.From) }

func cut[T any](list []T, n int) []T { return list[:min(len(list), n)] }
