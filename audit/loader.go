package audit

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
)

// loader resolves libraries as ld.so of glibc does (elf/dl-load.c,
// elf/dl-deps.c; ld.so(8)). It belongs to one goroutine.
type loader struct {
	tree   *tree
	caps   []string              // hwcaps directories, best first
	lib    []string              // what $LIB stands for
	cache  func(string) []string // of ld.so.cache; may be nil
	last   []*libDir
	dirs   map[string]*libDir // by where they are
	elems  map[string][]*libDir
	object map[string]*object // by where they are
	stat   func(string) (os.FileInfo, error)
	left   int // steps that may still be made, in all processes
}

// libDir is a directory that is searched, of the tree or of the host.
type libDir struct {
	host  bool
	path  string // relative to the tree, or absolute on the host
	links map[string]*link
	hwcap []*libDir // nil until it is asked for; never for one that is itself one
	deep  bool      // hwcap is filled
}

// object is one ELF file, whatever the names that it is found under.
type object struct {
	host    bool
	path    string
	facts   *manifest.ELF
	vers    *symvers // nil when it neither needs nor defines versions
	filters []filter
	sick    bool // it is damaged, which is a finding: what it says counts for nothing
}

// object is the file of an entry as the loader sees it.
func (e *entry) object() *object {
	o := &object{path: e.path, facts: e.elf, vers: e.vers, filters: e.filters}
	for i := range e.faults {
		o.sick = o.sick || !e.faults[i].Harmless
	}
	return o
}

// link is an object under the name that it was found by: $ORIGIN is the
// directory of that name.
type link struct {
	object  *object
	rpath   []*libDir // nil when there is DT_RUNPATH
	runpath []*libDir
	own     bool // has DT_RUNPATH
	bad     bool // the name is there and ld.so stops at it: not ELF
	said    bool // the file is a finding of its own
}

func newLoader(t *tree, h *host) *loader {
	l := &loader{tree: t, caps: hwcaps(), lib: libTokens(h.stat), stat: h.stat, cache: h.cache, left: maxWork,
		dirs: map[string]*libDir{}, elems: map[string][]*libDir{}, object: map[string]*object{}}
	for _, d := range h.libDirs {
		if dir := l.hostDir(d); dir != nil {
			l.last = append(l.last, dir)
		}
	}
	return l
}

// hostDir is an absolute directory; one that is in the tree is the tree's. It
// is nil when it does not exist.
func (l *loader) hostDir(name string) *libDir {
	if rel, ok := l.tree.within(name); ok {
		return l.treeDir(".", rel)
	}
	if d, ok := l.dirs[name]; ok {
		return d
	}
	var d *libDir
	if real, err := filepath.EvalSymlinks(name); err == nil {
		if rel, ok := l.tree.within(real); ok {
			d = l.treeDir(".", rel)
		} else if info, err := l.stat(real); err == nil && info.IsDir() {
			d = l.make(true, real)
		}
	}
	l.dirs[name] = d
	return d
}

// treeDir is a directory named from one of the tree; nil when there is none.
func (l *loader) treeDir(from, name string) *libDir {
	p := l.tree.follow(from, name)
	switch {
	case p.outside != "":
		if _, ok := l.tree.within(p.outside); ok {
			return nil
		}
		return l.hostDir(p.outside)
	case !p.found() || p.entry != nil && !p.entry.isDir():
		return nil
	}
	return l.make(false, p.path)
}

func (l *loader) make(host bool, name string) *libDir {
	key := name
	if !host {
		key = "./" + name
	}
	d := l.dirs[key]
	if d == nil {
		d = &libDir{host: host, path: name, links: map[string]*link{}}
		l.dirs[key] = d
	}
	return d
}

// maxRunPath bounds the elements of one run path, and maxNeeded the libraries
// of one object. Real ones have a dozen.
const (
	maxRunPath = 256
	maxNeeded  = 1024
)

// expand turns a run path into directories, for an object found in origin.
// Elements that depend on the working directory are left out: nothing good
// comes from them, and nothing that can be said of a tree.
func (l *loader) expand(origin *libDir, runPath string) []*libDir {
	if runPath == "" {
		return nil
	}
	key := origin.path + "\x00" + runPath
	if origin.host {
		key = "\x00" + key
	}
	if dirs, ok := l.elems[key]; ok {
		return dirs
	}
	var dirs []*libDir
	elems := strings.SplitN(runPath, ":", maxRunPath+1)
	for _, elem := range elems[:min(len(elems), maxRunPath)] {
		for _, name := range l.tokens(origin, elem) {
			if !path.IsAbs(name) {
				continue
			}
			if d := l.hostDir(name); d != nil {
				dirs = append(dirs, d)
			}
		}
	}
	l.elems[key] = dirs
	return dirs
}

// token matches ${NAME} and $NAME, which ends where no letter, digit or _ follows:
// $ORIGINAL is none (elf/dl-load.c, is_dst).
var token = regexp.MustCompile(`\$(?:\{[A-Z]+\}|\w+)`)

// tokens replaces $ORIGIN, $LIB and $PLATFORM.
func (l *loader) tokens(origin *libDir, elem string) []string {
	if !strings.Contains(elem, "$") {
		return []string{elem}
	}
	at := origin.path
	if !origin.host {
		at = path.Join(l.tree.abs, origin.path)
	}
	libs := l.lib
	if !strings.Contains(elem, "LIB") {
		libs = libs[:1] // whatever it is
	}
	// In one pass: what a token stands for may hold a $ itself.
	var out []string
	for _, lib := range libs {
		out = append(out, token.ReplaceAllStringFunc(elem, func(s string) string {
			switch strings.Trim(s, "${}") {
			case "ORIGIN":
				return at
			case "LIB":
				return lib
			case "PLATFORM":
				return hostMachine
			}
			return s
		}))
	}
	return out
}

// find looks for a library in one directory; nil when it is not there or is for
// another machine, which ld.so passes over.
func (l *loader) find(d *libDir, name string) *link {
	if !d.deep {
		d.deep = true
		for _, c := range l.caps {
			if sub := l.sub(d, c); sub != nil {
				sub.deep = true
				d.hwcap = append(d.hwcap, sub)
			}
		}
	}
	for _, sub := range d.hwcap {
		if k := l.plain(sub, name); k != nil {
			return k
		}
	}
	return l.plain(d, name)
}

func (l *loader) sub(d *libDir, name string) *libDir {
	if d.host {
		return l.hostDir(path.Join(d.path, name))
	}
	return l.treeDir(d.path, name)
}

// cached looks for a library in ld.so.cache.
func (l *loader) cached(name string) *link {
	if l.cache == nil {
		return nil
	}
	for _, p := range l.cache(name) {
		if d := l.hostDir(path.Dir(p)); d != nil {
			if k := l.plain(d, path.Base(p)); k != nil {
				return k
			}
		}
	}
	return nil
}

func (l *loader) plain(d *libDir, name string) *link {
	k, ok := d.links[name]
	if !ok {
		k = l.open(d, name)
		d.links[name] = k
	}
	return k
}

// open makes the link for a name in a directory.
func (l *loader) open(d *libDir, name string) *link {
	if d.host {
		return l.openHost(d, path.Join(d.path, name))
	}
	if l.tree.entries[path.Join(d.path, name)] == nil && !strings.Contains(name, "/") {
		return nil
	}
	p := l.tree.follow(d.path, name)
	switch {
	case p.outside != "":
		return l.openHost(d, p.outside)
	case p.entry == nil || !p.entry.isFile():
		return nil
	case p.entry.err != nil:
		// Its owner finds it there, and for others it is a finding already.
		return &link{bad: true, said: true, object: &object{path: p.entry.path}}
	}
	e := p.entry
	if e.elf == nil {
		return &link{bad: true, said: e.badELF != nil, object: &object{path: e.path}}
	}
	return l.link(d, e.object(), "./"+e.path)
}

// openHost opens a library of the host, or one that a link of the tree names.
func (l *loader) openHost(d *libDir, name string) *link {
	if _, ok := l.tree.within(name); ok {
		return nil
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil
	}
	if rel, ok := l.tree.within(real); ok {
		return l.open(l.make(false, path.Dir(rel)), path.Base(rel))
	}
	if o := l.object[real]; o != nil {
		return l.link(d, o, real)
	}
	facts, vers, err := hostFacts(real)
	if err != nil {
		// A linker script such as libc.so: nobody's DT_NEEDED names one.
		return nil
	}
	return l.link(d, &object{host: true, path: real, facts: facts, vers: vers}, real)
}

// link ties an object to the directory it was found in.
func (l *loader) link(d *libDir, o *object, key string) *link {
	if have := l.object[key]; have != nil {
		o = have
	}
	l.object[key] = o
	f := o.facts
	if f.Class != 64 || f.Machine != hostMachine || f.Type == "rel" {
		return nil
	}
	k := &link{object: o, own: f.RunPath != ""}
	if k.own {
		// DT_RPATH is ignored beside DT_RUNPATH.
		k.runpath = l.expand(d, f.RunPath)
	} else {
		k.rpath = l.expand(d, f.RPath)
	}
	return k
}
