package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// fileEntry is one element of a list of files, in AMD's page or in a JSON
// document. Its fields are kept raw: a bad one spoils its entry, not the
// page. Others, such as a size, are ignored: the server that has the file
// tells that with more authority.
type fileEntry struct {
	Name  json.RawMessage `json:"name"`
	Type  json.RawMessage `json:"type"`  // "directory" in nginx's autoindex_format json
	MTime json.RawMessage `json:"mtime"` // seconds since 1970, with a fraction; or a string, see parseMTime
}

// parseArray reads a JSON document that is one array of entries.
func parseArray(body []byte, base *url.URL, now time.Time) (*page, error) {
	text := string(body)
	raws, end, err := decodeArray(text)
	if err == nil && strings.TrimSpace(text[end:]) != "" {
		err = fmt.Errorf("something follows its list of files: %q", printable([]byte(text[end:])))
	}
	return entries(raws, err, base, now)
}

// parseLines reads NDJSON: one entry a line, or simply one after the other.
func parseLines(body []byte, base *url.URL, now time.Time) (*page, error) {
	raws, err := decodeLines(string(body))
	return entries(raws, err, base, now)
}

func entries(raws []json.RawMessage, err error, base *url.URL, now time.Time) (*page, error) {
	if err != nil {
		return nil, &LayoutError{URL: redactURL(base), Reason: err.Error()}
	}
	p := &page{}
	for _, raw := range raws {
		p.add(raw, base, now)
	}
	return p, p.known(base)
}

func decodeLines(text string) ([]json.RawMessage, error) {
	var raws []json.RawMessage
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return raws, nil
		}
		if err != nil {
			return nil, fmt.Errorf("its list of files cannot be read after %d entries: %w", len(raws), err)
		}
		if raws = append(raws, raw); len(raws) > maxFiles {
			return nil, tooMany()
		}
	}
}

// decodeArray reads the JSON array at the start of text, and says where it
// ends: in AMD's page, the rest of the script follows.
func decodeArray(text string) ([]json.RawMessage, int64, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return nil, 0, fmt.Errorf("its list of files cannot be read: %w", err)
	}
	raws := []json.RawMessage{}
	for dec.More() {
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, 0, fmt.Errorf("its list of files cannot be read after %d entries: %w", len(raws), err)
		}
		if raws = append(raws, raw); len(raws) > maxFiles {
			return nil, 0, tooMany()
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, 0, fmt.Errorf("its list of files is cut off after %d entries: %w", len(raws), err)
	}
	return raws, dec.InputOffset(), nil
}

func tooMany() error { return fmt.Errorf("its list of files has more than %d entries", maxFiles) }

// add takes one element of a list of files at base.
func (p *page) add(raw json.RawMessage, base *url.URL, now time.Time) {
	var e fileEntry
	var name, kind string
	if json.Unmarshal(raw, &e) != nil || json.Unmarshal(e.Name, &name) != nil {
		p.unparsed = append(p.unparsed, printable(raw))
		return
	}
	if json.Unmarshal(e.Type, &kind) == nil && kind == "directory" {
		return
	}
	p.put(name, fileURL(base, name), parseMTime(e.MTime, now), now)
}

// parseMTime reads seconds since 1970, or a string as RFC 3339 or HTTP
// (nginx's autoindex_format json) write times. What is missing or cannot be
// the time of an upload is the zero time.
func parseMTime(raw json.RawMessage, now time.Time) time.Time {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t, _ = http.ParseTime(text) // the zero time if it is neither
		}
		return plausible(t, now)
	}
	var sec *float64
	if json.Unmarshal(raw, &sec) != nil || sec == nil || math.Abs(*sec) > 1e11 {
		return time.Time{}
	}
	return plausible(time.UnixMicro(int64(math.Round(*sec*1e6))), now)
}
