package audit

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// How the loader comes to a library.
const (
	WhyProgram     = "program"         // it is what was started
	WhyPreload     = "LD_PRELOAD"      // named there
	WhyPath        = "path"            // asked for by a path, which is not searched for
	WhyRPath       = "DT_RPATH"        // of Through
	WhyLibraryPath = "LD_LIBRARY_PATH" // before DT_RUNPATH
	WhyRunPath     = "DT_RUNPATH"      // of Through
	WhyCache       = "ld.so.cache"
	WhyDefault     = "default" // a directory that is built into the loader, or of ld.so.conf
)

// LoadEnv is what a process gives the loader. The zero value is an empty
// environment on this host.
type LoadEnv struct {
	LibraryPath string // LD_LIBRARY_PATH
	Preload     string // LD_PRELOAD
	// Cache returns where ld.so.cache has a library, best first; nil takes the
	// directories of ld.so.conf in its place.
	Cache func(name string) []string
	// Opens returns the names that a library, known by its SONAME, opens with
	// dlopen. Those that are nowhere are left out of the answer.
	Opens func(soname string) []string
}

// Loaded is one object of a process, or what one was not found for.
type Loaded struct {
	Name    string // as it was asked for
	Path    string // real path; "" if it is nowhere
	Soname  string
	Why     string // one of the constants; "" if it is nowhere
	Through string // the object whose run path led there
	By      string // the object that asked first; "" for the program
	Opened  bool   // by dlopen
}

// Resolver maps programs and libraries of this host as ld.so of glibc would. It
// remembers what it has read and belongs to one goroutine.
type Resolver struct {
	loader  *loader
	opens   func(string) []string
	preload []string
	path    []*libDir
	libPath string
}

// NewResolver makes a Resolver for one environment.
func NewResolver(env LoadEnv) *Resolver {
	h := newHost()
	h.libDirs, h.cache = builtInLibDirs, env.Cache
	if env.Cache == nil {
		h.libDirs = hostLibDirs("/etc/ld.so.conf")
	}
	// A tree that nothing is in: no absolute name begins with its own.
	none := &tree{abs: "\x00", entries: map[string]*entry{}, in: map[string][]*entry{}}
	r := &Resolver{loader: newLoader(none, h), opens: env.Opens, libPath: env.LibraryPath}
	// ld.so(8): names of LD_PRELOAD are parted by colons or blanks.
	r.preload = strings.FieldsFunc(env.Preload, func(c rune) bool { return c == ':' || c == ' ' })
	return r
}

// Resolve lists what would be mapped for a program, or for a library that is
// opened alone: itself first, then breadth first what it needs, then what those
// open by themselves. Nothing is executed. A file that is not ELF for this
// machine is an error.
func (r *Resolver) Resolve(ctx context.Context, file string) ([]Loaded, error) {
	abs, err := filepath.Abs(file)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs) // /proc/self/exe, of which $ORIGIN is taken, is the real name
	}
	if err != nil {
		return nil, fmt.Errorf("resolve: %w", err)
	}
	dir := r.loader.hostDir(path.Dir(abs))
	if dir == nil {
		return nil, fmt.Errorf("resolve %s: its directory is gone", abs)
	}
	main := r.loader.openHost(dir, abs)
	if main == nil {
		return nil, fmt.Errorf("resolve %s: it is neither a program nor a library for this machine", abs)
	}
	run := &resolution{Resolver: r, names: map[string]*loadedNode{}, byObject: map[*object]*loadedNode{}}
	run.path = r.loader.expand(dir, strings.ReplaceAll(r.libPath, ";", ":"))
	return run.start(ctx, main)
}

// resolution is one process.
type resolution struct {
	*Resolver
	out      []Loaded
	nodes    []*loadedNode
	names    map[string]*loadedNode // nil: it is mapped, and is none of nodes
	byObject map[*object]*loadedNode
}

// loadedNode is an object of the process.
type loadedNode struct {
	*link
	by *loadedNode
}

func (r *resolution) start(ctx context.Context, main *link) ([]Loaded, error) {
	top := r.add(main, Loaded{Name: path.Base(main.object.path), Why: WhyProgram}, nil)
	if in := main.object.facts.Interp; in != "" {
		r.names[path.Base(in)] = nil
	}
	for _, name := range r.preload {
		r.want(top, name, WhyPreload, false)
	}
	// What is opened is opened when all that is needed is there: names that are
	// mapped by then are not searched for.
	for needed, opened := 0, 0; opened < len(r.nodes); opened++ {
		for ; needed < len(r.nodes); needed++ {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			of := r.nodes[needed]
			names := of.object.facts.Needed
			for _, name := range names[:min(len(names), maxNeeded)] {
				r.want(of, name, "", false)
			}
		}
		if of := r.nodes[opened]; r.opens != nil && of.object.facts.Soname != "" {
			for _, name := range r.opens(of.object.facts.Soname) {
				r.want(of, name, "", true)
			}
		}
	}
	return r.out, nil
}

// add maps an object.
func (r *resolution) add(k *link, l Loaded, by *loadedNode) *loadedNode {
	n := &loadedNode{link: k, by: by}
	l.Path, l.Soname = k.object.path, k.object.facts.Soname
	if by != nil {
		l.By = by.object.path
	}
	r.out = append(r.out, l)
	r.nodes = append(r.nodes, n)
	r.byObject[k.object] = n
	r.names[l.Name] = n
	if _, taken := r.names[l.Soname]; !taken && l.Soname != "" {
		r.names[l.Soname] = n
	}
	return n
}

// want maps what an object asks for, unless it is mapped.
func (r *resolution) want(of *loadedNode, name, why string, opened bool) {
	if _, known := r.names[name]; known || len(r.out) >= maxProcess {
		return
	}
	k, how, through := r.search(of, name)
	switch {
	case k == nil && (opened || why != ""):
		return // neither is an error of the loader
	case k == nil:
		r.names[name] = nil
		r.out = append(r.out, Loaded{Name: name, By: of.object.path})
		return
	}
	if why == "" {
		why = how
	}
	if have := r.byObject[k.object]; have != nil {
		r.names[name] = have
		return
	}
	r.add(k, Loaded{Name: name, Why: why, Through: through, Opened: opened}, of)
}

// search finds a library as process.search does, with an environment.
func (r *resolution) search(of *loadedNode, name string) (k *link, why, through string) {
	if strings.Contains(name, "/") {
		if path.IsAbs(name) {
			return r.usable(r.loader.openHost(r.loader.make(true, path.Dir(name)), name)), WhyPath, ""
		}
		origin := &node{link: of.link}
		return r.usable(r.loader.named(origin, name)), WhyPath, ""
	}
	if !of.own {
		for n := of; n != nil; n = n.by {
			if k := r.first(n.rpath, name); k != nil {
				return k, WhyRPath, n.object.path
			}
		}
	}
	if k := r.first(r.path, name); k != nil {
		return k, WhyLibraryPath, ""
	}
	if k := r.first(of.runpath, name); k != nil {
		return k, WhyRunPath, of.object.path
	}
	if k := r.usable(r.loader.cached(name)); k != nil {
		return k, WhyCache, ""
	}
	return r.first(r.loader.last, name), WhyDefault, ""
}

func (r *resolution) first(dirs []*libDir, name string) *link {
	for _, d := range dirs {
		if k := r.usable(r.loader.find(d, name)); k != nil {
			return k
		}
	}
	return nil
}

// usable is nil for a name that is there and is no library.
func (r *resolution) usable(k *link) *link {
	if k == nil || k.bad || k.object.facts == nil {
		return nil
	}
	return k
}

// HWCaps lists the glibc-hwcaps subdirectories that this processor may use, best
// first, as ld.so.cache names them: x86-64-v3.
func HWCaps() []string {
	var names []string
	for _, c := range hwcaps() {
		names = append(names, path.Base(c))
	}
	return names
}
