package body

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump/pinfile"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
)

// Bounds of what a body lists.
const (
	maxTargets  = 60
	maxNamed    = 6 // targets that a line names before it counts them
	maxShown    = 3 // targets whose proofs are not folded
	maxEdits    = 80
	briefEdits  = 10
	maxFindings = 8 // of one audit
	maxNotes    = 20
	maxChecks   = 20
	maxTail     = 30 // lines of a check
)

// Render writes the body of a pull request, at most in.Limit bytes of it: what is
// worth least is shortened or left out, which a line then says. With the flavor
// Plain it is Message.
func Render(in Input) string {
	if in.Flavor == Plain {
		return Message(in)
	}
	limit := in.Limit
	if limit <= 0 {
		limit = in.Flavor.limit()
	}
	s := story{in: in, rows: rowsOf(in)}
	marks := versionsMark(in)
	text := fit(s.sections(marks), limit-sealed)
	for in.Limit <= 0 && in.Flavor.over(text) > 0 && limit > sealed {
		limit -= in.Flavor.over(text)
		text = fit(s.sections(marks), limit-sealed)
	}
	if text == "" {
		// A limit that no forge has: the line that counts, if there is room for it.
		if text = s.head(); len(text) > limit {
			return ""
		}
		return text
	}
	return seal(text)
}

// row is one target of a request.
type row struct {
	pin   pinfile.Pin
	proof *Proof
	old   Old // as much of it as is known
}

// rowsOf joins pins with their proofs. A proof of other bytes is none.
func rowsOf(in Input) []row {
	var rows []row
	for _, p := range in.Pins {
		r := row{pin: p}
		for i, proof := range in.Proofs {
			if proof.Target == p.Target && (proof.Pin.Hex == "" || proof.Pin.Hex == p.Hex) {
				r.proof = &in.Proofs[i]
				break
			}
		}
		if r.proof != nil && r.proof.Old != nil {
			r.old = *r.proof.Old
		}
		for _, e := range in.Edits {
			if r.old.Version == "" && e.Target == p.Target && e.To == p.Version {
				r.old.Version = e.From
			}
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.pin.Target, b.pin.Target), cmp.Compare(a.pin.Version, b.pin.Version))
	})
	return rows[:min(len(rows), maxTargets)]
}

// story is an input on its way to be a body.
type story struct {
	in   Input
	rows []row
}

func (s story) sections(marks string) []section {
	test := s.howToTest()
	all := []section{
		{full: s.head()},
		{name: "what to look at", worth: 1, full: s.verdict()},
		{name: "targets", worth: 2, full: s.targets()},
		{name: "notes", worth: 4, full: s.notes()},
		{name: "proof", worth: 3, full: s.proofs(true), brief: s.proofs(false)},
		{name: "checks", worth: 5, full: s.checks(true), brief: s.checks(false)},
	}
	all = append(all, s.diffs()...)
	return append(all,
		section{name: "edits", worth: 6, full: s.edits(maxEdits), brief: s.edits(briefEdits)},
		section{name: "digests", worth: 9, full: s.digests()},
		section{name: "how to test", worth: 8, full: test},
		section{name: "how to roll back", worth: 10, full: s.rollback()},
		section{name: "config", worth: 7, full: s.config()},
		section{full: controls + marks},
	)
}

// head is the line that a notification shows.
func (s story) head() string {
	var targets []string
	olds, news := map[string]string{}, map[string]string{} // dates by version
	for _, r := range s.rows {
		targets = append(targets, code(r.pin.Target))
		news[r.pin.Version] = cmp.Or(news[r.pin.Version], r.pin.Date)
		if r.old.Version != "" {
			olds[r.old.Version] = cmp.Or(olds[r.old.Version], r.old.Date)
		}
	}
	what := "nothing"
	switch {
	case len(news) == 1 && len(olds) == 1:
		what = dated(olds) + " → " + dated(news)
	case len(news) == 1:
		what = "→ " + dated(news)
	case len(news) > 1:
		what = count(len(news), "version")
	}
	who := strings.Join(targets, ", ")
	if len(targets) > maxNamed {
		who = count(len(targets), "target")
	}
	return "ROCm " + what + " for " + cmp.Or(who, "no target") + ".\n\n"
}

// dated is the one version of a map, with the day of its publication.
func dated(one map[string]string) string {
	for version, date := range one {
		if date == "" {
			return code(version)
		}
		return code(version) + " (" + dayText(date) + ")"
	}
	return ""
}

// dayRE matches a day as pins have it.
var dayRE = regexp.MustCompile(`\A[0-9]{4}-[0-9]{2}-[0-9]{2}\z`)

// dayText is a day in plain text, or as code what is none.
func dayText(date string) string {
	if dayRE.MatchString(date) {
		return date
	}
	return cell(date)
}

func (s story) targets() string {
	if len(s.rows) == 0 {
		return ""
	}
	var rows [][]string
	for _, r := range s.rows {
		from := "–"
		if r.old.Version != "" {
			from = day(cell(r.old.Version), r.old.Date)
		}
		rows = append(rows, []string{cell(r.pin.Target), cell(r.pin.Family), from, day(cell(r.pin.Version), r.pin.Date), sizes(r.old.Size, r.pin.Size)})
	}
	return table([]string{"target", "family", "from", "to", "tarball"}, rows)
}

// day is a version in a cell of a table, with its day.
func day(version, date string) string {
	if date == "" {
		return version
	}
	return version + ", " + dayText(date)
}

// sizes tells how large a tarball is, and how much that is more.
func sizes(old, now int64) string {
	if now <= 0 {
		return "–"
	}
	out := diskspace.Text(now)
	if old <= 0 {
		return out
	}
	sign, d := "+", now-old
	if d < 0 {
		sign, d = "−", -d
	}
	out += ", " + sign + diskspace.Text(d)
	if percent := 100 * float64(d) / float64(old); percent >= 0.05 {
		out += fmt.Sprintf(" (%s%.1f %%)", sign, percent)
	}
	return out
}

func (s story) notes() string {
	var b strings.Builder
	if len(s.in.Skipped) > 0 {
		b.WriteString("Left as they are, for they have no verified tarball: ")
		for i, target := range s.in.Skipped[:min(len(s.in.Skipped), maxTargets)] {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(code(target))
		}
		b.WriteString(".\n\n")
	}
	for _, n := range s.in.Notes[:min(len(s.in.Notes), maxNotes)] {
		b.WriteString("- " + cmp.Or(words(n), span("")) + "\n")
	}
	if len(s.in.Notes) > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

func (s story) edits(most int) string {
	if len(s.in.Edits) == 0 {
		return ""
	}
	var rows [][]string
	edits := slices.Clone(s.in.Edits)
	slices.SortStableFunc(edits, func(a, b Edit) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line)) })
	for _, e := range edits[:min(len(edits), most)] {
		at := e.Path
		if e.Line > 0 {
			at += ":" + strconv.Itoa(e.Line)
		}
		rows = append(rows, []string{cell(at), cell(e.Key), cell(e.From), cell(e.To)})
	}
	out := "### What is edited\n\n" + table([]string{"where", "value", "from", "to"}, rows)
	if more := len(s.in.Edits) - most; more > 0 {
		out += fmt.Sprintf("… and %d more.\n\n", more)
	}
	return out
}

func (s story) digests() string {
	var rows [][]string
	for _, r := range s.rows {
		for _, f := range [][2]string{{"SRI", r.pin.SRI}, {"hex", r.pin.Hex}, {"Nix base-32", r.pin.Nix32}, {"OCI", "sha256:" + r.pin.Hex}} {
			if f[1] != "" && f[1] != "sha256:" {
				rows = append(rows, []string{cell(r.pin.Target), f[0], cell(f[1])})
			}
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return fold("Digests of the tarballs, in every form", table([]string{"target", "form", "digest"}, rows))
}

func (s story) config() string {
	out := "Asked for by " + code(s.in.Name)
	if s.in.Config != "" {
		out += " of " + code(s.in.Config)
	}
	if s.in.Branch != "" {
		out += "; branch " + code(s.in.Branch)
	}
	if s.in.Base != "" {
		out += " on " + code(s.in.Base)
	}
	return out + ".\n\n"
}

// controls are the boxes, and what to know of this text.
var controls = "---\n\n" +
	box(BoxRetry, "", "Make this branch anew on its base, whoever's commits it holds") +
	box(BoxIgnore, "", "Close this, and do not offer this version again") +
	"\nrocm-nightly looks at these boxes when it runs next, and keeps this text up to date: what shall stay belongs in a comment. It adds no commit where somebody else has pushed.\n\n"

// count is "1 file", "2 files".
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}
