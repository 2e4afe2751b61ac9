package pinfile

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// leaf is a value that stands at a path.
type leaf struct {
	path *attrNode
	Site // its Path is made when it is asked for
	// weak marks an expression. It only counts where there is nothing else of
	// that name: version = self.version is no second version.
	weak bool
	note string // what a weak one is, for messages
}

// span is a part of a file that is no value.
type span struct{ off, end int }

// leaves is a file as the list of its values; every format whose values have
// paths reads into it.
type leaves struct {
	src      []byte
	all      []leaf
	comments []span
	strings  []span                       // that may quote a pin, where the format knows such
	assign   string                       // what stands between a name and a value, as a regular expression
	hints    func(k pathKey) []Near       // more that looks like k; may be nil
	fields   map[*attrNode]map[string]int // index in all, by the object it is in; made once
}

// has is a fieldOf.
func (d *leaves) has(n *attrNode, name, value string) bool {
	if d.fields == nil {
		d.fields = map[*attrNode]map[string]int{}
		for i, l := range d.all {
			if !l.named() || l.weak {
				continue
			}
			of := d.fields[l.path.parent]
			if of == nil {
				of = map[string]int{}
				d.fields[l.path.parent] = of
			}
			of[l.path.name] = i
		}
	}
	i, ok := d.fields[n][name]
	return ok && d.all[i].Value == value
}

// named reports whether the value has a name that the file spells out. One that
// is the whole of a file has no path at all.
func (l leaf) named() bool { return l.path != nil && !l.path.item && !l.path.dynamic }

func (l leaf) site() Site {
	s := l.Site
	s.Path = l.path.String()
	return s
}

// list implements lister. What is weak has no value of its own.
func (d *leaves) list() []Site {
	out := make([]Site, 0, len(d.all))
	for _, l := range d.all {
		out = append(out, l.site())
	}
	return out
}

func (d *leaves) find(key string) ([]Site, []Near, error) {
	k, err := readKey(key)
	if err != nil {
		return nil, nil, err
	}
	var found, weak []leaf
	for _, l := range d.all {
		switch {
		case !k.matches(l.path, d.has):
		case l.weak:
			weak = append(weak, l)
		default:
			found = append(found, l)
		}
	}
	if len(found) == 0 && len(weak) == 1 {
		found = weak
	}
	var sites []Site
	for _, l := range found {
		sites = append(sites, l.site())
	}
	if len(sites) > 0 {
		return sites, nil, nil
	}
	return nil, d.similar(k, weak), nil
}

// similar lists what looks like k and is no value that it names.
func (d *leaves) similar(k pathKey, weak []leaf) []Near {
	lines := lineCounter{src: d.src}
	var out []Near
	add := func(off int, path, note string) {
		if len(out) < maxPlaces {
			out = append(out, Near{Offset: off, Path: path, Note: fmt.Sprintf("%s at line %d", note, lines.at(off))})
		}
	}
	for _, l := range weak {
		add(l.Start, l.path.String(), l.path.String()+" "+l.note)
	}
	last := k.last()
	for _, l := range d.all {
		if len(out) == maxPlaces {
			break
		}
		if n := l.path.outOfLists(); n != nil && strings.EqualFold(n.name, last) && !k.matches(l.path, d.has) {
			add(max(l.At, 0), l.path.String(), "similar is "+l.path.String())
		}
	}
	only := ""
	if len(out) == 0 {
		only = "only "
	}
	if d.hints != nil {
		for _, n := range d.hints(k) {
			add(n.Offset, n.Path, n.Note)
		}
	}
	d.quoted(last, func(off int, where string) { add(off, last, last+" is found "+only+where) })
	return out
}

// quoted calls found for each comment and string that sets name.
func (d *leaves) quoted(name string, found func(off int, where string)) {
	if name == "" {
		return
	}
	assign := regexp.MustCompile(`(?:^|[^\w'-])["']?` + regexp.QuoteMeta(name) + `["']?` + d.assign)
	for _, in := range []struct {
		spans []span
		where string
	}{{d.comments, "in a comment"}, {d.strings, "in a string"}} {
		for _, s := range in.spans {
			if m := assign.FindIndex(d.src[s.off:s.end]); m != nil {
				found(s.off+m[0], in.where)
			}
		}
	}
}

// lineCounter tells lines of rising offsets without reading the file from its
// beginning each time.
type lineCounter struct {
	src       []byte
	off, line int
}

func (c *lineCounter) at(off int) int {
	off = min(off, len(c.src))
	if off < c.off {
		c.off, c.line = 0, 0
	}
	c.line += bytes.Count(c.src[c.off:off], []byte{'\n'})
	c.off = off
	return c.line + 1
}
