package pinfile

import (
	"errors"
	"strconv"
	"strings"
)

// pySite is the value of one string literal, between its quotes.
func pySite(src []byte, tok pyToken) Site {
	end := tok.end - len(tok.quote)
	raw := string(src[tok.body:end])
	switch {
	case strings.Contains(tok.prefix, "f"):
		return problemSite(tok.body, end, raw, "the value is an f-string (name the value that it is made of)")
	case strings.Contains(tok.prefix, "b"):
		return problemSite(tok.body, end, raw, "the value is of bytes (write it as \"…\")")
	case len(tok.quote) == 3:
		return problemSite(tok.body, end, raw, `the value is in triple quotes (write it as "…")`)
	}
	rawKind := strings.Contains(tok.prefix, "r")
	value, ok := raw, true
	if !rawKind {
		value, ok = unescapePython(raw)
	}
	if !ok {
		return problemSite(tok.body, end, raw, "the string holds an escape that is not read (write it out)")
	}
	return Site{Start: tok.body, End: end, Value: value, Encode: func(v string) ([]byte, error) {
		if rawKind && (strings.Contains(v, "\\") || strings.Contains(v, tok.quote)) {
			return nil, errors.New("the new value holds a quote or a backslash, which a raw string cannot")
		}
		return []byte(escapeBefore(v, "\\"+tok.quote)), oneLine(v)
	}}
}

// unescapePython decodes the escapes that Python and Starlark share; ok is
// false where there is another.
func unescapePython(raw string) (value string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b.WriteByte(raw[i])
			continue
		}
		if i++; i == len(raw) {
			return "", false
		}
		switch c := raw[i]; c {
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case '\n':
		case 'x', 'u':
			size := 2
			if c == 'u' {
				size = 4
			}
			if i+size >= len(raw) {
				return "", false
			}
			n, err := strconv.ParseUint(raw[i+1:i+1+size], 16, 32)
			if err != nil || c == 'x' && n > 0x7f {
				return "", false
			}
			b.WriteRune(rune(n))
			i += size
		default:
			return "", false
		}
	}
	return b.String(), true
}
