package pinfile

// factsOf reads a file as an edit of it would.
func factsOf(format string, src []byte) []fact {
	for _, f := range formats() {
		if f.name == format {
			doc, err := f.parse(src, Options{})
			if err != nil {
				return nil
			}
			return documentFacts(doc)
		}
	}
	return nil
}

// addressItem marks an address that a file composes: it stands where its parts
// do, and no key names it.
const addressItem = "[address]"

// documentFacts makes facts of what a document tells: its values, and the
// addresses that it makes of them.
func documentFacts(doc document) []fact {
	var out []fact
	switch d := doc.(type) {
	case lister:
		out = siteFacts(d.list())
	case interface{ sites() []Site }:
		out = siteFacts(d.sites())
	}
	for _, u := range doc.urls() {
		path, ok := splitKey(u.Path)
		if !ok {
			path = nil
		}
		out = append(out, fact{path: append(path, addressItem), value: u.Text, computed: true})
	}
	return out
}

// sites lists the values of a file of code, in its order.
func (t *codeTree) sites() []Site {
	out := make([]Site, 0, len(t.values))
	for _, n := range t.values {
		s := *n.site
		s.Path = n.path()
		out = append(out, s)
	}
	return out
}
