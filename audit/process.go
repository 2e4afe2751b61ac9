package audit

import (
	"path"
	"strings"
)

// process is one program, or one library that was opened alone, with all that
// is mapped for it.
type process struct {
	loader *loader
	main   *node
	nodes  []*node
	names  map[string]*node // every name that finds an object without a search
	byObj  map[*object]*node
	missed map[string]bool // names that were asked for, and not found by somebody
}

// node is an object of a process.
type node struct {
	*link
	by *node // who asked for it first; nil for main
}

// need is how one DT_NEEDED was settled.
type need struct {
	of   *node
	name string
	to   *object // nil when it is missing
	bad  bool    // a file of that name is there, but it is not ELF
	said bool    // and that is a finding already
}

// maxProcess bounds the objects of one process.
const maxProcess = 4096

// start maps an object of the tree and, breadth first, all that it needs
// (elf/dl-deps.c), and reports every DT_NEEDED on the way.
func (l *loader) start(main *link, report func(*process, need)) *process {
	p := &process{loader: l, names: map[string]*node{}, byObj: map[*object]*node{}, missed: map[string]bool{}}
	p.main = p.add(main, nil, "")
	// The loader itself is mapped before anything else.
	if in := main.object.facts.Interp; in != "" {
		p.names[path.Base(in)] = nil
	}
	for i := 0; i < len(p.nodes) && i < maxProcess && l.left >= 0; i++ {
		of := p.nodes[i]
		needed := of.object.facts.Needed
		l.left -= 1 + len(needed)
		if v := of.object.vers; v != nil {
			l.left -= len(v.needs)
		}
		for _, name := range needed[:min(len(needed), maxNeeded)] {
			p.want(of, name, false, report)
		}
		filters := of.object.filters
		for _, f := range filters[:min(len(filters), maxNeeded)] {
			p.want(of, f.name, f.optional, report)
		}
	}
	return p
}

// want maps what an object asks for, unless it is mapped, and reports it.
func (p *process) want(of *node, name string, optional bool, report func(*process, need)) {
	if p.loader.left < 0 {
		return
	}
	n, known := p.names[name]
	if known {
		if n != nil {
			report(p, need{of: of, name: name, to: n.object})
		}
		return
	}
	k := p.search(of, name)
	if k == nil || k.bad {
		if !optional {
			p.missed[name] = true
			report(p, need{of: of, name: name, bad: k != nil, said: k != nil && k.said})
		}
		return
	}
	if n = p.byObj[k.object]; n == nil {
		n = p.add(k, of, name)
	}
	p.names[name] = n
	report(p, need{of: of, name: name, to: n.object})
}

// add maps an object. It is found again by the name it was asked for and by its
// DT_SONAME, without a search.
func (p *process) add(k *link, by *node, name string) *node {
	n := &node{link: k, by: by}
	p.nodes = append(p.nodes, n)
	p.byObj[k.object] = n
	if name != "" {
		p.names[name] = n
	}
	if s := k.object.facts.Soname; s != "" {
		if _, taken := p.names[s]; !taken {
			p.names[s] = n
		}
	}
	return n
}

// search finds a library for an object (elf/dl-load.c, _dl_map_object).
func (p *process) search(of *node, name string) *link {
	if strings.Contains(name, "/") {
		return p.loader.named(of, name)
	}
	if !of.own {
		for n := of; n != nil; n = n.by {
			if k := p.first(n.rpath, name); k != nil {
				return k
			}
		}
	}
	if k := p.first(of.runpath, name); k != nil {
		return k
	}
	if k := p.loader.cached(name); k != nil {
		return k
	}
	return p.first(p.loader.last, name)
}

func (p *process) first(dirs []*libDir, name string) *link {
	for _, d := range dirs {
		p.loader.left--
		if k := p.loader.find(d, name); k != nil {
			return k
		}
	}
	return nil
}

// named opens a DT_NEEDED that has a slash: a path, which is not searched for.
func (l *loader) named(of *node, name string) *link {
	origin := path.Dir(of.object.path)
	for _, n := range l.tokens(&libDir{host: of.object.host, path: origin}, name) {
		if !path.IsAbs(n) {
			continue
		}
		if d := l.hostDir(path.Dir(n)); d != nil {
			if k := l.plain(d, path.Base(n)); k != nil {
				return k
			}
		}
	}
	return nil
}
