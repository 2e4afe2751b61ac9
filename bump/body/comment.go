package body

import "strings"

// maxComment bounds a comment, in bytes.
const maxComment = 16 << 10

// Comment returns a comment that says text and that Marked finds again by kind.
// text is plain: lines, empty ones between paragraphs, "- " before the items of
// a list, and backticks around what is code. Nothing of it is a link or a mention.
func Comment(kind, text string) string {
	var b strings.Builder
	b.WriteString(markComment + token(kind) + markClose + "\n")
	for line := range strings.Lines(unixLines(text)) {
		line = strings.TrimRight(line, "\n")
		rest, item := strings.CutPrefix(line, "- ")
		out := prose(rest)
		if item {
			out = "- " + out
		}
		if b.Len()+len(out) > maxComment {
			b.WriteString("\nShortened.\n")
			break
		}
		b.WriteString(out + "\n")
	}
	return b.String()
}

// prose is words, but for what its writer has quoted already.
func prose(line string) string {
	parts := strings.Split(line, "`")
	if len(parts)%2 == 0 {
		return words(line)
	}
	var b strings.Builder
	for i, p := range parts {
		if i%2 == 1 {
			p = code(p)
		} else {
			var stop string
			if i > 0 { // a comma or a full stop behind code needs no code of its own
				rest := strings.TrimLeft(p, ",;:.)")
				if rest == "" || rest[0] == ' ' {
					stop, p = p[:len(p)-len(rest)], rest
				}
			}
			p = strings.TrimRight(stop+" "+words(p), " ")
			if stop == "" {
				p = strings.TrimLeft(p, " ")
			}
		}
		if p == "" {
			continue
		}
		if b.Len() > 0 && !strings.ContainsRune(",;:.)", rune(p[0])) {
			b.WriteByte(' ')
		}
		b.WriteString(p)
	}
	return b.String()
}

// Marked returns the kind of a comment that Comment made, "" of any other. Who
// has written it is for the caller to look at: a marker can be copied.
func Marked(comment string) string {
	first, _, _ := strings.Cut(unixLines(comment[:min(len(comment), 2000)]), "\n")
	word, ok := strings.CutPrefix(first, markComment)
	if !ok {
		return ""
	}
	kind, ok := fromToken(strings.TrimSuffix(strings.TrimRight(word, " \t"), markClose))
	if !ok {
		return ""
	}
	return kind
}
