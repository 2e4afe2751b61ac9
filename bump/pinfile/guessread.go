package pinfile

import (
	"bytes"
	"path"
	"regexp"
	"strings"

	"go.starlark.net/syntax"
)

// guessFormats are names of files, as path.Match takes them, for formats that a
// guess can read.
var guessFormats = []struct {
	format string
	names  []string
}{
	{"nix", []string{"*.nix"}},
	{"pkgbuild", []string{"PKGBUILD"}},
	{"json", []string{"*.json"}},
	{"yaml", []string{"*.yaml", "*.yml"}},
	{"toml", []string{"*.toml"}},
	{"dockerfile", []string{"Dockerfile", "Dockerfile.*", "*.Dockerfile", "Containerfile", "Containerfile.*"}},
	{"starlark", []string{"*.bzl", "BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel"}},
	{"shell", []string{"*.sh", "*.bash", "*.env", ".env"}},
}

func guessFormat(name string) string {
	if f := FormatOf(name); f != "" {
		return f
	}
	base := path.Base(name)
	for _, f := range guessFormats {
		for _, pattern := range f.names {
			if ok, err := path.Match(pattern, base); err == nil && ok {
				return f.format
			}
		}
	}
	return ""
}

// factsOf reads a file just as far as a guess needs it. What it takes for a
// value and is none, an edit refuses later.
func factsOf(format string, src []byte) []fact {
	switch format {
	case "nix":
		return nixFacts(src)
	case "json":
		return jsonFacts(src)
	case "yaml":
		return yamlFacts(src)
	case "toml":
		return tomlFacts(src)
	case "pkgbuild", "shell", "dockerfile":
		return shellFacts(src, format == "dockerfile")
	case "starlark":
		return starlarkFacts(src)
	}
	return nil
}

// maxComputed bounds what is looked at of an expression, in bytes.
const maxComputed = 4 << 10

func nixFacts(src []byte) []fact {
	bindings, _, err := scanNix(src)
	if err != nil {
		return nil
	}
	var out []fact
	for _, b := range bindings {
		var names []string
		for n := b.path; n != nil; n = n.parent {
			name := n.name
			if n.dynamic {
				name = computed
			}
			names = append([]string{name}, names...)
		}
		f := fact{path: names, at: int(b.off)}
		switch b.kind {
		case valPlain:
			f.value = unescapeNix(string(src[b.off:b.end]))
		case valInterp, valCompound, valIndented:
			text := src[b.off:min(len(src), int(b.off)+maxComputed)]
			if end := bytes.IndexByte(text, ';'); end >= 0 {
				text = text[:end]
			}
			f.value, f.computed = string(text), true
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

var (
	// assignRE matches NAME=WORD of shells and Dockerfiles at the beginning of a
	// statement, and NAME=( of a list.
	assignRE = regexp.MustCompile(`(?m)(?:^[ \t]*|;[ \t]*)(?:(?:export|readonly|local|declare(?:[ \t]+-\w+)*|ARG|ENV)[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=(\(|'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|[^\s'"()#;]*)`)
	// envRE is the old form, ENV NAME WORD.
	envRE = regexp.MustCompile(`(?m)^[ \t]*ENV[ \t]+([A-Za-z_][A-Za-z0-9_]*)[ \t]+([^\s='"]+)[ \t]*$`)
	// wordRE matches a word in a list, or a comment.
	wordRE = regexp.MustCompile(`#[^\n]*|'[^']*'|"(?:[^"\\]|\\.)*"|[^\s'"()#]+`)
)

// shellFacts reads assignments. A line of a here-document that looks like one
// counts too: then there are two, and no key tells them apart.
func shellFacts(src []byte, docker bool) []fact {
	var out []fact
	text := string(src)
	for _, m := range assignRE.FindAllStringSubmatchIndex(text, maxFacts) {
		name, word := text[m[2]:m[3]], text[m[4]:m[5]]
		if word != "(" {
			out = append(out, shellWord([]string{name}, word, m[4]))
			continue
		}
		end := strings.IndexByte(text[m[5]:], ')')
		if end < 0 {
			continue
		}
		n := 0
		for _, w := range wordRE.FindAllStringIndex(text[m[5]:m[5]+end], maxFacts) {
			item := text[m[5]+w[0] : m[5]+w[1]]
			if item[0] == '#' {
				continue
			}
			out = append(out, shellWord([]string{name, itemOf(n)}, item, m[5]+w[0]))
			n++
		}
	}
	if docker {
		for _, m := range envRE.FindAllStringSubmatchIndex(text, maxFacts) {
			out = append(out, shellWord([]string{text[m[2]:m[3]]}, text[m[4]:m[5]], m[4]))
		}
	}
	return out
}

func shellWord(path []string, word string, at int) fact {
	f := fact{path: path, at: at, value: word, computed: word != "" && word[0] != '\'' && strings.ContainsAny(word, "$`\\")}
	if len(word) >= 2 && (word[0] == '\'' || word[0] == '"') {
		f.value = word[1 : len(word)-1]
	}
	return f
}

// maxStarlark bounds what is parsed, for the parser calls itself for each
// bracket and sign.
const maxStarlark = 128 << 10

// starlarkFacts reads literals: assigned ones, those of dicts and lists, and
// arguments of calls by name.
func starlarkFacts(src []byte) []fact {
	if len(src) > maxStarlark {
		return nil
	}
	file, err := (&syntax.FileOptions{}).Parse("file", src, 0)
	if err != nil {
		return nil
	}
	w := starlarkWalk{lines: lineStarts(src)}
	for _, s := range file.Stmts {
		switch s := s.(type) {
		case *syntax.AssignStmt:
			if id, ok := s.LHS.(*syntax.Ident); ok {
				w.expr([]string{id.Name}, s.RHS)
			}
		case *syntax.ExprStmt:
			if call, ok := s.X.(*syntax.CallExpr); ok {
				w.call(nil, call)
			}
		}
	}
	return w.out
}

type starlarkWalk struct {
	lines []int // offset of each line
	out   []fact
}

func (w *starlarkWalk) expr(path []string, e syntax.Expr) {
	down := func(name string) []string { return append(path[:len(path):len(path)], name) }
	switch e := e.(type) {
	case *syntax.Literal:
		if s, ok := e.Value.(string); ok {
			w.add(path, s, e, false)
		} else if e.Token == syntax.INT {
			w.add(path, e.Raw, e, false)
		}
	case *syntax.DictExpr:
		for _, entry := range e.List {
			if d, ok := entry.(*syntax.DictEntry); ok {
				if key, ok := d.Key.(*syntax.Literal); ok {
					if name, ok := key.Value.(string); ok {
						w.expr(down(name), d.Value)
					}
				}
			}
		}
	case *syntax.ListExpr:
		for i, x := range e.List {
			w.expr(down(itemOf(i)), x)
		}
	case *syntax.CallExpr:
		if _, method := e.Fn.(*syntax.DotExpr); method {
			w.computed(path, e)
			return
		}
		w.args(path, e)
	case *syntax.ParenExpr:
		w.expr(path, e.X)
	case *syntax.BinaryExpr:
		w.computed(path, e)
	}
}

// computed keeps the first literal of an expression, which tells whose address
// it is.
func (w *starlarkWalk) computed(path []string, e syntax.Expr) {
	first := true
	syntax.Walk(e, func(n syntax.Node) bool {
		if l, ok := n.(*syntax.Literal); ok && first {
			if s, ok := l.Value.(string); ok {
				w.add(path, s, l, true)
				first = false
			}
		}
		return first
	})
}

// call reads a statement that is a call: http_archive(name = "x", …).
func (w *starlarkWalk) call(path []string, c *syntax.CallExpr) {
	name := ""
	switch fn := c.Fn.(type) {
	case *syntax.Ident:
		name = fn.Name
	case *syntax.DotExpr:
		name = fn.Name.Name
	default:
		return
	}
	path = append(path[:len(path):len(path)], name)
	for _, a := range c.Args {
		if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			id, isID := b.X.(*syntax.Ident)
			lit, isLit := b.Y.(*syntax.Literal)
			if isID && isLit && id.Name == "name" {
				if s, ok := lit.Value.(string); ok && isBareName(s) {
					path = append(path, "[name="+s+"]")
				}
			}
		}
	}
	w.args(path, c)
}

func (w *starlarkWalk) args(path []string, c *syntax.CallExpr) {
	for _, a := range c.Args {
		if b, ok := a.(*syntax.BinaryExpr); ok && b.Op == syntax.EQ {
			if id, ok := b.X.(*syntax.Ident); ok {
				w.expr(append(path[:len(path):len(path)], id.Name), b.Y)
			}
		}
	}
}

func (w *starlarkWalk) add(path []string, value string, n syntax.Node, computed bool) {
	start, _ := n.Span()
	at := 0
	if line := int(start.Line) - 1; line >= 0 && line < len(w.lines) {
		at = w.lines[line] + int(start.Col) - 1 // by characters, which is near enough for a line
	}
	w.out = append(w.out, fact{path: path, value: value, at: at, computed: computed})
}

func lineStarts(src []byte) []int {
	out := []int{0}
	for i, c := range src {
		if c == '\n' {
			out = append(out, i+1)
		}
	}
	return out
}
