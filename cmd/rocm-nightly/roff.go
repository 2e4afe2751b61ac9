package main

import (
	"fmt"
	"strings"
	"time"
)

// manPage is the text of one page of the manual: man(7) macros that groff and
// mandoc both read. Its text is ASCII, so that no locale changes it.
type manPage struct {
	b      strings.Builder
	headed bool // the last line is a heading, behind which a paragraph has begun
}

// newManPage begins a page. date is the day that it is of.
func newManPage(name string, section int, date time.Time, version string) *manPage {
	p := &manPage{}
	fmt.Fprintf(&p.b, ".TH %s %d %s \"rocm-nightly %s\" \"ROCm nightlies\"\n", roffArg(strings.ToUpper(name)), section, date.UTC().Format(time.DateOnly), version)
	p.b.WriteString(".nh\n.ad l\n") // what is copied out of a page has no hyphens of ours
	return p
}

func (p *manPage) String() string { return p.b.String() }

func (p *manPage) section(title string) { p.heading("SH", title) }

func (p *manPage) part(title string) { p.heading("SS", title) }

func (p *manPage) heading(macro, title string) {
	fmt.Fprintf(&p.b, ".%s %s\n", macro, roffArg(title))
	p.headed = true
}

// begin begins a paragraph.
func (p *manPage) begin() {
	if !p.headed {
		p.b.WriteString(".PP\n")
	}
	p.headed = false
}

// named is the NAME section, in the form that whatis reads.
func (p *manPage) named(name, short string) {
	p.section("NAME")
	fmt.Fprintf(&p.b, "%s \\- %s\n", roffText(name), roffText(short))
}

// item is a tag and what it means.
func (p *manPage) item(tag, text string) {
	p.headed = false
	fmt.Fprintf(&p.b, ".TP\n%s\n%s\n", tag, roffText(text))
}

// text writes paragraphs. Lines that begin with a blank, commands and tables, stay
// as they are.
func (p *manPage) text(text string) {
	for para := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		p.begin()
		p.paragraph(strings.Split(strings.Trim(para, "\n"), "\n"))
	}
}

func (p *manPage) paragraph(lines []string) {
	asIs := false
	for _, line := range lines {
		if indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"); indented != asIs {
			asIs = indented
			if asIs {
				p.b.WriteString(".RS 2\n.nf\n")
			} else {
				p.b.WriteString(".fi\n.RE\n")
			}
		}
		p.b.WriteString(roffText(strings.TrimPrefix(strings.TrimPrefix(line, "\t"), "  ")) + "\n")
	}
	if asIs {
		p.b.WriteString(".fi\n.RE\n")
	}
}

// literal writes lines as they are.
func (p *manPage) literal(lines []string) {
	p.begin()
	p.b.WriteString(".RS 2\n.nf\n")
	for _, line := range lines {
		p.b.WriteString(roffText(line) + "\n")
	}
	p.b.WriteString(".fi\n.RE\n")
}

// roffText escapes a line of text: groff_char(7) says what groff makes typography
// of, and a line that begins with a dot or a quote is a request.
func roffText(line string) string {
	var b strings.Builder
	for i, r := range line {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '`':
			b.WriteString(`\(ga`)
		case r == '^':
			b.WriteString(`\(ha`)
		case r == '~':
			b.WriteString(`\(ti`)
		case r == '.' && i == 0:
			b.WriteString(`\&.`)
		case r > 126:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// roffArg is text as one argument of a macro.
func roffArg(text string) string {
	return `"` + strings.ReplaceAll(roffText(text), `"`, `\(dq`) + `"`
}

func roffBold(text string) string { return `\fB` + roffText(text) + `\fR` }

func roffItalic(text string) string { return `\fI` + roffText(text) + `\fR` }
