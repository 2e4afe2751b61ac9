package pinfile

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
)

var dotenvRE = regexp.MustCompile(`^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*(.*?)[ \t\r]*$`)

// parseDotenv reads an environment file of systemd, docker or dotenv: KEY=value
// a line, comments on lines of their own, quotes around a whole value.
func parseDotenv(src []byte, _ Options) (document, error) {
	if err := fitsIn(src, 1<<20); err != nil {
		return nil, err
	}
	t := newCodeTree(src)
	known := map[string]text{}
	for off := 0; off < len(src); {
		end := len(src)
		if i := bytes.IndexByte(src[off:], '\n'); i >= 0 {
			end = off + i
		}
		line := src[off:end]
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && (trimmed[0] == '#' || trimmed[0] == ';') {
			t.comment(off, end)
		} else if m := dotenvRE.FindSubmatchIndex(line); m != nil {
			dotenvLine(t, string(line[m[2]:m[3]]), off+m[2], off+m[4], off+m[5], known)
		} else if len(trimmed) > 0 {
			return nil, syntaxAt(src, off, "a line of an environment file is KEY=value")
		}
		off = end + 1
	}
	return t, nil
}

func dotenvLine(t *codeTree, name string, at, start, end int, known map[string]text) {
	n := t.child(t.root, name, at)
	site := dotenvSite(t.src, start, end)
	t.value(n, site)
	var x text
	if site.Problem == "" && len(site.Value) == site.End-site.Start {
		x.add(site.Value, site.Start, site.End)
	} else {
		x = placeholders(t.src[start:end], start, known, true)
	}
	if x.len() > maxURL {
		x = text{}
	}
	known[name] = x
	t.link(x, start, name)
}

func dotenvSite(src []byte, start, end int) Site {
	raw := src[start:end]
	var quote byte
	if len(raw) > 0 && (raw[0] == '"' || raw[0] == '\'') {
		quote = raw[0]
		if len(raw) < 2 || raw[len(raw)-1] != quote || bytes.IndexByte(raw[1:len(raw)-1], quote) >= 0 {
			return problemSite(start, end, string(raw), "the quotes do not stand around the whole value")
		}
		start, end, raw = start+1, end-1, raw[1:len(raw)-1]
	}
	if bytes.IndexByte(raw, '\\') >= 0 || quote != '\'' && bytes.IndexByte(raw, '$') >= 0 || quote == 0 && bytes.ContainsAny(raw, "'\"`") {
		return problemSite(start, end, string(raw), "what the value is depends on the program that reads it (write it without $, backslash or inner quotes)")
	}
	if quote == 0 && bytes.Contains(raw, []byte(" #")) {
		return problemSite(start, end, string(raw), "whether # begins a comment here depends on the program that reads it (put it on a line of its own)")
	}
	return Site{Start: start, End: end, Value: string(raw), Encode: func(v string) ([]byte, error) {
		if strings.ContainsAny(v, "\\$'\"`") || quote == 0 && (strings.TrimSpace(v) != v || strings.Contains(v, "#")) {
			return nil, errors.New("the new value holds what programs read in different ways (a quote, $, a backslash, # or blanks around it)")
		}
		return []byte(v), oneLine(v)
	}}
}
