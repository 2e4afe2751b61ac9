package body

import (
	"cmp"
	"html"
	"regexp"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// How long foreign text may be, in bytes, before it is cut.
const (
	maxName = 160 // a name, a version, a path
	maxLine = 400 // a line of prose
)

// What GitHub (GFM), GitLab and Gitea make of a text differs in details, and
// changes. Whatever is not a plain word therefore stands in a code span, where
// none of them looks for mentions, references, links, emoji or tags.

// code is a code span with s in it, whatever s is (CommonMark 0.31, 6.1).
func code(s string) string { return span(inert(plain.Cut(s, maxName))) }

// cell is code for a cell of a table. A bar ends a cell also in a code span,
// unless there is a backslash before it (GFM, 4.10); how two of those are read
// depends on who reads.
func cell(s string) string {
	s = inert(plain.Cut(s, maxName))
	return span(strings.ReplaceAll(strings.ReplaceAll(s, `\|`, `\x5c|`), "|", `\|`))
}

// span writes the code span. Spaces at both ends would be stripped.
func span(s string) string {
	if strings.Trim(s, " ") == "" {
		s = `""`
	}
	ticks := strings.Repeat("`", longestRun(s, '`')+1)
	if first, last := s[0], s[len(s)-1]; first == '`' || last == '`' || first == ' ' && last == ' ' {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// tag is foreign text in a line of HTML, such as a summary.
func tag(s string) string {
	return "<code>" + html.EscapeString(inert(plain.Cut(s, maxName))) + "</code>"
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if run++; s[i] != c {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// wordRE matches a word that means nothing to Markdown and that no forge makes a
// link of: no mention, issue, commit, host, key of another tracker or emoji.
var wordRE = regexp.MustCompile(`\A(?:\(?[A-Za-z]+(?:-[a-z]+)*(?:'[a-z]+)?[)]?[,;:.]?|\(?[A-Z]{1,3}[0-9]\)?[,;:.]?|[0-9]{1,6}(?:\.[0-9]{1,6})?[,;:]?|–)\z`)

// linkedRE matches words that look like one, and that a forge may take for a
// commit or the beginning of a host's name.
var linkedRE = regexp.MustCompile(`(?i)\A\(?(?:[0-9a-f]{7,}|www\.)`)

// words is one line of prose: what is no plain word stands in code spans,
// neighbours in one.
func words(s string) string {
	var out, quoted []string
	flush := func() {
		if len(quoted) > 0 {
			out = append(out, span(strings.Join(quoted, " ")))
			quoted = nil
		}
	}
	for _, w := range strings.Fields(inert(plain.Cut(s, maxLine))) {
		if wordRE.MatchString(w) && !linkedRE.MatchString(w) {
			flush()
			out = append(out, w)
			continue
		}
		bare := strings.TrimRight(w, ",;:.")
		quoted = append(quoted, cmp.Or(bare, w))
		if stop := w[len(bare):]; bare != "" && stop != "" {
			flush()
			out[len(out)-1] += stop
		}
	}
	flush()
	return strings.Join(out, " ")
}

// closesRE matches the words by which a forge closes what is named after them.
var closesRE = regexp.MustCompile(`(?i)\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?|reopen(?:s|ed|ing)?)\b`)

// namesRE matches what such a word may be followed by.
var namesRE = regexp.MustCompile(`[#!]|://|[A-Z]-[0-9]`)

// closesReach is how far behind the word that is looked for, in bytes.
const closesReach = 120

// inert takes from s what is obeyed even in code: GitLab looks for closing words
// in the source, and so do our own readers for markers.
func inert(s string) string {
	s = strings.ReplaceAll(s, "<!--", `<\x21--`)
	if !strings.ContainsAny(s, "#!:-") { // what namesRE takes one of
		return s
	}
	at := closesRE.FindAllStringIndex(s, -1)
	if at == nil {
		return s
	}
	var b strings.Builder
	from := 0
	for _, m := range at {
		behind, _, _ := strings.Cut(s[m[1]:min(len(s), m[1]+closesReach)], "\n")
		if !namesRE.MatchString(behind) {
			continue
		}
		b.WriteString(s[from:m[0]])
		b.WriteString(escape(s[m[0]]))
		from = m[0] + 1
	}
	return b.String() + s[from:]
}

// escape writes one byte of ASCII as Go does.
func escape(c byte) string {
	const digits = "0123456789abcdef"
	return `\x` + digits[c>>4:c>>4+1] + digits[c&15:c&15+1]
}

// referenceRE matches what forges link and notify for in plain text.
var referenceRE = regexp.MustCompile(`[@#!~$%&][0-9A-Za-z_{]|\b(?i:GH)-[0-9]`)

// quiet is a line of foreign text for a commit's message, where there are no
// code spans.
func quiet(s string) string {
	return referenceRE.ReplaceAllStringFunc(inert(plain.Cut(s, maxLine)), func(m string) string {
		if m[0] < 'A' || m[0] == '~' {
			return escape(m[0]) + m[1:]
		}
		return m[:2] + escape('-') + m[3:]
	})
}

// fence is a block of code with lines in it. Each is indented, so that none of
// them starts what is looked for at the start of a line of the source: GitLab's
// commands and its idea of where a block ends.
func fence(info string, lines []string) string {
	longest := 2
	var b strings.Builder
	for _, l := range lines {
		l = inert(plain.Cut(strings.ReplaceAll(l, "\t", "    "), maxLine))
		longest = max(longest, longestRun(l, '`'))
		b.WriteString("  " + l + "\n")
	}
	ticks := strings.Repeat("`", longest+1)
	return ticks + info + "\n" + b.String() + ticks + "\n\n"
}
