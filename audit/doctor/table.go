package doctor

import (
	"bufio"
	"fmt"
	"io"
)

// tableFindings is how many findings of one section a table shows.
const tableFindings = 40

// Table writes the report for people: what is right in one line each, then each
// finding with its reason and its remedy.
func (r *Report) Table(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i, s := range r.Sections {
		if i > 0 {
			fmt.Fprintln(b)
		}
		fmt.Fprintf(b, "%s\n", s.Name)
		for _, f := range s.Facts {
			fmt.Fprintf(b, "  ok       %s\n", f)
		}
		for j, f := range s.Findings {
			if j == tableFindings {
				fmt.Fprintf(b, "  and %d more: --json has all\n", len(s.Findings)-j)
				break
			}
			fmt.Fprintf(b, "  %-8s %s: %s [%s]\n", f.Severity, f.Subject, f.Detail, f.Check)
			fmt.Fprintf(b, "           %s\n", f.Why)
			for _, c := range f.Remedy {
				fmt.Fprintf(b, "    -> %s\n", c)
			}
		}
	}
	fmt.Fprintf(b, "\n%d broken, %d warnings, %d notes\n", r.Counts.Broken, r.Counts.Warning, r.Counts.Note)
	return b.Flush()
}
