package fetch

import (
	"net/url"
	"strings"
)

// resolve returns the name and the URL of the file that href leads to; "" if
// it is no file, or not one beside the page. Queries and fragments are
// ignored: what has nothing else sorts the listing.
func (s *linkScan) resolve(href string) (name, fileURL string) {
	if href == "" || href[0] == '?' || href[0] == '#' {
		return "", ""
	}
	ref, err := url.Parse(href)
	if err != nil {
		s.refused++
		return "", ""
	}
	u := s.base.ResolveReference(ref)
	if u.Opaque != "" {
		return "", "" // mailto:, javascript:, data:
	}
	at := u.EscapedPath()
	slash := strings.LastIndexByte(at, '/') + 1
	dir, last := at[:slash], at[slash:]
	name, err = url.PathUnescape(last)
	if err != nil || last == "" || last == "." || last == ".." {
		return "", "" // a directory
	}
	if !sameHost(u, s.page) || !s.own(dir) {
		s.refused++
		return "", ""
	}
	return name, joinURL(s.page, dir, name)
}

func (s *linkScan) own(dir string) bool {
	dir = normalDir(dir)
	for _, d := range s.dirs {
		if d == dir {
			return true
		}
	}
	return false
}

// normalDir makes two ways to escape one path equal.
func normalDir(dir string) string {
	segments := strings.Split(dir, "/")
	for i, s := range segments {
		if plain, err := url.PathUnescape(s); err == nil {
			segments[i] = escapeSegment(plain)
		}
	}
	if dir == "" {
		return "/"
	}
	return strings.Join(segments, "/")
}

// sameHost reports whether two URLs are of one server, by one scheme.
func sameHost(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
