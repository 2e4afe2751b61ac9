package pinfile

import (
	"bytes"
	"errors"
	"strings"
)

// parseDebianWatch reads a debian/watch of format 3 or 4: for each entry url,
// pattern and opts.KEY. What a backslash continues is one line. Format 5, of
// fields, is read by the names of its fields.
func parseDebianWatch(src []byte, _ Options) (document, error) {
	if err := fitsIn(src, 256<<10); err != nil {
		return nil, err
	}
	t := newCodeTree(src)
	l := &dockerLexer{t: t, src: src, escape: '\\'}
	for {
		for l.i < len(src) && len(bytes.TrimSpace(l.physical(l.i))) == 0 {
			l.i += len(l.physical(l.i)) + 1
		}
		if l.i >= len(src) {
			return t, nil
		}
		if line := l.physical(l.i); bytes.TrimLeft(line, " \t")[0] == '#' {
			t.comment(l.i, l.i+len(line))
			l.i += len(line) + 1
			continue
		}
		if line := l.physical(l.i); isField(line) {
			watchField(t, line, l.i)
			l.i += len(line) + 1
			continue
		}
		runs := l.logical()
		words := (&dockerWords{src: src, escape: 0, runs: runs}).split()
		watchEntry(t, words)
	}
}

// isField reports whether a line is Name: value, of format 5.
func isField(line []byte) bool {
	name, rest, ok := bytes.Cut(line, []byte(":"))
	return ok && len(name) > 0 && name[0] >= 'A' && name[0] <= 'Z' && plainWord(strings.ReplaceAll(string(name), "-", "")) && (len(rest) == 0 || isSpace(rest[0]))
}

func watchField(t *codeTree, line []byte, off int) {
	name, rest, _ := bytes.Cut(line, []byte(":"))
	value := bytes.TrimSpace(rest)
	start := off + len(name) + 1
	if len(value) > 0 {
		start += bytes.Index(rest, value)
	}
	t.value(t.child(t.root, string(name), off), watchSite(t, start, start+len(value), ""))
	watchLink(t, start, start+len(value))
}

func watchEntry(t *codeTree, words []dockerWord) {
	if bytes.HasPrefix(t.src[words[0].start:words[0].end], []byte("version=")) {
		return // the format's own version is no pin
	}
	if raw := t.src[words[0].start:words[0].end]; bytes.HasPrefix(raw, []byte("opts=")) || bytes.HasPrefix(raw, []byte("options=")) {
		watchOptions(t, words[0])
		words = words[1:]
	}
	names := []string{"url", "pattern"}
	for i, w := range words[:min(len(words), len(names))] {
		if w.joined {
			return
		}
		t.value(t.child(t.root, names[i], w.start), watchSite(t, w.start, w.end, ""))
	}
	if len(words) > 0 {
		watchLink(t, words[0].start, words[0].end)
	}
}

// watchOptions reads opts="a=b,c=d".
func watchOptions(t *codeTree, w dockerWord) {
	n := t.child(t.root, "opts", w.start)
	start := w.start + bytes.IndexByte(t.src[w.start:w.end], '=') + 1
	end := w.end
	if raw := t.src[start:end]; len(raw) >= 2 && raw[0] == '"' && raw[len(raw)-1] == '"' {
		start, end = start+1, end-1
	}
	for start < end {
		size := bytes.IndexByte(t.src[start:end], ',')
		if size < 0 {
			size = end - start
		}
		name, value, ok := strings.Cut(string(t.src[start:start+size]), "=")
		if ok {
			trimmed := strings.Trim(name, " \t\\\r\n")
			at := start + len(name) + 1
			t.value(t.child(n, trimmed, start), watchSite(t, at, at+len(value), ","))
		}
		start += size + 1
	}
}

func watchSite(t *codeTree, start, end int, stops string) Site {
	raw := string(t.src[start:end])
	switch {
	case strings.ContainsAny(raw, "\"\\\r\n") && stops != "":
		return problemSite(start, end, raw, "the option holds quotes, a backslash or a line's end (write it without)")
	case strings.HasPrefix(raw, `"`):
		return problemSite(start, end, raw, "the value is in quotes (write it without)")
	}
	return Site{Start: start, End: end, Value: raw, Encode: func(v string) ([]byte, error) {
		if v == "" || strings.ContainsAny(v, " \t\"'\\"+stops) || strings.HasPrefix(v, "#") {
			return nil, errors.New("the new value is empty or holds a blank, a quote, a backslash or a comma, which a watch file cannot say here")
		}
		return []byte(v), oneLine(v)
	}}
}

// watchLink notes the address of an entry, unless it is a pattern.
func watchLink(t *codeTree, start, end int) {
	if raw := t.src[start:end]; !bytes.ContainsAny(raw, "()[]*@") {
		var x text
		x.add(string(raw), start, end)
		t.link(x, start, "url")
	}
}
