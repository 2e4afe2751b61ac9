package diff

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// need is a version of a library.
type need struct{ library, version string }

// needed counts who needs something.
type needed struct {
	path  string // the first by name
	files int
	weak  bool // nobody needs it strictly
}

func (n *needed) add(path string) {
	if n.files == 0 || path < n.path {
		n.path = path
	}
	n.files++
}

type needSet map[need]*needed

// hostNeeds gathers the symbol versions that files ask of libraries that are
// not in their tree.
type hostNeeds struct {
	c    *comparer
	mu   sync.Mutex
	a, b needSet
}

// maxNeeds bounds the versions that are gathered of a tree.
const maxNeeds = 100_000

// add records what one file asks for.
func (h *hostNeeds) add(to needSet, s *side, f *file, o *object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range o.needs {
		if s.libs[n.File] {
			continue
		}
		for _, v := range n.Versions {
			k := need{n.File, v.Name}
			got := to[k]
			if got == nil {
				if len(to) >= maxNeeds {
					h.c.note("symbol versions that are too many to compare", f.Path, nil)
					return
				}
				got = &needed{weak: true}
				to[k] = got
			}
			got.add(f.Path)
			got.weak = got.weak && v.Weak
		}
	}
}

// finish compares what both trees ask of the host.
func (h *hostNeeds) finish(ctx context.Context) error {
	h.libraries()
	if !h.c.a.here || !h.c.b.here {
		return nil // the files that differ are noted
	}
	if !h.newer() {
		return nil
	}
	// Something that the files which differ did not need before may well be
	// needed by those that do not differ.
	if err := h.rest(ctx); err != nil {
		return err
	}
	h.versions()
	h.floors()
	return nil
}

// newer tells whether B needs a version that A does not, by what is known.
func (h *hostNeeds) newer() bool {
	for k := range h.b {
		if h.a[k] == nil {
			return true
		}
	}
	return false
}

// rest adds what the files need that do not differ.
func (h *hostNeeds) rest(ctx context.Context) error {
	var todo []*pair
	for i := range h.c.pairs {
		if p := &h.c.pairs[i]; (p.state == same || p.state == edits) && p.b.host() {
			todo = append(todo, p)
		}
	}
	changed := map[need]needed{}
	for k, n := range h.b {
		changed[k] = *n
	}
	err := h.c.each(ctx, len(todo), func(i int) {
		s, f := h.c.b, todo[i].b
		if !s.here {
			s, f = h.c.a, todo[i].a
		}
		o, err := s.object(f, false)
		if err != nil {
			h.c.note("ELF files that cannot be compared", f.Path, err)
			return
		}
		h.add(h.a, h.c.a, todo[i].a, o)
		h.add(h.b, h.c.b, todo[i].b, o)
	})
	for k, n := range changed {
		*h.b[k] = n // what differs is what is reported
	}
	return err
}

// versions lists the versions that are new.
func (h *hostNeeds) versions() {
	for k, n := range h.b {
		if h.a[k] == nil {
			h.c.r.Host.Versions = append(h.c.r.Host.Versions, NewNeed{Library: k.library, Version: k.version, Weak: n.weak, Path: n.path, Files: n.files})
		}
	}
	slices.SortFunc(h.c.r.Host.Versions, func(x, y NewNeed) int {
		return cmp.Or(strings.Compare(x.Library, y.Library), strings.Compare(x.Version, y.Version))
	})
	h.c.r.Host.Versions = cut(h.c.r.Host.Versions, h.c.limit)
}

// floors lists the series of versions of which B needs a newer one than A.
func (h *hostNeeds) floors() {
	was, is := newest(h.a), newest(h.b)
	for series, k := range is {
		from := was[series]
		if from.version != "" && compareNumbers(k.version, from.version) <= 0 {
			continue
		}
		n := h.b[k]
		h.c.r.Host.Floors = append(h.c.r.Host.Floors, Floor{Series: series, From: from.version, To: k.version, Path: n.path, Files: n.files})
	}
	slices.SortFunc(h.c.r.Host.Floors, func(x, y Floor) int { return strings.Compare(x.Series, y.Series) })
}

// newest finds the newest version of each series that is needed strictly.
func newest(set needSet) map[string]need {
	out := map[string]need{}
	for k, n := range set {
		series, _, ok := numbered(k.version)
		if !ok || n.weak {
			continue
		}
		old, seen := out[series]
		c := 1
		if seen {
			c = compareNumbers(k.version, old.version)
		}
		if c > 0 || c == 0 && k.library < old.library {
			out[series] = k
		}
	}
	return out
}

// numbered takes GLIBC_2.34 apart.
func numbered(version string) (series string, numbers []int, ok bool) {
	i := strings.LastIndexByte(version, '_')
	if i <= 0 || len(version) > maxVersion {
		return "", nil, false
	}
	for _, part := range strings.Split(version[i+1:], ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return "", nil, false
		}
		numbers = append(numbers, n)
	}
	return version[:i], numbers, true
}

func compareNumbers(a, b string) int {
	_, na, _ := numbered(a)
	_, nb, _ := numbered(b)
	return slices.Compare(na, nb)
}

// libraries lists the libraries that are new among those needed of the host.
func (h *hostNeeds) libraries() {
	known := map[string]bool{}
	eachNeeded(h.c.a, func(lib, _ string) { known[lib] = true })
	sums := map[string]*needed{}
	eachNeeded(h.c.b, func(lib, path string) {
		if known[lib] {
			return
		}
		if sums[lib] == nil {
			sums[lib] = &needed{}
		}
		sums[lib].add(path)
	})
	for lib, n := range sums {
		h.c.r.Host.Libraries = append(h.c.r.Host.Libraries, NewNeeded{Library: lib, Path: n.path, Files: n.files})
	}
	slices.SortFunc(h.c.r.Host.Libraries, func(x, y NewNeeded) int { return strings.Compare(x.Library, y.Library) })
	h.c.r.Host.Libraries = cut(h.c.r.Host.Libraries, h.c.limit)
}

// eachNeeded lists who needs which library that the tree does not have.
func eachNeeded(s *side, do func(lib, path string)) {
	for i := range s.files {
		f := &s.files[i]
		if !f.host() {
			continue
		}
		for _, lib := range f.ELF.Needed {
			if !s.libs[lib] {
				do(lib, f.Path)
			}
		}
	}
}
