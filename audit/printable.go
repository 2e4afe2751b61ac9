package audit

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// printable is f with nothing in it that a terminal obeys or a log takes for a
// new line. Two names that differ stay different in Path and Subject, by which a
// finding is known again.
func (f Finding) printable() Finding {
	f.Path, f.Subject = printableName(f.Path), printableName(f.Subject)
	f.Detail, f.Hint = printable(f.Detail), printable(f.Hint)
	return f
}

// printable writes control characters, invisible ones, those that turn the
// direction of writing, and bytes that are not UTF-8 as escapes of Go.
func printable(s string) string {
	if isPrintable(s) {
		return s
	}
	var b strings.Builder
	for rest := s; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		if isPrintable(rest[:n]) {
			b.WriteRune(r)
		} else {
			q := strconv.Quote(rest[:n])
			b.WriteString(q[1 : len(q)-1])
		}
		rest = rest[n:]
	}
	return b.String()
}

func isPrintable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0
}

// printableName is printable for a name: with its backslashes doubled, no other
// name looks like it.
func printableName(s string) string {
	return printable(strings.ReplaceAll(s, `\`, `\\`))
}
