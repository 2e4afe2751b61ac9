package fetch

import "strings"

// commented reports whether what follows before, the start of a script, stands
// in a comment. What looks like a comment in a string or in a regular
// expression is none.
func commented(before string) bool {
	last := byte(';') // the last byte that is no space
	for i := 0; i < len(before); i++ {
		rest := before[i:]
		n, ended := 0, true
		switch c := before[i]; {
		case strings.HasPrefix(rest, "//"):
			if n, ended = closed(rest, 2, "\n", false); !ended {
				return true
			}
		case strings.HasPrefix(rest, "/*"):
			if n, ended = closed(rest, 2, "*/", false); !ended {
				return true
			}
		case c == '"', c == '\'', c == '`':
			n, _ = closed(rest, 1, before[i:i+1], c != '`')
			last = c
		case c == '/' && strings.IndexByte("(,=:[!&|?{};+<>~^", last) >= 0:
			n, _ = closed(rest, 1, "/", true)
			last = c
		case strings.IndexByte(" \t\r\n\v\f", c) < 0:
			last = c
		}
		i += max(n-1, 0)
	}
	return false
}

// closed returns how long the comment or literal at the start of s is, and
// whether end was found, from the byte from on. In a literal a backslash hides
// the next byte; one of a single line ends with it at the latest, so that a
// quotation mark which is none does not swallow the rest.
func closed(s string, from int, end string, line bool) (n int, found bool) {
	for i := from; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], end):
			return i + len(end), true
		case line && s[i] == '\n':
			return i, true
		case from == 1 && s[i] == '\\':
			i++
		}
	}
	return len(s), false
}
