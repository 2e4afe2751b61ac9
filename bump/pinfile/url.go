package pinfile

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Piece is a part of a composed address.
type Piece struct {
	Text string // expanded
	// Start and End are the bytes of the file that say Text literally, byte by
	// byte; both are 0 where it comes from somewhere else.
	Start, End int
}

// URL is an address that a file composes.
type URL struct {
	Text string // what is fetched, as far as the file tells
	Place
	Pieces  []Piece  // whose Texts make Text
	Unknown []string // names that stand in it and that the file does not tell; then ${name} is in Text
}

// dirRE is what Rebase writes into a file: nothing that any format would read
// as more than text.
var dirRE = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://[A-Za-z0-9._~:/@%+-]*$`)

// Rebase returns src with the address's host and directory, which is all before
// the last slash of its path, being those of dir. It is refused where src does
// not say them literally, or says what changes in pieces that hold a name: the
// error says what to write. Where host and directory, or one of them, are a
// value of their own, this value is edited.
func (u URL) Rebase(src []byte, dir string) ([]byte, error) {
	dir = strings.TrimRight(dir, "/")
	if !dirRE.MatchString(dir) || strings.Contains(dir, "/..") {
		return nil, fmt.Errorf("move the address at line %s: %.100q is no directory of a server (want https://host/path)", u.Place, dir)
	}
	file := fileStart(u.Text)
	if file == 0 {
		return nil, fmt.Errorf("move the address at line %s: %.200q has no path", u.Place, u.Text)
	}
	if u.Text[:file-1] == dir {
		return bytes.Clone(src), nil
	}
	start, end, ok := u.spanBefore(src, file)
	if !ok {
		if out, ok := u.rebaseParts(src, file, dir); ok {
			return out, nil
		}
		return nil, fmt.Errorf("move the address at line %s: its host and directory are put together from other values (write %s/%s there)", u.Place, dir, u.Text[file:])
	}
	var out bytes.Buffer
	out.Write(src[:start])
	out.WriteString(dir)
	out.Write(src[end:])
	return out.Bytes(), nil
}

// rebaseParts changes scheme, host and directory one by one, those that differ,
// where each stands in one piece: "https://" + host + "/dir".
func (u URL) rebaseParts(src []byte, file int, dir string) ([]byte, bool) {
	was, to := partsOf(u.Text[:file-1]), partsOf(dir)
	out, pos := bytes.Clone(src), len(u.Text[:file-1])
	type change struct {
		start, end int
		text       string
	}
	var changes []change
	for i := len(was) - 1; i >= 0; i-- {
		end := pos
		pos -= len(was[i])
		if was[i] == to[i] {
			continue
		}
		start, stop, ok := u.literal(src, pos, end)
		if !ok {
			return nil, false
		}
		changes = append(changes, change{start, stop, to[i]})
	}
	// From the end of the file to its beginning, so that places stay.
	slices.SortFunc(changes, func(a, b change) int { return b.start - a.start })
	for _, c := range changes {
		out = slices.Concat(out[:c.start], []byte(c.text), out[c.end:])
	}
	return out, true
}

// partsOf takes scheme, host and directory of an address apart.
func partsOf(text string) [3]string {
	host := strings.Index(text, "://") + 3
	path := len(text)
	if i := strings.IndexByte(text[host:], '/'); i >= 0 {
		path = host + i
	}
	return [3]string{text[:host], text[host:path], text[path:]}
}

// literal returns the bytes of src that say u.Text[from:to], if those of one
// piece do.
func (u URL) literal(src []byte, from, to int) (start, end int, ok bool) {
	pos := 0
	for _, p := range u.Pieces {
		if from >= pos && to <= pos+len(p.Text) && from < to {
			start, end = p.Start+from-pos, p.Start+to-pos
			return start, end, p.End > 0 && end <= len(src) && string(src[start:end]) == u.Text[from:to]
		}
		pos += len(p.Text)
	}
	return 0, 0, false
}

// fileStart is where the last component of an address's path begins, 0 if it
// has no path.
func fileStart(text string) int {
	path := text
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	scheme := strings.Index(path, "://")
	slash := strings.LastIndexByte(path, '/')
	if scheme < 0 || slash < scheme+3 {
		return 0
	}
	return slash + 1
}

// spanBefore returns the bytes of src that say u.Text up to the slash before
// file. It is the text of one piece, or of pieces that follow each other in one
// line with nothing but quotes and a plus between.
func (u URL) spanBefore(src []byte, file int) (start, end int, ok bool) {
	pos := 0
	for i, p := range u.Pieces {
		size := min(len(p.Text), file-1-pos)
		switch {
		case p.End-p.Start != len(p.Text) || p.Start < 0 || p.End > len(src) || string(src[p.Start:p.End]) != p.Text:
			return 0, 0, false
		case i == 0:
			start = p.Start
		case !joins(src, end, p.Start):
			return 0, 0, false
		}
		end = p.Start + size
		if pos += size; pos == file-1 {
			return start, end, true
		}
	}
	return 0, 0, false
}

// joins reports whether two literals at from and to are added up: "a" + "b".
func joins(src []byte, from, to int) bool {
	if to < from || to-from > 40 {
		return false
	}
	between := src[from:to]
	return len(between) > 2 && between[0] == between[len(between)-1] && (between[0] == '"' || between[0] == '\'') &&
		strings.TrimSpace(string(between[1:len(between)-1])) == "+" && !bytes.ContainsAny(between, "\r\n")
}

// String returns the address and where it stands.
func (u URL) String() string {
	if u.Path == "" {
		return fmt.Sprintf("%s at %s", u.Text, u.Place)
	}
	return fmt.Sprintf("%s at %s (%s)", u.Text, u.Place, u.Path)
}
