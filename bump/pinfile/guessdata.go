package pinfile

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// maxGuessDepth bounds how deep values nest.
const maxGuessDepth = 64

// jsonFacts reads strings and numbers.
func jsonFacts(src []byte) []fact {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	r := jsonReader{dec: dec, src: src}
	if !r.value(nil) {
		return nil
	}
	return r.out
}

type jsonReader struct {
	dec *json.Decoder
	src []byte
	out []fact
}

// value reads one; it reports whether it could.
func (r *jsonReader) value(path []string) bool {
	tok, err := r.dec.Token()
	if err != nil || len(path) > maxGuessDepth {
		return false
	}
	text := ""
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return r.object(path)
		}
		return r.list(path)
	case string:
		text = tok
	case json.Number:
		text = tok.String()
	default:
		return true
	}
	r.out = append(r.out, fact{path: path, value: text, at: max(0, int(r.dec.InputOffset())-1)})
	return len(r.out) <= maxFacts
}

func (r *jsonReader) object(path []string) bool {
	for r.dec.More() {
		key, err := r.dec.Token()
		name, ok := key.(string)
		if err != nil || !ok || !r.value(append(path[:len(path):len(path)], name)) {
			return false
		}
	}
	_, err := r.dec.Token()
	return err == nil
}

func (r *jsonReader) list(path []string) bool {
	for i := 0; r.dec.More(); i++ {
		if !r.value(append(path[:len(path):len(path)], itemOf(i))) {
			return false
		}
	}
	_, err := r.dec.Token()
	return err == nil
}

// yamlLine is a line of block style: its dashes, a name and a scalar.
var yamlLine = regexp.MustCompile(`\A( *)((?:- +)*)(?:("[^"\\]*"|'[^']*'|[A-Za-z0-9_./-]+(?: [A-Za-z0-9_./-]+)*) *:(?: +|\z))?(.*)\z`)

// yamlLevel is a mapping, or a list, that lines stand in.
type yamlLevel struct {
	indent int // column of its names or dashes
	name   string
	item   int // index, for a list; -1 for a mapping
}

// yamlFacts reads mappings and lists in block style, with a scalar on one line:
// how pins are written. Anything else is passed over.
func yamlFacts(src []byte) []fact {
	var out []fact
	var stack []yamlLevel
	at := 0
	for line := range strings.Lines(string(src)) {
		start := at
		at += len(line)
		m := yamlLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil || strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		col := len(m[1])
		for range strings.Count(m[2], "-") {
			stack = yamlItem(stack, col)
			col += len("- ")
		}
		if m[3] != "" {
			stack = append(yamlCut(stack, col), yamlLevel{col, strings.Trim(m[3], `"'`), -1})
		}
		if len(stack) > maxGuessDepth {
			return nil
		}
		if v, ok := yamlScalar(m[4]); ok && (m[3] != "" || m[2] != "") {
			out = append(out, fact{path: yamlPath(stack), value: v, at: start + strings.LastIndex(line, m[4])})
		}
	}
	return out
}

// yamlCut leaves what is around a name at a column.
func yamlCut(stack []yamlLevel, col int) []yamlLevel {
	for len(stack) > 0 && stack[len(stack)-1].indent >= col {
		stack = stack[:len(stack)-1]
	}
	return stack
}

// yamlItem goes on to the next item of the list whose dashes are at a column.
func yamlItem(stack []yamlLevel, col int) []yamlLevel {
	for n := len(stack); n > 0; n-- {
		top := &stack[n-1]
		switch {
		case top.item >= 0 && top.indent == col:
			top.item++
			return stack[:n]
		case top.indent < col || top.item < 0 && top.indent == col:
			return append(stack[:n], yamlLevel{col, "", 0})
		}
	}
	return append(stack[:0], yamlLevel{col, "", 0})
}

func yamlPath(stack []yamlLevel) []string {
	out := make([]string, 0, len(stack))
	for _, l := range stack {
		if l.item >= 0 {
			out = append(out, itemOf(l.item))
		} else {
			out = append(out, l.name)
		}
	}
	return out
}

// yamlScalar decodes a value; what is no plain scalar on its line is none.
func yamlScalar(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if s == "" || strings.ContainsRune("|>&*!{[#", rune(s[0])) {
		return "", false
	}
	if q := s[0]; q == '"' || q == '\'' {
		end := strings.IndexByte(s[1:], q)
		if end < 0 || strings.Contains(s[1:1+end], `\`) {
			return "", false
		}
		return s[1 : 1+end], true
	}
	if i := strings.Index(s, " #"); i >= 0 {
		s = strings.TrimSpace(s[:i])
	}
	return s, true
}

var (
	tomlTable = regexp.MustCompile(`\A\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?\z`)
	tomlValue = regexp.MustCompile(`\A\s*([A-Za-z0-9_."' -]+?)\s*=\s*("[^"\\]*"|'[^']*'|[0-9]+)\s*(?:#.*)?\z`)
	tomlName  = regexp.MustCompile(`"[^"\\]*"|'[^']*'|[A-Za-z0-9_-]+`)
)

// tomlFacts reads tables and strings on one line. A line in a string of several
// lines that looks like one counts too, as in shellFacts.
func tomlFacts(src []byte) []fact {
	var out []fact
	var table []string
	count := map[string]int{}
	at := 0
	for line := range strings.Lines(string(src)) {
		start := at
		at += len(line)
		text := strings.TrimRight(line, "\r\n")
		if m := tomlTable.FindStringSubmatch(text); m != nil {
			table = tomlPath(m[2])
			if m[1] == "[[" {
				name := strings.Join(table, "\x00")
				table = append(table, itemOf(count[name]))
				count[name]++
			}
			continue
		}
		if m := tomlValue.FindStringSubmatch(text); m != nil {
			path := append(table[:len(table):len(table)], tomlPath(m[1])...)
			out = append(out, fact{path: path, value: strings.Trim(m[2], `"'`), at: start + strings.LastIndex(line, m[2])})
		}
	}
	return out
}

func tomlPath(s string) []string {
	var out []string
	for _, name := range tomlName.FindAllString(s, maxGuessDepth) {
		out = append(out, strings.Trim(name, `"'`))
	}
	return out
}
