package pinfile

import (
	"fmt"
	"slices"
	"strings"
)

// valueKind says what stands to the right of a binding's =.
type valueKind uint8

const (
	valOther         valueKind = iota // an expression that does not begin with a string
	valPlain                          // "literal" and nothing else
	valInterp                         // "…${…}…" and nothing else
	valIndented                       // ''…'' and nothing else
	valIndentedPlain                  // ''…'' on one line, without escapes and without spaces around it
	valCompound                       // an expression that begins with a string
	valNumber                         // digits and nothing else
)

// attrNode is one component of a binding's path. Paths are linked from the
// innermost component outwards, so that nesting costs no copies.
type attrNode struct {
	name    string
	dynamic bool // "a${b}" or ${b}: the name is not known
	item    bool // the item of a list, number index; it has no name
	index   int
	parent  *attrNode
}

// computed stands for a component whose name is an expression.
const computed = "${…}"

// String is the path as a key would name it, at most its last components.
func (n *attrNode) String() string {
	var parts []string
	for ; n != nil && len(parts) < 16; n = n.parent {
		part := n.name
		switch {
		case n.item:
			part = fmt.Sprintf("[%d]", n.index)
		case n.dynamic:
			part = computed
		case !isBareName(part) && !isNumbered(part):
			part = escapeNix(part)
		}
		if !n.item && n.parent != nil && len(parts) < 15 {
			part = "." + part
		}
		parts = append(parts, part)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

func isBareName(s string) bool {
	if s == "" || !isIdentStart(s[0]) {
		return false
	}
	for i := range len(s) {
		if !isIdent(s[i]) {
			return false
		}
	}
	return true
}

// binding is one NAME = VALUE; of a file.
type binding struct {
	path *attrNode
	at   int32     // offset of the first component of the name
	kind valueKind // of the value
	// value is source[off:end], for plain values without the quotes.
	off, end int32

	root  *attrNode // the outermost component of its own name
	scope int32     // index in code of what opens the set or let that it is in; -1: a list
	val   int32     // index in code of the value's first token
}

// scope is what the scanner is inside of.
type scope struct {
	opener  int       // index of the opening token, or of let; -1 for the file
	let     bool      // closed by in
	prefix  *attrNode // the path of what stands here
	cur     *attrNode // the path of the binding being read, or prefix
	pending int       // with and assert whose ; has not come yet
	items   int       // how many items have begun, in [ ]
	stmt    bool      // a binding may begin here
}

type scanner struct {
	src    []byte
	toks   []token
	code   []token // toks without space and comments
	mate   []int32 // of code: index of the token that closes this one
	scopes []scope
	out    []binding

	inherits []inherit
}

// inherit is inherit a; or inherit (b) a; in a set or a let.
type inherit struct {
	scope int32 // as in binding
	at    int32 // index in code of the word
}

// scanNix finds every binding of source. It knows just as much grammar as
// bindings need: brackets, let … in, with and assert.
func scanNix(src []byte) (*scanner, error) {
	toks, err := lexNix(src)
	if err != nil {
		return nil, err
	}
	s := &scanner{src: src, toks: toks, scopes: []scope{{opener: -1}}}
	s.index()
	for i := 0; i < len(s.code); {
		if i, err = s.step(i); err != nil {
			return nil, err
		}
	}
	if top := s.scopes[len(s.scopes)-1]; top.let {
		return nil, syntaxAt(src, int(s.code[top.opener].off), "this let has no in")
	}
	return s, nil
}

// index drops space and comments and pairs what opens with what closes; the
// lexer has already refused what does not pair.
func (s *scanner) index() {
	for _, t := range s.toks {
		if t.kind != tokSpace && t.kind != tokComment {
			s.code = append(s.code, t)
		}
	}
	s.mate = make([]int32, len(s.code))
	var open []int32
	for i, t := range s.code {
		switch t.kind {
		case tokOpen, tokInterpOpen, tokStrOpen, tokIndOpen:
			open = append(open, int32(i))
		case tokClose, tokStrClose, tokIndClose:
			s.mate[open[len(open)-1]] = int32(i)
			open = open[:len(open)-1]
		}
	}
}

// step reads the token, or the head of the binding, at i and returns the
// index of what follows.
func (s *scanner) step(i int) (int, error) {
	top := &s.scopes[len(s.scopes)-1]
	t := s.code[i]
	if top.stmt {
		top.stmt = false
		if next, ok := s.bind(top, i); ok {
			return next, nil
		}
		if s.wordAt(i) == "inherit" {
			s.inherits = append(s.inherits, inherit{scope: int32(top.opener), at: int32(i)})
		}
	}
	s.item(top, i)
	switch t.kind {
	case tokOpen, tokInterpOpen, tokStrOpen, tokIndOpen:
		s.enter(i, s.src[t.off] == '{', false)
	case tokClose, tokStrClose, tokIndClose:
		if top.let {
			return 0, syntaxAt(s.src, int(s.code[top.opener].off), "this let has no in")
		}
		s.scopes = s.scopes[:len(s.scopes)-1]
	case tokSemicolon:
		if top.pending > 0 {
			top.pending--
			break
		}
		top.cur = top.prefix
		top.stmt = top.let || top.opener >= 0 && s.src[s.code[top.opener].off] == '{'
	case tokIdent:
		return i + 1, s.word(i)
	}
	return i + 1, nil
}

// item begins the next item of the list that top is, if one begins at i: what
// has neither a dot before it (a.b) nor is rec.
func (s *scanner) item(top *scope, i int) {
	if top.opener < 0 || s.src[s.code[top.opener].off] != '[' {
		return
	}
	switch t := s.code[i]; t.kind {
	case tokOpen, tokStrOpen, tokIndOpen, tokNumber, tokURI:
	case tokPath:
		if prev := s.code[i-1]; prev.end == t.off && prev.kind == tokClose {
			return // more of a/${b}/c
		}
	case tokIdent:
		if word := s.wordAt(i); word == "rec" || word == "or" {
			return
		}
	default:
		return
	}
	if s.code[i-1].kind == tokDot || s.wordAt(i-1) == "or" {
		return // more of a.b, or of a.b or c
	}
	top.cur = &attrNode{item: true, index: top.items, parent: top.prefix}
	top.items++
	if k := s.code[i].kind; k == tokStrOpen || k == tokIndOpen {
		b := binding{path: top.cur, at: s.code[i].off, root: top.cur, scope: -1, val: int32(i)}
		s.value(&b, i)
		s.out = append(s.out, b)
	}
}

// wordAt is the identifier or keyword at i, "" if there is none.
func (s *scanner) wordAt(i int) string {
	if i < 0 || i >= len(s.code) || s.code[i].kind != tokIdent {
		return ""
	}
	return string(s.src[s.code[i].off:s.code[i].end])
}

// word handles the keywords that shape bindings.
func (s *scanner) word(i int) error {
	top := &s.scopes[len(s.scopes)-1]
	switch s.wordAt(i) {
	case "with", "assert":
		top.pending++
	case "let":
		// let { … } is an older form of rec { … }.body.
		if i+1 < len(s.code) && s.code[i+1].kind == tokOpen && s.src[s.code[i+1].off] == '{' {
			return nil
		}
		if len(s.scopes) >= maxDepth {
			return syntaxAt(s.src, int(s.code[i].off), "nested too deep")
		}
		s.enter(i, true, true)
	case "in":
		if !top.let {
			return syntaxAt(s.src, int(s.code[i].off), "this in has no let")
		}
		s.scopes = s.scopes[:len(s.scopes)-1]
	}
	return nil
}

func (s *scanner) enter(i int, stmt, let bool) {
	cur := s.scopes[len(s.scopes)-1].cur
	s.scopes = append(s.scopes, scope{opener: i, let: let, prefix: cur, cur: cur, stmt: stmt})
}

// bind reads an attribute path and = at i. The value is only looked at: its
// own tokens are stepped through next, for bindings may nest in it.
func (s *scanner) bind(top *scope, i int) (next int, ok bool) {
	path, j := top.prefix, i
	for {
		node, k := s.component(j)
		if node == nil {
			return i, false
		}
		node.parent = path
		path, j = node, k
		if j >= len(s.code) {
			return i, false
		}
		if s.code[j].kind != tokDot {
			break
		}
		j++
	}
	if s.code[j].kind != tokAssign {
		return i, false
	}
	b := binding{path: path, at: s.code[i].off, root: path, scope: int32(top.opener), val: int32(j + 1)}
	for b.root.parent != top.prefix {
		b.root = b.root.parent
	}
	s.value(&b, j+1)
	s.out = append(s.out, b)
	top.cur = path
	return j + 1, true
}

// component reads one component of an attribute path: name, "name", "a${b}"
// or ${b}. nil when there is none.
func (s *scanner) component(i int) (*attrNode, int) {
	if i >= len(s.code) {
		return nil, i
	}
	switch t := s.code[i]; t.kind {
	case tokIdent:
		return &attrNode{name: string(s.src[t.off:t.end])}, i + 1
	case tokInterpOpen:
		return &attrNode{dynamic: true}, int(s.mate[i]) + 1
	case tokStrOpen:
		m := int(s.mate[i])
		if text, plain := s.plain(i, m); plain {
			return &attrNode{name: unescapeNix(text)}, m + 1
		}
		return &attrNode{dynamic: true}, m + 1
	}
	return nil, i
}

// plain returns the raw text between the quotes at i and m, and whether there
// is no interpolation.
func (s *scanner) plain(i, m int) (string, bool) {
	for k := i + 1; k < m; k++ {
		if s.code[k].kind != tokText {
			return "", false
		}
	}
	return string(s.src[s.code[i].end:s.code[m].off]), true
}

// ends reports whether the value before i is over there.
func (s *scanner) ends(i int) bool { return i < len(s.code) && s.code[i].kind == tokSemicolon }

// value says what the value that begins at i is.
func (s *scanner) value(b *binding, i int) {
	if i >= len(s.code) {
		b.off = int32(len(s.src))
		b.end = b.off
		return
	}
	t := s.code[i]
	b.off, b.end = t.off, t.end
	if t.kind == tokNumber && !b.path.item && s.ends(i+1) {
		b.kind = valNumber
	}
	if t.kind != tokStrOpen && t.kind != tokIndOpen {
		return
	}
	m := int(s.mate[i])
	text, plain := s.plain(i, m)
	switch {
	case !b.path.item && !s.ends(m+1):
		b.kind = valCompound
	case t.kind == tokIndOpen && plain && isIndentedPlain(text):
		b.kind = valIndentedPlain
		b.off, b.end = t.end, s.code[m].off
	case t.kind == tokIndOpen:
		b.kind = valIndented
	case !plain:
		b.kind = valInterp
	default:
		b.kind = valPlain
		b.off, b.end = t.end, s.code[m].off
	}
}
