package pinfile

import "bytes"

// maxComputed bounds what is looked at of an expression, in bytes.
const maxComputed = 4 << 10

// facter is a document that tells all its values for a guess.
type facter interface {
	facts() []fact
}

// factsOf reads a file with the reader of its format; there are none of a file
// that cannot be read.
func factsOf(name string, src []byte) []fact {
	f, ok := formatNamed(name)
	if !ok {
		return nil
	}
	doc, err := f.parse(src, Options{})
	if err != nil {
		return nil
	}
	d, ok := doc.(facter)
	if !ok {
		return nil
	}
	return d.facts()
}

// facts implements facter.
func (d *leaves) facts() []fact {
	var out []fact
	for _, l := range d.all {
		if len(out) > maxFacts {
			return out
		}
		out = append(out, factOf(d.src, l.path.names(), l.Site))
	}
	return out
}

// names are the components of a path, outermost first.
func (n *attrNode) names() []string {
	var out []string
	for ; n != nil && len(out) < maxFactDepth; n = n.parent {
		name := n.name
		switch {
		case n.item:
			name = itemName(n.index)
		case n.dynamic:
			name = computed
		}
		out = append([]string{name}, out...)
	}
	return out
}

// facts implements facter.
func (t *codeTree) facts() []fact {
	var out []fact
	for _, n := range t.values {
		if len(out) > maxFacts {
			return out
		}
		out = append(out, factOf(t.src, n.labels(), *n.site))
	}
	return out
}

// labels are the components of a node's path, outermost first. Where several
// beside it have its name, what selects it is a component of its own.
func (n *codeNode) labels() []string {
	var out []string
	for ; n.parent != nil && len(out) < maxFactDepth; n = n.parent {
		switch {
		case n.item:
			out = append([]string{itemName(n.index)}, out...)
		case n.dynamic:
			out = append([]string{computed}, out...)
		case n.parent.names[n.name] < 2:
			out = append([]string{n.name}, out...)
		default:
			out = append([]string{n.name, n.label()[len(quoteCodeName(n.name)):]}, out...)
		}
	}
	return out
}

// maxFactDepth bounds the components of a path that a guess looks at.
const maxFactDepth = 64

func factOf(src []byte, path []string, s Site) fact {
	f := fact{path: path, value: s.Value, at: s.Start, computed: s.Problem != ""}
	if f.computed { // as it is written, to the end of its line at least
		text := src[s.Start:min(len(src), s.Start+maxComputed)]
		if end := bytes.IndexAny(text, ";\n"); end >= s.End-s.Start {
			text = text[:end]
		}
		f.value = string(text)
	}
	return f
}
