package pinfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// tree builds the leaves of a file that is made of objects, lists and scalars.
type tree struct {
	leaves
	boxes []box // objects and lists, for messages
}

// box is an object or a list.
type box struct {
	path *attrNode
	off  int
	what string
}

// addBox remembers an object or a list.
func (t *tree) addBox(path *attrNode, off int, what string) {
	if path != nil {
		t.boxes = append(t.boxes, box{path, off, what})
	}
}

// finish makes t a document.
func (t *tree) finish() *tree {
	t.hints = t.boxed
	return t
}

// boxed finds objects and lists that k names: no value, but near one.
func (t *tree) boxed(k pathKey) []Near {
	var out []Near
	for _, b := range t.boxes {
		if k.matches(b.path, t.has) {
			out = append(out, Near{Offset: b.off, Path: b.path.String(), Note: fmt.Sprintf("%s is %s, no value", b.path, b.what)})
			if len(out) == maxPlaces {
				break
			}
		}
	}
	return out
}

func (t *tree) urls() []URL { return t.composed() }

// errNotText says that a value is not UTF-8, which the formats of trees are.
var errNotText = errors.New("the new value is not UTF-8, which the file has to be")

func checkText(value string) error {
	if !utf8.ValidString(value) {
		return errNotText
	}
	return nil
}

// digitsOnly writes a number in place of an integer: a size stays a number.
func digitsOnly(value string) ([]byte, error) {
	switch {
	case !onlyOf(value, "0123456789") || value == "":
		return nil, errors.New("the value is a number, and the new one is not made of digits alone (write the value as a string in the file, or choose another template)")
	case len(value) > 1 && value[0] == '0':
		return nil, errors.New("the value is a number, and the new one begins with 0 (write the value as a string in the file)")
	case len(value) > 19:
		return nil, errors.New("the value is a number, and the new one has more than 19 digits (write the value as a string in the file)")
	}
	return []byte(value), nil
}

// isInteger reports whether raw is an integer that digitsOnly may replace.
func isInteger(raw string) bool {
	return raw != "" && onlyOf(raw, "0123456789") && (len(raw) == 1 || raw[0] != '0')
}

// nodeAt returns the path of name, or of an item, below parent.
func member(parent *attrNode, name string) *attrNode { return &attrNode{name: name, parent: parent} }

func itemOf(parent *attrNode, index int) *attrNode {
	return &attrNode{item: true, index: index, parent: parent}
}

// notString is the problem of a literal such as null.
func notString(raw string) string {
	if len(raw) > 40 {
		raw = strings.ToValidUTF8(raw[:40], "") + "…"
	}
	return fmt.Sprintf("the value is %s, no string (write it in quotes)", raw)
}
