package pinfile

import (
	"bytes"
	"errors"

	"mvdan.cc/sh/v3/syntax"
)

// The parser of shell calls itself for what nests, so the file is bounded in
// length and, before it is parsed, in how deep its brackets nest.
const (
	maxShell      = 128 << 10
	maxShellDepth = 200
)

// parseBash parses source as bash does. Nothing of it is ever run.
func parseBash(src []byte) (*syntax.File, error) {
	if err := fitsIn(src, maxShell); err != nil {
		return nil, err
	}
	if i := bytes.IndexByte(src, 0); i >= 0 {
		return nil, syntaxAt(src, i, "a NUL byte is no shell")
	}
	depth := 0
	for i, c := range src {
		switch c {
		case '(', '{', '[', '`':
			depth++
		case ')', '}', ']':
			depth = max(depth-1, 0)
		case '\n':
			// Backquotes open and close alike; they rarely span lines.
			depth -= min(depth, bytes.Count(lineBefore(src, i), []byte{'`'}))
		}
		if depth > maxShellDepth {
			return nil, syntaxAt(src, i, "brackets nest too deep")
		}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(bytes.NewReader(src), "")
	if err == nil {
		return file, nil
	}
	var pe syntax.ParseError
	if errors.As(err, &pe) {
		return nil, syntaxAt(src, offsetOf(src, pe.Pos), pe.Text)
	}
	var le syntax.LangError
	if errors.As(err, &le) {
		return nil, syntaxAt(src, offsetOf(src, le.Pos), "this is not bash")
	}
	return nil, syntaxAt(src, 0, err.Error())
}

func lineBefore(src []byte, end int) []byte {
	return src[bytes.LastIndexByte(src[:end], '\n')+1 : end]
}

func offsetOf(src []byte, p syntax.Pos) int { return min(int(p.Offset()), len(src)) }

// shellReader reads the assignments of a script into a tree.
type shellReader struct {
	*codeTree
	eval     *shellEval
	top      bool // only assignments outside functions are bindings
	maybe    int  // how many conditions, loops and the like are around
	function bool
	later    []*syntax.FuncDecl
	lists    map[shellList]*codeNode
}

type shellList struct {
	parent *codeNode
	name   string
}

// readShell reads a whole script: what stands outside functions first, as it
// runs first.
func readShell(src []byte, top bool) (*shellReader, error) {
	file, err := parseBash(src)
	if err != nil {
		return nil, err
	}
	r := &shellReader{codeTree: newCodeTree(src), eval: newShellEval(src), top: top, lists: map[shellList]*codeNode{}}
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.Comment); ok {
			r.comment(offsetOf(src, c.Pos()), offsetOf(src, c.End()))
		}
		return true
	})
	r.walk(file, r.root)
	global := r.eval.env
	r.function = true
	for len(r.later) > 0 {
		f := r.later[0]
		r.later = r.later[1:]
		r.eval.env = &shellEnv{outer: global, vars: map[string]*shellVar{}}
		r.walk(f.Body, r.child(r.root, f.Name.Value, offsetOf(src, f.Pos())))
	}
	r.eval.env = global
	return r, nil
}

func (r *shellReader) walk(node syntax.Node, parent *codeNode) {
	var around []bool
	syntax.Walk(node, func(n syntax.Node) bool {
		if n == nil {
			if around[len(around)-1] {
				r.maybe--
			}
			around = around[:len(around)-1]
			return true
		}
		down, maybe := r.visit(n, parent)
		if down {
			around = append(around, maybe)
			if maybe {
				r.maybe++
			}
		}
		return down
	})
}

// visit handles a node and says whether to go into it, and whether what is in
// it may not run.
func (r *shellReader) visit(n syntax.Node, parent *codeNode) (down, maybe bool) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		for _, a := range n.Assigns {
			// Before a command, they are that command's environment.
			if len(n.Args) > 0 {
				r.words(a)
			} else {
				r.assign(a, parent, false)
			}
		}
		for _, w := range n.Args {
			r.words(w)
		}
		return false, false
	case *syntax.DeclClause:
		assoc := false
		for _, a := range n.Args {
			if a.Naked {
				assoc = assoc || a.Value != nil && a.Value.Lit() == "-A"
				continue
			}
			r.assign(a, parent, assoc)
		}
		return false, false
	case *syntax.FuncDecl:
		if n.Name != nil {
			r.later = append(r.later, n)
		}
		return false, false
	case *syntax.Word:
		r.words(n)
		return false, false
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.BinaryCmd, *syntax.Subshell, *syntax.CoprocClause:
		return true, true
	}
	return true, false
}

// words notes the addresses of every word in n.
func (r *shellReader) words(n syntax.Node) {
	syntax.Walk(n, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			r.link(r.eval.word(w), offsetOf(r.src, w.Pos()), "")
		}
		return true
	})
}

// assign reads one assignment.
func (r *shellReader) assign(a *syntax.Assign, parent *codeNode, assoc bool) {
	if a.Name == nil {
		r.words(a)
		return
	}
	r.words(a)
	binds := !r.top || !r.function
	if binds {
		r.bind(a, parent)
	}
	r.eval.assign(a, assoc, r.maybe > 0)
}

// bind adds the values of an assignment to the tree.
func (r *shellReader) bind(a *syntax.Assign, parent *codeNode) {
	at := offsetOf(r.src, a.Pos())
	list := shellList{parent, a.Name.Value}
	switch {
	case a.Array != nil:
		node := r.lists[list]
		if node == nil || !a.Append {
			node = r.child(parent, a.Name.Value, at)
			r.lists[list] = node
		}
		r.bindItems(node, a.Array)
	case a.Index != nil:
		node := r.lists[list]
		if node == nil {
			node = r.child(parent, a.Name.Value, at)
			r.lists[list] = node
		}
		r.bindItem(node, a.Index, a.Value, offsetOf(r.src, a.End()))
	default:
		site := shellSite(r.src, a.Value, offsetOf(r.src, a.End()), false)
		if a.Append && site.Problem == "" {
			site = problemSite(site.Start, site.End, site.Value, "the value is added to another by += (name the value that it is made of)")
		}
		r.value(r.child(parent, a.Name.Value, at), site)
	}
}

func (r *shellReader) bindItems(node *codeNode, list *syntax.ArrayExpr) {
	sure := true // of the index of what follows
	for _, e := range list.Elems {
		end := offsetOf(r.src, e.End())
		if e.Index != nil {
			r.bindItem(node, e.Index, e.Value, end)
			continue
		}
		item := r.listItem(node, offsetOf(r.src, e.Pos()))
		if !sure {
			item.index = -1
		}
		r.value(item, shellSite(r.src, e.Value, end, true))
		if manyFields(e.Value) {
			sure, item.index = false, -1
		}
	}
}

// bindItem adds [index]=value or [key]=value.
func (r *shellReader) bindItem(node *codeNode, index syntax.ArithmExpr, value *syntax.Word, end int) {
	key, ok := nameIndex(r.src, index)
	at := offsetOf(r.src, index.Pos())
	var item *codeNode
	if n, numeric := smallInt(key); ok && numeric {
		item = r.listItem(node, at)
		item.index = n
		node.items = n + 1
	} else {
		item = r.child(node, key, at)
		item.dynamic = !ok
	}
	r.value(item, shellSite(r.src, value, end, true))
}

// manyFields reports whether a word may be other than one item of a list.
func manyFields(w *syntax.Word) bool {
	if w == nil {
		return false
	}
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if hasGlob(p.Value) {
				return true
			}
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, q := range p.Parts {
				if e, ok := q.(*syntax.ParamExp); ok && e.Index != nil {
					return true
				}
			}
		default:
			return true
		}
	}
	return false
}
