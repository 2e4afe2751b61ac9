package pinfile

import "slices"

// pyExpr is an expression, as far as its shape matters.
type pyExpr struct {
	kind     pyShape
	off, end int
	strs     []pyToken // of a string: its adjacent literals
	name     string    // of a name, an attribute, or the function called
	on       *pyExpr   // what an attribute is of, or what is called or indexed
	args     []pyArg   // of a call, list or dictionary; the operands of a sum
}

type pyShape uint8

const (
	shapeOther pyShape = iota // with its operands as args
	shapeStr
	shapeNumber
	shapeName
	shapeAttr
	shapeIndex
	shapeCall
	shapeList // or a tuple
	shapeDict
	shapeSum    // a + b + …
	shapeFormat // a % b
)

// pyArg is an argument, an item or an entry.
type pyArg struct {
	name string // of a keyword argument
	at   int    // where it begins
	key  *pyExpr
	val  *pyExpr
}

// pyParser reads expressions from tokens. It recurses for brackets alone,
// whose nesting the lexer has bounded.
type pyParser struct {
	src  []byte
	toks []pyToken
	i    int
}

func (p *pyParser) tok() pyToken { return p.toks[min(p.i, len(p.toks)-1)] }

func (p *pyParser) text(t pyToken) string { return string(p.src[t.off:t.end]) }

func (p *pyParser) isOp(op string) bool {
	t := p.tok()
	return t.kind == pyOp && p.text(t) == op
}

// pyWords stand between operands, or before one.
var pyWords = []string{"not", "and", "or", "in", "is", "if", "else", "elif", "for", "lambda", "return", "yield", "await", "async", "while", "with", "as", "from", "import", "assert", "raise", "del", "pass", "except", "try", "finally", "global", "nonlocal", "case", "match"}

// expr reads operands and what joins them, up to what cannot go on.
func (p *pyParser) expr() *pyExpr {
	start := p.tok().off
	var operands []pyArg
	plus, percent, other := 0, 0, 0
	joined := true // an operand may come
	for {
		t := p.tok()
		if t.kind == pyEnd || t.kind == pyNewline {
			break
		}
		text := p.text(t)
		if t.kind == pyOp && !slices.Contains([]string{"(", "[", "{"}, text) {
			if slices.Contains([]string{")", "]", "}", ",", ":", "=", ";", "+=", ":="}, text) {
				break
			}
			switch {
			case text == "+" && !joined:
				plus++
			case text == "%" && !joined:
				percent++
			default:
				other++
			}
			joined = true
			p.i++
			continue
		}
		if t.kind == pyName && slices.Contains(pyWords, text) {
			other++
			joined = true
			p.i++
			if text == "lambda" {
				for k := p.tok(); k.kind != pyNewline && k.kind != pyEnd && !p.isOp(":") && !p.isOp(")"); k = p.tok() {
					p.i++
				}
				if p.isOp(":") {
					p.i++
				}
			}
			continue
		}
		if !joined {
			other++
		}
		e := p.operand()
		operands = append(operands, pyArg{at: e.off, val: e})
		joined = false
	}
	if len(operands) == 1 && plus+percent+other == 0 {
		return operands[0].val
	}
	out := &pyExpr{off: start, end: start, args: operands}
	if len(operands) > 0 {
		out.end = operands[len(operands)-1].val.end
	}
	switch {
	case other > 0 || joined:
	case plus > 0 && percent == 0:
		out.kind = shapeSum
	case percent == 1 && plus == 0 && len(operands) == 2:
		out.kind = shapeFormat
	}
	return out
}

// operand reads an atom and what is done to it.
func (p *pyParser) operand() *pyExpr {
	e := p.atom()
	for {
		t := p.tok()
		switch {
		case p.isOp(".") && p.i+1 < len(p.toks) && p.toks[p.i+1].kind == pyName:
			name := p.toks[p.i+1]
			p.i += 2
			e = &pyExpr{kind: shapeAttr, off: e.off, end: name.end, name: p.text(name), on: e}
		case p.isOp("("):
			p.i++
			args := p.args(")")
			e = &pyExpr{kind: shapeCall, off: e.off, end: p.closed(t), name: e.name, on: e, args: args}
		case p.isOp("["):
			p.i++
			args := p.args("]")
			e = &pyExpr{kind: shapeIndex, off: e.off, end: p.closed(t), on: e, args: args}
		default:
			return e
		}
	}
}

// closed steps over the closing bracket and returns where it ended.
func (p *pyParser) closed(open pyToken) int {
	if t := p.tok(); t.kind == pyOp {
		p.i++
		return t.end
	}
	return open.end
}

func (p *pyParser) atom() *pyExpr {
	t := p.tok()
	e := &pyExpr{off: t.off, end: t.end}
	p.i++
	switch {
	case t.kind == pyString:
		e.kind = shapeStr
		e.strs = []pyToken{t}
		for p.tok().kind == pyString {
			e.strs = append(e.strs, p.tok())
			e.end = p.tok().end
			p.i++
		}
	case t.kind == pyNumber:
		e.kind, e.name = shapeNumber, p.text(t)
	case t.kind == pyName:
		e.kind, e.name = shapeName, p.text(t)
	case p.text(t) == "(":
		e.args = p.args(")")
		e.end = p.closed(t)
		if len(e.args) == 1 && e.args[0].key == nil && e.args[0].name == "" && !p.trailingComma() {
			return e.args[0].val
		}
		e.kind = shapeList
	case p.text(t) == "[":
		e.kind, e.args = shapeList, p.args("]")
		e.end = p.closed(t)
	case p.text(t) == "{":
		e.kind, e.args = shapeDict, p.args("}")
		e.end = p.closed(t)
	}
	return e
}

// trailingComma reports whether the bracket just closed had a comma before it,
// which makes (x,) a tuple.
func (p *pyParser) trailingComma() bool {
	return p.i >= 2 && p.text(p.toks[p.i-2]) == ","
}

// args reads what stands in brackets, up to closer.
func (p *pyParser) args(closer string) []pyArg {
	var out []pyArg
	for {
		t := p.tok()
		if t.kind == pyEnd || p.isOp(closer) {
			return out
		}
		if t.kind == pyNewline || p.isOp(",") || p.isOp(":") || p.isOp(";") || p.isOp("=") || p.isOp(":=") || p.isOp("+=") {
			p.i++
			continue
		}
		arg := pyArg{at: t.off}
		if t.kind == pyName && p.i+1 < len(p.toks) && p.text(p.toks[p.i+1]) == "=" {
			arg.name = p.text(t)
			p.i += 2
		}
		was := p.i
		arg.val = p.expr()
		if closer == "}" && p.isOp(":") {
			p.i++
			arg.key, arg.val = arg.val, p.expr()
		}
		if p.i == was && !p.isOp(closer) {
			p.i++ // a bracket that the lexer has paired with another
			continue
		}
		out = append(out, arg)
	}
}
