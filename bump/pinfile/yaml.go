package pinfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	yamllexer "github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	yamltoken "github.com/goccy/go-yaml/token"
)

// yamlReader reads YAML. goccy/go-yaml says what the file means; where the
// values stand is found here, for its offsets count runes, miss spaces and are
// wrong behind tags.
type yamlReader struct {
	tree
	plain []byte // src as ASCII of the same length
	where map[*yamltoken.Token]span
}

// Bounds of a file: the parser takes four times as long for an object of twice
// the length.
const (
	maxYAML       = 512 << 10
	maxYAMLTokens = 50_000
)

func parseYAML(src []byte, _ Options) (document, error) {
	if len(src) > maxYAML {
		return nil, &SyntaxError{Line: 1, Column: 1, Problem: fmt.Sprintf("the file is larger than %d KiB, which is too long for YAML", maxYAML>>10)}
	}
	r := &yamlReader{plain: yamlASCII(src), where: map[*yamltoken.Token]span{}}
	r.src, r.assign = src, `\s*:`
	tokens := yamllexer.Tokenize(string(r.plain))
	if len(tokens) > maxYAMLTokens {
		return nil, &SyntaxError{Line: 1, Column: 1, Problem: fmt.Sprintf("the file has more than %d words and signs, which is too long for YAML", maxYAMLTokens)}
	}
	if err := r.locate(tokens); err != nil {
		return nil, err
	}
	if err := r.bound(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, r.refused(err)
	}
	docs := file.Docs[:0:0]
	for _, doc := range file.Docs {
		if _, directive := doc.Body.(*ast.DirectiveNode); doc.Body != nil && !directive {
			docs = append(docs, doc)
		}
	}
	for i, doc := range docs {
		var path *attrNode
		if len(docs) > 1 {
			path = itemOf(nil, i)
		}
		if err := r.node(doc.Body, path, 0, 0); err != nil {
			return nil, err
		}
	}
	return r.finish(), nil
}

// yamlASCII returns src with every byte that is no ASCII replaced by a letter,
// so that runes and bytes are counted alike, a byte order mark by spaces of a
// comment's kind, and each CR LF by a space and LF: spaces at the end of a line
// mean nothing. Nothing that is edited is read from it.
func yamlASCII(src []byte) []byte {
	out := bytes.ReplaceAll(src, []byte("\r\n"), []byte(" \n"))
	if len(out) > 0 && &out[0] == &src[0] {
		out = bytes.Clone(src)
	}
	for i, c := range out {
		if c >= utf8.RuneSelf {
			out[i] = 'z'
		}
	}
	if bytes.HasPrefix(src, []byte("\ufeff")) {
		return out[3:]
	}
	return out
}

// base is how many bytes of src come before plain.
func (r *yamlReader) base() int { return len(r.src) - len(r.plain) }

// locate finds every token in the file: they come in its order, with nothing
// but white space between.
func (r *yamlReader) locate(tokens yamltoken.Tokens) error {
	pos := 0
	for _, t := range tokens {
		for pos < len(r.plain) && isSpace(r.plain[pos]) {
			pos++
		}
		size := r.measure(t, pos)
		if size < 0 {
			return syntaxAt(r.src, pos+r.base(), "this cannot be read as YAML")
		}
		at := span{pos + r.base(), pos + size + r.base()}
		r.where[t] = at
		if t.Type == yamltoken.CommentType {
			r.comments = append(r.comments, at)
		}
		pos += size
	}
	if rest := bytes.TrimSpace(r.plain[pos:]); len(rest) > 0 {
		return syntaxAt(r.src, len(r.src)-len(rest), "this cannot be read as YAML")
	}
	return nil
}

// measure returns how long t is, which begins at pos, or -1 if it does not. A
// string in quotes is measured here: the lexer's copy has its escapes undone.
func (r *yamlReader) measure(t *yamltoken.Token, pos int) int {
	rest := r.plain[pos:]
	if t.Type != yamltoken.DoubleQuoteType && t.Type != yamltoken.SingleQuoteType {
		text := strings.TrimSpace(t.Origin)
		if !bytes.HasPrefix(rest, []byte(text)) {
			return -1
		}
		return len(text)
	}
	quote := byte('"')
	if t.Type == yamltoken.SingleQuoteType {
		quote = '\''
	}
	if len(rest) == 0 || rest[0] != quote {
		return -1
	}
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] == '\\' && quote == '"':
			i++
		case rest[i] != quote:
		case quote == '\'' && i+1 < len(rest) && rest[i+1] == quote:
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// Bounds of what nests, for reading it recurs: brackets, the columns that a
// line may be indented by, and what nests within one line.
const (
	maxIndent    = 500
	maxPerLine   = 50
	maxPropsRow  = 4 // tags and anchors of one value
	yamlTooDeep  = "nested too deep"
	yamlBadValue = "the value cannot be told apart from what is around it (write it in quotes)"
)

// bound refuses tokens that nest too deep.
func (r *yamlReader) bound(tokens yamltoken.Tokens) error {
	depth, line, nested, props := 0, -1, 0, 0
	lines := lineCounter{src: r.src}
	for _, t := range tokens {
		at := r.where[t].off
		if n := lines.at(at); n != line {
			line, nested = n, 0
			if at-bytes.LastIndexByte(r.src[:at], '\n') > maxIndent && depth == 0 && t.Type != yamltoken.CommentType {
				return syntaxAt(r.src, at, yamlTooDeep)
			}
		}
		switch t.Type {
		case yamltoken.TagType, yamltoken.AnchorType:
			props++
		case yamltoken.SequenceEntryType, yamltoken.MappingKeyType:
			nested++
		case yamltoken.SequenceStartType, yamltoken.MappingStartType:
			depth++
		case yamltoken.SequenceEndType, yamltoken.MappingEndType:
			depth--
		case yamltoken.MappingValueType, yamltoken.CollectEntryType:
			props = 0
		}
		if depth > maxNest || nested > maxPerLine || props > maxPropsRow+nested {
			return syntaxAt(r.src, at, yamlTooDeep)
		}
		if t.Type == yamltoken.SequenceEntryType {
			props = 0
		}
	}
	return nil
}

// refused turns an error of the parser into one with a place.
func (r *yamlReader) refused(err error) error {
	var bad interface {
		GetToken() *yamltoken.Token
		GetMessage() string
	}
	if errors.As(err, &bad) {
		if at, ok := r.where[bad.GetToken()]; ok {
			return syntaxAt(r.src, at.off, strings.TrimSpace(bad.GetMessage()))
		}
	}
	return syntaxAt(r.src, 0, "this is no YAML")
}

// start is where the first token of n stands, or at.
func (r *yamlReader) start(n ast.Node, at int) int {
	if n == nil {
		return at
	}
	if s, ok := r.where[n.GetToken()]; ok {
		return s.off
	}
	return at
}

// node adds what stands in n, whose name stands at at.
func (r *yamlReader) node(n ast.Node, path *attrNode, at, depth int) error {
	if depth > 2*maxIndent+maxNest {
		return syntaxAt(r.src, at, yamlTooDeep)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		r.addBox(path, at, "an object")
		for _, v := range n.Values {
			if err := r.pair(v, path, depth); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		r.addBox(path, at, "an object")
		return r.pair(n, path, depth)
	case *ast.SequenceNode:
		r.addBox(path, at, "a list")
		for i, v := range n.Values {
			if err := r.node(v, itemOf(path, i), r.start(v, at), depth+1); err != nil {
				return err
			}
		}
	case *ast.AnchorNode:
		return r.marked(n.Value, path, at, depth, "the value has an anchor, so that other places of the file repeat it (write it out, or name one of them)")
	case *ast.TagNode:
		return r.marked(n.Value, path, at, depth, "the value has a tag, which says how it is read (leave the tag out)")
	default:
		r.scalar(n, path, at)
	}
	return nil
}

// marked adds a value with an anchor or a tag. What is inside of it is as any
// other; itself it is not edited.
func (r *yamlReader) marked(n ast.Node, path *attrNode, at, depth int, problem string) error {
	first := len(r.all)
	if err := r.node(n, path, at, depth+1); err != nil {
		return err
	}
	if len(r.all) == first+1 && r.all[first].path == path {
		r.all[first].Problem = problem
	}
	return nil
}

// pair adds one NAME: VALUE.
func (r *yamlReader) pair(v *ast.MappingValueNode, path *attrNode, depth int) error {
	key := v.Key.GetToken()
	if k, ok := v.Key.(*ast.MappingKeyNode); ok && k.Value != nil {
		key = k.Value.GetToken()
	}
	at, ok := r.where[key]
	name := &attrNode{parent: path, dynamic: true}
	if ok {
		if text, good := r.text(key, at); good {
			name = member(path, text)
		}
	}
	return r.node(v.Value, name, at.off, depth+1)
}

// text returns the value of a scalar on one line; good is false when it is
// something else.
func (r *yamlReader) text(t *yamltoken.Token, at span) (value string, good bool) {
	raw := string(r.src[at.off:at.end])
	if strings.ContainsAny(raw, "\n\r") || raw == "" {
		return "", false
	}
	switch t.Type {
	case yamltoken.SingleQuoteType:
		return strings.ReplaceAll(raw[1:len(raw)-1], "''", "'"), len(raw) > 1
	case yamltoken.DoubleQuoteType:
		return unescapeYAML(raw[1 : len(raw)-1])
	}
	return raw, string(r.plain[at.off-r.base():at.end-r.base()]) == t.Value
}
