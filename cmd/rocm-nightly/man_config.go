package main

import (
	"regexp"
	"strings"
)

// config makes rocm-nightly-config(5) of config.yaml, which is the documentation of
// itself: lines of ## explain, blocks of # are examples, the rest is the default.
func (m *manual) config(text string) {
	const name = "rocm-nightly-config"
	p := newManPage(name, 5, m.date, m.version)
	p.named(name, "every setting of rocm-nightly, at its default")
	p.section("SYNOPSIS")
	p.b.WriteString(roffItalic("/etc/rocm-nightly/config.yaml") + "\n.br\n" + roffItalic("/etc/rocm-nightly/config.d/*.yaml") + "\n.br\n" +
		roffItalic("$XDG_CONFIG_HOME/rocm-nightly/config.yaml") + "\n")
	p.section("DESCRIPTION")
	settings := false
	for _, block := range configBlocks(text) {
		if block.key != "" {
			if !settings {
				p.section("SETTINGS")
				settings = true
			}
			p.part(block.key)
		}
		block.write(p)
	}
	p.section("SEE ALSO")
	p.b.WriteString("\\fBrocm\\-nightly\\fR(1),\n\\fBrocm\\-nightly\\-config\\fR(1)\n")
	m.pages[name+".5"] = p.String()
}

// configBlock is what stands between two empty lines.
type configBlock struct {
	key     string // of its first setting; "" if it has none
	text    string // paragraphs
	setting []string
	example []string
}

// configKey is a setting of the top level.
var configKey = regexp.MustCompile(`^([a-z_]+):`)

func configBlocks(text string) []configBlock {
	var all []configBlock
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var b configBlock
		for line := range strings.SplitSeq(strings.Trim(block, "\n"), "\n") {
			b.add(line)
		}
		all = append(all, b)
	}
	return all
}

func (b *configBlock) add(line string) {
	if said, ok := strings.CutPrefix(line, "##"); ok {
		b.text += strings.TrimPrefix(said, " ") + "\n"
		return
	}
	if example, ok := strings.CutPrefix(line, "#"); ok {
		b.example = append(b.example, strings.TrimPrefix(example, " "))
		return
	}
	if m := configKey.FindStringSubmatch(line); m != nil && b.key == "" {
		b.key = m[1]
	}
	b.setting = append(b.setting, line)
}

func (b *configBlock) write(p *manPage) {
	if strings.TrimSpace(b.text) != "" {
		p.text(b.text)
	}
	b.settings(p)
	if len(b.example) > 0 {
		p.label("Example:")
		p.literal(b.example)
	}
}

// label is a paragraph of one line.
func (p *manPage) label(text string) {
	p.begin()
	p.b.WriteString(roffText(text) + "\n")
}

// settings writes the defaults: in one piece, or, where lines have comments of their
// own, one below the other with what is said of each.
func (b *configBlock) settings(p *manPage) {
	switch {
	case len(b.setting) == 0:
		return
	case !strings.Contains(strings.Join(b.setting, "\n"), " ## "):
		p.label("Default:")
		p.literal(b.setting)
		return
	}
	for _, line := range b.setting {
		setting, said, _ := strings.Cut(line, " ## ")
		switch {
		case said != "":
			p.item(roffBold(strings.TrimSpace(setting)), strings.TrimSpace(said))
		case strings.HasSuffix(setting, ":") && !strings.HasPrefix(setting, " "):
			// the heading has it
		default:
			p.b.WriteString(".TP\n" + roffBold(strings.TrimSpace(setting)) + "\n")
		}
	}
}
