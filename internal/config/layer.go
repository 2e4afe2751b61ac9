package config

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/rocm-nightly/rocm-nightly/internal/amd"
)

// Bounds of what is read: far above any real config.
const (
	maxFile    = 1 << 20 // bytes of a file
	maxDropIns = 100     // files in config.d
	maxNodes   = 100_000 // values, with what aliases stand for
	maxOpen    = 5_000   // brackets and dashes: the parser goes as deep as they do
	maxDepth   = 50      // of values in values
	maxWrong   = 50      // complaints about the form of one file
)

// layer is one place that sets keys: a file, or a variable of the environment.
type layer struct {
	file     string
	variable string
	body     ast.Node // nil if nothing is in it
	src      []byte   // of a file, without a byte order mark
}

// complain is a complaint about a node of l; nil is none in particular.
func (l layer) complain(at ast.Node, key string, err error) *Complaint {
	c := &Complaint{File: l.file, Variable: l.variable, Key: key, Err: err}
	if tk := tokenOf(at); tk != nil && tk.Position != nil && l.variable == "" {
		c.Line, c.Column = l.begins(tk.Position.Line, tk.Position.Column)
	}
	return c
}

// begins moves a place that the parser names past tabs: it counts those in front of a
// value as the value's own. Columns count characters.
func (l layer) begins(line, column int) (int, int) {
	rest := l.src
	for range line - 1 {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	text, _, _ := bytes.Cut(rest, []byte("\n"))
	chars := []rune(string(text))
	for at := column; at >= 1 && at < len(chars) && chars[at-1] == '\t'; at++ {
		column = at + 1
	}
	return line, column
}

// tokenOf is where a value begins; of a mapping in lines that is its first key.
func tokenOf(n ast.Node) *token.Token {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return tokenOf(n.Values[0])
		}
		return n.Start
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}

// parse reads the YAML of a layer.
func (l layer) parse(src []byte) (layer, *Complaint) {
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")) // a byte order mark is legal, and no key
	if err := plausible(src); err != nil {
		return l, l.complain(nil, "", err)
	}
	if len(bytes.TrimSpace(src)) == 0 {
		return l, nil
	}
	// Both ends of a line are one to YAML; the parser counts some of them as two.
	src = bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))
	l.src = src
	file, err := parser.ParseBytes(src, 0)
	if err != nil {
		return l, l.unparsed(err)
	}
	file.Docs = slices.DeleteFunc(file.Docs, func(d *ast.DocumentNode) bool {
		_, directive := d.Body.(*ast.DirectiveNode) // %YAML 1.2
		return directive
	})
	if len(file.Docs) > 1 {
		return l, l.complain(file.Docs[1].Body, "", errors.New("more than one YAML document"))
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return l, nil // only comments
	}
	// Before aliases are followed: with them it may be a thousand times as much.
	ast.Walk(amd.NumbersAsWritten{}, file.Docs[0].Body)
	ast.Walk(envAsWritten{}, file.Docs[0].Body)
	if l.body, err = withoutAliases(file.Docs[0].Body); err != nil {
		return l, l.unparsed(err)
	}
	return l, nil
}

// unparsed is a complaint about what is no YAML. Of the text nothing is repeated: it
// may be a secret.
func (l layer) unparsed(err error) *Complaint {
	var at yaml.Error
	if !errors.As(err, &at) {
		return l.complain(nil, "", err)
	}
	c := l.complain(nil, "", errors.New(at.GetMessage()))
	if tk := at.GetToken(); tk != nil && tk.Position != nil && l.variable == "" {
		c.Line, c.Column = tk.Position.Line, tk.Position.Column
	}
	return c
}

// plausible refuses what would only keep the parser busy.
func plausible(src []byte) error {
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return fmt.Errorf("byte %d is zero: this is no text", i)
	}
	if !utf8.Valid(src) {
		return errors.New("this is no UTF-8")
	}
	open, deep := bytes.Count(src, []byte("? ")), 0
	for _, c := range src { // brackets in texts count too, and nobody has so many
		switch c {
		case '[', '{':
			open, deep = open+1, deep+1
		case ']', '}':
			deep = max(0, deep-1)
		}
		if deep > 2*maxDepth {
			return fmt.Errorf("values are nested deeper than %d", maxDepth)
		}
	}
	for line := range bytes.Lines(src) {
		// Lists in lists may stand in one line: "- - - a".
		if n := bytes.Count(line, []byte("- - ")); n > maxDepth {
			return fmt.Errorf("values are nested deeper than %d", maxDepth)
		}
	}
	if open > maxOpen {
		return fmt.Errorf("more than %d lists and sections are opened", maxOpen)
	}
	return nil
}

// withoutAliases puts what an alias stands for in its place. Merge keys (<<) are
// refused: what wins over what would be a riddle.
func withoutAliases(body ast.Node) (ast.Node, error) {
	a := &aliases{anchors: map[string]ast.Node{}, open: map[string]bool{}}
	return a.resolve(body, 0)
}

type aliases struct {
	anchors map[string]ast.Node
	open    map[string]bool // anchors that we are within
}

func (a *aliases) resolve(n ast.Node, depth int) (ast.Node, error) {
	bad := func(format string, args ...any) error {
		return &yaml.SyntaxError{Message: fmt.Sprintf(format, args...), Token: tokenOf(n)}
	}
	if depth > maxDepth {
		return nil, bad("values are nested deeper than %d", maxDepth)
	}
	var err error
	switch n := n.(type) {
	case *ast.AnchorNode:
		name := n.Name.GetToken().Value
		if a.anchors[name] != nil || a.open[name] {
			return nil, bad("the anchor &%s is there twice", name)
		}
		a.open[name] = true
		value, err := a.resolve(n.Value, depth+1)
		a.open[name] = false
		a.anchors[name] = value
		return value, err
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		if value := a.anchors[name]; value != nil && !a.open[name] {
			return value, nil
		}
		return nil, bad("*%s stands for nothing that was written before", name)
	case *ast.MappingNode:
		for _, pair := range n.Values {
			if err := a.pair(pair, depth); err != nil {
				return nil, err
			}
		}
	case *ast.MappingValueNode:
		return n, a.pair(n, depth)
	case *ast.SequenceNode:
		for i := range n.Values {
			if n.Values[i], err = a.resolve(n.Values[i], depth+1); err != nil {
				return nil, err
			}
		}
	case *ast.TagNode:
		return nil, bad("tags such as %s mean nothing here", n.Start.Value)
	}
	return n, nil
}

func (a *aliases) pair(n *ast.MappingValueNode, depth int) (err error) {
	if n.Key.IsMergeKey() {
		return &yaml.SyntaxError{Message: "<< is not supported: write the keys out", Token: n.Key.GetToken()}
	}
	n.Value, err = a.resolve(n.Value, depth+1)
	return err
}

// pairs lists the keys and values of a mapping, of one key or more.
func pairs(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

// keyOf is the text of a key.
func keyOf(n *ast.MappingValueNode) string {
	if s, ok := n.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return n.Key.GetToken().Value
}

// find follows a key such as installs[0].keep.last in l as far as it is there. It
// returns the node that it ends at, how many steps lead there, whether that is all of
// them, and whether a list was passed: lists replace those of layers below.
func (l layer) find(steps []string) (at ast.Node, depth int, whole, list bool) {
	at = l.body
	for i, step := range steps {
		if items, ok := at.(*ast.SequenceNode); ok && strings.HasPrefix(step, "[") {
			list = true
			var n int
			if _, err := fmt.Sscanf(step, "[%d]", &n); err != nil || n < 0 || n >= len(items.Values) {
				return at, i, false, list
			}
			at = items.Values[n]
			continue
		}
		in, _ := pairs(at)
		named := func(p *ast.MappingValueNode) bool { return keyOf(p) == step }
		j := slices.IndexFunc(in, named)
		if j < 0 && i == len(steps)-1 { // "token" is token_env or token_file
			j = slices.IndexFunc(in, func(p *ast.MappingValueNode) bool { return strings.HasPrefix(keyOf(p), step+"_") })
		}
		if j < 0 {
			return at, i, false, list
		}
		at = in[j].Value
		if _, section := pairs(at); section || at.Type() == ast.NullType {
			if i == len(steps)-1 {
				return in[j], i + 1, true, list
			}
		}
	}
	return at, len(steps), true, list
}

// stepsOf splits a key: installs[0].keep is installs, [0], keep. What stands after
// env or set is one step, however many dots are in it.
func stepsOf(key string) []string {
	var steps []string
	for key != "" {
		key = strings.TrimPrefix(key, ".")
		if n := len(steps); n > 0 && (steps[n-1] == "env" || steps[n-1] == "set") {
			return append(steps, key)
		}
		end := strings.IndexAny(key[min(1, len(key)):], ".[") + 1
		if end <= 0 {
			return append(steps, key)
		}
		steps, key = append(steps, key[:end]), key[end:]
	}
	return steps
}
