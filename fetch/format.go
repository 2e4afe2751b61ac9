package fetch

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// maxFiles bounds the entries of one index, all its pages together.
const maxFiles = 1 << 20

// maxTags bounds the elements of a page: each costs a few hundred bytes in
// memory, and a hostile page is nothing but tags.
const maxTags = 1 << 18

// checkTags refuses a page with too many elements, before it is parsed.
func checkTags(body []byte, base *url.URL) error {
	if bytes.Count(body, []byte("<")) > maxTags {
		return &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf("it has more than %d elements", maxTags)}
	}
	return nil
}

// page is one index, decoded. It is not changed once it is read: a Client
// keeps it, and several listings may be made of it.
type page struct {
	releases []release.Release // without Channel
	unparsed []string
	refused  int // references to another host or directory

	unchanged bool // the server has said that it is as it was
}

// put takes one name. t is when the index says that it was uploaded, size
// how many bytes it has, 0 if the index does not say.
func (p *page) put(name, fileURL string, t time.Time, size int64, now time.Time) {
	n, err := release.ParseName(name)
	if err != nil {
		p.unparsed = append(p.unparsed, printable([]byte(name)))
		return
	}
	p.releases = append(p.releases, release.Release{
		Name: name, Family: n.Family, Version: n.Version, Platform: n.Platform,
		Variant: n.Variant, Tests: n.Tests, Archive: n.Archive,
		URL: fileURL, MTime: plausible(t, now), Size: max(0, size),
	})
}

// join takes what the next page of the same index says.
func (p *page) join(q *page) {
	p.releases = append(p.releases, q.releases...)
	p.unparsed = append(p.unparsed, q.unparsed...)
	p.refused += q.refused
}

func (p *page) names() int { return len(p.releases) + len(p.unparsed) }

// known refuses an index that has names, but none that is known: they were
// changed, or the URL is of something else. It refuses one name in two
// directories of a bucket too: AMD's ASan builds are called as the others.
func (p *page) known(base *url.URL) error {
	at := make(map[string]string, len(p.releases))
	for _, r := range p.releases {
		if first, again := at[r.Name]; again && first != r.URL {
			return &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf("%s is at %s and at %s; add a prefix to the URL", r.Name, first, r.URL)}
		}
		at[r.Name] = r.URL
	}
	switch {
	case len(p.releases) > 0:
		return nil
	case len(p.unparsed) > 0:
		return &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf("none of its %d names is one that is known (such as %q)", len(p.unparsed), p.unparsed[0])}
	case p.refused > 0:
		return &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf("all %d references to files lead to another host or directory, and are not followed", p.refused)}
	}
	return nil
}

// parseIndex reads an index found at base, in whichever of the formats its
// content shows it to be; hosts, file names and content types change and lie.
// The cursor, if not nil, says how to ask for the next page; whether any of
// the names is known is to be asked of all pages together. Its errors are
// *LayoutError.
func parseIndex(body []byte, base *url.URL, now time.Time) (*page, *cursor, error) {
	if isUTF16(body) {
		return nil, nil, &LayoutError{URL: redactURL(base), Reason: "it is written in UTF-16, not in UTF-8"}
	}
	body = bytes.TrimLeft(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(body) == 0 {
		return nil, nil, &LayoutError{URL: redactURL(base), Reason: "it is empty"}
	}
	var p *page
	var err error
	switch root := xmlRoot(body); {
	case root == "ListBucketResult":
		return parseBucket(body, base, now)
	case root != "" && bytes.HasPrefix(body, []byte("<?xml")) && !strings.EqualFold(root, "html"):
		return nil, nil, &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf("it is an XML document of <%s>, not of a bucket's listing", printable([]byte(root)))}
	case bytes.HasPrefix(body, []byte("[")):
		p, err = parseArray(body, base, now)
	case bytes.HasPrefix(body, []byte("{")):
		p, err = parseLines(body, base, now)
	default:
		p, err = parsePage(body, base, now)
	}
	if err != nil {
		return nil, nil, err
	}
	return p, nil, nil
}

// isUTF16 knows the text encoding by its mark, or by the zero bytes that
// ASCII has in it.
func isUTF16(body []byte) bool {
	return bytes.HasPrefix(body, []byte("\xff\xfe")) || bytes.HasPrefix(body, []byte("\xfe\xff")) ||
		bytes.IndexByte(body[:min(len(body), 4)], 0) >= 0
}

// xmlRoot returns the name of the first element of body, "" if that cannot be
// XML. A declaration or a comment may stand before it, and most HTML begins as
// XML does.
func xmlRoot(body []byte) string {
	if !bytes.HasPrefix(body, []byte("<")) {
		return ""
	}
	dec := xml.NewDecoder(bytes.NewReader(body))
	for {
		tok, err := dec.RawToken()
		if err != nil {
			return ""
		}
		if start, ok := tok.(xml.StartElement); ok {
			return start.Name.Local
		}
	}
}

// plausible returns t in UTC, or the zero time, which no minimum age admits,
// if it cannot be the time of an upload.
func plausible(t, now time.Time) time.Time {
	if t.Year() < 2015 || t.After(now.Add(maxAhead)) {
		return time.Time{}
	}
	return t.UTC()
}

// fileURL returns where a file of the page at base is: beside it.
func fileURL(base *url.URL, name string) string {
	dir := base.EscapedPath()
	switch last := path.Base(dir); path.Ext(last) {
	case ".html", ".htm", ".json", ".jsonl", ".ndjson":
		dir = strings.TrimSuffix(dir, last)
	}
	return joinURL(base, strings.TrimSuffix(dir, "/")+"/", name)
}

// joinURL returns the URL of a file in a directory of base's host, whose
// escaped path ends with a slash. A plus sign is legal in a path, but the
// object stores behind AMD's hosts read it as a space, so it is escaped as
// AMD's page itself does.
func joinURL(base *url.URL, dir, name string) string {
	u := url.URL{Scheme: base.Scheme, Host: base.Host}
	return u.String() + dir + escapeSegment(name)
}

func escapeSegment(s string) string { return strings.ReplaceAll(url.PathEscape(s), "+", "%2B") }
