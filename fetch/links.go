package fetch

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// link is a reference of a page to a file beside it.
type link struct {
	name  string
	url   string
	label string    // its text
	mtime time.Time // what the text beside it says; zero if nothing
	size  int64     // bytes, if the text says them all; 0 if not
	early time.Time // what the text before it on its line says
}

// parseLinks reads a directory listing as web servers write it: nginx,
// Apache, object stores behind a generated table. It returns nil if the page
// is something else: a download page, an error, a login form.
//
// A listing calls itself one ("Index of"), or has a link to a tarball under
// the tarball's own name, which pages of prose do not do.
func parseLinks(doc *goquery.Document, body []byte, base *url.URL, now time.Time) (*page, error) {
	s := newLinkScan(doc, base)
	s.scan(doc)
	p := &page{refused: s.refused}
	at := map[string]int{} // by name: where in p.releases, -1 for what is none
	named := false
	for _, l := range s.links {
		i, again := at[l.name]
		if !again {
			i = len(p.releases)
			if p.put(l.name, l.url, l.mtime, l.size, now); len(p.releases) == i {
				i = -1
			}
			at[l.name] = i
		}
		if i < 0 {
			continue
		}
		if r := &p.releases[i]; r.MTime.IsZero() { // an icon that is a link too comes first
			r.MTime, r.Size = plausible(l.mtime, now), l.size
		}
		named = named || isLabel(l.label, l.name)
	}
	if !named && !isIndexOf(doc) {
		return nil, nil
	}
	if tag := cutOff(body); tag != "" {
		return nil, &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf("its listing is cut off after %d names: <%s> has no end", p.names(), tag)}
	}
	return p, p.known(base)
}

func isIndexOf(doc *goquery.Document) bool {
	for _, selector := range []string{"title", "h1"} {
		text := strings.TrimSpace(doc.Find(selector).First().Text())
		for _, says := range []string{"index of", "directory listing for"} { // the latter is Python's
			if len(text) >= len(says) && strings.EqualFold(text[:len(says)], says) {
				return true
			}
		}
	}
	return false
}

// isLabel reports whether text names a file, whole or shortened: nginx and
// Apache cut long names and end them with "..>".
func isLabel(text, name string) bool {
	if strings.Contains(text, name) {
		return true
	}
	for _, end := range []string{"..>", "...", "…"} {
		if head, short := strings.CutSuffix(text, end); short && len(head) >= len("therock-dist") && strings.HasPrefix(name, head) {
			return true
		}
	}
	return false
}

// cutOff returns the name of an element that a listing opens and does not
// close, "" if it is whole. HTML lets </html> be left out; no server that
// writes listings does.
func cutOff(body []byte) string {
	lower := bytes.ToLower(body)
	for _, tag := range []string{"html", "body", "table", "tbody", "pre", "ul", "ol"} {
		if lastTag(lower, "<"+tag) > lastTag(lower, "</"+tag) {
			return tag
		}
	}
	return ""
}

// lastTag returns where a tag begins for the last time, -1 if it does not.
func lastTag(lower []byte, tag string) int {
	for end := len(lower); ; {
		at := bytes.LastIndex(lower[:end], []byte(tag))
		if at < 0 {
			return -1
		}
		if after := at + len(tag); after < len(lower) && bytes.IndexByte([]byte("> \t\r\n/"), lower[after]) >= 0 {
			return at
		}
		end = at + len(tag) - 1
	}
}

// linkScan collects the links of a page in one pass.
type linkScan struct {
	page    *url.URL // where the page is
	base    *url.URL // what its references are relative to
	dirs    []string // the directories that count as the page's own
	links   []link
	refused int

	current int         // the link that text belongs to; -1 is none
	beside  boundedText // what stands behind the current link, in a pre element on its line
	before  boundedText // what stands before the first link of a line of a pre element
	begun   bool        // a link of this line was seen
	pre     bool        // lines are lines
	row     int         // the first link of the table row or list item; -1 outside of one
	rowText boundedText // what stands in the row beside its links
}

// maxBeside is how much text beside a link is looked at, in bytes.
const maxBeside = 1 << 10

// boundedText keeps the first maxBeside bytes written to it.
type boundedText struct{ text []byte }

func (b *boundedText) write(s string) {
	b.text = append(b.text, s[:min(len(s), maxBeside-len(b.text))]...)
}

func (b *boundedText) reset() { b.text = b.text[:0] }

func newLinkScan(doc *goquery.Document, base *url.URL) *linkScan {
	page := *base
	page.User, page.RawQuery, page.Fragment, page.RawFragment = nil, "", "", ""
	s := &linkScan{page: &page, base: &page, current: -1, row: -1}
	if href, ok := doc.Find("base[href]").First().Attr("href"); ok {
		if u, err := page.Parse(strings.TrimSpace(href)); err == nil {
			s.base = u
		}
	}
	dir := page.EscapedPath()
	s.dirs = []string{normalDir(dir[:strings.LastIndexByte(dir, '/')+1])}
	if !strings.HasSuffix(dir, "/") {
		s.dirs = append(s.dirs, normalDir(dir+"/")) // served without the redirect to the slash
	}
	for _, d := range s.dirs {
		if prefix, at, nexus := strings.Cut(d, nexusBrowse); nexus {
			s.dirs = append(s.dirs, prefix+"/repository/"+at)
		}
	}
	return s
}

// nexusBrowse is where a Nexus lists a repository; its files are at
// /repository/ of the same host.
const nexusBrowse = "/service/rest/repository/browse/"

// scan visits the document in its order. (What the nodes are, their DataAtom
// says: it is 0 for text, and for comments, which do no harm.)
func (s *linkScan) scan(doc *goquery.Document) {
	n := doc.Nodes[0]
	open := n.Parent // the a element around n: none yet
	for n != nil {
		tag := n.DataAtom.String()
		parent := ""
		if n.Parent != nil {
			parent = n.Parent.DataAtom.String()
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "href" && tag == "a":
				s.begin(a.Val)
				open = n
			case a.Key == "datetime": // of a time element
				s.text(" "+a.Val+" ", false)
			}
		}
		switch {
		case tag == "" && parent != "script" && parent != "style":
			s.text(n.Data, open != nil)
		case isRow(tag):
			s.endRow()
			s.row = len(s.links)
		case tag == "td":
			s.text(" ", false) // what stands in two cells is two words
		case isBlock(tag):
			s.endLine()
			s.pre = tag == "pre"
		}
		if n.FirstChild != nil {
			n = n.FirstChild
			continue
		}
		for n != nil {
			if n == open {
				open = nil
			}
			if tag := n.DataAtom.String(); isRow(tag) {
				s.endRow()
			} else if isBlock(tag) {
				s.endLine()
				s.pre = false
			}
			if n.NextSibling != nil {
				n = n.NextSibling
				break
			}
			n = n.Parent
		}
	}
	s.endRow()
}

func isRow(tag string) bool { return tag == "tr" || tag == "li" }

// isBlock reports whether text on the other side of tag is not about a link
// on this side.
func isBlock(tag string) bool {
	switch tag {
	case "pre", "table", "ul", "ol", "hr", "br", "address", "footer":
		return true
	}
	return false
}

func (s *linkScan) text(text string, label bool) {
	switch {
	case label && s.current >= 0:
		l := &s.links[s.current]
		l.label += text[:min(len(text), maxBeside-len(l.label))]
	case !label:
		if s.row >= 0 {
			s.rowText.write(text)
		}
		for s.pre {
			line, rest, more := strings.Cut(text, "\n")
			if text = line; !more {
				break
			}
			s.outside(line)
			s.endLine()
			text = rest
		}
		s.outside(text)
	}
}

// outside takes text of no link, of one line.
func (s *linkScan) outside(text string) {
	if s.current >= 0 {
		s.beside.write(text)
	}
	if s.pre && !s.begun {
		s.before.write(text)
	}
}

// endLine ends what text beside a link is about.
func (s *linkScan) endLine() {
	s.endLink()
	s.before.reset()
	s.begun = false
}

// begin takes a link, if it is one to a file of this directory.
func (s *linkScan) begin(href string) {
	s.endLink()
	if name, u := s.resolve(strings.TrimSpace(href)); u != "" {
		early, _ := findTime(s.before.text)
		s.current = len(s.links)
		s.links = append(s.links, link{name: name, url: u, early: early})
		s.before.reset()
		s.begun = true
	}
}

func (s *linkScan) endLink() {
	if s.current >= 0 {
		l := &s.links[s.current]
		l.label = strings.TrimSpace(l.label)
		if l.mtime, l.size = findTime(s.beside.text); l.mtime.IsZero() {
			l.mtime = l.early
		}
	}
	s.current = -1
	s.beside.reset()
}

// endRow gives the time in a row to its tarball, if it has but one: the
// column of times may stand before that of names.
func (s *linkScan) endRow() {
	s.endLine()
	if s.row >= 0 {
		names := map[string]bool{}
		for _, l := range s.links[s.row:] {
			if _, err := release.ParseName(l.name); err == nil {
				names[l.name] = true
			}
		}
		for i := s.row; i < len(s.links) && len(names) == 1; i++ {
			if l := &s.links[i]; l.mtime.IsZero() {
				l.mtime, l.size = findTime(s.rowText.text)
			}
		}
	}
	s.row = -1
	s.rowText.reset()
}
