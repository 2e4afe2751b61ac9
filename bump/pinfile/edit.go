package pinfile

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What some documents can do beyond being a document.
type (
	// implier knows values that change along with others, such as the pkgrel of
	// a PKGBUILD. It returns them; what set says itself wins.
	implier interface {
		implied(set map[string]string) map[string]string
	}
	// rewriter changes no value where it stands: a changelog gets a new entry
	// before what it has. It returns src itself where there is nothing to do.
	rewriter interface {
		rewrite(set map[string]string) ([]byte, error)
	}
	// lister names every value of the file in its order, so that an edit that
	// made one appear, vanish or change is found out.
	lister interface {
		list() []Site
	}
	// verifier refuses a file whose values contradict each other.
	verifier interface {
		verify() error
	}
)

// choose returns the format for the file at path.
func choose(path string, o Options) (format, error) {
	name := o.Format
	if name == "" {
		name = FormatOf(path)
	}
	if f, ok := formatNamed(name); ok {
		return f, nil
	}
	known := strings.Join(Formats(), ", ")
	if name == "" {
		return format{}, fmt.Errorf("edit %s: its name does not tell the format (set format to one of: %s)", path, known)
	}
	return format{}, fmt.Errorf("edit %s: format %.40q is not known (known: %s)", path, name, known)
}

// read parses src.
func (f format) read(src []byte, o Options) (document, error) {
	if len(src) > MaxLen {
		return nil, &SyntaxError{Line: 1, Column: 1, Problem: fmt.Sprintf("the file is larger than %d MiB", MaxLen>>20)}
	}
	return f.parse(src, o)
}

// choice is the one value that a key names.
type choice struct {
	key string
	Site
	text []byte // what replaces it
}

// edit is Edit without the file's name.
func (f format) edit(src []byte, set map[string]string, o Options) (*Result, error) {
	doc, err := f.read(src, o)
	if err != nil {
		return nil, err
	}
	if d, ok := doc.(rewriter); ok {
		return f.rewrite(d, src, set, o)
	}
	set = withImplied(doc, set)
	found, err := chooseAll(src, doc, slices.Sorted(maps.Keys(set)))
	if err != nil {
		return nil, err
	}
	res := &Result{}
	for i := range found {
		c := &found[i]
		if c.text, err = encode(src, *c, set[c.key]); err != nil {
			return nil, err
		}
		if c.Value != set[c.key] {
			p := placeOf(src, c.Start)
			p.Path = c.Path
			res.Changes = append(res.Changes, Change{Key: c.key, From: c.Value, To: set[c.key], Place: p})
		}
	}
	res.Text = splice(src, found)
	if len(res.Changes) == 0 {
		return res, nil
	}
	if len(res.Text) > MaxLen {
		return nil, &SyntaxError{Line: 1, Column: 1, Problem: fmt.Sprintf("the edited file would be larger than %d MiB", MaxLen>>20)}
	}
	if err := f.prove(src, doc, res.Text, found, set, o); err != nil {
		return nil, err
	}
	return res, nil
}

// withImplied returns set with what doc has to change along with it.
func withImplied(doc document, set map[string]string) map[string]string {
	d, ok := doc.(implier)
	if !ok {
		return set
	}
	out := maps.Clone(d.implied(set))
	if len(out) == 0 {
		return set
	}
	maps.Copy(out, set)
	return out
}

// rewrite is edit for a document that is written anew. Keys that the file as it
// was does not hold, such as the text of a change, have no old value.
func (f format) rewrite(d rewriter, src []byte, set map[string]string, o Options) (*Result, error) {
	out, err := d.rewrite(set)
	if err != nil {
		return nil, err
	}
	res := &Result{Text: out}
	if bytes.Equal(src, out) {
		return res, nil
	}
	if !bytes.HasSuffix(out, src) {
		return nil, errors.New("the edit would change what stands in the file already")
	}
	after, err := f.read(out, o)
	if err != nil {
		return nil, fmt.Errorf("read the edited file again: %w (the new values do not fit there)", err)
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		now, _, err := after.find(key)
		if err != nil || len(now) != 1 {
			continue // it is written, and no value of its own
		}
		was, _, _ := d.(document).find(key)
		c := Change{Key: key, To: set[key], Place: placeOf(out, now[0].Start)}
		if len(was) == 1 {
			c.From = was[0].Value
		}
		if c.From != c.To {
			res.Changes = append(res.Changes, c)
		}
	}
	return res, nil
}

// chooseAll finds the values of all keys, and returns them by their offset, or
// the error of the first key that has one. Two keys for one value are refused.
func chooseAll(src []byte, doc document, keys []string) ([]choice, error) {
	var found []choice
	for _, key := range keys {
		site, err := chooseOne(src, doc, key)
		if err != nil {
			return nil, err
		}
		found = append(found, choice{key: key, Site: site})
	}
	slices.SortStableFunc(found, func(a, b choice) int { return a.Start - b.Start })
	for i := 1; i < len(found); i++ {
		prev, c := found[i-1], found[i]
		if c.Start < prev.End || c.Start == prev.Start {
			return nil, valueAt(src, c.key, c.Start, fmt.Sprintf("the key %s names this value too (leave one of them out)", prev.key))
		}
	}
	return found, nil
}

// chooseOne returns the one value that key names.
func chooseOne(src []byte, doc document, key string) (Site, error) {
	sites, nears, err := doc.find(key)
	switch {
	case err != nil:
		return Site{}, err
	case len(sites) == 0:
		return Site{}, &MatchError{Attr: key, Lines: placesOf(src, nears)}
	case len(sites) > 1:
		e := &MatchError{Attr: key, Count: len(sites)}
		for _, s := range sites[:min(len(sites), maxPlaces)] {
			at := s.At
			if at == 0 {
				at = s.Start
			}
			p := placeOf(src, at)
			p.Path = s.Path
			e.Lines = append(e.Lines, p)
		}
		e.unique = uniqueKey(doc, sites)
		return Site{}, e
	}
	if s := sites[0]; s.Problem != "" {
		return Site{}, valueAt(src, key, s.Start, s.Problem)
	}
	return sites[0], nil
}

// uniqueKey returns a key that names one of the first of sites and no other
// value, "" if there is none.
func uniqueKey(doc document, sites []Site) string {
	for _, s := range sites[:min(len(sites), 3)] {
		if strings.Contains(s.Path, computed) {
			continue // what is computed cannot be written in a key
		}
		for _, key := range []string{s.Path, "." + s.Path} {
			if got, _, err := doc.find(key); err == nil && len(got) == 1 {
				return key
			}
		}
	}
	return ""
}

// placesOf turns what is near into places, at most maxPlaces.
func placesOf(src []byte, nears []Near) []Place {
	var out []Place
	for _, n := range nears[:min(len(nears), maxPlaces)] {
		p := placeOf(src, n.Offset)
		p.Path, p.Note = n.Path, n.Note
		if p.Note == "" {
			p.Note = fmt.Sprintf("similar is %s at line %d", n.Path, p.Line)
		}
		out = append(out, p)
	}
	return out
}

func valueAt(src []byte, key string, off int, problem string) error {
	p := placeOf(src, off)
	return &ValueError{Attr: key, Line: p.Line, Column: p.Column, Problem: problem}
}

// encode returns what replaces the bytes of c when it shall be value.
func encode(src []byte, c choice, value string) ([]byte, error) {
	old := src[c.Start:c.End]
	if value == c.Value {
		return old, nil
	}
	if have, want, ok := checkHash(c.Value, value); !ok {
		p := placeOf(src, c.Start)
		return nil, &HashKindError{Attr: c.key, Line: p.Line, Column: p.Column, Have: have.name, Want: want.name, Template: want.template}
	}
	text, err := c.Encode(value)
	if err != nil {
		return nil, valueAt(src, c.key, c.Start, err.Error())
	}
	return text, nil
}

// splice puts the new texts in place; found is sorted and does not overlap.
func splice(src []byte, found []choice) []byte {
	var out bytes.Buffer
	pos := 0
	for _, c := range found {
		out.Write(src[pos:c.Start])
		out.Write(c.text)
		pos = c.End
	}
	out.Write(src[pos:])
	return out.Bytes()
}

// prove reads the edited file and compares it with what it should be: every key
// names the place that was edited and gives its new value, and whatever else
// the file lists is as it was.
func (f format) prove(src []byte, before document, out []byte, found []choice, set map[string]string, o Options) error {
	after, err := f.read(out, o)
	if err != nil {
		return fmt.Errorf("read the edited file again: %w (the new values do not fit there)", err)
	}
	edited := map[int]int{} // where an edited value was, and where it is
	shift := 0
	for _, c := range found {
		edited[c.Start] = c.Start + shift
		shift += len(c.text) - (c.End - c.Start)
	}
	for _, c := range found {
		now, err := chooseOne(out, after, c.key)
		switch {
		case err != nil:
			return valueAt(src, c.key, c.Start, fmt.Sprintf("in the edited file the key does not name the value any more: %v", err))
		case now.Value != set[c.key] || now.Start < edited[c.Start] || now.End > edited[c.Start]+len(c.text):
			return valueAt(src, c.key, c.Start, fmt.Sprintf("the new value would read as %.100q (the file cannot hold it there)", now.Value))
		}
	}
	if err := sameList(src, before, after, edited); err != nil {
		return err
	}
	if v, ok := after.(verifier); ok {
		return v.verify()
	}
	return nil
}

// sameList compares all values that were not edited.
func sameList(src []byte, before, after document, edited map[int]int) error {
	was, ok := before.(lister)
	if !ok {
		return nil
	}
	old, now := was.list(), after.(lister).list()
	for i, s := range old {
		_, ours := edited[s.Start]
		if i < len(now) && now[i].Path == s.Path && (ours || now[i].Value == s.Value && now[i].Problem == s.Problem) {
			continue
		}
		return valueAt(src, s.Path, s.Start, "the edit would change what this reads as, too (the new values do not fit there)")
	}
	if len(now) != len(old) {
		return valueAt(src, now[len(old)].Path, 0, "the edit would make a value appear that was not there (the new values do not fit there)")
	}
	return nil
}
