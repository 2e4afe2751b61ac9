package pinfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	yamltoken "github.com/goccy/go-yaml/token"
)

// scalar adds a value that is neither an object nor a list.
func (r *yamlReader) scalar(n ast.Node, path *attrNode, at int) {
	if n == nil {
		return
	}
	t := n.GetToken()
	if block, ok := n.(*ast.LiteralNode); ok && block.Value != nil {
		t = block.Value.GetToken()
	}
	pos, ok := r.where[t]
	if !ok {
		pos = span{at, at}
	}
	l := leaf{path: path, Site: Site{At: at, Start: pos.off, End: pos.end, Value: string(r.src[pos.off:pos.end])}}
	switch n := n.(type) {
	case *ast.LiteralNode:
		l.Problem = "the value is a block of lines (write it in quotes, on one line)"
	case *ast.AliasNode:
		l.Problem = "the value is an alias (name the value at its anchor)"
	case *ast.NullNode:
		l.Problem = "the value is null, no string (write it in quotes)"
	case *ast.BoolNode:
		l.Problem = notString(l.Value)
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		r.written(&l, t)
	default:
		l.Problem = fmt.Sprintf("the value is %s, no string", strings.ToLower(n.Type().String()))
	}
	r.all = append(r.all, l)
}

// written fills in a value that is written out: its text, and how a new one is
// written in its style.
func (r *yamlReader) written(l *leaf, t *yamltoken.Token) {
	raw := l.Value
	value, good := r.text(t, span{l.Start, l.End})
	switch {
	case strings.ContainsAny(raw, "\r\n"):
		l.Problem = "the value goes over several lines (write it on one)"
	case !good:
		l.Problem = yamlBadValue
	case t.Type == yamltoken.DoubleQuoteType:
		l.Value, l.Start, l.End, l.Encode = value, l.Start+1, l.End-1, encodeYAMLDouble
	case t.Type == yamltoken.SingleQuoteType:
		l.Value, l.Start, l.End, l.Encode = value, l.Start+1, l.End-1, encodeYAMLSingle
	case kindOfHash(raw) != hashNone:
		// A placeholder of zeros is a number to YAML, and a hash to people.
		l.Encode = func(v string) ([]byte, error) { return encodeYAMLPlain(v, yamlString) }
	case isInteger(raw):
		l.Encode = digitsOnly
	case yamlKind(raw) == yamlOther:
		l.Problem = fmt.Sprintf("the value %.40s is no string to every reader of YAML (write it in quotes)", raw)
	default:
		kind := yamlKind(raw)
		l.Encode = func(v string) ([]byte, error) { return encodeYAMLPlain(v, kind) }
	}
}

// yamlSort is what a plain scalar is read as.
type yamlSort uint8

const (
	yamlString yamlSort = iota
	yamlDate            // a string in YAML 1.2, a time in 1.1
	yamlOther           // a number, a truth value or null to YAML 1.1 or 1.2
)

// The types that YAML 1.1 (yaml.org/type) and the core schema of 1.2 know a
// plain scalar by.
var (
	yamlWordRE   = regexp.MustCompile(`^(?i:y|yes|n|no|true|false|on|off|null|~|)$`)
	yamlNumberRE = regexp.MustCompile(`^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|(?:[0-9][0-9_]*\.?|\.)[0-9_.]*(?:[eE][-+]?[0-9]+)?|\.(?i:inf)|\.(?i:nan))$`)
	yamlDateRE   = regexp.MustCompile(`^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:$|[Tt ])`)
	// yamlSafeRE is what may stand unquoted wherever a plain scalar may.
	yamlSafeRE = regexp.MustCompile(`^[A-Za-z0-9_./][A-Za-z0-9_.+/=:@~-]*$`)
)

// yamlKind says what a plain scalar is to the readers of YAML. In doubt it is
// no string: 10.2.0 is one though, for it has two dots.
func yamlKind(s string) yamlSort {
	switch {
	case yamlWordRE.MatchString(s):
		return yamlOther
	case yamlDateRE.MatchString(s):
		return yamlDate
	case yamlNumberRE.MatchString(s) && strings.Count(s, ".") < 2 && strings.ContainsAny(s, "0123456789fFnN"):
		return yamlOther
	}
	return yamlString
}

// encodeYAMLPlain writes v without quotes, if it stays what was, and else in
// quotes.
func encodeYAMLPlain(v string, kind yamlSort) ([]byte, error) {
	if yamlSafeRE.MatchString(v) && !strings.HasSuffix(v, ":") && yamlKind(v) == kind && !strings.HasPrefix(v, "...") {
		return []byte(v), nil
	}
	text, err := encodeYAMLDouble(v)
	if err != nil {
		return nil, err
	}
	return append(append([]byte{'"'}, text...), '"'), nil
}

// encodeYAMLDouble returns v as it stands between double quotes.
func encodeYAMLDouble(v string) ([]byte, error) {
	if err := checkText(v); err != nil {
		return nil, err
	}
	var b []byte
	for _, r := range v {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case yamlHidden(r):
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b, nil
}

// yamlHidden reports whether r must be escaped: controls, and what some readers
// take for the end of a line.
func yamlHidden(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// encodeYAMLSingle returns v as it stands between single quotes.
func encodeYAMLSingle(v string) ([]byte, error) {
	if err := checkText(v); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(v, yamlHidden) {
		return nil, errors.New("the new value holds a control character, which single quotes cannot (write the value in double quotes)")
	}
	return []byte(strings.ReplaceAll(v, "'", "''")), nil
}

// unescapeYAML returns the value of what stands between double quotes on one
// line (YAML 1.2, section 5.7).
func unescapeYAML(raw string) (string, bool) {
	if !strings.Contains(raw, `\`) {
		return raw, true
	}
	var b strings.Builder
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			b.WriteByte(raw[i])
			i++
			continue
		}
		text, size := yamlEscape(raw[i:])
		if size == 0 {
			return "", false
		}
		b.WriteString(text)
		i += size
	}
	return b.String(), true
}

// yamlEscapes are the escapes of one letter.
var yamlEscapes = map[byte]string{
	'0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t", 'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b",
	' ': " ", '"': `"`, '/': "/", '\\': `\`, 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029",
}

func yamlEscape(s string) (text string, size int) {
	if len(s) < 2 {
		return "", 0
	}
	if text, ok := yamlEscapes[s[1]]; ok {
		return text, 2
	}
	count := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[1]]
	if s[1] == 'u' {
		return unicodeEscape(s)
	}
	r, ok := hexDigits(s, 2, count)
	if count == 0 || !ok || !utf8.ValidRune(r) {
		return "", 0
	}
	return string(r), 2 + count
}
