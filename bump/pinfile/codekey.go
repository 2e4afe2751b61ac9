package pinfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxKey bounds a key, in bytes.
const maxKey = 4096

// codeKey is a key of a set, read: the last components of a value's path, or
// the whole of it when the key began with a dot.
type codeKey struct {
	parts []codeKeyPart // outermost first
	whole bool
}

// codeKeyPart is a name and what selects among those that have it.
type codeKeyPart struct {
	name string
	sels []codeSel
}

// codeSel is [index] or [field=value].
type codeSel struct {
	index int // -1 for a field
	field string
	value string
}

func (k codeKey) last() string { return k.parts[len(k.parts)-1].name }

// parseCodeKey reads sha256, REDIST.gfx1151.sha256, sha256sums[0],
// http_archive[name=rocm].sha256, "a.b".c or .version.
func parseCodeKey(key string) (codeKey, error) {
	var k codeKey
	rest, whole := strings.CutPrefix(key, ".")
	k.whole = whole
	if len(key) > maxKey || !utf8.ValidString(key) {
		return k, fmt.Errorf("read key %.100q: it is too long or not UTF-8", key)
	}
	for {
		part, tail, err := cutCodePart(rest)
		if err != nil {
			return codeKey{}, fmt.Errorf("read key %.100q: %w", key, err)
		}
		k.parts = append(k.parts, part)
		if tail == "" {
			return k, nil
		}
		if tail[0] != '.' {
			return codeKey{}, fmt.Errorf("read key %.100q: a dot must follow %.100q", key, part.name)
		}
		rest = tail[1:]
	}
}

func cutCodePart(s string) (codeKeyPart, string, error) {
	name, rest, err := cutCodeName(s, ".[")
	if err != nil {
		return codeKeyPart{}, "", err
	}
	part := codeKeyPart{name: name}
	for strings.HasPrefix(rest, "[") {
		var sel codeSel
		if sel, rest, err = cutCodeSel(rest[1:]); err != nil {
			return codeKeyPart{}, "", err
		}
		part.sels = append(part.sels, sel)
	}
	return part, rest, nil
}

// cutCodeName reads one name, bare up to one of stops, or in double quotes.
func cutCodeName(s, stops string) (name, rest string, err error) {
	if strings.HasPrefix(s, `"`) {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				return unescapeNix(s[1:i]), s[i+1:], nil
			}
		}
		return "", "", errors.New("a quote is never closed")
	}
	if i := strings.IndexAny(s, stops); i >= 0 {
		s, rest = s[:i], s[i:]
	}
	if s == "" || strings.ContainsAny(s, "\"[]\n\r\t ") {
		return "", "", fmt.Errorf("%.100q is not a name (want a name, name[0], name[field=value], a dotted path, or \"quoted\" components)", s)
	}
	return s, rest, nil
}

// cutCodeSel reads a selector after its bracket.
func cutCodeSel(s string) (codeSel, string, error) {
	field, rest, err := cutCodeName(s, "=]")
	if err != nil {
		return codeSel{}, "", err
	}
	sel := codeSel{index: -1, field: field}
	if value, ok := strings.CutPrefix(rest, "="); ok {
		if sel.value, rest, err = cutCodeName(value, "]"); err != nil {
			return codeSel{}, "", err
		}
	} else if sel.index, err = strconv.Atoi(field); err != nil || sel.index < 0 {
		return codeSel{}, "", fmt.Errorf("[%.50s] selects nothing (want [0] or [field=value])", field)
	}
	rest, ok := strings.CutPrefix(rest, "]")
	if !ok {
		return codeSel{}, "", errors.New("a bracket is never closed")
	}
	return sel, rest, nil
}

// isCodeBare reports whether a name can stand in a key without quotes.
func isCodeBare(s string) bool {
	return s != "" && !strings.ContainsAny(s, ".\"[]= \t\r\n\\") && utf8.ValidString(s)
}

func quoteCodeName(s string) string {
	if isCodeBare(s) {
		return s
	}
	return escapeNix(s)
}
