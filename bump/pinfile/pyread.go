package pinfile

import (
	"strings"
)

// pyReader reads the assignments and calls of a file of Python or Starlark
// into a tree.
type pyReader struct {
	*codeTree
	p       *pyParser
	blocks  []pyBlock
	consts  map[pyConst]*pyConstant
	pending []pyPending
	// callValue gives a call's node a value of its own, may be nil.
	callValue func(r *pyReader, n *codeNode, e *pyExpr)
	functions []*codeNode // def
	budget    int         // bounds the work of working out texts
}

// pyBlock is a def or class that is open.
type pyBlock struct {
	indent int
	node   *codeNode
}

// pyConst names a variable of a block.
type pyConst struct {
	scope *codeNode
	name  string
}

// pyConstant is what a variable is set to.
type pyConstant struct {
	expr  *pyExpr
	lost  bool // it is set more than once
	busy  bool // it is being worked out
	done  bool
	value text
}

// pyPending is an expression that may hold an address.
type pyPending struct {
	expr  *pyExpr
	node  *codeNode // its binding, or nil
	scope *codeNode
}

func readPython(src []byte, callValue func(r *pyReader, n *codeNode, e *pyExpr)) (*pyReader, error) {
	t := newCodeTree(src)
	toks, err := lexPython(t)
	if err != nil {
		return nil, err
	}
	r := &pyReader{codeTree: t, p: &pyParser{src: src, toks: toks}, consts: map[pyConst]*pyConstant{}, callValue: callValue, budget: 1 << 20}
	for r.p.tok().kind != pyEnd {
		r.statement()
	}
	return r, nil
}

func (r *pyReader) scope() *codeNode {
	if n := len(r.blocks); n > 0 {
		return r.blocks[n-1].node
	}
	return r.root
}

// statement reads one logical line, or what a semicolon ends.
func (r *pyReader) statement() {
	p := r.p
	t := p.tok()
	if t.kind == pyNewline || t.kind == pyOp && !p.isOp("(") && !p.isOp("[") && !p.isOp("{") && !p.isOp("@") {
		p.i++
		return
	}
	if t.indent >= 0 {
		for n := len(r.blocks); n > 0 && r.blocks[n-1].indent >= t.indent; n-- {
			r.blocks = r.blocks[:n-1]
		}
	}
	if word := p.text(t); t.kind == pyName && (word == "def" || word == "class") && p.i+1 < len(p.toks) && p.toks[p.i+1].kind == pyName {
		name := p.toks[p.i+1]
		indent := max(t.indent, 0)
		p.i += 2
		if p.isOp("(") {
			p.i++
			p.args(")")
			p.closed(t)
		}
		if len(r.blocks) < maxPythonDepth {
			n := r.child(r.scope(), p.text(name), t.off)
			if word == "def" {
				r.functions = append(r.functions, n)
			}
			r.blocks = append(r.blocks, pyBlock{indent, n})
		}
		for !p.isOp(":") && p.tok().kind != pyNewline && p.tok().kind != pyEnd {
			p.i++
		}
		return
	}
	r.simple()
}

// simple reads targets and a value, or an expression.
func (r *pyReader) simple() {
	p := r.p
	var targets []*pyExpr
	for {
		start := p.i
		e := p.expr()
		switch {
		case p.isOp(":") && e.kind == shapeName && !r.endsLine():
			// An annotation: its value follows it.
			p.i++
			p.expr()
			if !p.isOp("=") {
				return
			}
			p.i++
			targets = append(targets, e)
		case p.isOp("="):
			p.i++
			targets = append(targets, e)
		case p.isOp("+="):
			p.i++
			if e.kind == shapeName {
				r.constant(e.name, nil)
			}
			r.bare(p.expr())
			return
		default:
			if p.i == start {
				p.i++
			}
			if len(targets) == 0 {
				r.bare(e)
			}
			for _, target := range targets {
				r.target(target, e)
			}
			return
		}
	}
}

// endsLine reports whether the token here is the last of its line, as the
// colon of if x: is.
func (r *pyReader) endsLine() bool {
	return r.p.i+1 < len(r.p.toks) && r.p.toks[r.p.i+1].kind == pyNewline
}

// bare reads an expression that is bound to no name: a call is known by that
// of its function, and a string is a comment.
func (r *pyReader) bare(e *pyExpr) {
	switch e.kind {
	case shapeStr:
		r.comment(e.off, e.end)
	case shapeCall:
		n := r.child(r.scope(), e.name, e.off)
		n.dynamic = e.name == ""
		if r.callValue != nil {
			r.callValue(r, n, e)
		}
		r.bind(n, e)
	case shapeOther, shapeSum, shapeList:
		for _, a := range e.args {
			if a.val.kind != shapeStr {
				r.bare(a.val)
			} else {
				r.pending = append(r.pending, pyPending{a.val, nil, r.scope()})
			}
		}
	default:
		r.pending = append(r.pending, pyPending{e, nil, r.scope()})
	}
}

// target binds e to what stands on the left: a name, x.y or x["y"].
func (r *pyReader) target(target, e *pyExpr) {
	n := r.targetNode(target, true)
	if n == nil {
		r.bare(e)
		return
	}
	if target.kind == shapeName {
		r.constant(target.name, e)
	}
	r.bind(n, e)
}

func (r *pyReader) targetNode(target *pyExpr, leaf bool) *codeNode {
	depth := 0
	for x := target; x != nil; x = x.on {
		if depth++; depth > maxPythonDepth {
			return nil
		}
	}
	parent, name := r.scope(), target.name
	switch target.kind {
	case shapeName:
	case shapeAttr:
		parent = r.targetNode(target.on, false)
	case shapeIndex:
		parent = r.targetNode(target.on, false)
		if len(target.args) != 1 || target.args[0].val.kind != shapeStr {
			return nil
		}
		s := pySite(r.src, target.args[0].val.strs[0])
		if s.Problem != "" || len(target.args[0].val.strs) > 1 {
			return nil
		}
		name = s.Value
	default:
		return nil
	}
	if parent == nil {
		return nil
	}
	if !leaf && parent.names[name] > 0 {
		for i := len(parent.kids) - 1; i >= 0; i-- {
			if k := parent.kids[i]; k.name == name && !k.item {
				return k
			}
		}
	}
	return r.child(parent, name, target.off)
}

// constant notes what a name is set to in the block that is open; nil is for
// what is not known.
func (r *pyReader) constant(name string, e *pyExpr) {
	key := pyConst{r.scope(), name}
	c := r.consts[key]
	if c == nil {
		c = &pyConstant{expr: e}
		r.consts[key] = c
	} else {
		c.lost = true
	}
	c.lost = c.lost || e == nil
}

// bind gives n the values of e.
func (r *pyReader) bind(n *codeNode, e *pyExpr) {
	r.pending = append(r.pending, pyPending{e, n, r.scope()})
	switch e.kind {
	case shapeStr:
		if len(e.strs) > 1 {
			r.value(n, problemSite(e.off, e.end, string(r.src[e.off:e.end]), "the value is made of several strings (write it as one)"))
			return
		}
		r.value(n, pySite(r.src, e.strs[0]))
	case shapeCall:
		if e.on.kind == shapeAttr && e.on.on.kind == shapeStr {
			r.value(n, r.computed(e))
		}
		for _, a := range e.args {
			r.bindArg(n, a)
		}
	case shapeList:
		for _, a := range e.args {
			r.bindArg(n, a)
		}
	case shapeDict:
		for _, a := range e.args {
			r.bindEntry(n, a)
		}
	case shapeSum, shapeFormat:
		r.sum(n, e)
	case shapeNumber:
		r.number(n, e)
	default:
		n.weak = true
		r.value(n, problemSite(e.off, e.end, string(r.src[e.off:e.end]), `the value is not a string (write it as "…", or name the string that it comes from)`))
	}
}

func (r *pyReader) computed(e *pyExpr) Site {
	return problemSite(e.off, e.end, string(r.src[e.off:e.end]), "the value is computed from others (name the value that it is made of)")
}

// sum binds the lists of a + b one after the other; a sum of strings is
// computed.
func (r *pyReader) sum(n *codeNode, e *pyExpr) {
	lists := e.kind == shapeSum
	for _, a := range e.args {
		lists = lists && a.val.kind == shapeList
	}
	if !lists {
		r.value(n, r.computed(e))
		return
	}
	for _, a := range e.args {
		for _, item := range a.val.args {
			r.bindArg(n, item)
		}
	}
}

func (r *pyReader) bindArg(n *codeNode, a pyArg) {
	if a.name != "" {
		r.bind(r.child(n, a.name, a.at), a.val)
		return
	}
	r.bind(r.listItem(n, a.at), a.val)
}

func (r *pyReader) bindEntry(n *codeNode, a pyArg) {
	k := a.key
	if k == nil {
		return
	}
	kid := r.child(n, "", a.at)
	kid.dynamic = true
	if k.kind == shapeStr && len(k.strs) == 1 {
		if s := pySite(r.src, k.strs[0]); s.Problem == "" {
			n.names[""]--
			n.names[s.Value]++
			kid.name, kid.dynamic, kid.index = s.Value, false, n.names[s.Value]-1
		}
	}
	r.bind(kid, a.val)
}

// number binds a whole number, such as a size.
func (r *pyReader) number(n *codeNode, e *pyExpr) {
	s := problemSite(e.off, e.end, e.name, "the value is not a whole decimal number")
	if strings.Trim(e.name, "0123456789") == "" {
		s = Site{Start: e.off, End: e.end, Value: e.name, Encode: encodeDigits}
	}
	r.value(n, s)
}
