package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// switched is the JSON form of a switch.
type switched struct {
	Schema int    `json:"schema"`
	Slot   string `json:"slot"`
	From   string `json:"from"`
	To     string `json:"to"`
	Prefix string `json:"prefix"`
}

func (a *app) rollbackCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "rollback [T]",
		Short: "Go back to the generation that was active before",
		Long: `Go back to the generation of a slot that was active before: one rename, offline,
also while an update is running. What was left is not installed again until
something newer is published. T is a target or slot; it may be left out where
there is one slot.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.switchSlot(cmd.Context(), args, func(sl *store.Slot) (from, to *store.Generation, err error) { return sl.Rollback(cmd.Context()) })
		},
	}
	a.jsonFlag(c)
	return c
}

func (a *app) useCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "use [T] VERSION",
		Short: "Switch to a generation that is here",
		Long: `Switch to a generation that is here, by its name or version (see status): one
rename, offline.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			want := args[len(args)-1]
			return a.switchSlot(cmd.Context(), args[:len(args)-1], func(sl *store.Slot) (from, to *store.Generation, err error) { return sl.Use(cmd.Context(), want) })
		},
	}
	a.jsonFlag(c)
	return c
}

// slot is the one that the first of args names, or the only one there is.
func (a *app) slot(args []string) (*store.Slot, error) {
	st, err := a.store()
	if err != nil {
		return nil, err
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	return st.FindSlot(name)
}

// switchSlot finds the slot, switches it and says so.
func (a *app) switchSlot(ctx context.Context, args []string, do func(*store.Slot) (from, to *store.Generation, err error)) error {
	sl, err := a.slot(args)
	if err != nil {
		return err
	}
	from, to, err := do(sl)
	var unrecorded *store.RecordError
	if errors.As(err, &unrecorded) {
		a.log(a.stderr).Warn("it is active, but that could not be recorded", "error", err)
	} else if err != nil {
		return err
	}
	s := switched{Schema: 1, Slot: sl.Name(), To: to.Name, Prefix: to.Dir}
	if from != nil {
		s.From = from.Name
	}
	if s.From != s.To {
		a.ldconfigAfter(ctx, sl)
	}
	if a.json {
		a.printJSON(s)
		return nil
	}
	if s.From == s.To {
		fmt.Fprintf(a.stdout, "%s: %s is active already\n", s.Slot, s.To)
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: %s is active now (was %s)\n", s.Slot, s.To, s.From)
	return nil
}
