package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/update"
)

func (a *app) checkCmd() *cobra.Command {
	var arch []string
	c := &cobra.Command{
		Use:   "check",
		Short: "Look at the indexes, and say what an update would do and when",
		Long: `Ask the indexes of every install of the config (or of each --arch) what is
newest, and say what an update would do now, and until when a night has to wait
that is still being uploaded or is too young. Nothing is installed or
downloaded, and no lock is taken: it works while an update runs. An index that
has not changed since it was asked last answers so, and sends nothing.

Exit codes: 0 the indexes have answered, whether there is something newer or not
(--json tells: installs[].admits), 1 an index or a store could not be read, 3
nothing was published for too long.`,
		Example: "  rocm-nightly check\n  rocm-nightly check --arch gfx1151 --json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.check(cmd.Context(), arch) },
	}
	c.Flags().StringArrayVar(&arch, "arch", nil, "a GPU `target`, family or product in place of the config's installs; may be given again")
	a.jsonFlag(c)
	return c
}

func (a *app) check(ctx context.Context, arch []string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	if len(cfg.Installs) == 0 && len(arch) == 0 {
		return usage(errors.New("check: the config has no installs, and --arch names none"))
	}
	l, err := a.lookFor(ctx, cfg, arch)
	if err != nil {
		return err
	}
	a.code = l.Exit
	if a.json {
		a.printJSON(l)
	} else if err := a.printLooked(l); err != nil {
		return err
	}
	for _, in := range l.Installs {
		if in.Err != nil {
			a.fail(fmt.Errorf("check %s: %w", in.Install, in.Err))
		}
	}
	return nil
}

// printLooked tells a person what was found.
func (a *app) printLooked(l *update.Looked) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, in := range l.Installs {
		active, newest := in.Active, in.Newest
		if active == "" {
			active = "nothing"
		}
		if newest == "" {
			newest = "unknown"
		}
		fmt.Fprintf(w, "%s\tactive %s\tnewest %s\t%s%s\n", in.Install, active, newest, in.State, publishedText(in))
		fmt.Fprintf(w, "  %s\n", printable(in.Message))
		if in.Stale != nil {
			fmt.Fprintf(w, "  ! the index is stale: %s\n", printable(in.Stale.Detail))
		}
		if in.Error != "" && in.Err == nil {
			fmt.Fprintf(w, "  ! %s\n", printable(in.Error))
		}
	}
	for _, ix := range l.Indexes {
		if ix.Error != "" {
			fmt.Fprintf(w, "! %s could not be read: %s\n", ix.URL, printable(ix.Error))
		}
	}
	return w.Flush()
}

// publishedText says when a release was published and how large it is, as far as
// the index says that.
func publishedText(in update.LookedAt) string {
	text := ""
	if !in.Published.IsZero() {
		text = "\tof " + in.Published.Format("2006-01-02 15:04 MST")
	}
	if in.Size > 0 {
		text += ", " + diskspace.Text(in.Size)
	}
	return text
}
