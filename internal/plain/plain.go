package plain

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is s with what is no plain text in it written as escapes of Go ("\x1b").
func Text(s string) string {
	if Is(s) {
		return s
	}
	var b strings.Builder
	for rest := s; rest != ""; {
		_, n := utf8.DecodeRuneInString(rest)
		if Is(rest[:n]) {
			b.WriteString(rest[:n])
		} else {
			q := strconv.Quote(rest[:n])
			b.WriteString(q[1 : len(q)-1])
		}
		rest = rest[n:]
	}
	return b.String()
}

// Name is Text for a name by which something is known again: its backslashes are
// doubled, so that two names that differ stay different.
func Name(s string) string { return Text(strings.ReplaceAll(s, `\`, `\\`)) }

// Is reports whether Text leaves s as it is.
func Is(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) < 0
}

// Cut is Text of at most about limit bytes; an ellipsis stands for the rest. No
// more of s is read than that takes.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		if t := Text(s); len(t) <= limit {
			return t
		}
	}
	at := min(limit, len(s))
	for at > 0 && at < len(s) && !utf8.RuneStart(s[at]) {
		at--
	}
	t := Text(s[:at])
	if len(t) <= limit {
		return t + "…"
	}
	at = limit
	for at > 0 && !utf8.RuneStart(t[at]) {
		at--
	}
	return t[:at] + "…"
}
