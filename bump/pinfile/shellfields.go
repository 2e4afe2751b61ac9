package pinfile

import (
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// maxBraces bounds the words that one word with braces stands for.
const maxBraces = 200

// fields expands an item of a list, which may stand for several: "${other[@]}"
// and {a,b}. ok is false where it is not known how many.
func (e *shellEval) fields(w *syntax.Word) (out []text, ok bool) {
	if v := e.wholeList(w); v != nil {
		return v.items, true
	}
	braced := &syntax.Word{}
	if w != nil {
		braced.Parts = append(braced.Parts, w.Parts...)
	}
	words := []*syntax.Word{w}
	if syntax.SplitBraces(braced) {
		if n, ok := braceCount(braced); !ok || n > maxBraces {
			e.refuse(&text{}, w, "braces", "these braces are not expanded")
			return []text{e.word(w)}, false
		}
		words = words[:0]
		for one, err := range expand.BracesSeq(nil, braced) {
			if err != nil || len(words) > maxBraces {
				e.refuse(&text{}, w, "braces", "these braces are not expanded")
				return []text{e.word(w)}, false
			}
			words = append(words, one)
		}
	}
	ok = true
	for _, one := range words {
		if len(words) > 1 {
			out = append(out, e.braced(one))
		} else {
			out = append(out, e.word(one))
		}
		if !e.oneField(one) {
			ok = false
		}
	}
	return out, ok
}

// wholeList returns the list that a word "${name[@]}" stands for.
func (e *shellEval) wholeList(w *syntax.Word) *shellVar {
	if w == nil || len(w.Parts) != 1 {
		return nil
	}
	q, ok := w.Parts[0].(*syntax.DblQuoted)
	if !ok || q.Dollar || len(q.Parts) != 1 {
		return nil
	}
	p, ok := q.Parts[0].(*syntax.ParamExp)
	if !ok || p.Param == nil || p.Index == nil || p.Excl || p.Length || p.Slice != nil || p.Repl != nil || p.Exp != nil || p.Names != 0 {
		return nil
	}
	if key, ok := plainIndex(e.src, p.Index); !ok || key != "@" {
		return nil
	}
	v := e.env.get(p.Param.Value)
	if v == nil || v.lost || v.keyed != nil {
		return nil
	}
	return v
}

// oneField reports whether an expanded word stays one: unquoted, a value with
// blanks would be split and one with * would name files.
func (e *shellEval) oneField(w *syntax.Word) bool {
	if w == nil {
		return true
	}
	for i, p := range w.Parts {
		bad := false
		switch p := p.(type) {
		case *syntax.Lit:
			bad = hasFileGlob(p.Value) || i == 0 && strings.HasPrefix(p.Value, "~")
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if v, ok := q.(*syntax.ParamExp); ok && v.Index != nil && !v.Length && e.indexOf(v) == "@" {
					bad = true
				}
			}
		case *syntax.ParamExp:
			var x text
			e.param(&x, p)
			s := x.String()
			bad = s == "" || strings.ContainsAny(s, " \t\n*?[")
		default:
			bad = true
		}
		if bad {
			e.refuse(&text{}, p, "fields", "it is not known how many words this is (put it in double quotes)")
			return false
		}
	}
	return true
}

func (e *shellEval) indexOf(p *syntax.ParamExp) string {
	key, _ := plainIndex(e.src, p.Index)
	return key
}

// hasFileGlob reports whether an unquoted text would name files.
func hasFileGlob(raw string) bool {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		}
	}
	return false
}

// braced is word for what braces were expanded to, whose literals no longer
// have their place in the file.
func (e *shellEval) braced(w *syntax.Word) text {
	var x text
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			x.add(unescapeShell([]byte(lit.Value), ""), 0, 0)
			continue
		}
		e.parts(&x, []syntax.WordPart{p}, false)
	}
	return x
}

// braceCount is how many words braces expand to; ok is false for {1..9}.
func braceCount(w *syntax.Word) (n int, ok bool) {
	n = 1
	for _, p := range w.Parts {
		b, is := p.(*syntax.BraceExp)
		if !is {
			continue
		}
		if b.Sequence {
			return 0, false
		}
		sum := 0
		for _, el := range b.Elems {
			m, ok := braceCount(el)
			if !ok {
				return 0, false
			}
			sum += m
		}
		if n *= sum; n > maxBraces {
			return n, true
		}
	}
	return n, true
}
