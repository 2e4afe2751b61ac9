package pinfile

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
)

// cmakeReader reads the values of a CMake file into a tree.
type cmakeReader struct {
	*codeTree
	known map[string]text
}

// parseCMake reads a CMake file: set(NAME value) by name; what FetchContent
// and ExternalProject declare by the name they give it and the keyword, such
// as URL and URL_HASH; any other command by its own name and the keyword.
func parseCMake(src []byte, _ Options) (document, error) {
	if err := fitsIn(src, 1<<20); err != nil {
		return nil, err
	}
	t := newCodeTree(src)
	commands, err := (&cmakeLexer{t: t, src: src}).commands()
	if err != nil {
		return nil, err
	}
	r := &cmakeReader{codeTree: t, known: map[string]text{}}
	for _, c := range commands {
		r.command(c)
	}
	return t, nil
}

var cmakeKeyword = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

func (r *cmakeReader) keyword(a cmakeArg) bool {
	return a.kind == cmakeBare && cmakeKeyword.Match(r.src[a.start:a.end])
}

func (r *cmakeReader) word(a cmakeArg) string { return string(r.src[a.start:a.end]) }

func (r *cmakeReader) command(c cmakeCommand) {
	if len(c.args) == 0 {
		return
	}
	args := c.args
	switch strings.ToLower(c.name) {
	case "set":
		r.set(args)
	case "list", "string", "if", "elseif", "foreach", "while", "function", "macro", "message", "else", "endif":
		r.change(c)
	case "fetchcontent_declare", "externalproject_add":
		r.fields(r.child(r.root, r.word(args[0]), c.at), args[1:])
	default:
		r.fields(r.child(r.root, c.name, c.at), args)
	}
	for _, a := range args {
		r.link(r.text(a), a.start, "")
	}
}

// change forgets the variables that a command may change.
func (r *cmakeReader) change(c cmakeCommand) {
	if name := strings.ToLower(c.name); name != "list" && name != "string" && name != "foreach" {
		return
	}
	for _, a := range c.args {
		if _, ok := r.known[r.word(a)]; ok {
			r.lose(r.word(a))
		}
	}
}

func (r *cmakeReader) lose(name string) {
	var x text
	x.addUnknown(name)
	r.known[name] = x
}

// set reads set(NAME value… [CACHE …] [PARENT_SCOPE]).
func (r *cmakeReader) set(args []cmakeArg) {
	name := r.word(args[0])
	n := r.child(r.root, name, args[0].start)
	values := args[1:]
	cache := false
	for i, a := range values {
		if a.kind == cmakeBare && (r.word(a) == "CACHE" || r.word(a) == "PARENT_SCOPE") {
			cache = r.word(a) == "CACHE"
			values = values[:i]
			break
		}
	}
	r.values(n, values)
	if len(values) != 1 {
		r.lose(name)
		return
	}
	x := r.text(values[0])
	was, again := r.known[name]
	switch {
	case again && cache:
		// A cached value gives way to a variable of that name.
	case again && was.String() != x.String():
		r.lose(name)
	default:
		r.known[name] = x
	}
}

// values binds one value to n itself, and several to its items.
func (r *cmakeReader) values(n *codeNode, args []cmakeArg) {
	if len(args) == 1 {
		r.value(n, r.site(args[0]))
		return
	}
	for _, a := range args {
		r.value(r.listItem(n, a.start), r.site(a))
	}
}

// fields binds KEYWORD value… to n, and what stands before the first keyword to
// n's items.
func (r *cmakeReader) fields(n *codeNode, args []cmakeArg) {
	i := 0
	for ; i < len(args) && !r.keyword(args[i]); i++ {
		r.value(r.listItem(n, args[i].start), r.site(args[i]))
	}
	for i < len(args) {
		kid := r.child(n, r.word(args[i]), args[i].start)
		end := i + 1
		for end < len(args) && !r.keyword(args[end]) {
			end++
		}
		r.values(kid, args[i+1:end])
		i = end
	}
}

// text expands an argument.
func (r *cmakeReader) text(a cmakeArg) text {
	raw := r.src[a.start:a.end]
	var x text
	switch {
	case len(raw) > maxURL:
		x.addUnknown("long")
	case a.kind == cmakeBracket:
		x.add(string(raw), a.start, a.end)
	case bytes.IndexByte(raw, '\\') >= 0:
		x.add(unescapeShell(raw, ""), 0, 0)
	default:
		x = placeholders(raw, a.start, r.known, false)
	}
	if x.len() > maxURL {
		x = text{}
		x.addUnknown("long")
	}
	return x
}

func (r *cmakeReader) site(a cmakeArg) Site {
	start, end := a.start, a.end
	// URL_HASH and EXPECTED_HASH are ALGORITHM=hash; the pin is the hash.
	if i := bytes.IndexByte(r.src[start:end], '='); i > 0 {
		switch algo := string(r.src[start : start+i]); {
		case algo == "SHA256":
			start += i + 1
		case strings.HasPrefix(algo, "SHA") || algo == "MD5":
			return problemSite(start, end, r.word(a), "the value is a hash that is not SHA-256 (write it as SHA256=…)")
		}
	}
	raw := string(r.src[start:end])
	value := raw
	switch {
	case a.kind != cmakeBracket && (strings.Contains(raw, "${") || strings.Contains(raw, "$ENV{") || strings.Contains(raw, "$CACHE{") || strings.Contains(raw, "$<")):
		return problemSite(start, end, raw, "the value holds a variable (name the value that it is made of)")
	case strings.ContainsAny(raw, "\r\n"):
		return problemSite(start, end, raw, "the value goes over a line's end (write it on one line)")
	case a.kind == cmakeBare && strings.Contains(raw, `"`), a.kind != cmakeBracket && strings.Contains(raw, ";"):
		return problemSite(start, end, raw, `the value is made of several (write it as one "…")`)
	case a.kind != cmakeBracket && strings.Contains(raw, `\`):
		if strings.ContainsAny(strings.NewReplacer(`\\`, "", `\"`, "", `\$`, "").Replace(raw), `\`) {
			return problemSite(start, end, raw, "the value holds an escape that is not read (write it out)")
		}
		value = unescapeShell([]byte(raw), "")
	}
	whole := start == a.start
	return Site{Start: start, End: end, Value: value, Encode: func(v string) ([]byte, error) {
		return encodeCMake(a.kind, v, whole)
	}}
}

func encodeCMake(kind cmakeKind, v string, whole bool) ([]byte, error) {
	if err := oneLine(v); err != nil {
		return nil, err
	}
	if strings.Contains(v, ";") || whole && strings.Contains(v, "=") {
		return nil, errors.New("the new value holds a semicolon or an equals sign, which no pin does")
	}
	switch kind {
	case cmakeBracket:
		if strings.ContainsAny(v, "[]") {
			return nil, errors.New("the new value holds a bracket, and stands in [[…]]")
		}
		return []byte(v), nil
	case cmakeQuoted:
		return []byte(escapeBefore(v, "\\\"$")), nil
	}
	if shellBare.MatchString(v) && !cmakeKeyword.MatchString(v) {
		return []byte(v), nil
	}
	if !whole {
		return nil, errors.New("the new value needs quotes, and none stand around the old one")
	}
	return []byte(`"` + escapeBefore(v, "\\\"$") + `"`), nil
}
