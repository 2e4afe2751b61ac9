package pinfile

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// EditNix returns src, a file of Nix, with the values of set. A key names a
// binding by the last components of its path:
//
//	version             any binding of that name
//	gfx1151.version     in an attribute set, or a path, that ends so
//	.version            the binding whose whole path this is
//
// The path of a binding is made of the names of the bindings around it, so
// let bindings have one too. A component that is no bare name is quoted, as
// in Nix. A value of set is what the string shall be, unescaped.
//
// Each key must name exactly one binding whose value is a string, or the
// error is a *MatchError; the string must be plain, "…" without ${}, or it is
// a *ValueError; a hash must stay a hash of its kind, or it is a
// *HashKindError. A file that does not lex gives a *SyntaxError. On an error
// there is no output. Files above 4 MiB are refused.
func EditNix(src []byte, set map[string]string) ([]byte, error) {
	found, err := findNix(src, set)
	if err != nil {
		return nil, err
	}
	sort.Slice(found, func(i, j int) bool { return found[i].off < found[j].off })
	var out bytes.Buffer
	var pos int32
	for _, f := range found {
		value := set[f.key]
		if err := checkValue(src, f, value); err != nil {
			return nil, err
		}
		out.Write(src[pos:f.off])
		if value == f.text {
			out.Write(src[f.off:f.end])
		} else {
			out.WriteString(escapeNixText(value))
		}
		pos = f.end
	}
	out.Write(src[pos:])
	return out.Bytes(), nil
}

// Current returns the values that the keys of set name in src, a file of Nix.
// Keys and errors are those of EditNix; the values of set are not looked at.
func Current(src []byte, set map[string]string) (map[string]string, error) {
	found, err := findNix(src, set)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(found))
	for _, f := range found {
		out[f.key] = f.text
	}
	return out, nil
}

// nixValue is a plain string that a key names.
type nixValue struct {
	key      string
	text     string // unescaped
	off, end int32  // between the quotes
}

// findNix finds the values of all keys of set, or returns the error of the
// first key in byte order that has one.
func findNix(src []byte, set map[string]string) ([]nixValue, error) {
	bindings, toks, err := scanNix(src)
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(set))
	for key := range set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	taken := map[int32]string{}
	var found []nixValue
	for _, key := range keys {
		k, err := parseKey(key)
		if err != nil {
			return nil, err
		}
		b, err := pick(src, bindings, toks, key, k)
		if err != nil {
			return nil, err
		}
		if other, twice := taken[b.off]; twice {
			p := placeOf(src, int(b.off))
			return nil, &ValueError{Attr: key, Line: p.Line, Column: p.Column, Problem: fmt.Sprintf("the key %s names this value too", other)}
		}
		taken[b.off] = key
		found = append(found, nixValue{key, unescapeNix(string(src[b.off:b.end])), b.off, b.end})
	}
	return found, nil
}

// pick returns the one binding that k names. Bindings to strings of any sort
// count; those to other expressions, such as version = self.version, do not,
// unless there is nothing else.
func pick(src []byte, all []binding, toks []token, key string, k attrKey) (binding, error) {
	var strs, others []binding
	for _, b := range all {
		switch {
		case !k.matches(b.path):
		case b.kind == valOther:
			others = append(others, b)
		default:
			strs = append(strs, b)
		}
	}
	if len(strs) == 0 && len(others) == 1 {
		strs = others
	}
	switch len(strs) {
	case 0:
		return binding{}, &MatchError{Attr: key, Lines: similar(src, all, others, toks, k)}
	case 1:
		return strs[0], plainOnly(src, strs[0], key)
	}
	e := &MatchError{Attr: key, Count: len(strs)}
	for _, b := range strs[:min(len(strs), maxPlaces)] {
		p := placeOf(src, int(b.at))
		p.Path = b.path.String()
		e.Lines = append(e.Lines, p)
	}
	return binding{}, e
}

func plainOnly(src []byte, b binding, key string) error {
	var problem string
	switch b.kind {
	case valPlain:
		return nil
	case valInterp:
		problem = "the string holds ${}, so it is not the pin itself (name the value that it is made of)"
	case valIndented:
		problem = `the value is a '' string (write it as "…")`
	case valCompound:
		problem = `the value is an expression that only begins with a string (write it as one "…")`
	default:
		problem = `the value is not a string (write it as "…", or name the string that it comes from)`
	}
	p := placeOf(src, int(b.off))
	return &ValueError{Attr: key, Line: p.Line, Column: p.Column, Problem: problem}
}

// checkValue refuses values that a Nix string cannot hold and hashes of
// another kind.
func checkValue(src []byte, f nixValue, value string) error {
	p := placeOf(src, int(f.off))
	if strings.ContainsRune(value, 0) {
		return &ValueError{Attr: f.key, Line: p.Line, Column: p.Column, Problem: "the new value holds a NUL byte, which no Nix string can"}
	}
	have, want, ok := checkHash(f.text, value)
	if ok {
		return nil
	}
	return &HashKindError{Attr: f.key, Line: p.Line, Column: p.Column, Have: have.name, Want: want.name, Template: want.template}
}

// similar lists what looks like k and is no binding that it names: other
// expressions, other paths or spellings, defaults of arguments, comments and
// strings.
func similar(src []byte, all, others []binding, toks []token, k attrKey) []Place {
	var out []Place
	add := func(off int, path, format string) {
		if len(out) < maxPlaces {
			p := placeOf(src, off)
			p.Path = path
			p.Note = fmt.Sprintf(format, path) + fmt.Sprintf(" at line %d", p.Line)
			out = append(out, p)
		}
	}
	for _, b := range others {
		add(int(b.off), b.path.String(), "%s is not a string")
	}
	for _, b := range all {
		if strings.EqualFold(b.path.name, k.last()) && !k.matches(b.path) {
			add(int(b.at), b.path.String(), "similar is %s")
		}
	}
	assign := regexp.MustCompile(`(?:^|[^\w'-])` + regexp.QuoteMeta(k.last()) + `\s*=[^=]`)
	only := len(out) == 0
	for i, t := range toks {
		text := src[t.off:t.end]
		switch {
		case t.kind == tokIdent && string(text) == k.last() && followedBy(src, toks[i+1:], '?'):
			add(int(t.off), k.last(), "%s is the default of an argument")
		case t.kind == tokComment || t.kind == tokText:
			m := assign.FindIndex(text)
			if m == nil {
				continue
			}
			add(int(t.off)+m[0], k.last(), foundIn(t.kind, only))
		}
	}
	return out
}

func foundIn(kind tokenKind, only bool) string {
	where := "in a string"
	if kind == tokComment {
		where = "in a comment"
	}
	if only {
		return "%s is found only " + where
	}
	return "%s is found " + where
}

// followedBy reports whether the next token that is no space is c.
func followedBy(src []byte, toks []token, c byte) bool {
	for _, t := range toks {
		if t.kind != tokSpace && t.kind != tokComment {
			return src[t.off] == c
		}
	}
	return false
}
