package pinfile

import (
	"errors"
	"strings"
)

// nixFormat is Nix. Keys are those of Edit. The path of a binding is made of the
// names of the bindings around it, so let bindings have one too, and calls have
// none: the hash in src = fetchurl { hash = "…"; } is src.hash.
//
// Each key must name exactly one binding whose value is a string; the string must be
// plain, "…" without ${} or ” on one line; a hash must stay a hash of its kind.
func nixFormat() format { return format{name: "nix", names: []string{"*.nix"}, parse: parseNix} }

// nixDoc is a file of Nix.
type nixDoc struct {
	leaves
	scan *scanner
	toks []token
}

func parseNix(src []byte, _ Options) (document, error) {
	s, err := scanNix(src)
	if err != nil {
		return nil, err
	}
	d := &nixDoc{scan: s, toks: s.toks}
	d.src, d.assign = src, `\s*=[^=]`
	d.all = make([]leaf, 0, len(s.out))
	for _, b := range s.out {
		d.all = append(d.all, nixLeaf(src, b))
	}
	for _, t := range s.toks {
		switch t.kind {
		case tokComment:
			d.comments = append(d.comments, span{int(t.off), int(t.end)})
		case tokText:
			d.strings = append(d.strings, span{int(t.off), int(t.end)})
		}
	}
	d.hints = d.defaults
	return d, nil
}

// nixLeaf says what an edit may do with b.
func nixLeaf(src []byte, b binding) leaf {
	raw := string(src[b.off:b.end])
	l := leaf{path: b.path, Site: Site{At: int(b.at), Start: int(b.off), End: int(b.end), Value: raw}}
	switch b.kind {
	case valPlain:
		l.Value, l.Encode = unescapeNix(raw), encodeNix
	case valIndentedPlain:
		l.Encode = encodeIndented
	case valInterp:
		l.Problem = "the string holds ${}, so it is not the pin itself (name the value that it is made of)"
	case valIndented:
		l.Problem = `the value is a '' string that is not plain (write it as "…")`
	case valCompound:
		l.Problem = `the value is an expression that only begins with a string (write it as one "…")`
	default:
		l.weak, l.note = true, "is not a string"
		if b.kind == valNumber && isInteger(raw) {
			l.Encode = digitsOnly
			break
		}
		l.Problem = `the value is not a string (write it as "…", or name the string that it comes from)`
	}
	return l
}

var errNUL = errors.New("the new value holds a NUL byte, which no string there can")

func encodeNix(value string) ([]byte, error) {
	if strings.ContainsRune(value, 0) {
		return nil, errNUL
	}
	return []byte(escapeNixText(value)), nil
}

// encodeIndented takes only what needs no escape in a ” string.
func encodeIndented(value string) ([]byte, error) {
	switch {
	case strings.ContainsRune(value, 0):
		return nil, errNUL
	case !isIndentedPlain(value):
		return nil, errors.New(`the new value cannot be written in a '' string as it is (write the value as "…")`)
	}
	return []byte(value), nil
}

// defaults finds arguments with a default: version ? "1".
func (d *nixDoc) defaults(k pathKey) []Near {
	var out []Near
	for i, t := range d.toks {
		if t.kind == tokIdent && string(d.src[t.off:t.end]) == k.last() && followedBy(d.src, d.toks[i+1:], '?') {
			out = append(out, Near{Offset: int(t.off), Path: k.last(), Note: k.last() + " is the default of an argument"})
			if len(out) == maxPlaces {
				break
			}
		}
	}
	return out
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
