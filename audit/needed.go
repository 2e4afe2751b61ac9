package audit

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

// public is how a program that is started, or a library that is linked with,
// is recognised: by its place in the ROCm tree.
func public(inROCm string) bool {
	dir, base := path.Split(inROCm)
	return dir == "bin/" || dir == "lib/" && isLibrary(base)
}

// isLibrary matches *.so and *.so.*.
func isLibrary(base string) bool {
	return strings.HasSuffix(base, ".so") || strings.Contains(base, ".so.")
}

// neededKey is one DT_NEEDED of one object.
type neededKey struct {
	object *object
	name   string
}

// verdict gathers what became of one DT_NEEDED in all processes.
type verdict struct {
	neededKey
	wrong    bool    // missing or foreign in a process of another object, or of a program
	alone    bool    // so when the object, a library, is opened alone
	required bool    // so in the process of something public
	root     *object // the first in whose process it was so, public ones first
	foreign  *object // the host's library that was taken, nil when missing
	bad      bool
}

// closure runs the loader for every object of the tree.
type closure struct {
	a         *auditor
	loader    *loader
	provides  map[string]*entry // libraries of the tree by file name
	public    map[*object]bool
	byProgram map[*object]bool // mapped in a program's process
	verdicts  map[neededKey]*verdict
	optional  []glob

	reached         map[*object]*object       // by a process of something public: the first
	versions        map[pair][]versionVerdict // what is missing
	versionVerdicts map[versionKey]*versionVerdict
}

// needed checks that every library is found, and found in the tree when the
// tree has it.
func needed(ctx context.Context, a *auditor) error {
	c := &closure{a: a, loader: newLoader(a.tree, a.host), provides: map[string]*entry{}, public: map[*object]bool{},
		byProgram: map[*object]bool{}, verdicts: map[neededKey]*verdict{}, optional: optionalObjects.compile(),
		reached: map[*object]*object{}, versions: map[pair][]versionVerdict{}, versionVerdicts: map[versionKey]*versionVerdict{}}
	c.loader.left = a.maxWork
	programs, libraries := c.objects()
	for _, k := range slices.Concat(programs, libraries) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.run(k); c.loader.left < 0 {
			c.entangled(k)
			break
		}
	}
	for _, o := range c.loader.object {
		if !o.host {
			c.aboveFloor(o)
		}
	}
	for _, v := range c.verdicts {
		c.judge(v)
	}
	for _, v := range c.versionVerdicts {
		c.judgeVersion(v)
	}
	return nil
}

// maxWork bounds the steps of the loader, needs that are settled and directories
// that are searched, in all processes: some ten seconds. A whole ROCm takes less
// than a hundredth of it.
const maxWork = 200 << 20

// entangled says where the work was given up.
func (c *closure) entangled(k *link) {
	c.a.file(Finding{Rule: RuleNeeded, Severity: Required, Path: k.object.path, Subject: "*",
		Detail: "what it and others need was not looked at: the libraries of the tree need each other too often",
		Hint:   "no ROCm is like that: somebody made the tree so that nobody finds out"})
}

// objects lists what can be started and what can only be loaded.
func (c *closure) objects() (programs, libraries []*link) {
	t := c.a.tree
	for _, e := range t.all {
		if real := t.follow(".", e.path).entry; real != nil && real.isFile() && real.hostELF() {
			// A link is one more name that the loader finds a library by.
			if in, ok := t.ofROCm(e.path); ok && public(in) {
				c.public[c.objectOf(real)] = true
			}
			if base := path.Base(e.path); isLibrary(base) && !c.offers(base) {
				c.provides[base] = real
			}
		}
		if !e.isFile() || !e.hostELF() {
			continue
		}
		c.a.checked["elf"]++
		c.a.checked["needed"] += len(e.elf.Needed)
		if !e.elf.Dynamic || len(e.elf.Needed) == 0 && len(e.filters) == 0 && (e.vers == nil || len(e.vers.needs) == 0) {
			continue
		}
		k := c.loader.link(c.loader.make(false, path.Dir(e.path)), e.object(), "./"+e.path)
		switch {
		case k == nil:
		case e.elf.Interp != "" || e.elf.Type == "exec":
			programs = append(programs, k)
		default:
			libraries = append(libraries, k)
		}
	}
	return programs, libraries
}

func (c *closure) objectOf(e *entry) *object {
	key := "./" + e.path
	if c.loader.object[key] == nil {
		c.loader.object[key] = e.object()
	}
	return c.loader.object[key]
}

// run maps one process and notes what went wrong in it.
func (c *closure) run(main *link) {
	program := main.object.facts.Interp != "" || main.object.facts.Type == "exec"
	p := c.loader.start(main, func(p *process, n need) {
		if n.of.object.host || n.of.object.sick || n.said {
			// What a library of the host lacks is not the tree's fault.
			return
		}
		foreign := n.to != nil && n.to.host && c.offers(n.name)
		if n.to != nil && !foreign || n.to == nil && c.excused(n.name) {
			return
		}
		c.note(p.main.object, n, program)
	})
	if program {
		for _, n := range p.nodes {
			c.byProgram[n.object] = true
		}
	}
	if c.public[main.object] {
		for _, n := range p.nodes {
			if c.reached[n.object] == nil {
				c.reached[n.object] = main.object
			}
		}
	}
	c.checkVersions(p)
}

// offers tells whether the tree has a library for its programs to load. A copy
// that an extension of Python or a test brought along is nobody else's.
func (c *closure) offers(name string) bool {
	e := c.provides[name]
	if e == nil {
		return false
	}
	in, _ := c.a.tree.ofROCm(e.path)
	return !matchAny(c.optional, in)
}

// excused tells whether a missing library is none that the tree must have.
func (c *closure) excused(name string) bool {
	return c.a.scope == ScopeTree && c.provides[name] == nil
}

func (c *closure) note(root *object, n need, program bool) {
	key := neededKey{n.of.object, n.name}
	v := c.verdicts[key]
	if v == nil {
		v = &verdict{neededKey: key, root: root}
		c.verdicts[key] = v
	}
	v.bad = v.bad || n.bad
	if v.foreign == nil {
		v.foreign = n.to
	}
	pub := c.public[root]
	if root == n.of.object && !program {
		v.alone = true
	} else if program || pub {
		v.wrong = true
	}
	if pub && !v.required {
		v.required, v.root = true, root
	}
}

// judge turns what was noted into a finding.
func (c *closure) judge(v *verdict) {
	accepted := !v.wrong && c.byProgram[v.object] && (v.foreign == nil || !c.public[v.object])
	in, _ := c.a.tree.ofROCm(v.object.path)
	optional := matchAny(c.optional, in)
	f := Finding{Rule: RuleNeeded, Severity: Warning, Path: v.object.path, Subject: v.name}
	switch {
	case accepted:
		f.Detail = fmt.Sprintf("finds %s only through the run path of the programs that load it", v.name)
		f.Hint = "give it a run path of its own, for programs that load it directly"
		c.a.file(f)
		return
	case v.foreign != nil:
		f.Rule, f.Severity = RuleForeignLibrary, Fatal
		f.Detail = fmt.Sprintf("takes %s from %s, although the tree has it in %s", v.name, v.foreign.path, c.provides[v.name].path)
		f.Hint = "its run path must lead to " + path.Dir(c.provides[v.name].path)
	default:
		c.missing(v, &f)
		if v.required && (v.bad || c.provides[v.name] != nil || !c.a.tree.hides(".")) {
			f.Severity = Required
		}
	}
	if v.root != v.object {
		f.Detail += " (in " + v.root.path + ")"
	}
	if optional {
		f.Severity = Warning
	}
	c.a.file(f)
}

func (c *closure) missing(v *verdict, f *Finding) {
	e := c.provides[v.name]
	switch {
	case v.bad:
		f.Detail = fmt.Sprintf("needs %s, and the file of that name is not a library", v.name)
		f.Hint = "the file was damaged or replaced; unpack the release again"
	case e != nil:
		f.Detail = fmt.Sprintf("needs %s, which the tree has in %s, but its run path does not lead there", v.name, e.path)
		f.Hint = "its run path must lead to " + path.Dir(e.path)
	case c.a.tree.hides("."):
		f.Detail = fmt.Sprintf("needs %s, which is not on this host, nor in what could be read of the tree", v.name)
		f.Hint = "run the audit as the owner of the tree"
	default:
		f.Detail = fmt.Sprintf("needs %s, which is neither in the tree nor on this host", v.name)
		f.Hint = installHint(v.name)
	}
}

// sortedKeys is for messages that list the keys of a map.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
