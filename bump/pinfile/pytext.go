package pinfile

import (
	"strings"
)

// links notes the addresses of all that was read.
func (r *pyReader) linkAll() {
	for _, p := range r.pending {
		switch p.expr.kind {
		case shapeStr, shapeSum, shapeFormat, shapeCall:
		default:
			continue
		}
		if p.expr.kind == shapeCall && (p.expr.name != "format" || p.expr.on.kind != shapeAttr) {
			continue
		}
		x := r.textOf(p.expr, p.scope, 0)
		path := ""
		if p.node != nil {
			if p.expr.kind == shapeStr {
				x = r.braces(x, p.node.parent, p.scope)
			}
			if !strings.Contains(x.String(), "://") {
				continue
			}
			path = p.node.path()
		}
		r.link(x, p.expr.off, path)
	}
}

// textOf is the text of e; scope is the block that it stands in.
func (r *pyReader) textOf(e *pyExpr, scope *codeNode, depth int) text {
	var x text
	if r.budget--; depth > maxPythonDepth || r.budget < 0 {
		x.addUnknown("value")
		return x
	}
	switch e.kind {
	case shapeStr:
		for _, tok := range e.strs {
			r.literal(&x, tok, scope, depth)
		}
	case shapeNumber:
		x.add(e.name, e.off, e.end)
	case shapeName:
		r.lookup(&x, e.name, scope, depth)
	case shapeAttr, shapeIndex:
		if n := r.nodeOf(e, scope, 0); n != nil && n.site != nil && n.site.Problem == "" {
			x.add(n.site.Value, n.site.Start, n.site.End)
			break
		}
		x.addUnknown(r.short(e))
	case shapeSum:
		for _, a := range e.args {
			if x.addText(r.textOf(a.val, scope, depth+1)); x.len() > maxURL {
				break
			}
		}
	case shapeFormat:
		r.percent(&x, e, scope, depth)
	case shapeCall:
		if e.name == "format" && e.on.kind == shapeAttr {
			r.format(&x, e, scope, depth)
			break
		}
		x.addUnknown(r.short(e))
	default:
		x.addUnknown(r.short(e))
	}
	if x.len() > 2*maxURL {
		x = text{}
		x.addUnknown("long")
	}
	return x
}

// short names an expression that is not known.
func (r *pyReader) short(e *pyExpr) string {
	s := string(r.src[e.off:e.end])
	if len(s) > 60 || strings.ContainsAny(s, "{}\n\r\"'<>|;`\\ ") {
		return "value"
	}
	return s
}

// literal adds one string literal, whose bytes the source says where there is
// no escape.
func (r *pyReader) literal(x *text, tok pyToken, scope *codeNode, depth int) {
	end := tok.end - len(tok.quote)
	raw := string(r.src[tok.body:end])
	if strings.Contains(tok.prefix, "f") {
		r.template(x, tok.body, raw, func(name string) (text, bool) {
			var v text
			if !isPyName(name) {
				return v, false
			}
			r.lookup(&v, name, scope, depth+1)
			return v, true
		})
		return
	}
	if strings.Contains(tok.prefix, "r") || !strings.Contains(raw, "\\") {
		x.add(raw, tok.body, end)
		return
	}
	if value, ok := unescapePython(raw); ok {
		x.add(value, 0, 0)
		return
	}
	x.addUnknown("escape")
}

func isPyName(s string) bool {
	return s != "" && !isDigit(s[0]) && plainWord(s)
}

func plainWord(s string) bool {
	for i := range len(s) {
		if !isWordByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// lookup adds the value of a name, of the innermost block that sets it.
func (r *pyReader) lookup(x *text, name string, scope *codeNode, depth int) {
	for s := scope; s != nil; s = s.parent {
		c := r.consts[pyConst{s, name}]
		if c == nil {
			continue
		}
		if c.lost || c.busy {
			break
		}
		if !c.done {
			c.busy = true
			c.value = r.textOf(c.expr, s, depth+1)
			c.busy, c.done = false, true
		}
		x.addText(c.value)
		return
	}
	x.addUnknown(name)
}

// nodeOf finds what A.b or A["b"] names.
func (r *pyReader) nodeOf(e *pyExpr, scope *codeNode, depth int) *codeNode {
	if depth > maxPythonDepth {
		return nil
	}
	var parent *codeNode
	name := e.name
	switch e.kind {
	case shapeName:
		for s := scope; s != nil; s = s.parent {
			if s.names[name] == 1 {
				return kidOf(s, name)
			}
		}
		return nil
	case shapeAttr:
		parent = r.nodeOf(e.on, scope, depth+1)
	case shapeIndex:
		if len(e.args) != 1 || e.args[0].val.kind != shapeStr {
			return nil
		}
		parent, name = r.nodeOf(e.on, scope, depth+1), pySite(r.src, e.args[0].val.strs[0]).Value
	}
	if parent == nil || parent.names[name] != 1 {
		return nil
	}
	return kidOf(parent, name)
}

func kidOf(n *codeNode, name string) *codeNode {
	for _, k := range n.kids {
		if k.name == name && !k.item && !k.dynamic {
			return k
		}
	}
	return nil
}

// template expands {name} in raw, which stands at off; {{ is a brace. A field
// that get does not know is unknown.
func (r *pyReader) template(x *text, off int, raw string, get func(name string) (text, bool)) {
	for pos := 0; pos < len(raw); {
		i := strings.IndexAny(raw[pos:], "{}")
		if i < 0 {
			x.add(raw[pos:], off+pos, off+len(raw))
			return
		}
		x.add(raw[pos:pos+i], off+pos, off+pos+i)
		pos += i
		if strings.HasPrefix(raw[pos:], "{{") || strings.HasPrefix(raw[pos:], "}}") {
			x.add(raw[pos:pos+1], 0, 0)
			pos += 2
			continue
		}
		end := strings.IndexByte(raw[pos:], '}')
		if raw[pos] == '}' || end < 0 {
			x.addUnknown("format")
			return
		}
		name := raw[pos+1 : pos+end]
		pos += end + 1
		if v, ok := get(name); ok {
			x.addText(v)
		} else if plainWord(name) {
			x.addUnknown(name)
		} else {
			x.addUnknown("format")
		}
		if x.len() > 2*maxURL {
			return
		}
	}
}

// format does "…{}…".format(a, name=b).
func (r *pyReader) format(x *text, e *pyExpr, scope *codeNode, depth int) {
	on := r.textOf(e.on.on, scope, depth+1)
	var args []*pyExpr
	named := map[string]*pyExpr{}
	for _, a := range e.args {
		if a.name != "" {
			named[a.name] = a.val
		} else {
			args = append(args, a.val)
		}
	}
	next := 0
	get := func(name string) (text, bool) {
		arg := named[name]
		if n, ok := smallInt(name); name == "" || ok {
			if name == "" {
				n = next
				next++
			}
			arg = nil
			if n < len(args) {
				arg = args[n]
			}
		}
		if arg == nil {
			return text{}, false
		}
		return r.textOf(arg, scope, depth+1), true
	}
	r.overPieces(x, on, get)
}

// overPieces expands the template on, piece by piece where they stand in the
// file.
func (r *pyReader) overPieces(x *text, on text, get func(name string) (text, bool)) {
	if len(on.unknown) > 0 || len(on.pieces) != 1 {
		r.template(x, 0, on.String(), func(name string) (text, bool) { return get(name) })
		for i := range x.pieces {
			x.pieces[i].Start, x.pieces[i].End = 0, 0
		}
		return
	}
	p := on.pieces[0]
	r.template(x, p.Start, p.Text, get)
	if p.End == 0 {
		for i := range x.pieces {
			x.pieces[i].Start, x.pieces[i].End = 0, 0
		}
	}
}

// percent does "…%s…" % a, or % (a, b).
func (r *pyReader) percent(x *text, e *pyExpr, scope *codeNode, depth int) {
	on := r.textOf(e.args[0].val, scope, depth+1)
	args := []pyArg{e.args[1]}
	if e.args[1].val.kind == shapeList {
		args = e.args[1].val.args
	}
	raw, off := on.String(), -1
	if len(on.pieces) == 1 && on.pieces[0].End > 0 {
		off = on.pieces[0].Start
	}
	place := func(i int) int {
		if off < 0 {
			return 0
		}
		return off + i
	}
	for pos := 0; pos < len(raw); {
		i := strings.IndexByte(raw[pos:], '%')
		if i < 0 {
			i = len(raw) - pos
		}
		x.add(raw[pos:pos+i], place(pos), place(pos+i))
		if pos += i; pos+1 >= len(raw) {
			return
		}
		switch verb := raw[pos+1]; {
		case verb == '%':
			x.add("%", 0, 0)
		case (verb == 's' || verb == 'd') && len(args) > 0 && args[0].val != nil:
			x.addText(r.textOf(args[0].val, scope, depth+1))
			args = args[1:]
		default:
			x.addUnknown("format")
			return
		}
		if pos += 2; x.len() > 2*maxURL {
			return
		}
	}
}

// braces expands {name} in a literal by the values beside it, or else by those
// of the file: rules fill such templates in elsewhere.
func (r *pyReader) braces(x text, beside, scope *codeNode) text {
	if s := x.String(); !strings.Contains(s, "{") || !strings.Contains(s, "://") || len(x.unknown) > 0 || len(x.pieces) != 1 {
		return x
	}
	var out text
	r.overPieces(&out, x, func(name string) (text, bool) {
		for n := beside; n != nil; n = n.parent {
			if n.names[name] != 1 {
				continue
			}
			if k := kidOf(n, name); k != nil && k.site != nil && k.site.Problem == "" {
				var v text
				v.add(k.site.Value, k.site.Start, k.site.End)
				return v, true
			}
		}
		if !isPyName(name) {
			return text{}, false
		}
		var v text
		r.lookup(&v, name, scope, 1)
		return v, len(v.unknown) == 0
	})
	return out
}
