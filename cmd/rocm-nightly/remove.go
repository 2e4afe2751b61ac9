package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// removed is the JSON form of remove.
type removed struct {
	Schema int    `json:"schema"`
	Slot   string `json:"slot"`
	store.Pruned
}

func (a *app) removeCmd() *cobra.Command {
	var o store.RemoveOptions
	c := &cobra.Command{
		Use:   "remove [T] VERSION",
		Short: "Remove one generation",
		Long: `Remove one generation, by its name or version (see status). The active one, a held
one and the only one are refused, and with them one that a process uses or has
leased, or may use: --force removes that all the same. While an update is at work it
is refused at once.`,
		Example: "  rocm-nightly remove 10.2.0a20260929\n  rocm-nightly remove gfx1151 10.2.0a20260929-r2",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.remove(cmd, args, o)
		},
	}
	c.Flags().BoolVar(&o.Force, "force", false, "also what is in use: programs of it may fail")
	a.jsonFlag(c)
	return c
}

func (a *app) remove(cmd *cobra.Command, args []string, o store.RemoveOptions) error {
	sl, err := a.slot(args[:len(args)-1])
	if err != nil {
		return err
	}
	lock, err := sl.Store().LockRun(cmd.Context(), "remove")
	if err != nil {
		return err
	}
	defer func() {
		if err := lock.Release(); err != nil {
			a.log(a.stderr).Warn("the run lock could not be released", "error", err)
		}
	}()
	p, err := sl.RemoveWith(cmd.Context(), args[len(args)-1], o)
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(removed{1, sl.Name(), orEmpty(p)})
		return nil
	}
	for _, name := range p.Removed {
		fmt.Fprintf(a.stdout, "%s: removed %s, freed %s\n", sl.Name(), name, diskspace.Text(p.Freed))
	}
	return nil
}
