package diff

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// MarkdownLimit is how long the body of a pull request may be on GitHub,
// characters.
const MarkdownLimit = 65536

// shortened says that something did not fit.
const shortened = "*Shortened to fit.*\n"

// Markdown writes the report for the body of a pull request, in at most limit
// bytes; 0 is MarkdownLimit. What comes last is left out first.
func (r *Report) Markdown(w io.Writer, limit int) error {
	if limit <= 0 {
		limit = MarkdownLimit
	}
	m := &page{limit: limit - len(shortened)}
	for _, s := range r.sections() {
		m.section(s)
	}
	out := m.b.String()
	if m.cut && len(out)+len(shortened) <= limit {
		out += shortened
	}
	_, err := io.WriteString(w, out)
	return err
}

// page is Markdown of bounded length.
type page struct {
	b     strings.Builder
	limit int
	cut   bool
}

// part writes rows between an opening and a closing text: all, as many as fit,
// or, where not even one does, nothing. total counts rows that there are.
func (m *page) part(open string, rows []string, closing string, total int) {
	const moreRoom = 40
	room := m.limit - m.b.Len() - len(open) - len(closing) - moreRoom
	n := 0
	for n < len(rows) && len(rows[n]) <= room {
		room -= len(rows[n])
		n++
	}
	if n < len(rows) {
		m.cut = true
	}
	if n == 0 && len(rows) > 0 || room < 0 {
		m.cut = true
		return
	}
	m.b.WriteString(open)
	for _, row := range rows[:n] {
		m.b.WriteString(row)
	}
	m.b.WriteString(closing)
	if left := max(total, len(rows)) - n; left > 0 {
		fmt.Fprintf(&m.b, "… and %d more\n\n", left)
	}
}

// section writes one section.
func (m *page) section(s section) {
	open, closing := "### "+s.title+"\n\n", "\n"
	if s.fold {
		open, closing = "<details><summary>"+s.title+"</summary>\n\n", "\n</details>\n\n"
	}
	if s.note != "" {
		open += s.note + "\n\n"
	}
	if len(s.texts) > 0 {
		m.part(open, nil, "", 0)
		for _, t := range s.texts {
			m.text(t)
		}
		return
	}
	if len(s.rows) == 0 {
		m.part(open, nil, "", 0)
		return
	}
	open += "| " + strings.Join(s.head, " | ") + " |\n|" + strings.Repeat("---|", len(s.head)) + "\n"
	rows := make([]string, len(s.rows))
	for i, row := range s.rows {
		var b strings.Builder
		for _, c := range row {
			b.WriteString("| " + c.markdown() + " ")
		}
		rows[i] = b.String() + "|\n"
	}
	m.part(open, rows, closing, s.total)
}

// text writes the difference of one text in a fence that is longer than any in
// it.
func (m *page) text(t TextChange) {
	longest := 2
	rows := make([]string, len(t.Diff))
	for i, l := range t.Diff {
		rows[i] = l + "\n"
		longest = max(longest, runOf(l, '`'))
	}
	fence := strings.Repeat("`", longest+1)
	m.part(code(t.Path)+": "+t.Why+"\n\n"+fence+"diff\n", rows, fence+"\n\n", len(rows)+t.Cut)
}

// markdown is a cell of a table. What is not our own is quoted word by word.
func (c cell) markdown() string {
	switch {
	case c.link != "":
		return "[" + c.text + "](" + c.link + ")"
	case c.own:
		return strings.ReplaceAll(c.text, "|", `\|`)
	}
	return words(c.text)
}

// plainRE matches a word that means nothing to Markdown and that GitHub makes no
// link of: no mention, no issue, no commit, no site, no emoji.
var plainRE = regexp.MustCompile(`\A(?:[A-Za-z0-9(][A-Za-z0-9,;:()%']*|[0-9]+\.[0-9])\z`)

// commitLikeRE matches what GitHub takes for a commit.
var commitLikeRE = regexp.MustCompile(`[0-9a-f]{7}`)

// words puts every word into a code span that is not plain, neighbours into one.
func words(s string) string {
	var out []string
	var quoted []string
	flush := func() {
		if len(quoted) > 0 {
			out = append(out, code(pipes(strings.Join(quoted, " "))))
			quoted = nil
		}
	}
	for _, w := range strings.Split(s, " ") {
		if plainRE.MatchString(w) && !commitLikeRE.MatchString(w) {
			flush()
			out = append(out, w)
		} else {
			quoted = append(quoted, w)
		}
	}
	flush()
	return strings.Join(out, " ")
}

// pipes escapes what ends a cell of a table, in a code span too (GFM, 4.10). How
// a backslash before it is read depends on who reads.
func pipes(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, `\|`, `\\x7c`), "|", `\|`)
}

// code is a code span with s in it, whatever s is (CommonMark, 6.1).
func code(s string) string {
	ticks := strings.Repeat("`", runOf(s, '`')+1)
	if s == "" || strings.Trim(s, " ") == "" {
		return ticks + `""` + ticks
	}
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// runOf is the length of the longest run of c in s.
func runOf(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if run++; s[i] != c {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
