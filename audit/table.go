package audit

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// tableLines is how many findings of one rule and severity a table shows.
const tableLines = 8

// Table writes the report for people: findings grouped by severity and rule,
// the gravest first, at most 8 of a group, then what was checked.
func (r *Report) Table(w io.Writer) error {
	b := bufio.NewWriter(w)
	shown := 0
	for i, f := range r.Findings {
		if i == 0 || f.Severity != r.Findings[i-1].Severity || f.Rule != r.Findings[i-1].Rule {
			n := r.group(i)
			fmt.Fprintf(b, "%s: %s (%d)\n", f.Severity, f.Rule, n)
			shown = 0
		}
		switch shown++; {
		case shown <= tableLines:
			fmt.Fprintf(b, "  %s %s\n", clean(f.Path), clean(f.Detail))
			if next := i + 1; f.Hint != "" && (next == len(r.Findings) || shown == tableLines || !sameHint(f, r.Findings[next])) {
				fmt.Fprintf(b, "    -> %s\n", clean(f.Hint))
			}
		case shown == tableLines+1:
			fmt.Fprintf(b, "  and %d more\n", r.group(i))
		}
	}
	fmt.Fprintf(b, "%d fatal, %d required, %d warnings", r.Counts.Fatal, r.Counts.Required, r.Counts.Warning)
	if r.Allowed > 0 {
		fmt.Fprintf(b, ", %d allowed", r.Allowed)
	}
	for i, k := range sortedKeys(r.Checked) {
		sep := ", "
		if i == 0 {
			sep = "; checked "
		}
		fmt.Fprintf(b, "%s%d %s", sep, r.Checked[k], k)
	}
	fmt.Fprintln(b)
	return b.Flush()
}

// group counts the findings from i on that share its severity and rule.
func (r *Report) group(i int) int {
	n := 0
	for _, f := range r.Findings[i:] {
		if f.Severity != r.Findings[i].Severity || f.Rule != r.Findings[i].Rule {
			break
		}
		n++
	}
	return n
}

func sameHint(a, b Finding) bool {
	return a.Severity == b.Severity && a.Rule == b.Rule && a.Hint == b.Hint
}

// clean keeps names of a hostile tree from writing to the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
