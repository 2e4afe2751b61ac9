package pinfile

import (
	"bytes"
	"strings"
)

// maxSource bounds a target file. The longest file of nixpkgs is half of it.
const maxSource = 4 << 20

// maxDepth bounds how deep brackets, strings and let may nest.
const maxDepth = 1000

// tokenKind is a kind of Nix token. Bytes that form no token are tokOther, so
// that the tokens always cover the source.
type tokenKind uint8

const (
	tokOther      tokenKind = iota // operators and unknown bytes
	tokSpace                       // white space
	tokComment                     // # to the end of the line, or /* */
	tokIdent                       // identifiers and keywords
	tokNumber                      // integers and floats
	tokPath                        // ./a, a/b, ~/a, <nixpkgs>, and pieces around ${ }
	tokURI                         // x:y without quotes
	tokStrOpen                     // "
	tokStrClose                    // "
	tokIndOpen                     // ''
	tokIndClose                    // ''
	tokText                        // what a string holds, escapes included
	tokInterpOpen                  // ${ in a string, path or attribute path
	tokOpen                        // { ( [
	tokClose                       // } ) ], also of ${
	tokAssign                      // =
	tokSemicolon                   // ;
	tokDot                         // .
)

// token is source[off:end].
type token struct {
	kind     tokenKind
	off, end int32
}

// lexMode is what the lexer is inside of.
type lexMode struct {
	kind byte // '{' '(' '[' brackets, '$' interpolation, '"' string, '\'' indented string
	off  int32
	path bool // '$' only: more of a path may follow
}

type lexer struct {
	src  []byte
	pos  int
	toks []token
	mode []lexMode
	// Both remember where a run that began earlier ended, so that a long
	// a.a.a.a is measured once, not at every identifier.
	pathRun, uriRun int
}

// lexNix splits source into tokens that cover it without a gap. It follows
// the rules of Nix's own scanner (libexpr/lexer.l), longest match included:
// x:y is a URI, a/b a path. Errors are *SyntaxError.
func lexNix(src []byte) ([]token, error) {
	if len(src) > maxSource {
		return nil, &SyntaxError{Line: 1, Column: 1, Problem: "the file is larger than 4 MiB"}
	}
	l := &lexer{src: src}
	for l.pos < len(src) {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	if n := len(l.mode); n > 0 {
		return nil, syntaxAt(src, int(l.mode[n-1].off), "this is never closed")
	}
	return l.toks, nil
}

func (l *lexer) next() error {
	if n := len(l.mode); n > 0 {
		switch l.mode[n-1].kind {
		case '"':
			return l.inString()
		case '\'':
			return l.inIndented()
		}
	}
	return l.inCode()
}

// emit adds the token that ends at end, and moves there.
func (l *lexer) emit(kind tokenKind, end int) {
	l.toks = append(l.toks, token{kind, int32(l.pos), int32(end)})
	l.pos = end
}

func (l *lexer) push(kind byte, path bool) error {
	if len(l.mode) >= maxDepth {
		return syntaxAt(l.src, l.pos, "nested too deep")
	}
	l.mode = append(l.mode, lexMode{kind, int32(l.pos), path})
	return nil
}

func (l *lexer) at(i int) byte {
	if i < len(l.src) {
		return l.src[i]
	}
	return 0
}

func (l *lexer) has(prefix string) bool {
	return bytes.HasPrefix(l.src[l.pos:], []byte(prefix))
}

func (l *lexer) inCode() error {
	c := l.src[l.pos]
	switch {
	case isSpace(c):
		l.emit(tokSpace, l.span(l.pos, isSpace))
		return nil
	case c == '#':
		l.emit(tokComment, l.span(l.pos, func(c byte) bool { return c != '\n' && c != '\r' }))
		return nil
	case l.has("/*"):
		end := bytes.Index(l.src[l.pos+2:], []byte("*/"))
		if end < 0 {
			return syntaxAt(l.src, l.pos, "this comment is never closed")
		}
		l.emit(tokComment, l.pos+2+end+2)
		return nil
	}
	if end := l.uriEnd(); end > 0 {
		l.emit(tokURI, end)
		return nil
	}
	if end, more := l.pathEnd(); end > 0 {
		return l.inPath(end, more)
	}
	return l.simple(c)
}

// simple reads what is neither space, comment, URI nor path.
func (l *lexer) simple(c byte) error {
	switch {
	case isIdentStart(c):
		l.emit(tokIdent, l.span(l.pos, isIdent))
	case isDigit(c), c == '.' && isDigit(l.at(l.pos+1)):
		l.emit(tokNumber, l.numberEnd())
	case c == '"':
		return l.open('"', tokStrOpen, 1)
	case l.has("''"):
		return l.open('\'', tokIndOpen, 2)
	case l.has("${"):
		return l.open('$', tokInterpOpen, 2)
	case c == '{' || c == '(' || c == '[':
		return l.open(c, tokOpen, 1)
	case c == '}' || c == ')' || c == ']':
		return l.close(c)
	case c == '=' && l.at(l.pos+1) != '=':
		l.emit(tokAssign, l.pos+1)
	case c == ';':
		l.emit(tokSemicolon, l.pos+1)
	case l.has("..."):
		l.emit(tokOther, l.pos+3)
	case c == '.':
		l.emit(tokDot, l.pos+1)
	default:
		l.emit(tokOther, l.pos+l.operatorLen())
	}
	return nil
}

// operatorLen measures the operators of two bytes that must not be taken
// apart, for = and / and < mean something else alone.
func (l *lexer) operatorLen() int {
	for _, op := range []string{"==", "!=", "<=", ">=", "//", "->", "++", "&&", "||", "|>", "<|"} {
		if l.has(op) {
			return 2
		}
	}
	return 1
}

func (l *lexer) open(mode byte, kind tokenKind, size int) error {
	if err := l.push(mode, false); err != nil {
		return err
	}
	l.emit(kind, l.pos+size)
	return nil
}

func (l *lexer) close(c byte) error {
	n := len(l.mode)
	if n == 0 {
		return syntaxAt(l.src, l.pos, "nothing is open that this could close")
	}
	top := l.mode[n-1]
	if want := closerOf(top.kind); want != c {
		return syntaxAt(l.src, l.pos, "expected "+string(want)+" for what was opened at "+placeOf(l.src, int(top.off)).String())
	}
	l.mode = l.mode[:n-1]
	l.emit(tokClose, l.pos+1)
	if top.path {
		return l.morePath()
	}
	return nil
}

func closerOf(open byte) byte {
	switch open {
	case '(':
		return ')'
	case '[':
		return ']'
	}
	return '}'
}

// inString reads one token inside "…". A dollar takes the next byte with it,
// so that $${ is text, as in Nix.
func (l *lexer) inString() error {
	i := l.pos
	for i < len(l.src) {
		switch c := l.src[i]; {
		case c == '"', c == '$' && l.at(i+1) == '{':
			if i > l.pos {
				l.emit(tokText, i)
				return nil
			}
			if c == '$' {
				return l.open('$', tokInterpOpen, 2)
			}
			l.mode = l.mode[:len(l.mode)-1]
			l.emit(tokStrClose, i+1)
			return nil
		case c == '\\':
			i += 2
		case c == '$' && l.at(i+1) != '"' && l.at(i+1) != '\\':
			i += 2
		default:
			i++
		}
	}
	return l.unclosed()
}

// inIndented reads one token inside ”…”. The escapes are ”' and ”$ and
// ”\ with the byte after it.
func (l *lexer) inIndented() error {
	i := l.pos
	for i < len(l.src) {
		c, next := l.src[i], l.at(i+1)
		closing := c == '\'' && next == '\''
		switch {
		case closing && (l.at(i+2) == '\'' || l.at(i+2) == '$'):
			i += 3
		case closing && l.at(i+2) == '\\':
			i += 4
		case closing, c == '$' && next == '{':
			if i > l.pos {
				l.emit(tokText, i)
				return nil
			}
			if c == '$' {
				return l.open('$', tokInterpOpen, 2)
			}
			l.mode = l.mode[:len(l.mode)-1]
			l.emit(tokIndClose, i+2)
			return nil
		case c == '$' && next != '\'':
			i += 2
		default:
			i++
		}
	}
	return l.unclosed()
}

func (l *lexer) unclosed() error {
	top := l.mode[len(l.mode)-1]
	return syntaxAt(l.src, int(top.off), "this string is never closed")
}

func (l *lexer) span(i int, is func(byte) bool) int {
	for i < len(l.src) && is(l.src[i]) {
		i++
	}
	return i
}

// numberEnd measures an integer or a float.
func (l *lexer) numberEnd() int {
	i := l.span(l.pos, isDigit)
	if l.at(i) != '.' {
		return i
	}
	i = l.span(i+1, isDigit)
	if c := l.at(i); c == 'e' || c == 'E' {
		j := i + 1
		if c := l.at(j); c == '+' || c == '-' {
			j++
		}
		if isDigit(l.at(j)) {
			i = l.span(j, isDigit)
		}
	}
	return i
}

// The character classes of Nix's scanner.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isIdentStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}
func isIdent(c byte) bool { return isIdentStart(c) || isDigit(c) || c == '\'' || c == '-' }
func isPathByte(c byte) bool {
	return isIdentStart(c) || isDigit(c) || c == '.' || c == '-' || c == '+'
}
func isSchemeByte(c byte) bool {
	return isPathByte(c) && c != '_'
}
func isURIByte(c byte) bool {
	return isPathByte(c) || strings.IndexByte("%/?:@&=$,!~*'", c) >= 0
}
