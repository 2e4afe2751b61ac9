package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"
)

// filesRE finds where a script gives a value to "files": AMD's page says
// const files = [...] and draws the list from it, so that there are no links.
var filesRE = regexp.MustCompile(`(?:^|[^\w$"'])files\s*=\s*\[`)

// maxCandidates bounds how many places that look like the list are tried.
const maxCandidates = 16

// errNoList says that a page has no script that looks like AMD's.
var errNoList = errors.New("no script holds a list of files")

// parsePage reads an HTML page found at base: AMD's, or a listing of links. A
// page with AMD's script is never taken for the other, so that a list that is
// cut off does not turn into the few links around it. Its errors are
// *LayoutError.
func parsePage(body []byte, base *url.URL, now time.Time) (*page, error) {
	if err := checkTags(body, base); err != nil {
		return nil, err
	}
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
	if err != nil {
		return nil, &LayoutError{URL: redactURL(base), Reason: "it is not HTML: " + err.Error()}
	}
	raws, err := findFiles(doc)
	if errors.Is(err, errNoList) {
		p, lerr := parseLinks(doc, body, base, now)
		if p == nil && lerr == nil {
			lerr = &LayoutError{URL: redactURL(base), Reason: fmt.Sprintf("%v, and it is no listing of links (title %q)", err, title(doc))}
		}
		return p, lerr
	}
	if err != nil {
		return nil, &LayoutError{URL: redactURL(base), Reason: err.Error()}
	}
	p := &page{}
	for _, raw := range raws {
		p.add(raw, base, now)
	}
	return p, p.known(base)
}

func title(doc *goquery.Document) string {
	return printable([]byte(strings.TrimSpace(doc.Find("title").First().Text())))
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
			got, _, err := decodeArray(text[at[1]-1:])
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
	return nil, errNoList
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
