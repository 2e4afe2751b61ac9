package unpack

import (
	"fmt"
	"strconv"
	"strings"
)

// head writes one header of an archive, and the blocks of its body: what
// archive/tar would not write too. The zero head is an empty regular file.
type head struct {
	name, link string
	prefix     string // of ustar, before the name
	kind       byte   // the type flag; '0' if not set
	mode       string // octal digits; 0644 if not set
	size       string // the field as it is; if not set, the length of body in octal
	mtime      string // the field as it is
	magic      string // and version; ustar's if not set
	body       string
	edit       func(b []byte) // changes the block before its checksum is taken
	sum        string         // the field as it is; if not set, the right one
}

const (
	ustarMagic = "ustar\x0000"
	gnuMagic   = "ustar  \x00"
	oldKind    = 0xf0 // stands for the type flag NUL
)

func (h head) String() string {
	b := make([]byte, 512)
	set := func(at int, v, otherwise string) {
		if v == "" {
			v = otherwise
		}
		copy(b[at:], v)
	}
	copy(b[:100], h.name)
	set(100, h.mode, "0000644")
	set(108, "", "0000000\x000000000")
	set(124, h.size, fmt.Sprintf("%011o", len(h.body)))
	set(136, h.mtime, "00000000001")
	copy(b[157:257], h.link)
	set(257, h.magic, ustarMagic)
	copy(b[345:], h.prefix)
	switch b[156] = h.kind; h.kind {
	case 0:
		b[156] = '0'
	case oldKind:
		b[156] = 0
	}
	if h.edit != nil {
		h.edit(b)
	}
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	set(148, h.sum, fmt.Sprintf("%06o\x00 ", sum))
	return string(b) + h.body + strings.Repeat("\x00", -len(h.body)&511)
}

func aFile(name, body string) string { return head{name: name, body: body}.whole() }

func aDir(name string) string { return head{name: name, kind: '5', mode: "0000755"}.whole() }

func aSym(name, to string) string { return head{name: name, kind: '2', link: to}.whole() }

func aHard(name, to string) string { return head{name: name, kind: '1', link: to}.whole() }

// whole puts GNU tar's headers before h where a name does not fit into it.
func (h head) whole() string {
	var before string
	if len(h.link) > 100 {
		before, h.link = long('K', h.link), "short"
	}
	if len(h.name) > 100 {
		before, h.name = before+long('L', h.name), "short"
	}
	return before + h.String()
}

// pax is an extended header of kind 'x' or 'g' with records of the form k=v.
func pax(kind byte, records ...string) string {
	var body strings.Builder
	for _, r := range records {
		n := len(r) + 2
		for n != len(r)+2+len(strconv.Itoa(n)) {
			n = len(r) + 2 + len(strconv.Itoa(n))
		}
		fmt.Fprintf(&body, "%d %s\n", n, r)
	}
	return head{name: "pax_header", kind: kind, body: body.String()}.String()
}

// long is GNU tar's long name ('L') or link target ('K').
func long(kind byte, text string) string {
	return head{name: "././@LongLink", kind: kind, magic: gnuMagic, body: text + "\x00"}.String()
}

// base256 is a number field of n bytes in GNU's binary form.
func base256(n int, first byte, rest ...byte) string {
	b := make([]byte, n)
	b[0] = first
	copy(b[n-len(rest):], rest)
	return string(b)
}

// tarball ends an archive of parts as it should end.
func tarball(parts ...string) string {
	return strings.Join(parts, "") + strings.Repeat("\x00", tarEnd)
}
