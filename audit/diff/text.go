package diff

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Text writes the report for people at a terminal: what may break first, then
// the rest, each table cut after some rows.
func (r *Report) Text(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i, s := range r.sections() {
		if i > 0 {
			fmt.Fprintln(b)
		}
		fmt.Fprintln(b, s.title)
		if s.note != "" {
			fmt.Fprintln(b, "  "+s.note)
		}
		if err := s.table(b); err != nil {
			return err
		}
		for _, t := range s.texts {
			fmt.Fprintf(b, "  %s: %s\n", t.Path, t.Why)
			for _, l := range t.Diff {
				fmt.Fprintln(b, "    "+l)
			}
			if t.Cut > 0 {
				fmt.Fprintf(b, "    and %s more\n", count(t.Cut, "line"))
			}
		}
	}
	return b.Flush()
}

// table writes the rows of a section in columns.
func (s section) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.StripEscape)
	if len(s.rows) > 0 && len(s.head) > 1 {
		fmt.Fprintln(t, "  "+strings.TrimRight(strings.Join(s.head, "\t"), "\t "))
	}
	for _, row := range s.rows {
		var cells []string
		for _, c := range row {
			text := c.text
			if c.link != "" {
				text = c.link
			}
			cells = append(cells, text)
		}
		fmt.Fprintln(t, "  "+strings.TrimRight(strings.Join(cells, "\t"), "\t "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if left := s.total - len(s.rows); left > 0 {
		fmt.Fprintf(w, "  and %d more\n", left)
	}
	return nil
}
