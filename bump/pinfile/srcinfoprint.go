package pinfile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// The attributes of a .SRCINFO, in the order in which makepkg prints them
// (srcinfo.sh and schema.sh of pacman 6 and 7).
var (
	sumNames      = []string{"cksums", "md5sums", "sha1sums", "sha224sums", "sha256sums", "sha384sums", "sha512sums", "b2sums"}
	baseSingles   = []string{"pkgdesc", "pkgver", "pkgrel", "epoch", "url", "install", "changelog"}
	baseLists     = append([]string{"arch", "groups", "license", "checkdepends", "makedepends", "depends", "optdepends", "provides", "conflicts", "replaces", "noextract", "options", "backup", "source", "validpgpkeys"}, sumNames...)
	packageSingle = []string{"pkgdesc", "url", "install", "changelog"}
	packageLists  = []string{"arch", "groups", "license", "checkdepends", "depends", "optdepends", "provides", "conflicts", "replaces", "options", "backup"}
	archLists     = append([]string{"source", "provides", "conflicts", "depends", "replaces", "optdepends", "makedepends", "checkdepends"}, sumNames...)
)

// assignLine is what makepkg takes for an override in a function, wherever in
// its text it stands.
var assignLine = regexp.MustCompile(`(?m)^[ \t]*([a-z0-9_]+)\+?=`)

// SrcInfo returns what makepkg --printsrcinfo prints for a PKGBUILD, worked out
// from what the file assigns. Nothing of it is run: what only running it would
// tell, such as the output of a command or a condition outside the functions,
// is refused with a *SyntaxError that says where.
func SrcInfo(pkgbuild []byte) ([]byte, error) {
	p, err := evalPkgbuild(pkgbuild)
	if err != nil {
		return nil, err
	}
	if p.stray != nil {
		return nil, p.stray
	}
	names, err := p.attr("", "pkgname", true)
	if err == nil && len(names) == 0 {
		err = syntaxAt(pkgbuild, 0, "the PKGBUILD has no pkgname")
	}
	if err != nil {
		return nil, err
	}
	base, err := p.attr("", "pkgbase", false)
	if err != nil {
		return nil, err
	}
	if len(base) == 0 {
		base = names[:1]
	}
	fmt.Fprintf(&p.out, "pkgbase = %s\n", base[0])
	if err := p.section("", baseSingles, baseLists); err != nil {
		return nil, err
	}
	for _, name := range names {
		fmt.Fprintf(&p.out, "\npkgname = %s\n", name)
		if err := p.section(name, packageSingle, packageLists); err != nil {
			return nil, err
		}
	}
	return p.out.Bytes(), nil
}

// pkgbuildEval is a PKGBUILD as makepkg sees it once it has read it.
type pkgbuildEval struct {
	src     []byte
	eval    *shellEval
	refused map[string]error // by variable: why its value is not known
	funcs   map[string]*pkgbuildFunc
	stray   error // the first thing that would run as the file is read
	out     bytes.Buffer
}

// pkgbuildFunc is a function that may override attributes.
type pkgbuildFunc struct {
	sets    map[string][]*syntax.Assign
	refused map[string]error
}

func evalPkgbuild(src []byte) (*pkgbuildEval, error) {
	file, err := parseBash(src)
	if err != nil {
		return nil, err
	}
	p := &pkgbuildEval{src: src, eval: newShellEval(src), refused: map[string]error{}, funcs: map[string]*pkgbuildFunc{}}
	for _, stmt := range file.Stmts {
		if !p.stmt(stmt) && p.stray == nil {
			p.stray = syntaxAt(src, offsetOf(src, stmt.Pos()), "this runs as the file is read, so what it does to the values is not known")
		}
	}
	return p, nil
}

// stmt takes one statement outside functions; false says that it is more than
// an assignment or a function.
func (p *pkgbuildEval) stmt(s *syntax.Stmt) bool {
	if s.Negated || s.Background || s.Coprocess || len(s.Redirs) > 0 {
		return false
	}
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) > 0 {
			return false
		}
		for _, a := range c.Assigns {
			p.assign(a, false)
		}
		return true
	case *syntax.DeclClause:
		assoc := false
		for _, a := range c.Args {
			if a.Naked && a.Value == nil {
				continue // declare name
			}
			if a.Naked {
				flag := a.Value.Lit()
				if !slices.Contains([]string{"-A", "-a", "-r", "-x", "-g"}, flag) {
					return false
				}
				assoc = assoc || flag == "-A"
			} else {
				p.assign(a, assoc)
			}
		}
		return c.Variant.Value != "local" && c.Variant.Value != "nameref"
	case *syntax.FuncDecl:
		if c.Name != nil {
			p.funcs[c.Name.Value] = p.function(c)
		}
		return c.Name != nil
	}
	return false
}

func (p *pkgbuildEval) assign(a *syntax.Assign, assoc bool) {
	p.eval.refused = nil
	p.eval.assign(a, assoc, false)
	switch name := a.Name.Value; {
	case p.eval.refused != nil && p.refused[name] == nil:
		p.refused[name] = p.eval.refused
	case p.eval.refused == nil && !a.Append && a.Index == nil:
		delete(p.refused, name)
	}
}

// function gathers what a function assigns. makepkg finds that by the lines of
// the function's text, so a plain statement counts and anything cleverer is
// refused.
func (p *pkgbuildEval) function(f *syntax.FuncDecl) *pkgbuildFunc {
	out := &pkgbuildFunc{sets: map[string][]*syntax.Assign{}, refused: map[string]error{}}
	refuse := func(name string, n syntax.Node, why string) {
		if out.refused[name] == nil {
			out.refused[name] = syntaxAt(p.src, offsetOf(p.src, n.Pos()), why)
		}
	}
	plain := map[*syntax.Assign]bool{}
	if b, ok := f.Body.Cmd.(*syntax.Block); ok {
		for _, s := range b.Stmts {
			c, ok := s.Cmd.(*syntax.CallExpr)
			if !ok || len(c.Args) > 0 || len(c.Assigns) == 0 || s.Negated || s.Background || len(s.Redirs) > 0 {
				continue
			}
			a := c.Assigns[0]
			for _, other := range c.Assigns {
				plain[other] = true
			}
			if a.Index == nil && !bytes.ContainsRune(p.text(a.Value), '\n') {
				out.sets[a.Name.Value] = append(out.sets[a.Name.Value], a)
				continue
			}
			refuse(a.Name.Value, a, "makepkg does not read an assignment of this form in a function")
		}
	}
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DeclClause:
			return false // its line does not begin with the name
		case *syntax.Assign:
			if n.Name != nil && !plain[n] {
				refuse(n.Name.Value, n, "whether this assignment happens is not known")
			}
		case *syntax.Lit, *syntax.SglQuoted:
			for _, m := range assignLine.FindAllSubmatch(afterFirstLine(p.text(n)), 100) {
				refuse(string(m[1]), n, "makepkg takes a line of this text for an assignment")
			}
		}
		return true
	})
	return out
}

func (p *pkgbuildEval) text(n syntax.Node) []byte {
	if w, ok := n.(*syntax.Word); ok && w == nil {
		return nil
	}
	return p.src[offsetOf(p.src, n.Pos()):offsetOf(p.src, n.End())]
}

func afterFirstLine(b []byte) []byte {
	_, rest, _ := bytes.Cut(b, []byte{'\n'})
	return rest
}

// section prints the attributes of the base, or those that a package's
// function overrides.
func (p *pkgbuildEval) section(pkg string, singles, lists []string) error {
	for _, name := range singles {
		if err := p.print(pkg, name, false); err != nil {
			return err
		}
	}
	for _, name := range lists {
		if err := p.print(pkg, name, true); err != nil {
			return err
		}
	}
	arches, err := p.attr("", "arch", true)
	if err != nil {
		return err
	}
	if pkg != "" {
		if over, found, err := p.override(pkg, "arch", true); err != nil {
			return err
		} else if found {
			arches = over
		}
	}
	for _, arch := range arches {
		if arch == "any" {
			continue
		}
		for _, name := range archLists {
			if err := p.print(pkg, name+"_"+arch, true); err != nil {
				return err
			}
		}
		if p.out.Len() > maxSource {
			return errors.New("print a .SRCINFO: it is too long")
		}
	}
	return nil
}

func (p *pkgbuildEval) print(pkg, name string, list bool) error {
	values, err := p.attr(pkg, name, list)
	for _, v := range values {
		fmt.Fprintf(&p.out, "\t%s = %s\n", name, oneSpaced(v))
	}
	return err
}

// oneSpaced does to blanks what makepkg does: a run of them is one, and there
// are none around the value.
func oneSpaced(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" \t\n\v\f\r", r) }), " ")
}

// attr is the values of an attribute as they are printed: those of the base
// when pkg is "", else those that pkg's function sets, where one empty value
// stands for none.
func (p *pkgbuildEval) attr(pkg, name string, list bool) ([]string, error) {
	if pkg != "" {
		values, found, err := p.override(pkg, name, list)
		if found && len(values) == 0 {
			values = []string{""}
		}
		return values, err
	}
	values, err := p.values(p.eval.env.get(name), name)
	if err != nil || list {
		return values, err
	}
	if len(values) == 0 || values[0] == "" {
		return nil, nil
	}
	return values[:1], nil
}

func (p *pkgbuildEval) values(v *shellVar, name string) ([]string, error) {
	if err := p.refused[name]; err != nil {
		return nil, err
	}
	if v == nil {
		return nil, nil
	}
	if v.lost || v.keyed != nil {
		return nil, syntaxAt(p.src, 0, name+" has a value that the file alone does not tell")
	}
	out := make([]string, 0, len(v.items))
	for _, x := range v.items {
		if len(x.unknown) > 0 {
			return nil, syntaxAt(p.src, 0, name+" has a value that the file alone does not tell")
		}
		out = append(out, x.String())
	}
	return out, nil
}

// override is what the function of pkg sets, on top of what the base has.
func (p *pkgbuildEval) override(pkg, name string, list bool) ([]string, bool, error) {
	f := p.funcs["package_"+pkg]
	if f == nil {
		f = p.funcs["package"]
	}
	if f == nil {
		return nil, false, nil
	}
	if err := f.refused[name]; err != nil {
		return nil, false, err
	}
	global := p.eval.env
	defer func() { p.eval.env = global }()
	// makepkg has pkgname be the name of the package at this point.
	p.eval.env = &shellEnv{outer: global, vars: map[string]*shellVar{"pkgname": {items: []text{{pieces: []Piece{{Text: pkg}}}}}}}
	p.eval.refused = nil
	found := false
	for _, a := range f.sets[name] {
		if list != (a.Array != nil) {
			continue
		}
		if a.Append && !found {
			if err := p.refused[name]; err != nil {
				return nil, false, err
			}
		}
		found = true
		p.eval.assign(a, false, false)
	}
	if !found || p.eval.refused != nil {
		return nil, false, p.eval.refused
	}
	v := p.eval.env.get(name)
	if v.lost {
		return nil, false, syntaxAt(p.src, offsetOf(p.src, f.sets[name][0].Pos()), name+" has a value that the file alone does not tell")
	}
	out := make([]string, 0, len(v.items))
	for _, x := range v.items {
		if len(x.unknown) > 0 {
			return nil, false, syntaxAt(p.src, offsetOf(p.src, f.sets[name][0].Pos()), name+" has a value that the file alone does not tell")
		}
		out = append(out, x.String())
	}
	return out, true, nil
}
