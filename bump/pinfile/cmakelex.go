package pinfile

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// cmakeCommand is name(arguments).
type cmakeCommand struct {
	name string
	at   int
	args []cmakeArg
}

type cmakeKind uint8

const (
	cmakeBare cmakeKind = iota
	cmakeQuoted
	cmakeBracket
)

// cmakeArg is an argument; start and end are those of its text.
type cmakeArg struct {
	kind       cmakeKind
	start, end int
}

var bracketOpen = regexp.MustCompile(`^\[(=*)\[`)

// cmakeLexer reads the language of cmake-language(7).
type cmakeLexer struct {
	t   *codeTree
	src []byte
	i   int
}

func (l *cmakeLexer) commands() ([]cmakeCommand, error) {
	var out []cmakeCommand
	for {
		if err := l.space(); err != nil {
			return nil, err
		}
		if l.i >= len(l.src) {
			return out, nil
		}
		at := l.i
		for l.i < len(l.src) && isWordByte(l.src[l.i]) {
			l.i++
		}
		name := string(l.src[at:l.i])
		if err := l.space(); err != nil {
			return nil, err
		}
		if name == "" || l.i >= len(l.src) || l.src[l.i] != '(' {
			return nil, syntaxAt(l.src, at, "a command, which is name(…), is wanted here")
		}
		l.i++
		args, err := l.args(at)
		if err != nil {
			return nil, err
		}
		out = append(out, cmakeCommand{name, at, args})
	}
}

// space steps over blanks and comments.
func (l *cmakeLexer) space() error {
	for l.i < len(l.src) {
		switch c := l.src[l.i]; {
		case isSpace(c) || c == ';':
			l.i++
		case c == '#':
			end := l.i + lineLen(l.src[l.i:])
			if m := bracketOpen.FindSubmatch(l.src[l.i+1:]); m != nil {
				n := bytes.Index(l.src[l.i:], []byte("]"+string(m[1])+"]"))
				if n < 0 {
					return syntaxAt(l.src, l.i, "a comment is never closed")
				}
				end = l.i + n + len(m[1]) + 2
			}
			l.t.comment(l.i, end)
			l.i = end
		case bytes.HasPrefix(l.src[l.i:], []byte("\ufeff")) && l.i == 0:
			l.i = 3
		default:
			return nil
		}
	}
	return nil
}

func (l *cmakeLexer) args(at int) ([]cmakeArg, error) {
	var out []cmakeArg
	for depth := 1; ; {
		if err := l.space(); err != nil {
			return nil, err
		}
		if l.i >= len(l.src) {
			return nil, syntaxAt(l.src, at, "the bracket of this command is never closed")
		}
		switch c := l.src[l.i]; {
		case c == '(':
			depth++
			l.i++
		case c == ')':
			l.i++
			if depth--; depth == 0 {
				return out, nil
			}
		case c == '"':
			a, err := l.quoted()
			if err != nil {
				return nil, err
			}
			out = append(out, a)
		default:
			a, err := l.bare()
			if err != nil {
				return nil, err
			}
			out = append(out, a)
		}
	}
}

func (l *cmakeLexer) quoted() (cmakeArg, error) {
	start := l.i + 1
	for i := start; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '"':
			l.i = i + 1
			return cmakeArg{cmakeQuoted, start, i}, nil
		}
	}
	return cmakeArg{}, syntaxAt(l.src, l.i, "a string is never closed")
}

func (l *cmakeLexer) bare() (cmakeArg, error) {
	start := l.i
	if m := bracketOpen.FindSubmatch(l.src[l.i:]); m != nil {
		start += len(m[0])
		n := bytes.Index(l.src[start:], []byte("]"+string(m[1])+"]"))
		if n < 0 {
			return cmakeArg{}, syntaxAt(l.src, l.i, fmt.Sprintf("a %s is never closed", m[0]))
		}
		l.i = start + n + len(m[0])
		return cmakeArg{cmakeBracket, start, start + n}, nil
	}
	i := start
	for ; i < len(l.src) && !isSpace(l.src[i]) && strings.IndexByte("()#;", l.src[i]) < 0; i++ {
		switch l.src[i] {
		case '\\':
			i++
		case '"':
			// The older form a"b c"d.
			n := bytes.IndexByte(l.src[i+1:], '"')
			if n < 0 {
				return cmakeArg{}, syntaxAt(l.src, i, "a string is never closed")
			}
			i += n + 1
		}
	}
	l.i = min(max(i, start+1), len(l.src))
	return cmakeArg{cmakeBare, start, l.i}, nil
}
