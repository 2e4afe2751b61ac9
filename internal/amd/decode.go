package amd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A file is one data file, parsed and checked, with its source beside it so
// that whatever is wrong with it later still has a line and a column.
type file struct {
	name string
	body ast.Node // nil for a file that holds nothing but comments
	data *Data
}

// decode parses one data file. whole says that it stands for itself; a file
// that is laid over another may leave out everything.
func decode(name string, src []byte, whole bool) (*file, error) {
	f, err := parse(name, src)
	if err != nil {
		return nil, err
	}
	if problems := check(f.data, whole); len(problems) > 0 {
		return nil, f.broken(f.describe(problems))
	}
	return f, nil
}

// parse is decode without the check of what the file says.
func parse(name string, src []byte) (*file, error) {
	f := &file{name: name, data: &Data{}}
	if line := tooDeep(src); line > 0 {
		return nil, f.broken(fmt.Sprintf("[%d:1] too long a line, or nested too deeply", line))
	}
	doc, err := parser.ParseBytes(bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")), 0)
	if err != nil {
		return nil, f.broken(yaml.FormatError(err, false, false))
	}
	if len(doc.Docs) > 1 {
		return nil, f.broken("more than one YAML document")
	}
	if len(doc.Docs) == 1 {
		f.body = doc.Docs[0].Body
	}
	if _, empty := f.body.(*ast.CommentGroupNode); empty {
		f.body = nil
	}
	if f.body != nil {
		ast.Walk(NumbersAsWritten{}, f.body)
		if err := f.fill(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// A line may have so many bytes, so many brackets may be open at once, and so
// many be opened in all: the parser's time and memory grow with the square of
// the depth.
const (
	maxLine     = 4096
	maxDepth    = 100
	maxBrackets = 8192
)

// tooDeep returns the number of the first line that is beyond the limits, or
// 0. It counts brackets
// wherever they stand, in comments and quotes too.
func tooDeep(src []byte) int {
	depth, opened, n := 0, 0, 0
	for line := range bytes.Lines(src) {
		n++
		more := bytes.Count(line, []byte("[")) + bytes.Count(line, []byte("{"))
		opened += more
		depth += more - bytes.Count(line, []byte("]")) - bytes.Count(line, []byte("}"))
		if depth = max(depth, 0); depth > maxDepth || opened > maxBrackets || len(line) > maxLine {
			return n
		}
	}
	return 0
}

// fill decodes the document strictly. The schema is looked at first: a newer
// file is told apart from one that is wrong.
func (f *file) fill() error {
	if n, ok := lookup(f.body, "schema").(*ast.IntegerNode); ok {
		if v, err := strconv.Atoi(n.GetToken().Value); err == nil && v > Schema {
			return fmt.Errorf("read AMD's data %s: it is of schema %d, and this program reads schema %d: update rocm-nightly, or move the file away", f.name, v, Schema)
		}
	}
	if err := f.durations(); err != nil {
		return err
	}
	if err := over(f.body, f.data); err != nil {
		return f.broken(yaml.FormatError(err, false, false))
	}
	return nil
}

// durations looks at the text of what is to be a duration. The decoder would
// take 96 for nanoseconds, and not say where it found one that it cannot read.
func (f *file) durations() error {
	channels, ok := lookup(f.body, "channels").(ast.MapNode)
	if !ok {
		return nil
	}
	for it := channels.MapRange(); it.Next(); {
		node := lookup(it.Value(), "stale_after")
		if node == nil || node.GetToken() == nil {
			continue
		}
		tk := node.GetToken()
		if _, err := time.ParseDuration(tk.Value); err != nil {
			return f.broken(fmt.Sprintf("[%d:%d] stale_after: %q is not a duration such as 96h", tk.Position.Line, tk.Position.Column, tk.Value))
		}
	}
	return nil
}

// over decodes node over what v already holds: keys that node does not have
// stay as they are, lists replace.
func over(node ast.Node, v any) error {
	err := yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict()).DecodeFromNode(node, v)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// broken says what is wrong with a file, and what to do about it.
func (f *file) broken(what string) error {
	if f.name == builtinName {
		return fmt.Errorf("read AMD's data (%s): %s", f.name, what)
	}
	return fmt.Errorf("read AMD's data %s: %s; correct the file, or move it away to go on without it", f.name, what)
}

// NumbersAsWritten turns every number with a point into the text that it was
// written as: 10.10 is a series and 6.10 a kernel, neither of them 10.1 or
// 6.1. What is to be a fraction is read from its text.
type NumbersAsWritten struct{}

// Visit implements ast.Visitor.
func (n NumbersAsWritten) Visit(node ast.Node) ast.Visitor {
	switch node := node.(type) {
	case *ast.MappingValueNode:
		node.Value = asWritten(node.Value)
	case *ast.SequenceNode:
		for i, v := range node.Values {
			node.Values[i] = asWritten(v)
		}
	}
	return n
}

func asWritten(node ast.Node) ast.Node {
	if number, ok := node.(*ast.FloatNode); ok {
		text := ast.String(number.GetToken())
		text.SetPath(number.GetPath())
		return text
	}
	return node
}

// lookup follows keys and list positions down from node; nil if there is
// nothing at the end.
func lookup(node ast.Node, path ...string) ast.Node {
	for _, key := range path {
		switch at := node.(type) {
		case ast.MapNode:
			node = valueOf(at, key)
		case *ast.SequenceNode:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(at.Values) {
				return nil
			}
			node = at.Values[i]
		default:
			return nil
		}
	}
	return node
}

func valueOf(m ast.MapNode, key string) ast.Node {
	for it := m.MapRange(); it.Next(); {
		if tk := it.Key().GetToken(); tk != nil && tk.Value == key {
			return it.Value()
		}
	}
	return nil
}

// describe lists problems, each at the line and column of the key that has
// it, or of the nearest one above that is there.
func (f *file) describe(problems []problem) string {
	var all []string
	for i, p := range problems {
		if i == maxProblems {
			all = append(all, fmt.Sprintf("and %d more", len(problems)-i))
			break
		}
		where := ""
		if at := f.position(p.path); at != nil {
			where = fmt.Sprintf("[%d:%d] ", at.Line, at.Column)
		}
		all = append(all, where+strings.Join(p.path, ".")+": "+p.what)
	}
	return strings.Join(all, "; ")
}

// maxProblems bounds how much of a thoroughly wrong file is recited.
const maxProblems = 5

func (f *file) position(path []string) *token.Position {
	for n := len(path); n > 0; n-- {
		node := lookup(f.body, path[:n]...)
		if node == nil || node.GetToken() == nil {
			continue
		}
		return node.GetToken().Position
	}
	return nil
}
