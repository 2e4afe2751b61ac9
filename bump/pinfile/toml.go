package pinfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlReader reads TOML (toml.io, 1.0). go-toml bounds how deep values nest.
type tomlReader struct {
	tree
	plain  []byte // src with what is not UTF-8 replaced byte by byte
	parser unstable.Parser
	tables map[*attrNode]map[string]*attrNode
	last   map[*attrNode]*attrNode // the newest item of an array of tables
}

func parseTOML(src []byte, _ Options) (document, error) {
	r := &tomlReader{
		plain:  tomlText(src),
		tables: map[*attrNode]map[string]*attrNode{},
		last:   map[*attrNode]*attrNode{},
	}
	r.src, r.assign = src, `\s*=`
	r.parser.KeepComments = true
	r.parser.Reset(r.plain)
	var table *attrNode
	for r.parser.NextExpression() {
		e := r.parser.Expression()
		switch e.Kind {
		case unstable.Comment:
			r.comment(e)
		case unstable.Table:
			table = r.header(e, false)
		case unstable.ArrayTable:
			table = r.header(e, true)
		case unstable.KeyValue:
			r.headComments(e)
			if err := r.pair(e, table, 0); err != nil {
				return nil, err
			}
		}
	}
	if err := r.parser.Error(); err != nil {
		return nil, r.refused(err)
	}
	return r.finish(), nil
}

// tomlText returns src with a byte order mark as spaces, and question marks for
// bytes that are no UTF-8, which the parser would not take.
func tomlText(src []byte) []byte {
	out := bytes.Clone(src)
	if bytes.HasPrefix(out, []byte("\ufeff")) {
		copy(out, "   ")
	}
	for i := 0; i < len(out); {
		r, n := utf8.DecodeRune(out[i:])
		if r == utf8.RuneError && n == 1 {
			out[i] = '?'
		}
		i += n
	}
	return out
}

// refused turns an error of the parser into one with a place.
func (r *tomlReader) refused(err error) error {
	at := 0
	var bad *unstable.ParserError
	if errors.As(err, &bad) {
		// The highlight is a part of what is parsed; its end tells where.
		if off := cap(r.plain) - cap(bad.Highlight); off > 0 && off <= len(r.plain) && len(bad.Highlight) > 0 {
			at = off
		}
	}
	return syntaxAt(r.src, at, strings.TrimPrefix(err.Error(), "toml: "))
}

func (r *tomlReader) comment(n *unstable.Node) {
	r.comments = append(r.comments, span{int(n.Raw.Offset), int(n.Raw.Offset + n.Raw.Length)})
}

// headComments finds the comments that the parser hangs on an expression: the
// one that ends its line.
func (r *tomlReader) headComments(e *unstable.Node) {
	for n := e.Next(); n != nil; n = n.Next() {
		if n.Kind == unstable.Comment {
			r.comment(n)
		}
	}
}

// child returns the one table called name in of, as a path.
func (r *tomlReader) child(of *attrNode, name string) *attrNode {
	if item := r.last[of]; item != nil {
		of = item
	}
	in := r.tables[of]
	if in == nil {
		in = map[string]*attrNode{}
		r.tables[of] = in
	}
	if in[name] == nil {
		in[name] = member(of, name)
	}
	return in[name]
}

// header reads [a.b] or [[a.b]] and returns the table that it opens.
func (r *tomlReader) header(e *unstable.Node, array bool) *attrNode {
	var path *attrNode
	at := 0
	for it := e.Key(); it.Next(); {
		path = r.child(path, string(it.Node().Data))
		at = int(it.Node().Raw.Offset)
	}
	if !array {
		r.addBox(path, at, "a table")
		if item := r.last[path]; item != nil {
			return item // not TOML; the file is read as if it were
		}
		return path
	}
	index := 0
	if prev := r.last[path]; prev != nil {
		index = prev.index + 1
	}
	item := itemOf(path, index)
	r.last[path] = item
	r.addBox(item, at, "a table")
	return item
}

// pair reads NAME = VALUE in table.
func (r *tomlReader) pair(e *unstable.Node, table *attrNode, depth int) error {
	at := -1
	var names []string
	for it := e.Key(); it.Next(); {
		if at < 0 {
			at = int(it.Node().Raw.Offset)
		}
		names = append(names, string(it.Node().Data))
	}
	if len(names) == 0 {
		return nil
	}
	for _, name := range names[:len(names)-1] {
		table = r.child(table, name)
	}
	return r.value(e.Value(), member(table, names[len(names)-1]), at, depth)
}

func (r *tomlReader) value(n *unstable.Node, path *attrNode, at, depth int) error {
	if depth > maxNest {
		return syntaxAt(r.src, at, "nested too deep")
	}
	switch n.Kind {
	case unstable.InlineTable:
		r.addBox(path, at, "a table")
		for it := n.Children(); it.Next(); {
			if err := r.member(it.Node(), path, depth); err != nil {
				return err
			}
		}
	case unstable.Array:
		r.addBox(path, at, "a list")
		i := 0
		for it := n.Children(); it.Next(); {
			if it.Node().Kind == unstable.Comment {
				r.comment(it.Node())
				continue
			}
			item := it.Node()
			if err := r.value(item, itemOf(path, i), r.startOf(item, at), depth+1); err != nil {
				return err
			}
			i++
		}
	default:
		r.scalar(n, path, at)
	}
	return nil
}

// member reads what stands in an inline table.
func (r *tomlReader) member(n *unstable.Node, path *attrNode, depth int) error {
	switch n.Kind {
	case unstable.KeyValue:
		return r.pair(n, path, depth+1)
	case unstable.Comment:
		r.comment(n)
	}
	return nil
}

func (r *tomlReader) startOf(n *unstable.Node, at int) int {
	if n.Raw.Length == 0 {
		return at
	}
	return int(n.Raw.Offset)
}

func (r *tomlReader) scalar(n *unstable.Node, path *attrNode, at int) {
	start, end := int(n.Raw.Offset), int(n.Raw.Offset+n.Raw.Length)
	raw := string(r.src[start:end])
	l := leaf{path: path, Site: Site{At: at, Start: start, End: end, Value: raw}}
	switch {
	case raw != string(r.plain[start:end]):
		l.Problem = "the value is not UTF-8"
	case n.Kind == unstable.String:
		tomlString(&l, string(n.Data))
	case n.Kind == unstable.Integer && isInteger(raw):
		l.Encode = digitsOnly
	case n.Kind == unstable.Integer || n.Kind == unstable.Float:
		l.Problem = fmt.Sprintf("the value is the number %.40s (only strings and whole numbers are edited: write it in quotes)", raw)
	case n.Kind == unstable.LocalDate:
		l.Encode = encodeTOMLDate
	default:
		l.Problem = notString(raw)
	}
	r.all = append(r.all, l)
}

// tomlString fills in a string: its value, and how a new one is written
// between the quotes that it has.
func tomlString(l *leaf, value string) {
	raw, size := l.Value, 1
	if strings.HasPrefix(raw, `"""`) || strings.HasPrefix(raw, "'''") {
		size = 3
	}
	l.Value, l.Start, l.End = value, l.Start+size, l.End-size
	switch {
	case strings.ContainsAny(raw, "\r\n"):
		l.Problem = "the value goes over several lines (write it on one)"
	case raw[0] == '\'':
		l.Encode = encodeTOMLLiteral
	default:
		l.Encode = encodeTOMLBasic
	}
}

func encodeTOMLDate(v string) ([]byte, error) {
	if _, err := time.Parse(time.DateOnly, v); err != nil {
		return nil, errors.New("the value is a date, and the new one is no YYYY-MM-DD (write the value as a string in the file, or choose another template)")
	}
	return []byte(v), nil
}

func encodeTOMLLiteral(v string) ([]byte, error) {
	if err := checkText(v); err != nil {
		return nil, err
	}
	if strings.ContainsFunc(v, func(r rune) bool { return r == '\'' || r < ' ' && r != '\t' || r == 0x7f }) {
		return nil, errors.New("the new value holds a quote or a control character, which single quotes cannot (write the value in double quotes)")
	}
	return []byte(v), nil
}

func encodeTOMLBasic(v string) ([]byte, error) {
	if err := checkText(v); err != nil {
		return nil, err
	}
	return escapeJSON(v, '"'), nil
}
