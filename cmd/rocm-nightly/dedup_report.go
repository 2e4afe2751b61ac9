package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/store"
)

func (a *app) dedupReportCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "dedup-report A B",
		Short: "Compare two prefixes: what is equal, what is shared on disk",
		Long: `Compare two prefixes, A the older one, by their files.jsonl: which files are
equal, moved, changed, new or gone; whether they differ in the bytes that AMD
published or only in what repack made of them; what the two share on disk, and
what dedup could still save. No file is read.

A and B are generations (10.2.0a20260930 where there is one slot, else
nightly-gfx1151/10.2.0a20260930 or gfx1151/10.2.0a20260930; see status) or
directories that repack made, with a slash in their names: ./old, /srv/rocm.`,
		Example: "  rocm-nightly dedup-report 10.2.0a20260929 10.2.0a20260930\n  rocm-nightly dedup-report /srv/rocm-old /srv/rocm-new --json",
		Args:    cobra.ExactArgs(2),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.dedupReport(cmd.Context(), args[0], args[1]) },
	}
	a.jsonFlag(c)
	return c
}

// dedupReport is the JSON form of the verb.
type dedupReport struct {
	Schema int `json:"schema"`
	*store.Comparison
}

func (a *app) dedupReport(ctx context.Context, one, two string) error {
	from, err := a.prefixOf(one)
	if err != nil {
		return err
	}
	to, err := a.prefixOf(two)
	if err != nil {
		return err
	}
	c, err := store.Compare(ctx, from, to)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(dedupReport{1, c})
		return nil
	}
	return a.printComparison(c)
}

// prefixOf finds the directory that an argument means: a generation, or a
// directory of that path.
func (a *app) prefixOf(arg string) (string, error) {
	slot, version, full := strings.Cut(arg, "/")
	if !full {
		slot, version = "", arg
	}
	if arg == "" {
		return "", usage(errors.New("dedup-report: a name is empty"))
	}
	if arg == "." || arg == ".." || full && (slot == "" || slot == "." || slot == ".." || strings.Contains(version, "/")) {
		return arg, nil
	}
	st, err := a.store()
	if err == nil {
		var sl *store.Slot
		if sl, err = st.FindSlot(slot); err == nil {
			var g *store.Generation
			if g, err = sl.Generation(version); err == nil {
				return g.Dir, nil
			}
		}
	}
	if fi, serr := os.Stat(arg); full && serr == nil && fi.IsDir() {
		return arg, nil
	}
	if !full {
		err = fmt.Errorf("%w (for a directory write ./%s)", err, arg)
	}
	return "", fmt.Errorf("find %s: %w", arg, err)
}

// printComparison tells a person.
func (a *app) printComparison(c *store.Comparison) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	row := func(name string, t store.Tally, note string) {
		fmt.Fprintf(w, "%s\t%d files\t%s\t%s\n", name, t.Files, diskspace.Text(t.Bytes), note)
	}
	row("A", c.A.Tally, printable(c.A.Dir))
	row("B", c.B.Tally, printable(c.B.Dir))
	row("same", c.Same, note(c.TimeOnly, "with another time"))
	row("moved", c.Moved, "")
	row("changed", c.Changed, changes(c))
	row("added", c.Added, "")
	row("removed", c.Removed, "")
	row("shared: hard links", c.HardLinked, "")
	reflinks := ""
	if c.ReflinksUnknown {
		reflinks = "the file system does not tell of all"
	}
	row("shared: reflinks", c.Reflinked, reflinks)
	row("equal, not shared", c.Unshared, note(store.Tally{Files: c.Missing}, "not on disk as listed"))
	if err := w.Flush(); err != nil {
		return err
	}
	for _, ch := range c.Largest {
		fmt.Fprintf(a.stdout, "  %s  %s  %s\n", diskspace.Text(ch.Bytes), ch.Why, printable(ch.Path))
	}
	return nil
}

// note says how many files something is true of, "" if it is of none.
func note(t store.Tally, what string) string {
	if t.Files == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", t.Files, what)
}

// changes says in what changed files differ.
func changes(c *store.Comparison) string {
	var parts []string
	if s := note(c.ModeOnly, "in their mode alone"); s != "" {
		parts = append(parts, s)
	}
	if s := note(c.EditsOnly, "in our edits alone"); s != "" {
		rules := slices.Sorted(maps.Keys(c.Rules))
		parts = append(parts, s+" ("+strings.Join(rules, ", ")+")")
	}
	return strings.Join(parts, ", ")
}
