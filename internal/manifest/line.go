package manifest

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// parseLine decodes one line of files.jsonl. Lines as WriteFiles writes them, all
// but those with an escape in them, are read by hand, in one pass and at several
// times the speed of encoding/json; anything else is encoding/json's, so that
// what is read does not depend on who wrote it.
func parseLine(b []byte) (*File, error) {
	f := new(File)
	if l := (line{rest: bytes.TrimSuffix(b, []byte{'\r'}), text: string(b)}); l.file(f) {
		return f, nil
	}
	*f = File{}
	if err := json.Unmarshal(b, f); err != nil {
		return nil, err
	}
	return f, nil
}

// line is what is left to read of one. Its methods report whether what they
// want came next; once one has said no, the line is not read by hand.
type line struct {
	rest []byte
	text string // the whole line, which the strings of the File are parts of
}

// file reads a whole line: the fields in the order of File.
func (l *line) file(f *File) bool {
	if !utf8.ValidString(l.text) { // encoding/json replaces what is not
		return false
	}
	return l.skip(`{"path":`) && l.string(&f.Path) &&
		l.skip(`,"kind":`) && l.kind(&f.Kind) &&
		(!l.skip(`,"mode":`) || l.mode(&f.Mode)) &&
		(!l.skip(`,"size":`) || l.int(&f.Size)) &&
		(!l.skip(`,"mtime":`) || l.int(&f.MTime)) &&
		(!l.skip(`,"sha256":`) || l.string(&f.SHA256)) &&
		(!l.skip(`,"before":`) || l.string(&f.Before)) &&
		(!l.skip(`,"link":`) || l.string(&f.Link)) &&
		(!l.skip(`,"same":`) || l.string(&f.Same)) &&
		(!l.skip(`,"edits":`) || l.strings(&f.Edits)) &&
		(!l.skip(`,"elf":`) || l.elf(f)) &&
		l.skip("}") && len(l.rest) == 0
}

func (l *line) elf(f *File) bool {
	e := &ELF{}
	f.ELF = e
	var class int64
	ok := l.skip(`{"class":`) && l.int(&class) &&
		l.skip(`,"machine":`) && l.string(&e.Machine) &&
		l.skip(`,"type":`) && l.string(&e.Type) &&
		(!l.skip(`,"dynamic":`) || l.yes(&e.Dynamic)) &&
		(!l.skip(`,"soname":`) || l.string(&e.Soname)) &&
		(!l.skip(`,"needed":`) || l.strings(&e.Needed)) &&
		(!l.skip(`,"rpath":`) || l.string(&e.RPath)) &&
		(!l.skip(`,"runpath":`) || l.string(&e.RunPath)) &&
		(!l.skip(`,"interp":`) || l.string(&e.Interp)) &&
		l.skip("}")
	e.Class = int(class)
	return ok && int64(e.Class) == class
}

// skip reads exactly s. Where it is not next, nothing is read.
func (l *line) skip(s string) bool {
	if len(l.rest) < len(s) || string(l.rest[:len(s)]) != s {
		return false
	}
	l.rest = l.rest[len(s):]
	return true
}

// string reads a string without escapes, as a part of the line's own text: a
// line is one allocation, whatever is in it.
func (l *line) string(to *string) bool {
	if len(l.rest) == 0 || l.rest[0] != '"' {
		return false
	}
	for i := 1; i < len(l.rest); i++ {
		switch c := l.rest[i]; {
		case c == '"':
			at := l.at() + 1
			*to = l.text[at : at+i-1]
			l.rest = l.rest[i+1:]
			return true
		case c == '\\' || c < ' ':
			return false
		}
	}
	return false
}

// at is the place of rest in text; a CR at the end is not in rest.
func (l *line) at() int {
	end := len(l.text)
	if end > 0 && l.text[end-1] == '\r' {
		end--
	}
	return end - len(l.rest)
}

// kind reads a Kind. The usual ones are constants, so that a list of files does
// not keep the lines for them.
func (l *line) kind(to *Kind) bool {
	for _, k := range [...]Kind{Regular, Dir, Symlink} {
		if l.skip(`"` + string(k) + `"`) {
			*to = k
			return true
		}
	}
	return false
}

func (l *line) strings(to *[]string) bool {
	if !l.skip("[") {
		return false
	}
	*to = make([]string, 0, 1+bytes.Count(l.rest[:max(0, bytes.IndexByte(l.rest, ']'))], []byte{','}))
	for {
		var s string
		if !l.string(&s) { // an empty list is never written
			return false
		}
		*to = append(*to, s)
		if l.skip("]") {
			return true
		}
		if !l.skip(",") {
			return false
		}
	}
}

// int reads a number without sign, fraction or exponent, of so few digits that
// it fits.
func (l *line) int(to *int64) bool {
	n, i := int64(0), 0
	for ; i < len(l.rest) && l.rest[i] >= '0' && l.rest[i] <= '9'; i++ {
		if i == 18 || i == 1 && l.rest[0] == '0' { // JSON has no leading zeros
			return false
		}
		n = n*10 + int64(l.rest[i]-'0')
	}
	*to, l.rest = n, l.rest[i:]
	return i > 0
}

// mode reads four octal digits in quotes.
func (l *line) mode(to *Mode) bool {
	if len(l.rest) < 6 || l.rest[0] != '"' || l.rest[5] != '"' {
		return false
	}
	m := Mode(0)
	for _, c := range l.rest[1:5] {
		if c < '0' || c > '7' {
			return false
		}
		m = m<<3 | Mode(c-'0')
	}
	*to, l.rest = m, l.rest[6:]
	return true
}

func (l *line) yes(to *bool) bool {
	*to = true
	return l.skip("true")
}
