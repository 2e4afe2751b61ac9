package diff

import (
	"fmt"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
)

// section is one part of a report for people: a table, or texts.
type section struct {
	title string
	note  string // our own words, below the title
	head  []string
	rows  [][]cell
	total int // rows there are, where fewer are shown
	texts []TextChange
	fold  bool // a pull request shows the title alone until it is opened
}

// cell is one field of a table.
type cell struct {
	text string
	link string // of a page, made by rangeLink
	own  bool   // our own words and numbers: nothing in it needs to be quoted
}

func name(s string) cell             { return cell{text: fitting(s)} }
func own(f string, args ...any) cell { return cell{text: fmt.Sprintf(f, args...), own: true} }
func size(n int64) cell              { return own("%s", sizeText(n)) }
func linked(text, link string) cell  { return cell{text: text, link: link} }
func (t Tally) text() string         { return count(t.Files, "file") + ", " + sizeText(t.Bytes) }
func (s section) empty() bool        { return len(s.rows) == 0 && len(s.texts) == 0 && s.note == "" }
func change(from, to string) []cell  { return []cell{absent(from), absent(to)} }
func signed(n int64) string          { return strings.Replace("+"+sizeText(n), "+-", "-", 1) }
func countCell(n int) cell           { return own("%d", n) }

// cellRunes bounds a name in a table.
const cellRunes = 300

// fitting is s, or its beginning.
func fitting(s string) string {
	if n := 0; len(s) > cellRunes {
		for i := range s {
			if n++; n > cellRunes {
				return s[:i] + "…"
			}
		}
	}
	return s
}

// sizeText is a size for people.
func sizeText(n int64) string {
	if n < 0 {
		return "-" + diskspace.Text(-n)
	}
	return diskspace.Text(n)
}

// absent is a name, or a dash for none.
func absent(s string) cell {
	if s == "" {
		return own("–")
	}
	return name(s)
}

// rowsShown bounds the tables for people.
const rowsShown = 20

// sections are the parts of the report, what a reviewer needs first.
func (r *Report) sections() []section {
	all := []section{
		r.sidesSection(), r.risksSection(), r.versionsSection(), r.sourcesSection(), r.flagsSection(), r.kernelsSection(),
		r.librariesSection(), r.symbolsSection(), r.hostSection(), r.configSection(), r.programsSection(),
		r.filesSection(), r.groupsSection(), r.renamedSection(),
		r.changesSection("Grown by bytes", r.Grown), r.changesSection("Grown by percent", r.GrownMost),
		r.entriesSection("Added", r.Added, r.Files.Added.Files), r.entriesSection("Removed", r.Removed, r.Files.Removed.Files),
		r.modesSection(), r.scriptsSection(), r.notesSection(),
	}
	var out []section
	for _, s := range all {
		if !s.empty() {
			s.total = max(s.total, len(s.rows))
			out = append(out, s)
		}
	}
	return out
}

func (r *Report) sidesSection() section {
	s := section{title: "Compared", head: []string{"", "what", "version", "files", "size"}}
	for i, side := range []Side{r.A, r.B} {
		s.rows = append(s.rows, []cell{own("%s", "AB"[i:i+1]), name(side.Name), absent(side.Version), countCell(side.Files), size(side.Bytes)})
	}
	return s
}

func (r *Report) risksSection() section {
	s := section{title: "What may break", head: []string{"kind", "what", "how"}}
	for _, k := range r.Risks {
		s.rows = append(s.rows, []cell{own("%s", k.Kind), name(k.Subject), name(k.Detail)})
	}
	if len(r.Risks) == 0 {
		s.note = "Nothing of what is looked at."
	}
	return s
}

func (r *Report) versionsSection() section {
	s := section{title: "Versions", head: []string{"part", "A", "B"}}
	for _, v := range r.Versions {
		if v.From != "" || v.To != "" {
			s.rows = append(s.rows, append([]cell{name(v.Name)}, change(v.From, v.To)...))
		}
	}
	s.total = len(s.rows)
	s.rows = cut(s.rows, 2*rowsShown)
	return s
}

func (r *Report) sourcesSection() section {
	s := section{title: "Sources", head: []string{"repository", "what", "A", "B", "patches", "between"}}
	src := r.Sources
	if src == nil {
		return s
	}
	if src.Rock.From != src.Rock.To {
		s.rows = append(s.rows, []cell{name("TheRock"), own("changed"), absent(abbreviated(src.Rock.From)), absent(abbreviated(src.Rock.To)), own(""), between(src.Rock)})
	}
	for _, m := range src.Submodules {
		patches := own("")
		if m.PatchesFrom != m.PatchesTo || len(m.PatchesAdded)+len(m.PatchesRemoved) > 0 {
			patches = own("%d, now %d", m.PatchesFrom, m.PatchesTo)
		}
		s.rows = append(s.rows, []cell{name(m.Name), own("%s", m.Why), absent(abbreviated(m.From)), absent(abbreviated(m.To)), patches, between(m.Commit)})
	}
	s.total = len(s.rows)
	s.rows = cut(s.rows, 3*rowsShown)
	if src.Same > 0 || len(s.rows) > 0 {
		s.note = fmt.Sprintf("%s at the same commit.", count(src.Same, "submodule"))
	}
	return s
}

// between links to what lies between two commits.
func between(c Commit) cell {
	if c.Link == "" {
		return own("")
	}
	return linked("compare", c.Link)
}

// abbreviated is a commit as git shows it.
func abbreviated(id string) string {
	if commitRE.MatchString(id) {
		return id[:10]
	}
	return id
}

func (r *Report) flagsSection() section {
	s := section{title: "Build flags and patches", head: []string{"what", "A", "B"}}
	if r.Sources == nil {
		return s
	}
	for _, f := range r.Sources.Flags {
		s.rows = append(s.rows, append([]cell{name(f.Name)}, change(f.From, f.To)...))
	}
	for _, m := range r.Sources.Submodules {
		for _, p := range m.PatchesRemoved {
			s.rows = append(s.rows, []cell{name(p), own("applied"), own("–")})
		}
		for _, p := range m.PatchesAdded {
			s.rows = append(s.rows, []cell{name(p), own("–"), own("applied")})
		}
	}
	s.total = len(s.rows)
	s.rows = cut(s.rows, rowsShown)
	return s
}

func (r *Report) kernelsSection() section {
	s := section{title: "GPU code by target", head: []string{"library", "target", "A", "B", ""}}
	for _, k := range r.Kernels {
		mark := own("")
		switch {
		case k.Lost():
			mark = own("LOST")
		case k.A.Files == 0:
			mark = own("new")
		case k.A != k.B:
			mark = own("%s", signed(k.B.Bytes-k.A.Bytes))
		}
		s.rows = append(s.rows, []cell{name(k.Library), name(k.Target), own("%s", k.A.text()), own("%s", k.B.text()), mark})
	}
	s.total = len(s.rows)
	s.rows = cut(s.rows, 3*rowsShown)
	return s
}

func (r *Report) librariesSection() section {
	s := section{title: "Libraries that lost something", head: []string{"library", "SONAME", "versions lost", "symbols lost", "weak ones"}}
	for _, l := range r.Libraries {
		soname := absent(l.Soname)
		switch {
		case l.Gone:
			soname = name(l.Soname + " is gone")
		case l.Now != "":
			soname = name(l.Soname + " is " + l.Now)
		case l.NameGone:
			soname = name(l.Soname + " is not in its directory")
		}
		versions := own("")
		if len(l.Versions) > 0 {
			versions = name(some(l.Versions, 5))
		}
		s.rows = append(s.rows, []cell{name(l.Path), soname, versions, countCell(l.Lost), countCell(l.Weak)})
	}
	s.total = len(s.rows)
	s.rows = cut(s.rows, rowsShown)
	return s
}

func (r *Report) symbolsSection() section {
	s := section{title: "Symbols lost", head: []string{"library", "symbol"}, fold: true}
	for _, l := range r.Libraries {
		if !l.Public {
			continue
		}
		for _, sym := range l.Symbols {
			if !sym.Weak {
				s.rows = append(s.rows, []cell{name(l.Path), name(sym.text())})
			}
		}
		s.total += l.Lost
	}
	s.rows = cut(s.rows, 2*rowsShown)
	return s
}

func (r *Report) hostSection() section {
	s := section{title: "Newly needed of the host", head: []string{"library", "version", "by"}}
	for _, l := range r.Host.Libraries {
		s.rows = append(s.rows, []cell{name(l.Library), own(""), name(firstOf(l.Path, l.Files))})
	}
	for _, v := range r.Host.Versions {
		s.rows = append(s.rows, []cell{name(v.Library), name(v.Version), name(firstOf(v.Path, v.Files))})
	}
	s.total = len(s.rows)
	s.rows = cut(s.rows, rowsShown)
	return s
}

func (r *Report) configSection() section {
	return section{title: "Configuration files", texts: r.Config}
}

func (r *Report) programsSection() section {
	s := section{title: "Programs removed", head: []string{"path"}}
	for _, p := range r.Programs {
		s.rows = append(s.rows, []cell{name(p)})
	}
	s.total = len(s.rows)
	s.rows = cut(s.rows, rowsShown)
	return s
}

func (r *Report) filesSection() section {
	f := r.Files
	s := section{title: "Files", head: []string{"what", "files", "size"}}
	s.rows = append(s.rows, []cell{own("same"), countCell(f.Same.Files), size(f.Same.Bytes)})
	for _, row := range []struct {
		what  string
		tally Tally
	}{{"added", f.Added}, {"removed", f.Removed}, {"changed", f.Changed}, {"renamed", f.Renamed}, {"edited otherwise after unpacking", f.Edits}} {
		if row.tally.Files > 0 {
			s.rows = append(s.rows, []cell{own("%s", row.what), countCell(row.tally.Files), size(row.tally.Bytes)})
		}
	}
	for _, row := range []struct {
		what string
		n    int
	}{{"of another kind", f.Kind}, {"of another mode", f.Mode}, {"links that lead elsewhere", f.Retargeted}, {"not compared", f.Unknown}} {
		if row.n > 0 {
			s.rows = append(s.rows, []cell{own("%s", row.what), countCell(row.n), own("")})
		}
	}
	if w := r.Wrapping; w != nil && w.Added+w.Removed+w.Changed > 0 {
		s.rows = append(s.rows, []cell{own("wrappers and hooks"), own("%d", w.Added+w.Removed+w.Changed), own("%d added, %d removed, %d changed", w.Added, w.Removed, w.Changed)})
	}
	s.rows = append(s.rows, []cell{own("in all"), own("%+d", r.B.Files-r.A.Files), own("%s", signed(f.Delta))})
	return s
}

func (r *Report) groupsSection() section {
	s := section{title: "By directory", head: []string{"directory", "added", "removed", "changed", "renamed", "A", "B", ""}, total: len(r.Groups)}
	for _, g := range cut(r.Groups, rowsShown) {
		s.rows = append(s.rows, []cell{name(g.Path), countCell(g.Added), countCell(g.Removed), countCell(g.Changed), countCell(g.Renamed), size(g.From), size(g.To), own("%s", signed(g.To-g.From))})
	}
	return s
}

func (r *Report) renamedSection() section {
	s := section{title: "Renamed", head: []string{"A", "B", "files"}, total: len(r.Renamed), fold: true}
	for _, n := range cut(r.Renamed, rowsShown) {
		s.rows = append(s.rows, []cell{name(n.From), name(n.To), countCell(n.Files)})
	}
	return s
}

func (r *Report) changesSection(title string, list []Change) section {
	s := section{title: title, head: []string{"path", "A", "B", "bytes", "percent"}, fold: true}
	for _, ch := range cut(list, rowsShown/2) {
		percent := own("")
		if ch.From > 0 {
			percent = own("%+.1f%%", 100*growth(ch))
		}
		s.rows = append(s.rows, []cell{name(ch.Path), size(ch.From), size(ch.To), own("%s", signed(ch.To-ch.From)), percent})
	}
	return s
}

func (r *Report) entriesSection(title string, list []Entry, total int) section {
	s := section{title: title, head: []string{"path", "size"}, total: total, fold: true}
	for _, e := range cut(list, rowsShown) {
		s.rows = append(s.rows, []cell{name(e.Path), size(e.Bytes)})
	}
	return s
}

// modesSection lists what differs in another way than its content.
func (r *Report) modesSection() section {
	s := section{title: "Other kinds, modes and targets", head: []string{"path", "what", "how"}, fold: true}
	for _, ch := range r.Changed {
		if ch.Why != "content" {
			s.rows = append(s.rows, []cell{name(ch.Path), own("%s", ch.Why), name(ch.Known)})
		}
	}
	s.total = len(s.rows)
	s.rows = cut(s.rows, rowsShown)
	return s
}

func (r *Report) scriptsSection() section {
	s := section{title: "Interpreters of scripts", head: []string{"A", "B", "scripts"}, fold: true, total: len(r.Scripts.Interpreters)}
	for _, i := range cut(r.Scripts.Interpreters, rowsShown) {
		s.rows = append(s.rows, append(change(i.From, i.To), countCell(i.Files)))
	}
	return s
}

func (r *Report) notesSection() section {
	s := section{title: "Notes", head: []string{"what"}, total: len(r.Notes)}
	for _, n := range cut(r.Notes, rowsShown) {
		s.rows = append(s.rows, []cell{name(n)})
	}
	return s
}
