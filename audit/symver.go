package audit

import (
	"fmt"
	"path"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/patchelf"
)

// symvers are the versions of symbols that one ELF file needs and defines.
type symvers struct {
	needs []patchelf.VersionNeed
	defs  map[string]bool // nil when it defines none: then it takes any need for met, as ld.so does
}

// readSymvers reads both tables; nil when the file has neither.
func readSymvers(x *patchelf.File) (*symvers, error) {
	needs, err := x.VersionNeeds()
	if err != nil {
		return nil, err
	}
	defs, err := x.VersionDefs()
	if err != nil || len(needs) == 0 && len(defs) == 0 {
		return nil, err
	}
	v := &symvers{needs: needs}
	if len(defs) > 0 {
		v.defs = make(map[string]bool, len(defs))
		for _, d := range defs {
			v.defs[d.Name] = true
		}
	}
	return v, nil
}

// versionKey is a version that an object needs of a library.
type versionKey struct {
	of            *object
	file, version string
}

// versionVerdict gathers what became of one in all processes.
type versionVerdict struct {
	versionKey
	weak     bool
	private  bool    // it is there, but it is glibc's own
	floor    bool    // it is above the floor, not missing
	to       *object // what was taken for the library; nil when nothing was
	root     *object // a public object in whose process it was so, else the first
	required bool
}

// pair is an object and what the versions that it needs of a name are looked
// for in.
type pair struct {
	of, to *object
	file   string
}

// maxVersionFindings bounds what is said of one object and one library: ld.so
// stops at the first.
const maxVersionFindings = 16

// lacks lists the versions of one need that an object does not define.
func lacks(n *patchelf.VersionNeed, to *object) []patchelf.VersionRef {
	if to.vers == nil || to.vers.defs == nil {
		return nil // ld.so: "no version information available", and goes on
	}
	var out []patchelf.VersionRef
	for _, r := range n.Versions {
		if !to.vers.defs[r.Name] {
			out = append(out, r)
		}
	}
	return out
}

// checkVersions does what ld.so does once all is mapped (elf/dl-version.c): each
// version that is needed is looked for in the library of that name.
func (c *closure) checkVersions(p *process) {
	for _, n := range p.nodes {
		of := n.object
		if of.vers == nil || of.sick {
			continue
		}
		for i := range min(len(of.vers.needs), maxNeeded) {
			need := &of.vers.needs[i]
			to, asked := p.provider(need.File)
			switch {
			case to != nil:
				c.compareVersions(p, of, to, need)
			case asked || p.missed[need.File] || of.host:
				// It is missing, which is said elsewhere.
			default:
				for _, r := range need.Versions[:min(len(need.Versions), 1)] {
					c.noteVersion(p, versionVerdict{versionKey: versionKey{of, need.File, r.Name}})
				}
			}
		}
	}
}

// provider is the object of a process that has a name. asked tells whether it
// is known to the process, though there may be nothing to look into.
func (p *process) provider(name string) (to *object, asked bool) {
	n, known := p.names[name]
	switch {
	case n != nil:
		return n.object, true
	case known:
		return p.loader.interpreterOf(p.main.object.facts.Interp), true
	}
	return nil, false
}

// interpreterOf is the loader of a program, nil when it cannot be looked into.
func (l *loader) interpreterOf(name string) *object {
	if !path.IsAbs(name) {
		return nil
	}
	if d := l.hostDir(path.Dir(name)); d != nil {
		if k := l.plain(d, path.Base(name)); k != nil && !k.bad {
			return k.object
		}
	}
	return nil
}

// compareVersions looks for the versions of one need. What two objects say to
// each other is the same in every process, and looked at once.
func (c *closure) compareVersions(p *process, of, to *object, need *patchelf.VersionNeed) {
	if of.host && to.host || to.host && c.a.scope == ScopeTree {
		return // the host's own business, or none of ours
	}
	if to.host && c.offers(need.File) {
		return // it should not be taken at all, which is a finding
	}
	key := pair{of, to, need.File}
	missing, known := c.versions[key]
	if !known {
		c.a.checked["versions"] += len(need.Versions)
		missing = c.missingVersions(of, to, need)
		c.versions[key] = missing
	}
	for _, v := range missing {
		c.noteVersion(p, v)
	}
}

func (c *closure) missingVersions(of, to *object, need *patchelf.VersionNeed) []versionVerdict {
	var out []versionVerdict
	add := func(v versionVerdict) {
		if len(out) < maxVersionFindings {
			out = append(out, v)
		}
	}
	for _, r := range lacks(need, to) {
		if to.host && c.a.floor.judges(r.Name) {
			continue // what this host has does not count
		}
		add(versionVerdict{versionKey: versionKey{of, need.File, r.Name}, weak: r.Weak, to: to})
	}
	if !to.host || !c.a.floor.none() {
		return out
	}
	for _, r := range need.Versions {
		if r.Name == glibcPrivate && to.vers != nil && to.vers.defs[r.Name] {
			add(versionVerdict{versionKey: versionKey{of, need.File, r.Name}, private: true, to: to})
		}
	}
	return out
}

// noteVersion remembers v, and a public object that it stops.
func (c *closure) noteVersion(p *process, v versionVerdict) {
	have := c.versionVerdicts[v.versionKey]
	if have == nil {
		v.root = p.main.object
		have = &v
		c.versionVerdicts[v.versionKey] = have
	}
	if !have.required && c.public[p.main.object] {
		have.required, have.root = true, p.main.object
	}
}

// aboveFloor notes what an object of the tree needs of a host's libraries that
// is newer than what the audit was asked to allow.
func (c *closure) aboveFloor(o *object) {
	if c.a.floor.none() || o.vers == nil || o.sick {
		return
	}
	for i := range min(len(o.vers.needs), maxNeeded) {
		need := &o.vers.needs[i]
		if c.provides[need.File] != nil {
			continue
		}
		said := 0
		for _, r := range need.Versions {
			if said == maxVersionFindings || !c.a.floor.judges(r.Name) || c.a.floor.has(r.Name) {
				continue
			}
			said++
			key := versionKey{o, need.File, r.Name}
			root := c.reached[o]
			v := &versionVerdict{versionKey: key, weak: r.Weak, floor: true, root: root, required: root != nil}
			if root == nil {
				v.root = o
			}
			c.versionVerdicts[key] = v
		}
	}
}

// judgeVersion turns what was noted into a finding.
func (c *closure) judgeVersion(v *versionVerdict) {
	f := Finding{Rule: RuleSymbolVersion, Severity: Warning, Path: v.of.path, Subject: v.file + " " + v.version}
	in, _ := c.a.tree.ofROCm(v.of.path)
	if v.required && !v.weak && !v.private && !matchAny(c.optional, in) {
		f.Severity = Required
	}
	c.describeVersion(v, &f)
	if v.root != v.of {
		f.Detail += " (in " + v.root.path + ")"
	}
	if v.of.host {
		// The host's library is sound; the tree's, which stands in for another, is not.
		f.Path, f.Subject = v.to.path, v.version+" for "+path.Base(v.of.path)
	}
	c.a.file(f)
}

func (c *closure) describeVersion(v *versionVerdict, f *Finding) {
	switch {
	case v.of.host:
		f.Detail = fmt.Sprintf("is taken for the %s of %s, which needs version %s of it, and lacks that", v.file, v.of.path, v.version)
		f.Hint = "it is older than the library of this host: update the release, or start the program without the tree's library"
	case v.floor && v.version == glibcPrivate:
		f.Detail = fmt.Sprintf("needs %s of %s, which fits one build of glibc only", v.version, v.file)
		f.Hint = "it was built with parts of glibc that others must not use"
	case v.floor:
		f.Detail = fmt.Sprintf("needs %s of %s, which is newer than %s", v.version, v.file, c.a.floor.of(v.version))
		f.Hint = "it does not start on systems that old: raise --glibc or --glibcxx if they do not matter"
	case v.private:
		f.Detail = fmt.Sprintf("needs %s of %s, which fits this build of glibc only", v.version, v.file)
		f.Hint = "an update of glibc may break it"
	case v.to == nil:
		f.Detail = fmt.Sprintf("needs version %s of %s, which it does not ask for: the loader stops there", v.version, v.file)
		f.Hint = "an edit took the library from what it needs; unpack the release again"
	case v.to.host:
		f.Detail = fmt.Sprintf("needs version %s of %s, which %s does not have", v.version, v.file, v.to.path)
		f.Hint = "it was built for a newer system: update this one (the C library is " + newest(v.to, strings.SplitN(v.version, "_", 2)[0]) + " here)"
		if family(v.version) != "GLIBC" {
			f.Hint = "it was built for a newer " + v.file + ": update this system's"
		}
	default:
		f.Detail = fmt.Sprintf("needs version %s of %s, which the tree's %s does not have", v.version, v.file, v.to.path)
		f.Hint = "the two are of different releases; unpack the release again"
	}
}

// newest is the highest version of a family that an object defines.
func newest(o *object, prefix string) string {
	best := ""
	for name := range o.vers.defs {
		if family(name) == prefix && (best == "" || newerVersion(name, best)) {
			best = name
		}
	}
	if best == "" {
		return "unknown"
	}
	return best
}
