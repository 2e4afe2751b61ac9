package pinfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

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

// attrKey is a key of File.Set: the last components of a binding's path, or
// the whole of it when the key began with a dot.
type attrKey struct {
	names []string // outermost first
	whole bool
}

// parseKey reads version, pins.gfx1151.version, pins."gfx1151".version or
// .version.
func parseKey(key string) (attrKey, error) {
	var k attrKey
	if !utf8.ValidString(key) {
		return k, fmt.Errorf("read key %.100q: it is not UTF-8", key)
	}
	rest, whole := strings.CutPrefix(key, ".")
	k.whole = whole
	for {
		name, tail, err := cutName(rest)
		if err == nil && !utf8.ValidString(name) {
			err = errors.New("a component is not UTF-8")
		}
		if err != nil {
			return attrKey{}, fmt.Errorf("read key %.100q: %w", key, err)
		}
		k.names = append(k.names, name)
		if tail == "" {
			return k, nil
		}
		if tail[0] != '.' {
			return attrKey{}, fmt.Errorf("read key %.100q: a dot must follow %.100q", key, name)
		}
		rest = tail[1:]
	}
}

// cutName reads one component, bare or in double quotes.
func cutName(s string) (name, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				return unescapeNix(s[1:i]), s[i+1:], nil
			}
		}
		return "", "", fmt.Errorf("a quote is never closed")
	}
	name, _, _ = strings.Cut(s, ".")
	if !isBareName(name) && !isNumbered(name) {
		return "", "", fmt.Errorf("%.100q is not an attribute name (want a name, a dotted path, or \"quoted\" components)", name)
	}
	return name, s[len(name):], nil
}

// isNumbered accepts names such as 7zip, which Nix wants quoted and people
// write without.
func isNumbered(s string) bool {
	return s != "" && isDigit(s[0]) && isBareName("_"+s)
}

// matches reports whether k names the binding at n.
func (k attrKey) matches(n *attrNode) bool {
	for i := len(k.names) - 1; i >= 0; i-- {
		if n == nil || n.dynamic || n.name != k.names[i] {
			return false
		}
		n = n.parent
	}
	return !k.whole || n == nil
}

// last is the name of the binding itself.
func (k attrKey) last() string { return k.names[len(k.names)-1] }
