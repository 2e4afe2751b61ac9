package pinfile

import (
	"bytes"
	"fmt"
	"strings"
)

// jsonReader reads JSON (RFC 8259), or JSON5 (json5.org) with its comments,
// commas, quotes and names. It keeps where everything stands, which
// encoding/json does not tell.
type jsonReader struct {
	tree
	pos int
	ext bool // JSON5
}

// maxNest bounds how deep objects and lists may nest: reading them recurs.
const maxNest = 500

func parseJSON(src []byte, _ Options) (document, error)  { return readJSON(src, false) }
func parseJSON5(src []byte, _ Options) (document, error) { return readJSON(src, true) }

func readJSON(src []byte, ext bool) (*tree, error) {
	r := &jsonReader{ext: ext}
	r.src, r.assign = src, `\s*:`
	if strings.HasPrefix(string(src[:min(3, len(src))]), "\ufeff") {
		r.pos = 3
	}
	if err := r.space(); err != nil {
		return nil, err
	}
	if err := r.value(nil, r.pos, 0); err != nil {
		return nil, err
	}
	if err := r.space(); err != nil {
		return nil, err
	}
	if r.pos < len(src) {
		return nil, r.fail("the file goes on after its value")
	}
	return r.finish(), nil
}

func (r *jsonReader) fail(format string, a ...any) error {
	return syntaxAt(r.src, r.pos, fmt.Sprintf(format, a...))
}

// peek is the byte at the reader's position, 0 at the end.
func (r *jsonReader) peek() byte {
	if r.pos < len(r.src) {
		return r.src[r.pos]
	}
	return 0
}

func (r *jsonReader) at(prefix string) bool {
	return strings.HasPrefix(string(r.src[r.pos:min(len(r.src), r.pos+len(prefix))]), prefix)
}

// space skips white space and comments.
func (r *jsonReader) space() error {
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case isSpace(c), r.ext && (c == '\v' || c == '\f'):
			r.pos++
		case r.ext && (r.at("\u00a0") || r.at("\ufeff") || r.at("\u2028") || r.at("\u2029")):
			r.pos += len("\u00a0")
			if r.src[r.pos-2] != 0xc2 {
				r.pos++
			}
		case r.at("//") || r.at("/*"):
			if err := r.comment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

func (r *jsonReader) comment() error {
	if !r.ext {
		return r.fail("JSON has no comments (set format: json5)")
	}
	rest, size := r.src[r.pos:], 0
	if r.at("//") {
		if size = bytes.IndexAny(rest, "\n\r"); size < 0 {
			size = len(rest)
		}
	} else {
		end := bytes.Index(rest[2:], []byte("*/"))
		if end < 0 {
			return r.fail("this comment is never closed")
		}
		size = end + 4
	}
	r.comments = append(r.comments, span{r.pos, r.pos + size})
	r.pos += size
	return nil
}

// value reads the value at path, whose name stands at at.
func (r *jsonReader) value(path *attrNode, at, depth int) error {
	if depth > maxNest {
		return r.fail("nested too deep")
	}
	switch c := r.peek(); {
	case r.pos >= len(r.src):
		return r.fail("a value is missing here")
	case c == '{':
		r.addBox(path, r.pos, "an object")
		return r.object(path, depth)
	case c == '[':
		r.addBox(path, r.pos, "a list")
		return r.items(path, depth)
	case c == '"', c == '\'' && r.ext:
		return r.text(path, at)
	}
	return r.literal(path, at)
}

func (r *jsonReader) object(path *attrNode, depth int) error {
	return r.members('}', func(int) error {
		at := r.pos
		name, err := r.name()
		if err != nil {
			return err
		}
		if err := r.space(); err != nil {
			return err
		}
		if r.peek() != ':' {
			return r.fail("a : must follow the name")
		}
		r.pos++
		if err := r.space(); err != nil {
			return err
		}
		return r.value(member(path, name), at, depth+1)
	})
}

func (r *jsonReader) items(path *attrNode, depth int) error {
	return r.members(']', func(i int) error { return r.value(itemOf(path, i), r.pos, depth+1) })
}

// members reads what stands between brackets, with commas between.
func (r *jsonReader) members(closer byte, read func(i int) error) error {
	opener := r.pos
	r.pos++
	for i := 0; ; i++ {
		if err := r.space(); err != nil {
			return err
		}
		switch {
		case r.pos >= len(r.src):
			return syntaxAt(r.src, opener, "this is never closed")
		case r.peek() == closer && (i == 0 || r.ext):
			r.pos++
			return nil
		}
		if err := read(i); err != nil {
			return err
		}
		if err := r.space(); err != nil {
			return err
		}
		switch r.peek() {
		case ',':
			r.pos++
		case closer:
			r.pos++
			return nil
		default:
			if r.pos >= len(r.src) {
				return syntaxAt(r.src, opener, "this is never closed")
			}
			return r.fail("a comma or %c must stand here", closer)
		}
	}
}

// name reads the name of a member.
func (r *jsonReader) name() (string, error) {
	if c := r.peek(); c == '"' || c == '\'' && r.ext {
		start, end, err := r.quoted()
		if err != nil {
			return "", err
		}
		return r.decode(start, end)
	}
	start := r.pos
	for r.ext && r.pos < len(r.src) && (isIdent(r.src[r.pos]) && r.src[r.pos] != '-' && r.src[r.pos] != '\'' || r.src[r.pos] == '$' || r.src[r.pos] >= 0x80) {
		r.pos++
	}
	if r.pos == start || isDigit(r.src[start]) {
		r.pos = start
		return "", r.fail("a name in quotes must stand here")
	}
	return string(r.src[start:r.pos]), nil
}

// quoted measures the string at the reader's position, between its quotes.
func (r *jsonReader) quoted() (start, end int, err error) {
	quote, opener := r.src[r.pos], r.pos
	for i := r.pos + 1; i < len(r.src); i++ {
		switch c := r.src[i]; {
		case c == quote:
			r.pos = i + 1
			return opener + 1, i, nil
		case c == '\\':
			if i++; r.ext && i+1 < len(r.src) && r.src[i] == '\r' && r.src[i+1] == '\n' {
				i++
			}
		case c == '\n', c == '\r', c < ' ' && !r.ext:
			r.pos = i
			return 0, 0, r.fail("a control character stands in the string that begins at %s", placeOf(r.src, opener))
		}
	}
	return 0, 0, syntaxAt(r.src, opener, "this string is never closed")
}

func (r *jsonReader) decode(start, end int) (string, error) {
	text, bad := unescapeJSON(string(r.src[start:end]), r.ext)
	if bad >= 0 {
		return "", syntaxAt(r.src, start+bad, "this is no escape")
	}
	return text, nil
}

// text adds the string at the reader's position.
func (r *jsonReader) text(path *attrNode, at int) error {
	quote := r.peek()
	start, end, err := r.quoted()
	if err != nil {
		return err
	}
	value, err := r.decode(start, end)
	if err != nil {
		return err
	}
	r.all = append(r.all, leaf{path: path, Site: Site{At: at, Start: start, End: end, Value: value,
		Encode: func(v string) ([]byte, error) {
			if err := checkText(v); err != nil {
				return nil, err
			}
			return escapeJSON(v, quote), nil
		}}})
	return nil
}

// literal adds a number, true, false or null.
func (r *jsonReader) literal(path *attrNode, at int) error {
	start := r.pos
	for r.pos < len(r.src) && (isIdent(r.src[r.pos]) && r.src[r.pos] != '\'' || r.src[r.pos] == '+' || r.src[r.pos] == '.') {
		r.pos++
	}
	raw := string(r.src[start:r.pos])
	l := leaf{path: path, Site: Site{At: at, Start: start, End: r.pos, Value: raw}}
	switch {
	case isInteger(raw):
		l.Encode = digitsOnly
	case raw == "true" || raw == "false" || raw == "null":
		l.Problem = notString(raw)
	case isJSONNumber(raw, r.ext):
		l.Problem = fmt.Sprintf("the value is the number %.40s (only strings and whole numbers are edited: write it in quotes)", raw)
	default:
		r.pos = start
		return r.fail("this is no value")
	}
	r.all = append(r.all, l)
	return nil
}

// isJSONNumber takes the numbers of JSON that are no plain integers, and those
// of JSON5.
func isJSONNumber(s string, ext bool) bool {
	sign := s != "" && (s[0] == '-' || s[0] == '+')
	if sign {
		if s[0] == '+' && !ext {
			return false
		}
		s = s[1:]
	}
	if ext && (s == "Infinity" || s == "NaN") {
		return true
	}
	if len(s) > 2 && ext && (s[:2] == "0x" || s[:2] == "0X") {
		return onlyOf(strings.ToLower(s[2:]), "0123456789abcdef")
	}
	mantissa, exponent, hasExp := strings.Cut(strings.ToLower(s), "e")
	if hasExp {
		exponent = strings.TrimPrefix(strings.TrimPrefix(exponent, "-"), "+")
		if exponent == "" || !onlyOf(exponent, "0123456789") {
			return false
		}
	}
	whole, fraction, dot := strings.Cut(mantissa, ".")
	if !onlyOf(whole+fraction, "0123456789") || whole+fraction == "" {
		return false
	}
	if !ext && (whole == "" || dot && fraction == "") {
		return false
	}
	return len(whole) < 2 || whole[0] != '0'
}
