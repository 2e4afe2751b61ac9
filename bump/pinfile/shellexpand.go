package pinfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxItems bounds a list.
const maxItems = 10000

// shellVar is what a script says a variable is.
type shellVar struct {
	list  bool
	items []text          // one, unless it is a list
	keyed map[string]text // of an associative array
	lost  bool            // it is not known which of several values it has
}

// shellEnv is what a script has assigned so far.
type shellEnv struct {
	outer *shellEnv
	vars  map[string]*shellVar
}

func (e *shellEnv) get(name string) *shellVar {
	for ; e != nil; e = e.outer {
		if v := e.vars[name]; v != nil {
			return v
		}
	}
	return nil
}

// shellEval expands words by a script's own assignments. It runs nothing:
// what would need a command is unknown.
type shellEval struct {
	src    []byte
	env    *shellEnv
	budget int // bounds the work that substitutions may cause
	// refused is the first thing that could not be told, and where.
	refused error
}

func newShellEval(src []byte) *shellEval {
	return &shellEval{src: src, env: &shellEnv{vars: map[string]*shellVar{}}, budget: 256 << 20}
}

func (e *shellEval) refuse(x *text, n syntax.Node, name, why string) {
	x.addUnknown(name)
	if e.refused == nil {
		e.refused = syntaxAt(e.src, offsetOf(e.src, n.Pos()), why)
	}
}

// word expands w to one text.
func (e *shellEval) word(w *syntax.Word) text {
	var x text
	if w != nil {
		e.parts(&x, w.Parts, false)
	}
	return x
}

func (e *shellEval) parts(x *text, parts []syntax.WordPart, quoted bool) {
	for _, p := range parts {
		if e.budget -= 1 + x.len()/64; e.budget < 0 || x.len() > maxURL {
			e.refuse(x, p, "long", "the value is too long")
			return
		}
		start, end := offsetOf(e.src, p.Pos()), offsetOf(e.src, p.End())
		switch p := p.(type) {
		case *syntax.Lit:
			e.literal(x, start, end, quoted)
		case *syntax.SglQuoted:
			if p.Dollar {
				e.refuse(x, p, "quoted", "a $'…' string is not read")
				break
			}
			x.add(p.Value, start+1, end-1)
		case *syntax.DblQuoted:
			if p.Dollar {
				e.refuse(x, p, "quoted", `a $"…" string depends on the language`)
				break
			}
			e.parts(x, p.Parts, true)
		case *syntax.ParamExp:
			e.param(x, p)
		case *syntax.CmdSubst:
			e.refuse(x, p, "command", "a command would have to be run")
		case *syntax.ArithmExp:
			e.refuse(x, p, "arithmetic", "arithmetic is not done")
		default:
			e.refuse(x, p, "pattern", "this is not expanded")
		}
	}
}

// literal adds the text at start, in runs that the source says byte by byte.
func (e *shellEval) literal(x *text, start, end int, quoted bool) {
	which := ""
	if quoted {
		which = "$`\"\\"
	}
	run := start
	for i := start; i < end; i++ {
		if e.src[i] != '\\' {
			continue
		}
		x.add(string(e.src[run:i]), run, i)
		pair := e.src[i:min(i+2, end)]
		x.add(unescapeShell(pair, which), 0, 0)
		i++
		run = min(i+1, end)
	}
	x.add(string(e.src[run:end]), run, end)
}

// param adds what $name or ${name…} expands to.
func (e *shellEval) param(x *text, p *syntax.ParamExp) {
	if p.Param == nil || p.Flags != nil || p.Excl || p.Width || p.IsSet || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Names != 0 {
		e.refuse(x, p, "expansion", "this expansion is not done")
		return
	}
	name := p.Param.Value
	v := e.env.get(name)
	if v == nil || v.lost {
		if v == nil && p.Exp != nil && (p.Exp.Op == syntax.DefaultUnset || p.Exp.Op == syntax.DefaultUnsetOrNull) {
			x.addText(e.word(p.Exp.Word))
			return
		}
		if v == nil && p.Exp != nil && (p.Exp.Op == syntax.AlternateUnset || p.Exp.Op == syntax.AlternateUnsetOrNull) {
			return
		}
		e.refuse(x, p, name, fmt.Sprintf("$%s is not told by the file alone", name))
		return
	}
	value, count, ok := e.pick(v, p.Index)
	switch {
	case !ok:
		e.refuse(x, p, name, "this index is not read")
	case p.Length && count >= 0:
		x.add(strconv.Itoa(count), 0, 0)
	case len(value.unknown) > 0:
		e.refuse(x, p, name, fmt.Sprintf("$%s is not told by the file alone", name))
	case p.Length:
		x.add(strconv.Itoa(utf8.RuneCountInString(value.String())), 0, 0)
	case p.Slice == nil && p.Repl == nil && p.Exp == nil:
		x.addText(value)
	default:
		e.operate(x, p, value.String())
	}
}

// pick is the value of v at index; count is that of all its items where the
// index asks for them, or -1.
func (e *shellEval) pick(v *shellVar, index syntax.ArithmExpr) (value text, count int, ok bool) {
	if index == nil {
		if len(v.items) > 0 {
			value = v.items[0]
		}
		return value, -1, true
	}
	named := plainIndex
	if v.keyed != nil {
		named = nameIndex
	}
	key, ok := named(e.src, index)
	if !ok {
		return text{}, 0, false
	}
	if key == "@" || key == "*" {
		if v.keyed != nil {
			return text{}, 0, false
		}
		for i, it := range v.items {
			if i > 0 {
				value.add(" ", 0, 0)
			}
			if value.addText(it); value.len() > maxURL {
				return text{}, 0, false
			}
		}
		return value, len(v.items), true
	}
	if v.keyed != nil {
		value, ok = v.keyed[key]
		return value, -1, ok
	}
	n, numeric := smallInt(key)
	if !numeric {
		return text{}, 0, false
	}
	if n < len(v.items) {
		value = v.items[n]
	}
	return value, -1, true
}

// operate does ${v%x}, ${v/x/y}, ${v:1:2} and the like on value, which the
// library does once everything inside has become plain text.
func (e *shellEval) operate(x *text, p *syntax.ParamExp, value string) {
	cp := *p
	cp.Param = &syntax.Lit{Value: "v"}
	cp.Index = nil
	cost := (len(value) + 1) * (len(value) + 1)
	var err error
	if p.Repl != nil {
		repl := *p.Repl
		if repl.Orig, err = e.flat(repl.Orig); err == nil {
			repl.With, err = e.flat(repl.With)
		}
		cp.Repl = &repl
		cost *= 1 + wordLen(repl.With)
	}
	if err == nil && p.Exp != nil {
		exp := *p.Exp
		switch exp.Op {
		case syntax.AssignUnset, syntax.AssignUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.OtherParamOps:
			err = errors.New("not done")
		}
		if err == nil {
			exp.Word, err = e.flat(exp.Word)
		}
		cp.Exp = &exp
	}
	if p.Slice != nil && !(plainNumber(p.Slice.Offset) && plainNumber(p.Slice.Length)) {
		err = errors.New("not a number")
	}
	e.budget -= cost
	if err != nil || len(value) > maxURL || e.budget < 0 {
		e.refuse(x, p, p.Param.Value, "this expansion is not done")
		return
	}
	quoted := &syntax.Word{Parts: []syntax.WordPart{&syntax.DblQuoted{Parts: []syntax.WordPart{&cp}}}}
	out, err := expand.Literal(&expand.Config{Env: expand.ListEnviron("v=" + value)}, quoted)
	if err != nil || len(out) > maxURL {
		e.refuse(x, p, p.Param.Value, "this expansion is not done")
		return
	}
	x.add(out, 0, 0)
}

// flat is w with its expansions done, so that only text is left.
func (e *shellEval) flat(w *syntax.Word) (*syntax.Word, error) {
	if w == nil {
		return nil, nil
	}
	out := &syntax.Word{}
	total := 0
	for _, p := range w.Parts {
		var x text
		switch p := p.(type) {
		case *syntax.Lit:
			if total += len(p.Value); total > maxURL {
				return nil, errors.New("too long")
			}
			out.Parts = append(out.Parts, p)
			continue
		case *syntax.DblQuoted:
			e.parts(&x, []syntax.WordPart{p}, true)
			out.Parts = append(out.Parts, &syntax.SglQuoted{Value: x.String()})
		case *syntax.SglQuoted:
			e.parts(&x, []syntax.WordPart{p}, true)
			out.Parts = append(out.Parts, &syntax.SglQuoted{Value: x.String()})
		default:
			e.parts(&x, []syntax.WordPart{p}, false)
			if strings.ContainsAny(x.String(), "\\$`\"'") {
				return nil, errors.New("not plain")
			}
			out.Parts = append(out.Parts, &syntax.Lit{Value: x.String()})
		}
		if total += x.len(); len(x.unknown) > 0 || total > maxURL {
			return nil, errors.New("not known")
		}
	}
	return out, nil
}

func wordLen(w *syntax.Word) int {
	n := 0
	if w != nil {
		for _, p := range w.Parts {
			switch p := p.(type) {
			case *syntax.Lit:
				n += len(p.Value)
			case *syntax.SglQuoted:
				n += len(p.Value)
			}
		}
	}
	return n
}

// plainNumber reports whether an offset of ${v:offset:length} is written out.
func plainNumber(x syntax.ArithmExpr) bool {
	switch x := x.(type) {
	case nil:
		return true
	case *syntax.Word:
		n, err := strconv.Atoi(x.Lit())
		return err == nil && n <= maxURL
	case *syntax.UnaryArithm:
		w, ok := x.X.(*syntax.Word)
		return ok && (x.Op == syntax.Minus || x.Op == syntax.Plus) && plainNumber(w)
	}
	return false
}

// assign does what an assignment does to the variables. maybe says that it may
// not run.
func (e *shellEval) assign(a *syntax.Assign, assoc, maybe bool) {
	name := a.Name.Value
	was := e.env.get(name)
	v := &shellVar{}
	switch {
	case a.Array != nil:
		v.list = true
		if a.Append && was != nil {
			v.items, v.keyed, v.lost = slices.Clone(was.items), was.keyed, was.lost
			e.budget -= 16 * len(v.items)
		}
		e.listItems(v, a.Array, assoc)
	case a.Index != nil:
		if was != nil {
			*v = *was
		}
		v.list = true
		e.setItem(v, a.Index, a.Value, assoc)
	default:
		x := e.word(a.Value)
		if a.Append && was != nil && len(was.items) > 0 {
			y := text{}
			y.addText(was.items[0])
			y.addText(x)
			x = y
		}
		if x.len() > maxURL {
			v.lost = true
			x = text{}
		}
		v.items = []text{x}
	}
	if maybe && was != nil && !sameItems(was, v) {
		v.lost = true
	}
	e.env.vars[name] = v
}

func (e *shellEval) listItems(v *shellVar, list *syntax.ArrayExpr, assoc bool) {
	for _, el := range list.Elems {
		if el.Index != nil {
			e.setItem(v, el.Index, el.Value, assoc)
			continue
		}
		fields, ok := e.fields(el.Value)
		v.items = append(v.items, fields...)
		v.lost = v.lost || !ok
		if e.budget -= 16 * (len(fields) + 1); e.budget < 0 || len(v.items) > maxItems {
			v.items, v.lost = nil, true
			return
		}
	}
}

func (e *shellEval) setItem(v *shellVar, index syntax.ArithmExpr, value *syntax.Word, assoc bool) {
	named := plainIndex
	if assoc || v.keyed != nil {
		named = nameIndex
	}
	key, ok := named(e.src, index)
	x := e.word(value)
	n, numeric := smallInt(key)
	switch {
	case !ok:
		v.lost = true
	case assoc || v.keyed != nil || !numeric:
		keyed := map[string]text{key: x}
		if len(v.keyed) > 1000 {
			v.lost = true
			return
		}
		for k, old := range v.keyed {
			if k != key {
				keyed[k] = old
			}
		}
		v.keyed = keyed
	case n > len(v.items) || n > maxItems || e.budget < 0:
		v.lost = true
	default:
		items := slices.Clone(v.items)
		if n == len(items) {
			items = append(items, text{})
		}
		items[n] = x
		e.budget -= 16 * len(items)
		v.items = items
	}
}

// sameItems reports whether two variables are the same text.
func sameItems(a, b *shellVar) bool {
	if a.lost || b.lost || a.keyed != nil || b.keyed != nil || len(a.items) != len(b.items) {
		return false
	}
	for i := range a.items {
		if a.items[i].String() != b.items[i].String() {
			return false
		}
	}
	return true
}
