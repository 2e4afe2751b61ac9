package pinfile

import (
	"bytes"
	"errors"
	"strings"
)

// parseSrcinfo reads a .SRCINFO: "key = value" lines in sections that pkgbase
// and pkgname begin. A value's path is its section, pkgbase or the name of the
// package, and its key, with the index of those of one key.
func parseSrcinfo(src []byte, _ Options) (document, error) {
	if err := fitsIn(src, 1<<20); err != nil {
		return nil, err
	}
	t := newCodeTree(src)
	section := t.root
	for off := 0; off < len(src); {
		end := off + len(src[off:])
		if i := bytes.IndexByte(src[off:], '\n'); i >= 0 {
			end = off + i
		}
		if err := srcinfoLine(t, &section, off, end); err != nil {
			return nil, err
		}
		off = end + 1
	}
	return t, nil
}

func srcinfoLine(t *codeTree, section **codeNode, off, end int) error {
	line := t.src[off:end]
	trimmed := bytes.TrimSpace(line)
	if len(trimmed) == 0 {
		return nil
	}
	at := off + bytes.Index(line, trimmed)
	if trimmed[0] == '#' {
		t.comment(at, end)
		return nil
	}
	i := bytes.IndexByte(trimmed, '=')
	if i < 0 {
		return syntaxAt(t.src, at, "a line of a .SRCINFO is key = value")
	}
	key := string(bytes.TrimRight(trimmed[:i], " \t"))
	rest := trimmed[i+1:]
	value := bytes.TrimLeft(rest, " \t")
	start := at + i + 1 + len(rest) - len(value)
	parent := *section
	switch key {
	case "pkgbase":
		*section = t.child(t.root, "pkgbase", at)
		// The name of the base shares the section's name.
		t.value(*section, srcinfoSite(key, string(value), start))
		return nil
	case "pkgname":
		*section = t.child(t.root, string(value), at)
		parent = t.root
	}
	t.value(t.child(parent, key, at), srcinfoSite(key, string(value), start))
	var x text
	x.add(string(value), start, start+len(value))
	t.link(x, start, key)
	return nil
}

func srcinfoSite(key, value string, start int) Site {
	s := Site{Start: start, End: start + len(value), Value: value, Encode: func(v string) ([]byte, error) {
		if strings.TrimSpace(v) != v {
			return nil, errors.New("the new value begins or ends with a blank, which .SRCINFO cannot say")
		}
		return []byte(v), oneLine(v)
	}}
	checked(&s, key)
	return s
}
