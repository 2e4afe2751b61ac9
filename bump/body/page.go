package body

import (
	"cmp"
	"slices"
	"strings"
)

// How long a body may be, in bytes, where Input.Limit does not say it. GitHub
// takes 65,536 characters; its editor writes two for each end of a line as soon
// as a person ticks a box, and other bots add to what is there. Gitea and GitLab
// take a megabyte and more, which nobody reads.
const (
	limitGitHub  = 60_000
	limitTicked  = 65_000 // with two bytes for each end of a line
	limitOthers  = 120_000
	limitMessage = 16 << 10
)

func (f Flavor) limit() int {
	switch f {
	case Gitea, GitLab:
		return limitOthers
	case Plain:
		return limitMessage
	}
	return limitGitHub
}

// over is by how many bytes a text would be too long when a person has ticked a
// box in it. A text of short lines has many ends.
func (f Flavor) over(text string) int {
	if f.limit() != limitGitHub {
		return 0
	}
	return len(text) + strings.Count(text, "\n") + sealed - limitTicked
}

// section is one part of a text. It is there as a whole, in brief, or not.
type section struct {
	name  string // for the line that says what was left out
	worth int    // what is worth least goes first; 0: it stays
	full  string
	brief string // "" if there is no such thing
	// fill writes the section in the room that the others leave; it is used in
	// place of full.
	fill func(room int) string
}

// minFill is the room, in bytes, without which a section is not filled.
const minFill = 800

// fit returns the sections as one text of at most limit bytes, in their order.
// What is worth least is shortened first, then left out, and a line says so. It
// is "" where not even what stays fits.
func fit(all []section, limit int) string {
	var cut []string
	size := 0
	for _, s := range all {
		size += len(s.full)
	}
	byWorth := make([]int, 0, len(all))
	for i, s := range all {
		if s.worth > 0 && s.full != "" {
			byWorth = append(byWorth, i)
		}
	}
	slices.SortStableFunc(byWorth, func(a, b int) int { return cmp.Compare(all[b].worth, all[a].worth) })
	for _, i := range byWorth {
		if size+len(cutLine(cut)) <= limit {
			break
		}
		cut = append(cut, all[i].name)
		size += len(all[i].brief) - len(all[i].full)
		all[i].full = all[i].brief
	}
	for _, i := range byWorth { // in brief is still too long
		if size+len(cutLine(cut)) <= limit {
			break
		}
		size -= len(all[i].full)
		all[i].full = ""
	}
	for i := range all {
		if all[i].fill == nil {
			continue
		}
		// The line may get one name more.
		room := limit - size - len(cutLine(append(slices.Clone(cut), all[i].name)))
		if room >= minFill {
			all[i].full = all[i].fill(room)
		}
		if all[i].full == "" {
			cut = append(cut, all[i].name)
		}
		size += len(all[i].full)
	}
	if size+len(cutLine(cut)) > limit {
		return ""
	}
	var b strings.Builder
	for i, s := range all {
		if i == len(all)-1 {
			b.WriteString(cutLine(cut))
		}
		b.WriteString(s.full)
	}
	return b.String()
}

// cutLine says what was left out.
func cutLine(names []string) string {
	if len(names) == 0 {
		return ""
	}
	names = slices.Clone(names)
	slices.Sort(names)
	return "*Shortened to fit: " + strings.Join(slices.Compact(names), ", ") + ".*\n\n"
}

// fold is text that is shown when a person opens it. title is our own.
func fold(title, text string) string {
	return "<details><summary>" + title + "</summary>\n\n" + text + "</details>\n\n"
}

// table writes rows of cells that are fit for one.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	b.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat("---|", len(head)) + "\n")
	for _, r := range rows {
		b.WriteString("| " + strings.Join(r, " | ") + " |\n")
	}
	return b.String() + "\n"
}
