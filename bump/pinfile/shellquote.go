package pinfile

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	shellComputed = "the value is computed when the script runs (name the value that it is made of)"
	shellMixed    = "the value is made of several quoted parts (write it in one pair of quotes)"
)

// shellSite is the value at w, whose bytes are those between the quotes, or
// the whole word where there are none. end is where the value would stand if w
// is nil.
func shellSite(src []byte, w *syntax.Word, end int, inList bool) Site {
	if w == nil || len(w.Parts) == 0 {
		return bareShellSite(src[end:end], end, inList)
	}
	start, stop := offsetOf(src, w.Pos()), offsetOf(src, w.End())
	raw := src[start:stop]
	if len(w.Parts) > 1 {
		return problemSite(start, stop, string(raw), partsProblem(w.Parts))
	}
	switch p := w.Parts[0].(type) {
	case *syntax.Lit:
		return bareShellSite(raw, start, inList)
	case *syntax.SglQuoted:
		if p.Dollar || !quotedBy(raw, '\'') {
			return problemSite(start, stop, string(raw), `the value is a $'…' string (write it as '…')`)
		}
		return singleShellSite(raw, start)
	case *syntax.DblQuoted:
		if p.Dollar || !quotedBy(raw, '"') {
			return problemSite(start, stop, string(raw), `the value is a $"…" string (write it as "…")`)
		}
		for _, q := range p.Parts {
			if _, lit := q.(*syntax.Lit); !lit {
				return problemSite(start, stop, string(raw), shellComputed)
			}
		}
		return doubleShellSite(raw, start)
	}
	return problemSite(start, stop, string(raw), shellComputed)
}

func partsProblem(parts []syntax.WordPart) string {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if _, lit := q.(*syntax.Lit); !lit {
					return shellComputed
				}
			}
		default:
			return shellComputed
		}
	}
	return shellMixed
}

func quotedBy(raw []byte, quote byte) bool {
	return len(raw) >= 2 && raw[0] == quote && raw[len(raw)-1] == quote
}

// shellBare is what needs no quotes anywhere in a script.
var shellBare = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-]+$`)

func bareShellSite(raw []byte, start int, inList bool) Site {
	value := unescapeShell(raw, "")
	switch {
	case strings.HasPrefix(string(raw), "~"), inList && hasGlob(string(raw)):
		return problemSite(start, start+len(raw), value, shellComputed)
	case bytes.IndexByte(raw, '\r') >= 0:
		return problemSite(start, start+len(raw), value, "a carriage return stands in the value (shell wants lines that end in LF alone)")
	}
	return Site{Start: start, End: start + len(raw), Value: value, Encode: func(v string) ([]byte, error) {
		if err := oneLine(v); err != nil {
			return nil, err
		}
		if shellBare.MatchString(v) {
			return []byte(v), nil
		}
		if strings.Contains(v, "'") {
			return nil, errors.New("the new value holds a single quote, which no pin does")
		}
		return []byte("'" + v + "'"), nil
	}}
}

func singleShellSite(raw []byte, start int) Site {
	return Site{Start: start + 1, End: start + len(raw) - 1, Value: string(raw[1 : len(raw)-1]), Encode: func(v string) ([]byte, error) {
		if strings.Contains(v, "'") {
			return nil, errors.New("the new value holds a single quote, which no string in single quotes can")
		}
		return []byte(v), oneLine(v)
	}}
}

func doubleShellSite(raw []byte, start int) Site {
	return Site{Start: start + 1, End: start + len(raw) - 1, Value: unescapeShell(raw[1:len(raw)-1], "$`\"\\"), Encode: func(v string) ([]byte, error) {
		return []byte(escapeBefore(v, "$`\"\\")), oneLine(v)
	}}
}

// escapeBefore puts a backslash before each byte of which.
func escapeBefore(v, which string) string {
	var b strings.Builder
	for i := range len(v) {
		if strings.IndexByte(which, v[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(v[i])
	}
	return b.String()
}

// unescapeShell takes the backslashes off raw: before any byte, or only before
// those of which, as in double quotes. A line that is continued is one line.
func unescapeShell(raw []byte, which string) string {
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' && i+1 < len(raw) {
			if raw[i+1] == '\n' {
				i++
				continue
			}
			if which == "" || strings.IndexByte(which, raw[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(raw[i])
	}
	return b.String()
}

// hasGlob reports whether an unquoted text names files or several words.
func hasGlob(raw string) bool {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '*', '?', '[', '{':
			return true
		}
	}
	return false
}

// plainIndex is the text of an index that is written out.
func plainIndex(src []byte, index syntax.ArithmExpr) (string, bool) {
	w, ok := index.(*syntax.Word)
	if !ok {
		return "", false
	}
	s := shellSite(src, w, 0, false)
	return s.Value, s.Problem == ""
}

// dashedRE matches an index such as gfx110X-all: a difference in a list, and a
// name in an associative one.
var dashedRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)+$`)

// nameIndex is the text of an index that is written out, where it is a name.
func nameIndex(src []byte, index syntax.ArithmExpr) (string, bool) {
	if key, ok := plainIndex(src, index); ok {
		return key, true
	}
	if _, sum := index.(*syntax.BinaryArithm); !sum {
		return "", false
	}
	raw := string(src[offsetOf(src, index.Pos()):offsetOf(src, index.End())])
	return raw, dashedRE.MatchString(raw)
}

// smallInt reads the index of a list, which nobody's list has many of.
func smallInt(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n < 1<<20 && s == strconv.Itoa(n)
}
