package pinfile

import (
	"regexp"
	"slices"
	"strings"
)

// Bounds of the addresses that a file composes.
const (
	maxAddresses = 1000
	maxURLLen    = 8 << 10
	maxPieces    = 200
	maxExpand    = 16      // how deep names may stand for names
	maxExpands   = 100_000 // how many names are looked up in one file
)

// composer puts an address together.
type composer struct {
	pieces  []Piece
	unknown []string
	size    int
	tooLong bool
}

// add appends text, which the file says at start..end if end is not 0. What
// follows on its predecessor in the file becomes one piece with it.
func (c *composer) add(text string, start, end int) {
	if text == "" {
		return
	}
	if c.size += len(text); c.size > maxURLLen || len(c.pieces) >= maxPieces {
		c.tooLong = true
		return
	}
	if n := len(c.pieces); n > 0 && end > 0 && c.pieces[n-1].End == start {
		c.pieces[n-1].Text += text
		c.pieces[n-1].End = end
		return
	}
	c.pieces = append(c.pieces, Piece{Text: text, Start: start, End: end})
}

// missing appends a name that the file does not tell.
func (c *composer) missing(name string) {
	if len(name) > 100 {
		name = strings.ToValidUTF8(name[:100], "")
	}
	c.add("${"+name+"}", 0, 0)
	if !slices.Contains(c.unknown, name) {
		c.unknown = append(c.unknown, name)
	}
}

func (c *composer) text() string {
	var b strings.Builder
	for _, p := range c.pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

// url returns the address, if it is one, that stands at off in src.
func (c *composer) url(src []byte, off int, path *attrNode) (URL, bool) {
	text := c.text()
	if c.tooLong || !startRE.MatchString(text) {
		return URL{}, false
	}
	at := placeOf(src, off)
	at.Path = path.String()
	return URL{Text: text, Place: at, Pieces: c.pieces, Unknown: c.unknown}, true
}

var (
	startRE = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^\s]`)
	// addressRE finds addresses in a text; placeholders may hold spaces.
	addressRE = regexp.MustCompile("[A-Za-z][A-Za-z0-9+.-]*://(?:\\$?\\{\\{[^{}\n]{0,100}\\}\\}|[^\\s\"'<>`|\\\\^])+")
	// placeRE finds the ways to write a name in a text: ${{ a.b }}, {{a}}, ${a},
	// $(a), {a} and $a.
	placeRE = regexp.MustCompile(`\$?\{\{([^{}\n]{0,100})\}\}|\$\{([^}\n]{0,100})\}|\$\(([^)\n]{0,100})\)|\{([A-Za-z_][A-Za-z0-9_.-]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)`)
	plainRE = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
)

// composed returns the addresses in the values of the file. A name in one of
// the ways of placeRE stands for the value of that name in the same object, in
// one around it, or for the only one in the file.
func (d *leaves) composed() []URL {
	x := &expander{leaves: d}
	var out []URL
	for i := range d.all {
		l := &d.all[i]
		if len(out) >= maxAddresses || !strings.ContainsAny(l.Value, ":${") {
			continue
		}
		for _, m := range addressesIn(l.Value) {
			var c composer
			x.expand(&c, l, m[0], m[1], 0)
			if u, ok := c.url(d.src, l.Start, l.path); ok {
				out = append(out, u)
			}
		}
	}
	return out
}

// addressesIn returns where addresses stand in text. A text that begins with a
// name may be one as a whole.
func addressesIn(text string) [][]int {
	if strings.HasPrefix(text, "$") || strings.HasPrefix(text, "{") {
		if !strings.ContainsAny(text, " \t\r\n") {
			return [][]int{{0, len(text)}}
		}
	}
	found := addressRE.FindAllStringIndex(text, maxAddresses)
	for _, m := range found {
		if m[0] == 0 && m[1] == len(text) {
			continue
		}
		// In prose, what ends a sentence does not belong to the address.
		m[1] = m[0] + len(strings.TrimRight(text[m[0]:m[1]], ".,;:)]"))
	}
	return found
}

// expander puts the file's own values in for names.
type expander struct {
	*leaves
	byName map[string]int // index in all of the only value of a name; -1: several
	count  int
}

// expand adds l.Value[from:to] to c.
func (x *expander) expand(c *composer, l *leaf, from, to, depth int) {
	literal := l.End-l.Start == len(l.Value) && string(x.src[l.Start:l.End]) == l.Value
	put := func(a, b int) {
		if literal {
			c.add(l.Value[a:b], l.Start+a, l.Start+b)
		} else {
			c.add(l.Value[a:b], 0, 0)
		}
	}
	pos := from
	for _, m := range placeRE.FindAllStringSubmatchIndex(l.Value[from:to], maxPieces) {
		put(pos, from+m[0])
		pos = from + m[1]
		name := nameOf(l.Value[from:to], m)
		v := x.lookUp(l, name)
		if x.count++; v == nil || v == l || depth >= maxExpand || x.count > maxExpands || c.tooLong {
			c.missing(name)
			continue
		}
		x.expand(c, v, 0, len(v.Value), depth+1)
	}
	put(pos, to)
}

// nameOf returns the group of placeRE that m matched.
func nameOf(text string, m []int) string {
	for g := 2; g < len(m); g += 2 {
		if m[g] >= 0 {
			return strings.TrimSpace(text[m[g]:m[g+1]])
		}
	}
	return ""
}

// lookUp returns the value that name stands for beside l.
func (x *expander) lookUp(l *leaf, name string) *leaf {
	if !plainRE.MatchString(name) {
		return nil
	}
	x.has(nil, "", "") // makes fields
	for n := l.path; n != nil; n = n.parent {
		if i, ok := x.fields[n.parent][name]; ok && x.usable(i) && &x.all[i] != l {
			return &x.all[i]
		}
	}
	if x.byName == nil {
		x.byName = map[string]int{}
		for i, v := range x.all {
			if !v.named() || !x.usable(i) || isOwn(v) {
				continue
			}
			if _, twice := x.byName[v.path.name]; twice {
				i = -1
			}
			x.byName[v.path.name] = i
		}
	}
	if i, ok := x.byName[name[strings.LastIndexByte(name, '.')+1:]]; ok && i >= 0 {
		return &x.all[i]
	}
	return nil
}

// isOwn reports whether a value is another one of its own name, as in
// version: ${{ version }}, where the name is that of a block of variables.
func isOwn(l leaf) bool {
	m := placeRE.FindStringSubmatchIndex(l.Value)
	if m == nil || m[0] > 0 || m[1] < len(l.Value) {
		return false
	}
	name := nameOf(l.Value, m)
	return name[strings.LastIndexByte(name, '.')+1:] == l.path.name
}

// usable reports whether a value is written out in the file.
func (x *expander) usable(i int) bool { return x.all[i].Problem == "" && !x.all[i].weak }
