package fetch

import (
	"net/url"
	"regexp"
	"strings"
	"time"
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

// timeRE finds what nginx (30-Sep-2026 03:14), Apache (2026-09-30 03:14) and
// programs (ISO 8601) write beside a file.
var timeRE = regexp.MustCompile(`\b(?:(\d{2}-[A-Z][a-z]{2}-\d{4} \d{2}:\d{2})(:\d{2})?|(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2})(:\d{2}(?:\.\d{1,9})?)?(?: ?(Z|UTC|GMT)| ?([+-]\d{2}):?(\d{2}))?)`)

// findTime returns the first time in text, or the zero time. A time without a
// zone is taken as UTC: nginx means that unless told otherwise; Apache means
// its own zone, and does not say which.
func findTime(text []byte) time.Time {
	m := timeRE.FindSubmatch(text)
	if m == nil {
		return time.Time{}
	}
	layout, s := "02-Jan-2006 15:04", string(m[1])
	seconds := string(m[2])
	if s == "" {
		layout, s = "2006-01-02 15:04", string(m[3])+" "+string(m[4])
		seconds = string(m[5])
	}
	if seconds != "" {
		layout, s = layout+":05", s+seconds
	}
	if len(m[7]) > 0 {
		layout, s = layout+" -0700", s+" "+string(m[7])+string(m[8])
	}
	t, err := time.Parse(layout, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}
