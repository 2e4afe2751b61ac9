package pinfile

import (
	"slices"
	"strings"
)

// nixEval puts together the strings of a file of Nix, as far as the file says
// them itself: it follows names to let, rec and plain sets, and adds strings.
// What takes more than that is unknown. Nothing is run.
type nixEval struct {
	*nixDoc
	frames []frame
	roots  map[scopeName]*attrNode // what is bound in a scope, by its first name
	inside map[childName]*attrNode // what is bound in another binding
	nodes  map[*attrNode]int       // index in scan.out
	paths  map[string]int          // the same by the whole path; -1: several
	names  map[string]int          // the same of strings, by the last name
	steps  int
}

type scopeName struct {
	scope int32
	name  string
}

type childName struct {
	of   *attrNode
	name string
}

// urls returns the strings that are addresses.
func (d *nixDoc) urls() []URL {
	e := &nixEval{
		nixDoc: d, roots: map[scopeName]*attrNode{}, inside: map[childName]*attrNode{},
		nodes: map[*attrNode]int{}, paths: map[string]int{}, names: map[string]int{},
	}
	e.index()
	e.findFrames()
	var out []URL
	used := make([]bool, len(d.scan.code))
	for _, b := range d.scan.out {
		e.address(&out, used, b)
	}
	for i, t := range d.scan.code {
		if (t.kind == tokStrOpen || t.kind == tokIndOpen || t.kind == tokURI) && !used[i] {
			e.compose(&out, i, e.termEnd(i), nil)
		}
	}
	slices.SortStableFunc(out, func(a, b URL) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return out
}

// index fills the maps.
func (e *nixEval) index() {
	for i, b := range e.scan.out {
		e.nodes[b.path] = i
		for n := b.path; n != b.root.parent; n = n.parent {
			if key := (childName{n.parent, n.name}); !n.dynamic && !n.item && e.inside[key] == nil {
				e.inside[key] = n
			}
		}
		if key := (scopeName{b.scope, b.root.name}); !b.root.dynamic && b.scope >= 0 && e.roots[key] == nil {
			e.roots[key] = b.root
		}
		put(e.paths, b.path.String(), i)
		if b.kind != valOther && !b.path.item && !b.path.dynamic {
			put(e.names, b.path.name, i)
		}
	}
}

// put notes i under name, or that there are several.
func put(m map[string]int, name string, i int) {
	if _, twice := m[name]; twice {
		i = -1
	}
	m[name] = i
}

// address adds the value of b, if it is a string or a sum of them.
func (e *nixEval) address(out *[]URL, used []bool, b binding) {
	i := int(b.val)
	if i >= len(e.scan.code) {
		return
	}
	end := e.termEnd(i)
	if b.scope >= 0 {
		end = e.exprEnd(i)
	}
	sum := false
	for j := i; j < end && e.steps < maxSteps; j++ {
		e.steps++
		sum = sum || e.is(j, '+')
		if m := int(e.scan.mate[j]); m > j {
			j = m
		}
	}
	if b.kind == valOther && !sum && e.scan.code[i].kind != tokURI {
		return
	}
	if !e.compose(out, i, end, b.path) {
		return
	}
	for j := i; j < end; j++ {
		used[j] = true
		if m := int(e.scan.mate[j]); m > j {
			j = m
		}
	}
}

// compose adds the address that code[i:end] makes, and reports whether the
// tokens were used up for it.
func (e *nixEval) compose(out *[]URL, i, end int, path *attrNode) bool {
	if len(*out) >= maxAddresses {
		return false
	}
	var c composer
	if !e.sum(&c, i, end, 0) {
		// The beginning of an address says more than nothing.
		first := e.termEnd(i)
		if c = (composer{}); e.scan.code[i].kind != tokStrOpen || first >= end || !e.text(&c, i, 0) {
			return false
		}
		c.missing(string(e.src[e.scan.code[first].off:e.scan.code[end-1].end]))
	}
	u, ok := c.url(e.src, int(e.scan.code[i].off), path)
	if ok {
		*out = append(*out, u)
	}
	return ok
}

// sum adds the strings of a + b; false if there is something else in it.
func (e *nixEval) sum(c *composer, i, end, depth int) bool {
	if depth > maxExpand {
		return false
	}
	for i < end {
		if e.steps++; e.steps > maxSteps || c.tooLong {
			return false
		}
		next := e.termEnd(i)
		if next > end || !e.term(c, i, next, depth) {
			return false
		}
		if i = next; i == end {
			return true
		}
		if !e.is(i, '+') {
			return false
		}
		i++
	}
	return false
}

// termEnd returns where the string, name or bracket at i ends.
func (e *nixEval) termEnd(i int) int {
	if m := int(e.scan.mate[i]); m > i {
		return m + 1
	}
	for e.scan.wordAt(i) != "" && i+2 < len(e.scan.code) && e.scan.code[i+1].kind == tokDot && e.scan.wordAt(i+2) != "" {
		i += 2
	}
	return i + 1
}

func (e *nixEval) term(c *composer, i, end, depth int) bool {
	t := e.scan.code[i]
	switch t.kind {
	case tokStrOpen, tokIndOpen:
		return e.text(c, i, depth)
	case tokURI:
		c.add(string(e.src[t.off:t.end]), int(t.off), int(t.end))
		return true
	case tokOpen:
		return e.is(i, '(') && e.sum(c, i+1, end-1, depth+1)
	case tokIdent:
		var names []string
		for j := i; j < end; j += 2 {
			names = append(names, e.scan.wordAt(j))
		}
		e.name(c, names, i, depth)
		return true
	}
	return false
}

// text adds what stands between the quotes at i.
func (e *nixEval) text(c *composer, i, depth int) bool {
	m := int(e.scan.mate[i])
	indented := e.scan.code[i].kind == tokIndOpen
	for j := i + 1; j < m; j++ {
		t := e.scan.code[j]
		raw := string(e.src[t.off:t.end])
		switch {
		case t.kind == tokInterpOpen:
			close := int(e.scan.mate[j])
			if !e.whole(c, j+1, close, depth+1) {
				c.missing(string(e.src[t.end:e.scan.code[close].off]))
			}
			j = close
		case indented && (strings.Contains(raw, "''") || strings.Contains(raw, "\n")):
			return false
		case indented || unescapeNix(raw) == raw:
			c.add(raw, int(t.off), int(t.end))
		default:
			c.add(unescapeNix(raw), 0, 0)
		}
	}
	return true
}

// whole adds the sum that code[i:end] is, or nothing.
func (e *nixEval) whole(c *composer, i, end, depth int) bool {
	before := *c
	before.pieces = slices.Clone(c.pieces)
	before.unknown = slices.Clone(c.unknown)
	if e.sum(c, i, end, depth) {
		return true
	}
	*c = before
	return false
}

// name adds what a.b.c, at i, stands for.
func (e *nixEval) name(c *composer, names []string, i, depth int) {
	k := -1
	if depth < maxExpand {
		k = e.resolve(names, i, depth)
	}
	if k >= 0 {
		b := e.scan.out[k]
		end := e.termEnd(int(b.val))
		if b.scope >= 0 {
			end = e.exprEnd(int(b.val))
		}
		if e.whole(c, int(b.val), end, depth+1) {
			return
		}
	}
	c.missing(strings.Join(names, "."))
}

// resolve returns the binding that names stand for at i, -1 if it is not
// known. What is bound nowhere, such as finalAttrs.version, is the only string
// of its last name.
func (e *nixEval) resolve(names []string, i, depth int) int {
	for f := len(e.frames) - 1; f >= 0 && e.steps < maxSteps && depth < maxExpand; f-- {
		e.steps++
		fr := e.frames[f]
		switch root := e.roots[scopeName{fr.opener, names[0]}]; {
		case i < fr.start || i >= fr.end:
		case slices.Contains(fr.args, names[0]):
			return e.only(names)
		case fr.args != nil:
		case root != nil:
			return e.below(root, names[1:], depth)
		default:
			if k, ok := e.inherited(fr, names, i, depth); ok {
				return k
			}
		}
	}
	return e.only(names)
}

// only returns the only string of the last name of a.b.
func (e *nixEval) only(names []string) int {
	if k, ok := e.names[names[len(names)-1]]; ok && len(names) > 1 {
		return k
	}
	return -1
}

// below returns the binding of a path that begins at root.
func (e *nixEval) below(root *attrNode, rest []string, depth int) int {
	path, at := root.String(), root
	for _, name := range rest {
		path += "." + (&attrNode{name: name}).String()
		if at != nil {
			at = e.inside[childName{at, name}]
		}
	}
	if k, ok := e.nodes[at]; ok && at != nil {
		return k
	}
	if k, ok := e.paths[path]; ok && len(rest) > 0 {
		return k
	}
	// a = b; makes a.c the c of b.
	k, ok := e.nodes[root]
	if !ok || len(rest) == 0 {
		return -1
	}
	i := int(e.scan.out[k].val)
	names, end := e.reference(i)
	if len(names) == 0 || !e.is(end, ';') {
		return -1
	}
	return e.resolve(append(names, rest...), i, depth+1)
}

// reference reads a.b.c at i.
func (e *nixEval) reference(i int) (names []string, end int) {
	end = i
	if e.scan.wordAt(i) == "" {
		return nil, i
	}
	for end = e.termEnd(i); i < end; i += 2 {
		names = append(names, e.scan.wordAt(i))
	}
	return names, end
}

// inherited looks for names[0] in the inherits of a frame. One without a set
// leaves the name to the frames around.
func (e *nixEval) inherited(fr frame, names []string, at, depth int) (int, bool) {
	for _, in := range e.scan.inherits {
		if e.steps++; in.scope != fr.opener {
			continue
		}
		i := int(in.at) + 1
		if !e.is(i, '(') {
			continue
		}
		end := int(e.scan.mate[i])
		from, refEnd := e.reference(i + 1)
		for j := end + 1; j < len(e.scan.code) && e.scan.code[j].kind != tokSemicolon; j++ {
			if e.steps++; e.scan.wordAt(j) != names[0] {
				continue
			}
			if refEnd != end || len(from) == 0 || int(in.at) == at {
				return -1, true
			}
			return e.resolve(append(from, names...), int(in.at), depth+1), true
		}
	}
	return -1, false
}
