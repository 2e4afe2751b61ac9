package pinfile

import (
	"bytes"
	"fmt"
	"strings"
)

// Files of Python and Starlark share their tokens, which is all that their
// readers here need; the grammar above them is read leniently, so that a
// construct that is not known hides nothing else.
const (
	maxPython      = 1 << 20
	maxPythonDepth = 100
)

type pyKind uint8

const (
	pyEnd     pyKind = iota
	pyNewline        // of a logical line
	pyName
	pyNumber
	pyString
	pyOp
)

// pyToken is a token; of a string, prefix and quote lie within it.
type pyToken struct {
	kind     pyKind
	off, end int
	body     int    // where a string's text begins
	quote    string // what closes a string
	prefix   string // of a string, in lower case
	indent   int    // of the first token of a logical line; -1 elsewhere
}

type pyLexer struct {
	t     *codeTree
	src   []byte
	i     int
	out   []pyToken
	open  []byte
	first bool // the next token begins a logical line
	start int  // of the line
}

// lexPython returns the tokens of t's source and notes its comments.
func lexPython(t *codeTree) ([]pyToken, error) {
	if err := fitsIn(t.src, maxPython); err != nil {
		return nil, err
	}
	l := &pyLexer{t: t, src: t.src, first: true}
	l.i = len(l.src) - len(bytes.TrimPrefix(l.src, []byte("\ufeff")))
	l.start = l.i
	for l.i < len(l.src) {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	if len(l.open) > 0 {
		return nil, syntaxAt(l.src, len(l.src), fmt.Sprintf("a %q is never closed", l.open[len(l.open)-1]))
	}
	l.emit(pyNewline, l.i)
	l.emit(pyEnd, l.i)
	return l.out, nil
}

func (l *pyLexer) emit(kind pyKind, end int) *pyToken {
	tok := pyToken{kind: kind, off: l.i, end: end, indent: -1}
	if l.first && kind != pyNewline {
		tok.indent = l.i - l.start
		l.first = false
	}
	l.out = append(l.out, tok)
	l.i = end
	return &l.out[len(l.out)-1]
}

func (l *pyLexer) next() error {
	c := l.src[l.i]
	switch {
	case c == '\n':
		if len(l.open) == 0 {
			l.emit(pyNewline, l.i+1)
			l.first, l.start = true, l.i
		} else {
			l.i++
		}
	case c == ' ' || c == '\t' || c == '\r' || c == '\f':
		l.i++
	case c == '\\':
		l.i++
		for l.i < len(l.src) && (l.src[l.i] == '\r' || l.src[l.i] == '\n') {
			l.i++
			if l.src[l.i-1] == '\n' {
				break
			}
		}
	case c == '#':
		end := l.i + lineLen(l.src[l.i:])
		l.t.comment(l.i, end)
		l.i = end
	case isDigit(c):
		l.emit(pyNumber, l.span(func(c byte) bool { return isWordByte(c) || c == '.' }))
	case isWordByte(c) || c >= 0x80:
		end := l.span(func(c byte) bool { return isWordByte(c) || c >= 0x80 })
		if end < len(l.src) && (l.src[end] == '"' || l.src[end] == '\'') && end-l.i <= 2 && strings.Trim(string(l.src[l.i:end]), "rRbBuUfF") == "" {
			return l.str(end)
		}
		l.emit(pyName, end)
	case c == '"' || c == '\'':
		return l.str(l.i)
	default:
		return l.op(c)
	}
	return nil
}

func lineLen(b []byte) int {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return i
	}
	return len(b)
}

func (l *pyLexer) span(is func(byte) bool) int {
	i := l.i
	for i < len(l.src) && is(l.src[i]) {
		i++
	}
	return i
}

func (l *pyLexer) op(c byte) error {
	switch c {
	case '(', '[', '{':
		if len(l.open) >= maxPythonDepth {
			return syntaxAt(l.src, l.i, "brackets nest too deep")
		}
		l.open = append(l.open, c+1+c>>6) // ( and ) are neighbours; [ ] and { } are two apart
	case ')', ']', '}':
		if len(l.open) == 0 || l.open[len(l.open)-1] != c {
			return syntaxAt(l.src, l.i, fmt.Sprintf("this %q closes nothing", c))
		}
		l.open = l.open[:len(l.open)-1]
	}
	end := l.i + 1
	for _, op := range []string{"**=", "//=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "==", "!=", "<=", ">=", ":=", "->", "**", "//"} {
		if bytes.HasPrefix(l.src[l.i:], []byte(op)) {
			end = l.i + len(op)
			break
		}
	}
	l.emit(pyOp, end)
	return nil
}

// str reads the string whose quote stands at q.
func (l *pyLexer) str(q int) error {
	quote := string(l.src[q : q+1])
	if triple := strings.Repeat(quote, 3); bytes.HasPrefix(l.src[q:], []byte(triple)) {
		quote = triple
	}
	body := q + len(quote)
	for i := body; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == '\\':
			i++
		case c == '\n' && len(quote) == 1:
			return syntaxAt(l.src, l.i, "the line ends within a string")
		case bytes.HasPrefix(l.src[i:], []byte(quote)):
			prefix := strings.ToLower(string(l.src[l.i:q]))
			tok := l.emit(pyString, i+len(quote))
			tok.body, tok.quote, tok.prefix = body, quote, prefix
			return nil
		}
	}
	return syntaxAt(l.src, l.i, "a string is never closed")
}
