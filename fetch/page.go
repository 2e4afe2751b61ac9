package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// page is one index, decoded.
type page struct {
	releases []release.Release // without Channel
	unparsed []string
}

// filesRE finds where a script gives a value to "files": AMD's page says
// const files = [...] and draws the list from it, so that there are no links.
var filesRE = regexp.MustCompile(`(?:^|[^\w$"'])files\s*=\s*\[`)

// maxCandidates bounds how many places that look like the list are tried.
const maxCandidates = 16

// maxFiles bounds the entries of one page.
const maxFiles = 1 << 20

// fileEntry is one element of the array. Both fields are kept raw: a bad one
// spoils its entry, not the page.
type fileEntry struct {
	Name  json.RawMessage `json:"name"`
	MTime json.RawMessage `json:"mtime"` // seconds since 1970, with a fraction
}

// maxTags bounds the elements of a page: each costs a few hundred bytes in
// memory, and a hostile page is nothing but tags.
const maxTags = 1 << 18

// parsePage reads an index page found at base. Its errors are *LayoutError.
func parsePage(body []byte, base *url.URL, now time.Time) (*page, error) {
	if bytes.Count(body, []byte("<")) > maxTags {
		return nil, &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf("it has more than %d elements", maxTags)}
	}
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
	if err != nil {
		return nil, &LayoutError{URL: redactURL(base), Reason: "it is not HTML: " + err.Error()}
	}
	raws, err := findFiles(doc)
	if err != nil {
		return nil, &LayoutError{URL: redactURL(base), Reason: err.Error()}
	}
	p := &page{}
	for _, raw := range raws {
		p.add(raw, base, now)
	}
	if len(raws) > 0 && len(p.releases) == 0 {
		return nil, &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf("none of its %d names is one that is known (such as %q)", len(raws), p.unparsed[0])}
	}
	return p, nil
}

// findFiles returns the elements of the first array given to "files" in any
// script that can be read and is not empty, or of an empty one.
func findFiles(doc *goquery.Document) ([]json.RawMessage, error) {
	var found, tried int
	var firstErr error
	var raws []json.RawMessage
	doc.Find("script").EachWithBreak(func(_ int, s *goquery.Selection) bool {
		text := s.Text()
		for _, at := range filesRE.FindAllStringIndex(text, maxCandidates) {
			if commented(text[:at[0]]) {
				continue
			}
			if tried++; tried > maxCandidates {
				return false
			}
			got, err := decodeArray(text[at[1]-1:])
			if err != nil {
				firstErr = errors.Join(firstErr, err)
				continue
			}
			found++
			if raws = got; len(raws) > 0 {
				return false
			}
		}
		return true
	})
	switch {
	case found > 0 && len(raws) > 0, found > 0 && firstErr == nil:
		return raws, nil
	case firstErr != nil:
		return nil, firstErr
	}
	return nil, fmt.Errorf("no script holds a list of files (title %q)", printable([]byte(strings.TrimSpace(doc.Find("title").First().Text()))))
}

// commented reports whether what follows before stands in a comment: behind //
// on its line, or in an open /* */. A // behind a colon is a URL's.
func commented(before string) bool {
	if open := strings.LastIndex(before, "/*"); open >= 0 && !strings.Contains(before[open:], "*/") {
		return true
	}
	line := before[strings.LastIndexByte(before, '\n')+1:]
	at := strings.Index(line, "//")
	return at == 0 || at > 0 && line[at-1] != ':' && line[at-1] != '"' && line[at-1] != '\''
}

// decodeArray reads the JSON array at the start of text and ignores what
// follows it: the rest of the script.
func decodeArray(text string) ([]json.RawMessage, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("its list of files cannot be read: %w", err)
	}
	raws := []json.RawMessage{}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, fmt.Errorf("its list of files cannot be read after %d entries: %w", len(raws), err)
		}
		if raws = append(raws, raw); len(raws) > maxFiles {
			return nil, fmt.Errorf("its list of files has more than %d entries", maxFiles)
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("its list of files is cut off after %d entries: %w", len(raws), err)
	}
	return raws, nil
}

// add takes one element of the list.
func (p *page) add(raw json.RawMessage, base *url.URL, now time.Time) {
	var e fileEntry
	var name string
	if json.Unmarshal(raw, &e) != nil || json.Unmarshal(e.Name, &name) != nil {
		p.unparsed = append(p.unparsed, printable(raw))
		return
	}
	n, err := release.ParseName(name)
	if err != nil {
		p.unparsed = append(p.unparsed, printable([]byte(name)))
		return
	}
	p.releases = append(p.releases, release.Release{
		Name: name, Family: n.Family, Version: n.Version, Platform: n.Platform, Tests: n.Tests,
		URL: fileURL(base, name), MTime: parseMTime(e.MTime, now),
	})
}

// parseMTime reads seconds since 1970. What is missing or cannot be the time
// of an upload is the zero time, which no minimum age admits.
func parseMTime(raw json.RawMessage, now time.Time) time.Time {
	var sec *float64
	if json.Unmarshal(raw, &sec) != nil || sec == nil || math.Abs(*sec) > 1e11 {
		return time.Time{}
	}
	t := time.UnixMicro(int64(math.Round(*sec * 1e6))).UTC()
	if t.Year() < 2015 || t.After(now.Add(24*time.Hour)) {
		return time.Time{}
	}
	return t
}

// fileURL returns where a file of the page at base is: beside it. A plus sign
// is legal in a path, but the object stores behind AMD's hosts read it as a
// space, so it is escaped as the page itself does.
func fileURL(base *url.URL, name string) string {
	u := *base
	u.User, u.RawQuery, u.Fragment, u.RawFragment, u.ForceQuery = nil, "", "", "", false
	dir := u.EscapedPath()
	if last := path.Base(dir); strings.HasSuffix(last, ".html") || strings.HasSuffix(last, ".htm") {
		dir = strings.TrimSuffix(dir, last)
	}
	u.Path, u.RawPath = "", ""
	return u.String() + strings.TrimSuffix(dir, "/") + "/" + strings.ReplaceAll(url.PathEscape(name), "+", "%2B")
}
