package pinfile

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// dockerBare is what needs no quotes in an instruction.
var dockerBare = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]*$`)

// dockerReader reads the values of a Dockerfile into a tree.
type dockerReader struct {
	*codeTree
	lex    *dockerLexer
	stage  *codeNode
	stages int
	global map[string]text            // ARGs before the first FROM
	known  map[string]text            // what the stage has
	env    map[string]text            // of it, what a stage on top inherits
	named  map[string]map[string]text // env by the stage's name
}

// parseDockerfile reads a Dockerfile: ARG, ENV and LABEL by name, below the
// name or number of their stage once there was a FROM, and the checksum and
// url of ADD.
func parseDockerfile(src []byte, _ Options) (document, error) {
	if err := fitsIn(src, 1<<20); err != nil {
		return nil, err
	}
	t := newCodeTree(src)
	r := &dockerReader{codeTree: t, lex: newDockerLexer(t), stage: t.root, global: map[string]text{}, named: map[string]map[string]text{}}
	r.known = r.global
	for {
		line, ok := r.lex.next()
		if !ok {
			return t, nil
		}
		r.instruction(line)
	}
}

func (r *dockerReader) instruction(line dockerLine) {
	switch line.word {
	case "FROM":
		r.from(line)
	case "ARG":
		for _, w := range line.words {
			r.arg(w)
		}
	case "ENV", "LABEL":
		r.pairs(line)
	case "ADD":
		r.add(line)
	}
	if line.word != "ENV" && line.word != "ARG" && line.word != "LABEL" {
		r.linkRun(line.rest.start, line.rest.end)
	}
	for _, end := range line.docs {
		for _, l := range r.lex.heredoc(end) {
			r.link(placeholders(r.src[l[0]:l[1]], l[0], r.known, true), l[0], "")
		}
	}
}

// linkRun notes the addresses of a whole instruction. No address goes over a
// line's end.
func (r *dockerReader) linkRun(start, end int) {
	for start < end {
		n := min(lineLen(r.src[start:]), end-start)
		r.link(placeholders(r.src[start:start+n], start, r.known, true), start, "")
		start += n + 1
	}
}

func (r *dockerReader) from(line dockerLine) {
	words := line.words
	for len(words) > 0 && strings.HasPrefix(r.text(words[0]), "--") {
		words = words[1:]
	}
	name := strconv.Itoa(r.stages)
	if len(words) >= 3 && strings.EqualFold(r.text(words[1]), "as") {
		name = r.text(words[2])
	}
	r.stages++
	r.known, r.env = map[string]text{}, map[string]text{}
	if len(words) > 0 && r.stages < 200 {
		for k, v := range r.named[strings.ToLower(r.text(words[0]))] {
			r.known[k], r.env[k] = v, v
		}
	}
	r.named[strings.ToLower(name)] = r.env
	r.stage = r.child(r.root, name, line.at)
}

func (r *dockerReader) text(w dockerWord) string { return string(r.src[w.start:w.end]) }

func (r *dockerReader) arg(w dockerWord) {
	i := bytes.IndexByte(r.src[w.start:w.end], '=')
	if i < 0 {
		if v, ok := r.global[r.text(w)]; ok {
			r.known[r.text(w)] = v
		}
		return
	}
	name := string(r.src[w.start : w.start+i])
	x := r.bind(name, w.start, dockerWord{w.start + i + 1, w.end, w.joined})
	if _, set := r.env[name]; !set {
		r.known[name] = x
	}
}

// pairs reads ENV and LABEL: K=V …, or the older K V to the end of the line.
func (r *dockerReader) pairs(line dockerLine) {
	if len(line.words) == 0 {
		return
	}
	if first := line.words[0]; bytes.IndexByte(r.src[first.start:first.end], '=') < 0 {
		if len(line.words) > 1 {
			last := line.words[len(line.words)-1]
			w := dockerWord{line.words[1].start, last.end, line.rest.joined}
			r.set(line.word, r.text(first), first.start, w)
		}
		return
	}
	for _, w := range line.words {
		name, value, ok := r.cutPair(w)
		if ok {
			r.set(line.word, name, w.start, value)
		}
	}
}

// cutPair splits K=V, where K may be in quotes.
func (r *dockerReader) cutPair(w dockerWord) (name string, value dockerWord, ok bool) {
	raw := r.src[w.start:w.end]
	from := 0
	if len(raw) > 0 && (raw[0] == '"' || raw[0] == '\'') {
		i := bytes.IndexByte(raw[1:], raw[0])
		if i < 0 {
			return "", w, false
		}
		from = i + 1
	}
	i := bytes.IndexByte(raw[from:], '=')
	if i < 0 {
		return "", w, false
	}
	name = strings.Trim(string(raw[:from+i]), `"'`)
	return name, dockerWord{w.start + from + i + 1, w.end, w.joined}, true
}

func (r *dockerReader) set(word, name string, at int, value dockerWord) {
	x := r.bind(name, at, value)
	if word == "ENV" && r.env != nil {
		r.known[name], r.env[name] = x, x
	}
}

// bind adds a value and returns its text.
func (r *dockerReader) bind(name string, at int, w dockerWord) text {
	n := r.child(r.stage, name, at)
	site := r.site(w)
	n.weak = site.Problem != "" && bytes.IndexByte(r.src[w.start:w.end], '$') >= 0
	r.value(n, site)
	var x text
	if site.Problem == "" {
		x.add(site.Value, site.Start, site.End)
	} else {
		quote := strings.Trim(string(r.src[w.start:w.end]), `"`)
		off := w.start + bytes.Index(r.src[w.start:w.end], []byte(quote))
		x = placeholders([]byte(quote), off, r.known, true)
	}
	if x.len() > maxURL {
		x = text{}
		x.addUnknown(name)
	}
	r.link(x, w.start, n.path())
	return x
}

// add reads ADD --checksum=sha256:… URL DIR.
func (r *dockerReader) add(line dockerLine) {
	n := r.child(r.stage, "ADD", line.at)
	for _, w := range line.words {
		flag, isFlag := strings.CutPrefix(r.text(w), "--")
		if !isFlag {
			r.value(r.child(n, "url", w.start), r.site(w))
			return
		}
		if name, _, ok := strings.Cut(flag, "="); ok {
			r.value(r.child(n, name, w.start), r.site(dockerWord{w.start + 2 + len(name) + 1, w.end, w.joined}))
		}
	}
}

func (r *dockerReader) site(w dockerWord) Site {
	raw := r.src[w.start:w.end]
	var quote byte
	start, end := w.start, w.end
	if len(raw) > 0 && (raw[0] == '"' || raw[0] == '\'') {
		quote = raw[0]
		if len(raw) < 2 || raw[len(raw)-1] != quote {
			return problemSite(start, end, string(raw), "the quotes do not stand around the whole value")
		}
		start, end, raw = start+1, end-1, raw[1:len(raw)-1]
	}
	switch {
	case w.joined || bytes.IndexByte(raw, '\n') >= 0:
		return problemSite(start, end, string(raw), "the value goes over a line's end (write it on one line)")
	case quote != '\'' && bytes.IndexByte(raw, '$') >= 0:
		return problemSite(start, end, string(raw), "the value holds a variable (name the value that it is made of)")
	case bytes.ContainsAny(raw, "\"'") || bytes.IndexByte(raw, r.lex.escape) >= 0:
		return problemSite(start, end, string(raw), "the value holds quotes or escapes (write it without)")
	}
	escape := string(r.lex.escape)
	after := start > 0 && r.src[start-1] == '='
	return Site{Start: start, End: end, Value: string(raw), Encode: func(v string) ([]byte, error) {
		if err := oneLine(v); err != nil {
			return nil, err
		}
		if strings.ContainsAny(v, "\"'$\\`") || strings.Contains(v, escape) {
			return nil, errors.New("the new value holds a quote, $ or a backslash, which no pin does")
		}
		if quote == 0 && !after && (v == "" || strings.HasPrefix(v, "-") || strings.HasPrefix(v, "<<")) {
			return nil, errors.New("the new value is empty or would be read as an option")
		}
		if quote == 0 && v != string(raw) && !dockerBare.MatchString(v) {
			return []byte(`"` + v + `"`), nil
		}
		return []byte(v), nil
	}}
}
