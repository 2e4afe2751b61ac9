package pinfile

import (
	"regexp"
	"slices"
	"strings"
)

// maxURL bounds a composed address, and any value that goes into one, in bytes.
const maxURL = 4096

// schemeAtRE finds where an address begins; what stands before it is the name
// that a PKGBUILD gives the file, or the option that takes the address.
var schemeAtRE = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://`)

// urlStops end an address in running text.
const urlStops = " \t\r\n\"'<>|;`\\"

// text is a composed text with where it came from.
type text struct {
	pieces  []Piece
	unknown []string
	based   bool // some of it begins an address
}

func (x *text) add(s string, start, end int) {
	if s == "" {
		return
	}
	if end-start != len(s) {
		start, end = 0, 0
	}
	if n := len(x.pieces); n > 0 {
		last := &x.pieces[n-1]
		if last.End == start && (last.End > 0) == (end > 0) {
			last.Text += s
			last.End = end
			return
		}
	}
	x.pieces = append(x.pieces, Piece{Text: s, Start: start, End: end})
}

// addUnknown adds what the file does not tell.
func (x *text) addUnknown(name string) {
	x.add("${"+name+"}", 0, 0)
	if !slices.Contains(x.unknown, name) {
		x.unknown = append(x.unknown, name)
	}
}

// addText adds other. Its places are kept only where it holds the beginning of
// an address: an edit of the address's directory may then go there, and never
// to a version that the address is made of.
func (x *text) addText(other text) {
	for _, p := range other.pieces {
		begins := strings.Contains(p.Text, "://")
		if x.based || !begins {
			p.Start, p.End = 0, 0
		}
		x.based = x.based || begins
		x.add(p.Text, p.Start, p.End)
	}
	for _, name := range other.unknown {
		if !slices.Contains(x.unknown, name) {
			x.unknown = append(x.unknown, name)
		}
	}
}

func (x text) String() string {
	var b strings.Builder
	for _, p := range x.pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

func (x text) len() int {
	n := 0
	for _, p := range x.pieces {
		n += len(p.Text)
	}
	return n
}

// slice returns the bytes of x from start to end.
func (x text) slice(start, end int) text {
	out := text{}
	pos := 0
	for _, p := range x.pieces {
		from, to := max(start-pos, 0), min(end-pos, len(p.Text))
		pos += len(p.Text)
		if from >= to {
			continue
		}
		q := Piece{Text: p.Text[from:to]}
		if p.End > 0 {
			q.Start, q.End = p.Start+from, p.Start+to
		}
		out.pieces = append(out.pieces, q)
	}
	for _, name := range x.unknown {
		if strings.Contains(out.String(), "${"+name+"}") {
			out.unknown = append(out.unknown, name)
		}
	}
	return out
}

// link notes every address in x, which stands at off.
func (t *codeTree) link(x text, off int, path string) {
	s := x.String()
	pos := 0
	for len(t.links) < maxAddresses {
		m := schemeAtRE.FindStringIndex(s[pos:])
		if m == nil {
			return
		}
		start := pos + m[0]
		end := len(s)
		if i := strings.IndexAny(s[pos+m[1]:], urlStops); i >= 0 {
			end = pos + m[1] + i
		}
		if end > pos+m[1] && end-start <= maxURL {
			part := x.slice(start, end)
			u := URL{Text: part.String(), Place: placeOf(t.src, off), Pieces: part.pieces, Unknown: part.unknown}
			u.Path = path
			t.links = append(t.links, u)
		}
		pos = end
	}
}
