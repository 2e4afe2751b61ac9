package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// fileEntry is one element of a list of files, in AMD's page or in a JSON
// document. Its fields are kept raw: a bad one spoils its entry, not the
// page. Others are ignored.
type fileEntry struct {
	Name  json.RawMessage `json:"name"`
	Type  json.RawMessage `json:"type"`  // "directory" in nginx's autoindex_format json
	MTime json.RawMessage `json:"mtime"` // seconds since 1970, with a fraction; or a string, see parseMTime
	Size  json.RawMessage `json:"size"`  // bytes; optional
}

// parseArray reads a JSON document that is one array of entries.
func parseArray(body []byte, base *url.URL, now time.Time) (*page, error) {
	text := string(body)
	raws, end, err := decodeArray(text, false)
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
// ends: in AMD's page, the rest of the script follows. In a script, a comma
// may follow the last element.
func decodeArray(text string, script bool) ([]json.RawMessage, int64, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return nil, 0, fmt.Errorf("its list of files cannot be read: %w", err)
	}
	raws := []json.RawMessage{}
	for dec.More() {
		if end := dec.InputOffset(); script && len(raws) > 0 && endsWithComma(text[end:]) {
			return raws, end, nil
		}
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

func endsWithComma(rest string) bool {
	const space = " \t\r\n"
	after, comma := strings.CutPrefix(strings.TrimLeft(rest, space), ",")
	return comma && strings.HasPrefix(strings.TrimLeft(after, space), "]")
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
	if len(e.Type) > 0 && json.Unmarshal(e.Type, &kind) == nil && kind == "directory" {
		return
	}
	p.put(name, fileURL(base, name), parseMTime(e.MTime, now), parseSize(e.Size), now)
}

// parseSize reads a number of bytes; 0 is what is none.
func parseSize(raw json.RawMessage) int64 {
	n, ok := number(raw) // exact to 2^53, and some write 12.0
	if !ok || n < 0 || n > 1<<53 || n != math.Trunc(n) {
		return 0
	}
	return int64(n)
}

// number reads a JSON number that a decoder has accepted; nothing else that
// is JSON reads as one.
func number(raw json.RawMessage) (float64, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	return n, err == nil
}

// parseMTime reads seconds since 1970, or a string as RFC 3339 or HTTP
// (nginx's autoindex_format json) write times. What is missing or cannot be
// the time of an upload is the zero time.
func parseMTime(raw json.RawMessage, now time.Time) time.Time {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return time.Time{}
		}
		return plausible(parseTimeText(text), now)
	}
	sec, ok := number(raw)
	if !ok || math.Abs(sec) > 1e11 {
		return time.Time{}
	}
	return plausible(time.UnixMicro(int64(math.Round(sec*1e6))), now)
}

// parseTimeText reads a time that says its zone; it returns the zero time if
// text is none. RFC 3339 allows t, z and, between date and time, a space.
func parseTimeText(text string) time.Time {
	text = strings.TrimSpace(text)
	if len(text) > len("2006-01-02") && strings.ContainsRune("tT ", rune(text[len("2006-01-02")])) {
		iso := text[:len("2006-01-02")] + "T" + strings.ToUpper(text[len("2006-01-02T"):])
		if t, err := time.Parse(time.RFC3339, iso); err == nil {
			return t
		}
	}
	if t, err := time.Parse(time.RFC1123Z, text); err == nil { // what mail writes
		return t
	}
	t, _ := http.ParseTime(text)
	return t
}
