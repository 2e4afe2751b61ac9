package body

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
)

// columns is where lines of a message are broken, as git's users like it.
const columns = 72

// Message writes what follows the title in the commit's message: plain text in
// paragraphs, lines of at most 72 columns where there is a space to break them
// at, at most 16 KiB or in.Limit. No line of it begins with what a comment of
// git, a trailer or a patch begins with, and nothing in it is a mention or a
// reference. It ends with a newline and without trailers.
func Message(in Input) string {
	s := story{in: in, rows: rowsOf(in)}
	limit := in.Limit
	if limit <= 0 || limit > limitMessage {
		limit = limitMessage
	}
	parts := s.paragraphs()
	const cut = "Shortened.\n"
	var b strings.Builder
	for i, p := range parts {
		room := limit - b.Len() - 1
		if i < len(parts)-1 {
			room -= len(cut) + 1
		}
		if len(p) > room {
			if b.Len()+len(cut)+1 <= limit {
				b.WriteString(lineBefore(&b) + cut)
			}
			break
		}
		b.WriteString(lineBefore(&b) + p)
	}
	return b.String()
}

// lineBefore is the empty line between two paragraphs.
func lineBefore(b *strings.Builder) string {
	if b.Len() == 0 {
		return ""
	}
	return "\n"
}

// paragraphs are what a message tells, what is worth most first.
func (s story) paragraphs() []string {
	var out []string
	add := func(p string) {
		if p != "" {
			out = append(out, p)
		}
	}
	for _, r := range s.rows {
		add(r.text())
	}
	if len(s.in.Skipped) > 0 {
		var b strings.Builder
		b.WriteString("Left as they are, for they have no verified tarball:\n")
		for _, t := range s.in.Skipped[:min(len(s.in.Skipped), maxTargets)] {
			b.WriteString(wrap("- ", quiet(t)))
		}
		add(b.String())
	}
	var b strings.Builder
	for _, n := range s.in.Notes[:min(len(s.in.Notes), maxNotes)] {
		b.WriteString(wrap("- ", quiet(n)))
	}
	for _, c := range s.in.Checks[:min(len(s.in.Checks), maxChecks)] {
		state := "passed"
		if !c.Passed {
			state = "failed"
		}
		b.WriteString(wrap("- ", "check "+state+": "+quiet(c.Command)))
	}
	add(b.String())
	if s.in.Name != "" {
		from := ""
		if s.in.Config != "" {
			from = " of " + quiet(s.in.Config)
		}
		add(wrap("", "Asked for by the bump "+quiet(s.in.Name)+from+"."))
	}
	return out
}

// text is one target and what its pin rests on.
func (r row) text() string {
	var b strings.Builder
	b.WriteString("- " + cmp.Or(quiet(r.pin.Target), "no target") + "\n")
	field := func(name, value string) {
		if value != "" {
			b.WriteString(wrap(fmt.Sprintf("  %-8s ", name), value))
		}
	}
	field("from", dateText(r.old.Version, r.old.Date))
	field("to", dateText(r.pin.Version, r.pin.Date))
	field("url", quiet(cleanURL(r.pin.URL)))
	field("sri", quiet(r.pin.SRI))
	field("sha256", quiet(r.pin.Hex))
	if r.pin.Size > 0 {
		field("size", strconv.FormatInt(r.pin.Size, 10)+" bytes")
	}
	p := r.proof
	if p == nil {
		return b.String()
	}
	parts := known(p.Against)
	for i := range parts {
		parts[i] = quiet(parts[i])
	}
	if firstUse(p.Against) {
		parts = append(parts, "no digest was known (first use)")
	}
	field("verified", strings.Join(parts, "; "))
	if p.Entries > 0 {
		field("tree", count(p.Entries, "file")+", "+diskspace.Text(p.Bytes))
	}
	if a := p.Audit; a != nil {
		verdict := "passed"
		if a.Refused {
			verdict = "refused"
		}
		field("audit", fmt.Sprintf("%s: %d fatal, %d required, %s", verdict, a.Fatal, a.Required, count(a.Warnings, "warning")))
	}
	if m := p.Smoke; m != nil {
		field("run", fmt.Sprintf("%d passed, %d failed, %d skipped (%s)", m.Passed, m.Failed, m.Skipped, quiet(m.Mode)))
	}
	if p.Diff != nil {
		field("diff", count(len(p.Diff.Risks), "thing")+" may break")
	}
	return b.String()
}

func dateText(version, date string) string {
	if version == "" || date == "" {
		return quiet(version)
	}
	return quiet(version) + " (" + quiet(date) + ")"
}

// wrap writes text behind first, broken at spaces. Further lines are indented as
// far as first is long; a word is never broken.
func wrap(first, text string) string {
	var b strings.Builder
	line := first
	empty := true
	for _, w := range strings.Fields(text) {
		if !empty && len([]rune(line))+1+len([]rune(w)) > columns {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, empty = strings.Repeat(" ", max(2, len(first))), true
		}
		if !empty {
			line += " "
		}
		line += w
		empty = false
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}
