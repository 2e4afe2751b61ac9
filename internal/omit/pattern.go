package omit

import (
	"path"
	"strings"
)

// patterns are globs over the parts of paths, as one tree: a path of 30,000 is
// compared with one or two branches of it, and not with each glob. Within a
// part * and ? have the meaning that they have in path.Match; ** stands for any
// number of parts, but for one at least where it is the last.
type patterns struct {
	plain map[string]*patterns // by a part without * and ?
	globs []branch
	deep  *patterns // behind **
	end   bool      // a glob ends here
}

type branch struct {
	glob string
	then *patterns
}

func newPatterns(globs []string) *patterns {
	root := &patterns{}
	for _, glob := range globs {
		at := root
		for part := range strings.SplitSeq(glob, "/") {
			at = at.branch(part)
		}
		at.end = true
	}
	return root
}

// branch is where a part of a glob leads, which is made if need be.
func (p *patterns) branch(part string) *patterns {
	switch {
	case part == "**":
		if p.deep == nil {
			p.deep = &patterns{}
		}
		return p.deep
	case strings.ContainsAny(part, "*?"):
		then := &patterns{}
		p.globs = append(p.globs, branch{part, then})
		return then
	}
	if p.plain == nil {
		p.plain = map[string]*patterns{}
	}
	if p.plain[part] == nil {
		p.plain[part] = &patterns{}
	}
	return p.plain[part]
}

// match tries each ** at every place: a glob has two at most.
func (p *patterns) match(parts []string) bool {
	if len(parts) == 0 {
		return p.end
	}
	if next := p.plain[parts[0]]; next != nil && next.match(parts[1:]) {
		return true
	}
	for _, b := range p.globs {
		if len(parts) > 1 && b.then.leaf() {
			continue
		}
		if ok, err := path.Match(b.glob, parts[0]); ok && err == nil && b.then.match(parts[1:]) {
			return true
		}
	}
	if p.deep == nil {
		return false
	}
	if p.deep.end {
		return true
	}
	for i := range parts {
		if p.deep.match(parts[i:]) {
			return true
		}
	}
	return false
}

// leaf reports whether nothing comes after p.
func (p *patterns) leaf() bool { return p.plain == nil && p.globs == nil && p.deep == nil }

// compiled is a rule that is ready to be asked.
type compiled struct {
	*rule
	take, keep *patterns
}

func (r *rule) compile() compiled {
	return compiled{rule: r, take: newPatterns(r.takeOut), keep: newPatterns(r.leaveIn)}
}

// takes reports whether a path is one that the rule is about.
func (c *compiled) takes(parts []string) bool {
	return c.take.match(parts) && !c.keep.match(parts) && (c.except == nil || !c.except(parts))
}
