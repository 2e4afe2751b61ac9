package diff

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// symbolsListed bounds the lost symbols that are listed of one library.
const symbolsListed = 200

// object is what one ELF file offers and asks for, beyond its headers.
type object struct {
	defs    []patchelf.VersionDef
	needs   []patchelf.VersionNeed
	exports []patchelf.Export
}

// object reads an ELF file of the ROCm tree; symbols only if asked for.
func (s *side) object(f *file, symbols bool) (*object, error) {
	r, err := s.openIn(f.Path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	fi, err := r.Stat()
	if err != nil {
		return nil, err
	}
	x, err := patchelf.Parse(r, fi.Size())
	if err != nil {
		return nil, err
	}
	o := &object{}
	if o.needs, err = x.VersionNeeds(); err != nil || !symbols {
		return o, err
	}
	if o.defs, err = x.VersionDefs(); err != nil {
		return o, err
	}
	o.exports, err = x.Exports()
	return o, err
}

// abi compares what ELF files offer to others and ask of the host.
func (c *comparer) abi(ctx context.Context) error {
	h := &hostNeeds{c: c, a: needSet{}, b: needSet{}}
	var todo []*pair
	for i := range c.pairs {
		p := &c.pairs[i]
		switch {
		case !p.a.host() && !p.b.host():
		case p.state != same && p.state != edits:
			todo = append(todo, p)
		default:
			// The file is there; a link that it is found by may be gone.
			if lib := c.soname(p); lib.NameGone {
				c.r.Libraries = append(c.r.Libraries, lib)
			}
		}
	}
	for _, f := range c.removed {
		if f.host() {
			todo = append(todo, &pair{a: f})
		}
	}
	for _, f := range c.added {
		if f.host() {
			todo = append(todo, &pair{b: f})
		}
	}
	var mu sync.Mutex
	err := c.each(ctx, len(todo), func(i int) {
		lib, lost := c.compareObjects(todo[i], h)
		if lost {
			mu.Lock()
			defer mu.Unlock()
			c.r.Libraries = append(c.r.Libraries, lib)
		}
	})
	if err != nil {
		return err
	}
	slices.SortFunc(c.r.Libraries, func(x, y Library) int {
		if x.Public != y.Public {
			if x.Public {
				return -1
			}
			return 1
		}
		return strings.Compare(x.Path, y.Path)
	})
	c.r.Libraries = cut(c.r.Libraries, c.limit)
	return h.finish(ctx)
}

// compareObjects compares two ELF files, of which one may be missing. What a
// library lost is the answer, if it lost anything.
func (c *comparer) compareObjects(p *pair, h *hostNeeds) (Library, bool) {
	var was, is *object
	var err error
	found := p.b // an heir's needs are gathered where it stands itself
	p = c.heir(p)
	both := p.a != nil && p.b != nil && p.a.host() && p.b.loads()
	if p.a != nil && p.a.host() {
		if was, err = c.a.object(p.a, both); err != nil {
			c.note("ELF files that cannot be compared", p.a.Path, err)
		} else {
			h.add(h.a, c.a, p.a, was)
		}
	}
	if p.b != nil && p.b.loads() {
		is, err = c.b.object(p.b, both)
		if err != nil {
			c.note("ELF files that cannot be compared", p.b.Path, err)
		} else if p.b == found {
			h.add(h.b, c.b, p.b, is)
		}
	}
	if p.a == nil || !p.a.host() {
		return Library{}, false
	}
	lib := c.soname(p)
	if both && was != nil && is != nil && p.a.ELF.Type == "dyn" && p.a.ELF.Interp == "" {
		lib.lose(was, is)
	}
	return lib, lib.Gone || lib.Now != "" || lib.NameGone || len(lib.Versions) > 0 || lib.Lost+lib.Weak > 0
}

// heir is p with what programs find in B under the name of a library of A, where
// p itself does not have it: the file has become a link, or has a name that is
// not known for another version of it.
func (c *comparer) heir(p *pair) *pair {
	if p.a == nil || !p.a.host() || p.b != nil && p.b.loads() {
		return p
	}
	at := p.a.Path
	if p.b == nil || p.b.Kind != manifest.Symlink {
		at = path.Join(path.Dir(at), p.a.ELF.Soname)
	}
	if f := c.b.follow(at); f != nil && f.loads() {
		return &pair{a: p.a, b: f, state: changed}
	}
	return p
}

// soname compares the names under which a library is found.
func (c *comparer) soname(p *pair) Library {
	l := Library{Path: p.a.Path, Soname: p.a.ELF.Soname, Public: public(p.a.Path)}
	if p.b != nil && p.b.Path != p.a.Path {
		l.To = p.b.Path
	}
	if l.Soname == "" {
		return l
	}
	switch {
	case p.b == nil || p.b.ELF == nil:
		l.Gone = !c.b.libs[l.Soname]
	case p.b.ELF.Soname != l.Soname && !c.b.libs[l.Soname]:
		if l.Now = p.b.ELF.Soname; l.Now == "" {
			l.Gone = true
		}
	default:
		was, is := path.Join(path.Dir(p.a.Path), l.Soname), path.Join(path.Dir(p.b.Path), l.Soname)
		l.NameGone = c.a.finds(was) && !c.b.finds(is)
	}
	return l
}

// public tells whether programs are linked with a library: it stands in lib/
// itself, not in a directory of the compiler or of a part.
func public(p string) bool {
	dir := path.Dir(p)
	return dir == "lib" || dir == "lib64"
}

// lose fills in versions and symbols that are no longer there.
func (l *Library) lose(was, is *object) {
	has := map[string]bool{}
	for _, d := range is.defs {
		has[d.Name] = true
	}
	for _, d := range was.defs {
		if !d.Base && !has[d.Name] && !slices.Contains(l.Versions, d.Name) {
			l.Versions = append(l.Versions, d.Name)
		}
	}
	slices.Sort(l.Versions)
	l.Exports = len(was.exports)
	l.symbols(was, is)
}

// symbols finds the symbols of which a program that was linked with one object
// finds none in the other. A loader takes any version for a symbol that was
// asked for without one, and any symbol of an object that defines no versions.
func (l *Library) symbols(was, is *object) {
	type versioned struct{ name, version string }
	exact := make(map[versioned]bool, len(is.exports))
	names := make(map[string]bool, len(is.exports))
	for i := range is.exports {
		e := &is.exports[i]
		exact[versioned{e.Name, e.Version}] = true
		names[e.Name] = true
	}
	var lost []Symbol
	for i := range was.exports {
		e := &was.exports[i]
		if exact[versioned{e.Name, e.Version}] || names[e.Name] && (e.Version == "" || len(is.defs) == 0) {
			continue
		}
		if e.Weak {
			l.Weak++
		} else {
			l.Lost++
		}
		lost = append(lost, Symbol{Name: e.Name, Version: e.Version, Weak: e.Weak})
	}
	slices.SortFunc(lost, func(x, y Symbol) int {
		if x.Weak != y.Weak {
			if y.Weak {
				return -1
			}
			return 1
		}
		return strings.Compare(x.Name+"\x00"+x.Version, y.Name+"\x00"+y.Version)
	})
	for _, s := range cut(lost, symbolsListed) {
		// The names are parts of a table that need not stay in memory.
		s.Name, s.Pretty = strings.Clone(s.Name), pretty(s.Name)
		l.Symbols = append(l.Symbols, s)
	}
}
