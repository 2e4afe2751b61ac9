package fetch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/PuerkitoBio/goquery"
)

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
		list := 0
		for range maxCandidates {
			var name int
			if name, list = nextList(text, list); list < 0 {
				return true
			}
			if commented(text[:name]) {
				continue
			}
			if tried++; tried > maxCandidates {
				return false
			}
			got, _, err := decodeArray(text[list:], true)
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

// nextList finds where a script gives a list to "files", from the byte from
// on: where the name begins and where the list does, -1 if nowhere. AMD's
// page says const files = [...] and draws the list from it, so that there are
// no links. A page has half a megabyte of it, which is not searched further
// than needed.
func nextList(text string, from int) (name, list int) {
	const space = " \t\r\n\v\f"
	for {
		at := strings.Index(text[from:], "files")
		if at < 0 {
			return -1, -1
		}
		name = from + at
		from = name + len("files")
		value, given := strings.CutPrefix(strings.TrimLeft(text[from:], space), "=")
		value = strings.TrimLeft(value, space)
		if given && strings.HasPrefix(value, "[") && (name == 0 || !inWord(text[name-1])) {
			return name, len(text) - len(value)
		}
	}
}

// inWord reports whether c, before a name, makes it another one or a key.
func inWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(`_$"'`, c) >= 0
}
