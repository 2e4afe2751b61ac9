package pinfile

import (
	"bytes"
	"fmt"
	"strings"
)

// Place is a place in a file.
type Place struct {
	Line   int    // from 1
	Column int    // in bytes, from 1
	Path   string // the full path of a binding there, if any
	Note   string // what was seen there, if it is not a match
}

// String returns line:column.
func (p Place) String() string { return fmt.Sprintf("%d:%d", p.Line, p.Column) }

func placeOf(src []byte, off int) Place {
	head := src[:min(off, len(src))]
	return Place{
		Line:   bytes.Count(head, []byte{'\n'}) + 1,
		Column: len(head) - (bytes.LastIndexByte(head, '\n') + 1) + 1,
	}
}

// MatchError says that a key did not name exactly one value.
type MatchError struct {
	File  string  // "" when bytes were edited
	Attr  string  // the key
	Count int     // how many values it names
	Lines []Place // those values, or, when there are none, what was similar; at most 20

	unique string // a key that names one of several alone, if one was found
}

// maxPlaces bounds the places that an error lists.
const maxPlaces = 20

func (e *MatchError) Error() string {
	var b strings.Builder
	if e.Count == 0 {
		fmt.Fprintf(&b, "find %s%s: no binding %s", e.Attr, inFile(e.File), e.Attr)
		for i, p := range e.Lines {
			b.WriteString([]string{"; ", ", "}[min(i, 1)] + p.Note)
		}
		return b.String()
	}
	fmt.Fprintf(&b, "find %s%s: %d bindings match, at ", e.Attr, inFile(e.File), e.Count)
	for i, p := range e.Lines {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s)", p, p.Path)
	}
	if e.Count > len(e.Lines) {
		b.WriteString(", …")
	}
	b.WriteString(e.hint())
	return b.String()
}

// hint says which key names one of the matches alone.
func (e *MatchError) hint() string {
	if e.unique == "" {
		return " (no path tells them apart: give one of them a name of its own in the file)"
	}
	return fmt.Sprintf(" (name one by its path, e.g. %s)", e.unique)
}

// ValueError says that the one binding a key names cannot be edited.
type ValueError struct {
	File         string
	Attr         string
	Line, Column int // of the value
	Problem      string
}

func (e *ValueError) Error() string {
	return fmt.Sprintf("edit %s: %s%d:%d: %s", e.Attr, prefixOf(e.File), e.Line, e.Column, e.Problem)
}

// HashKindError says that a hash would be replaced by what is not a hash of
// its kind.
type HashKindError struct {
	File         string
	Attr         string
	Line, Column int    // of the value
	Have, Want   string // kinds, e.g. "an SRI hash"; Have is the new value's
	Template     string // what would give a hash of the right kind, "" if nothing would
}

func (e *HashKindError) Error() string {
	msg := fmt.Sprintf("edit %s: %s%d:%d: the value is %s and the new one %s", e.Attr, prefixOf(e.File), e.Line, e.Column, e.Want, e.Have)
	if e.Template != "" {
		return msg + fmt.Sprintf(" (set %s: %q)", e.Attr, e.Template)
	}
	if e.Want == hashNone.name {
		return msg + " (check which attribute the key names; for a first hash write an empty string there, or one of zeros)"
	}
	return msg + " (check which attribute the key names; SHA-256 is the only hash there is a value for)"
}

// SyntaxError says where a file cannot be read.
type SyntaxError struct {
	File         string
	Line, Column int
	Problem      string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("read %s%d:%d: %s", prefixOf(e.File), e.Line, e.Column, e.Problem)
}

func syntaxAt(src []byte, off int, problem string) error {
	p := placeOf(src, off)
	return &SyntaxError{Line: p.Line, Column: p.Column, Problem: problem}
}

func inFile(file string) string {
	if file == "" {
		return ""
	}
	return " in " + file
}

func prefixOf(file string) string {
	if file == "" {
		return "line "
	}
	return file + ":"
}

// InFile names the file in an edit's error, which was made without knowing
// it, and gives the error a file when it is of no such type.
func InFile(file string, err error) error {
	switch e := err.(type) {
	case *MatchError:
		e.File = file
	case *ValueError:
		e.File = file
	case *HashKindError:
		e.File = file
	case *SyntaxError:
		e.File = file
	default:
		return fmt.Errorf("edit %s: %w", file, err)
	}
	return err
}
