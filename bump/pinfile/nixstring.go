package pinfile

import "strings"

// unescapeNix returns the value of what stands between the quotes of a plain
// Nix string: \n, \r and \t are control characters, any other escaped byte is
// itself, and the line ends CR and CR LF are read as LF.
func unescapeNix(raw string) string {
	if !strings.ContainsAny(raw, "\\\r") {
		return raw
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '\\' && i+1 < len(raw):
			i++
			b.WriteByte(unescapeByte(raw[i]))
		case c == '\r':
			if i+1 < len(raw) && raw[i+1] == '\n' {
				i++
			}
			b.WriteByte('\n')
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescapeByte(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// escapeNix returns s as a Nix string, quotes included.
func escapeNix(s string) string { return `"` + escapeNixText(s) + `"` }

// escapeNixText returns s as it stands between the quotes of a Nix string.
func escapeNixText(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\', c == '$' && i+1 < len(s) && s[i+1] == '{':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// isIndentedPlain reports whether text between two quotes on both sides means
// itself: Nix strips spaces and lines at the beginning of such a string, and
// reads the escapes two quotes and $, two quotes and \, three quotes, and $$.
func isIndentedPlain(text string) bool {
	return !strings.ContainsAny(text, "\n\r$") && !strings.Contains(text, "''") &&
		!strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "\t") && !strings.HasSuffix(text, "'")
}
