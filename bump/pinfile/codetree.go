package pinfile

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// codeNode is something in a file that has a name, or a place in a list:
// an assignment, a call, an argument, an entry of a dictionary.
type codeNode struct {
	parent  *codeNode
	name    string
	item    bool // of a list: it has an index and no name
	dynamic bool // its name is computed, so that no key names it
	index   int  // in its list, or among those of its name beside it
	at      int  // where it begins
	kids    []*codeNode
	names   map[string]int // how many kids have a name
	items   int            // how many kids are items
	site    *Site          // its value, if it has one
	weak    bool           // the value is no string, so that it counts only where there is no other
}

// codeTree is what a format's reader found in a file.
type codeTree struct {
	src      []byte
	root     *codeNode
	values   []*codeNode // those with a site, as they were found
	comments [][2]int
	links    []URL
	aliases  func(k codeKey) codeKey // other ways to say a key, may be nil
}

func newCodeTree(src []byte) *codeTree {
	return &codeTree{src: src, root: &codeNode{}}
}

// child adds a named node to parent.
func (t *codeTree) child(parent *codeNode, name string, at int) *codeNode {
	if parent.names == nil {
		parent.names = map[string]int{}
	}
	n := &codeNode{parent: parent, name: name, at: at, index: parent.names[name]}
	parent.names[name]++
	parent.kids = append(parent.kids, n)
	return n
}

// listItem adds the next item to the list at parent.
func (t *codeTree) listItem(parent *codeNode, at int) *codeNode {
	n := &codeNode{parent: parent, item: true, at: at, index: parent.items}
	parent.items++
	parent.kids = append(parent.kids, n)
	return n
}

// value gives n its value.
func (t *codeTree) value(n *codeNode, s Site) {
	if n.site == nil {
		t.values = append(t.values, n)
	}
	n.site = &s
}

func (t *codeTree) comment(start, end int) { t.comments = append(t.comments, [2]int{start, end}) }

// path is the longest key that names n.
func (n *codeNode) path() string {
	var parts []string
	for ; n.parent != nil; n = n.parent {
		parts = append(parts, n.label())
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		if b.Len() > 0 && !strings.HasPrefix(parts[i], "[") {
			b.WriteByte('.')
		}
		b.WriteString(parts[i])
	}
	return b.String()
}

func (n *codeNode) label() string {
	switch {
	case n.item:
		return "[" + strconv.Itoa(n.index) + "]"
	case n.dynamic:
		return computed
	case n.parent.names[n.name] < 2:
		return quoteCodeName(n.name)
	}
	if name, ok := n.field("name"); ok && len(name) < 100 {
		return quoteCodeName(n.name) + "[name=" + quoteCodeName(name) + "]"
	}
	return quoteCodeName(n.name) + "[" + strconv.Itoa(n.index) + "]"
}

// field is the value of the first kid of that name.
func (n *codeNode) field(name string) (string, bool) {
	if n.names[name] == 0 {
		return "", false
	}
	for _, k := range n.kids {
		if k.name == name && !k.item {
			if k.site == nil {
				return "", false
			}
			return k.site.Value, true
		}
	}
	return "", false
}

// codeMatcher matches nodes against one key.
type codeMatcher struct {
	key  codeKey
	seen map[codeMatchAt]bool // what selectors said
}

type codeMatchAt struct {
	node      *codeNode
	part, sel int
}

// matches reports whether the key names n.
func (m *codeMatcher) matches(n *codeNode) bool {
	for p := len(m.key.parts) - 1; p >= 0; p-- {
		part := m.key.parts[p]
		s := len(part.sels)
		for ; s > 0 && n.item; s-- {
			if !m.selects(n, p, s-1) {
				return false
			}
			n = n.parent
		}
		if n.parent == nil || n.item || n.dynamic || n.name != part.name {
			return false
		}
		for ; s > 0; s-- {
			if !m.selects(n, p, s-1) {
				return false
			}
		}
		n = n.parent
	}
	return !m.key.whole || n.parent == nil
}

func (m *codeMatcher) selects(n *codeNode, part, sel int) bool {
	s := m.key.parts[part].sels[sel]
	if s.index >= 0 {
		return n.index == s.index
	}
	at := codeMatchAt{n, part, sel}
	yes, known := m.seen[at]
	if !known {
		for _, k := range n.kids {
			if k.name == s.field && !k.item && k.site != nil && k.site.Value == s.value {
				yes = true
				break
			}
		}
		m.seen[at] = yes
	}
	return yes
}

// find is the find of document.
func (t *codeTree) find(key string) ([]Site, []Near, error) {
	k, err := parseCodeKey(key)
	if err != nil {
		return nil, nil, err
	}
	if t.aliases != nil {
		k = t.aliases(k)
	}
	m := &codeMatcher{key: k, seen: map[codeMatchAt]bool{}}
	var strong, weak []Site
	for _, n := range t.values {
		if !m.matches(n) {
			continue
		}
		site := *n.site
		site.Path = n.path()
		if n.weak {
			weak = append(weak, site)
		} else {
			strong = append(strong, site)
		}
	}
	if len(strong) == 0 {
		strong = weak
	}
	if len(strong) > 0 {
		return strong, nil, nil
	}
	return nil, t.nears(k), nil
}

// urls is the urls of document.
func (t *codeTree) urls() []URL { return t.links }

// nears lists what looks like k and is none: lists, other paths or spellings,
// and comments.
func (t *codeTree) nears(k codeKey) []Near {
	var out []Near
	add := func(off int, path, note string) {
		if len(out) < maxPlaces {
			out = append(out, Near{Offset: off, Path: path, Note: fmt.Sprintf("%s at line %d", note, placeOf(t.src, off).Line)})
		}
	}
	last := plainSpelling(k.last())
	var walk func(n *codeNode)
	walk = func(n *codeNode) {
		if len(out) == maxPlaces {
			return
		}
		if n.parent != nil && !n.item && plainSpelling(n.name) == last {
			switch {
			case n.site != nil:
				add(n.at, n.path(), "similar is "+n.path())
			case n.items > 0:
				add(n.at, n.path(), fmt.Sprintf("%s is a list of %d (name one by %s[0])", n.path(), n.items, n.path()))
			}
		}
		for _, c := range n.kids {
			walk(c)
		}
	}
	walk(t.root)
	for _, c := range t.comments {
		if len(out) == maxPlaces {
			break
		}
		if i := wordIn(t.src[c[0]:c[1]], k.last()); i >= 0 {
			add(c[0]+i, k.last(), k.last()+" is found in a comment")
		}
	}
	return out
}

// plainSpelling drops what people vary in a name.
func plainSpelling(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// wordIn returns where name stands in text as a word, or -1.
func wordIn(text []byte, name string) int {
	if name == "" {
		return -1
	}
	for from := 0; ; {
		i := bytes.Index(text[from:], []byte(name))
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(name)
		if (i == 0 || !isWordByte(text[i-1])) && (end == len(text) || !isWordByte(text[end])) {
			return i
		}
		from = end
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// problemSite is a value that cannot be edited.
func problemSite(start, end int, value, problem string) Site {
	return Site{Start: start, End: end, Value: value, Problem: problem, Encode: func(string) ([]byte, error) {
		return nil, fmt.Errorf("write a value: %s", problem)
	}}
}
