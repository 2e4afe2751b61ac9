package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type pruneOptions struct {
	last   int
	days   int
	bytes  string
	dryRun bool
}

func (a *app) pruneCmd() *cobra.Command {
	var o pruneOptions
	c := &cobra.Command{
		Use:   "prune [T]",
		Short: "Remove generations that are not to stay, and what nobody needs any more",
		Long: `Remove the generations that are beyond the config's keep, or the flags': not among
the last, too old, or too much for the disk, the oldest first. The active one, the
one before it, a held one, one that waits to be activated and those that a process
uses or has leased stay in any case; docs/prune.md has the rules. What interrupted
runs have left goes too, kept tarballs beyond keep_tarballs, and downloads that have
served. T is a target or slot; without it all are pruned. While an update is at work it is refused at once.`,
		Example: "  rocm-nightly prune --dry-run\n  rocm-nightly prune gfx1151 --last 2\n  rocm-nightly prune --bytes 60GiB",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "bytes"); err != nil {
				return err
			}
			return a.prune(cmd, args, o)
		},
	}
	f := c.Flags()
	f.IntVar(&o.last, "last", 0, "keep the newest `N`, in place of keep.last")
	f.IntVar(&o.days, "days", 0, "remove those that are older than `N` days, in place of keep.days")
	f.StringVar(&o.bytes, "bytes", "", "remove the oldest while all occupy more than `SIZE` (60GiB), in place of keep.bytes")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be removed, and what would stay, and do nothing")
	a.jsonFlag(c)
	return c
}

// pruneReport is the JSON form of prune.
type pruneReport struct {
	Schema   int           `json:"schema"`
	DryRun   bool          `json:"dry_run"`
	Slots    []prunedSlot  `json:"slots"`
	Tarballs update.Spools `json:"tarballs"` // kept ones, beyond keep_tarballs
	Spools   update.Spools `json:"spools"`   // downloads that have served
	Freed    int64         `json:"freed"`    // bytes on the disk, of all together; 0 in a dry run
}

type prunedSlot struct {
	Slot string `json:"slot"`
	store.Pruned
	Error string `json:"error,omitempty"`
}

func (a *app) prune(cmd *cobra.Command, args []string, o pruneOptions) error {
	ctx := cmd.Context()
	cfg, err := a.config()
	if err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	slots, err := pruneSlots(st, args)
	if err != nil {
		return err
	}
	if !o.dryRun {
		lock, err := st.LockRun(ctx, "prune")
		if err != nil {
			return err
		}
		defer func() {
			if err := lock.Release(); err != nil {
				a.log(a.stderr).Warn("the run lock could not be released", "error", err)
			}
		}()
	}
	var failed error
	rep := pruneReport{Schema: 1, DryRun: o.dryRun, Slots: []prunedSlot{}, Spools: update.Spools{Names: []string{}}}
	if rep.Tarballs, err = pruneTarballs(ctx, st, cfg, slots, o.dryRun); err != nil {
		failed = err
	}
	for _, sl := range slots {
		keep, err := o.keep(cmd, keepOf(cfg, sl))
		if err != nil {
			return err
		}
		p, err := a.pruneSlot(ctx, sl, keep, o.dryRun)
		if err != nil {
			failed = errors.Join(failed, err)
		}
		rep.Slots = append(rep.Slots, p)
		rep.Freed += p.Freed
	}
	if len(args) == 0 {
		spools, err := update.SweepSpools(ctx, st, time.Now(), o.dryRun)
		failed = errors.Join(failed, err)
		rep.Spools.Names, rep.Spools.Bytes = append(rep.Spools.Names, spools.Names...), spools.Bytes
		if !o.dryRun {
			rep.Freed += spools.Bytes
		}
	}
	if !o.dryRun {
		rep.Freed += rep.Tarballs.Bytes
	}
	if failed != nil {
		a.code = update.ExitFailed
	}
	if a.json {
		a.printJSON(rep)
	} else {
		a.printPruned(rep)
	}
	return failed
}

// pruneSlots is what is to be pruned.
func pruneSlots(st *store.Store, args []string) ([]*store.Slot, error) {
	if len(args) == 0 {
		return st.Slots()
	}
	sl, err := st.FindSlot(args[0])
	return []*store.Slot{sl}, err
}

func (a *app) pruneSlot(ctx context.Context, sl *store.Slot, keep store.Keep, dry bool) (prunedSlot, error) {
	do := sl.Prune
	if dry {
		do = func(ctx context.Context, keep store.Keep) (store.Pruned, error) { return sl.PlanPrune(ctx, keep, "") }
	}
	p, err := do(ctx, keep)
	out := prunedSlot{Slot: sl.Name(), Pruned: orEmpty(p)}
	if err != nil {
		out.Error = err.Error()
	}
	return out, err
}

// orEmpty has lists where there is nothing.
func orEmpty(p store.Pruned) store.Pruned {
	if p.Removed == nil {
		p.Removed = []string{}
	}
	if p.Kept == nil {
		p.Kept = []store.Kept{}
	}
	for i := range p.Kept {
		if p.Kept[i].Uses.By == nil {
			p.Kept[i].Uses.By = []store.Use{}
		}
	}
	return p
}

// keepOf is what the config says of a slot: its install's, else the top level's.
func keepOf(cfg *config.Config, sl *store.Slot) config.Keep {
	if in := configured(cfg, sl); in != nil {
		return cfg.KeepOf(*in)
	}
	return cfg.Keep
}

// configured is the install that the config has for a slot: the one of its
// target, else that of auto, else nil.
func configured(cfg *config.Config, sl *store.Slot) *config.Install {
	var auto *config.Install
	for i := range cfg.Installs {
		in := &cfg.Installs[i]
		if in.Channel != sl.Channel() {
			continue
		}
		if name, ok := cfg.GFX.Canonical(in.Target); ok && name == sl.Target() {
			return in
		}
		if in.Target == gfx.Auto {
			auto = in
		}
	}
	return auto
}

// keep is what the flags say, else the config.
func (o pruneOptions) keep(cmd *cobra.Command, c config.Keep) (store.Keep, error) {
	k := store.Keep{Last: c.Last, Days: c.Days, Bytes: int64(c.Bytes)}
	if cmd.Flags().Changed("last") {
		k.Last = o.last
	}
	if cmd.Flags().Changed("days") {
		k.Days = o.days
	}
	if o.bytes != "" {
		var size config.Size
		if err := size.UnmarshalText([]byte(o.bytes)); err != nil {
			return k, usage(fmt.Errorf("prune: --bytes: %w", err))
		}
		k.Bytes = int64(size)
	}
	if k.Last < 1 {
		return k, usage(fmt.Errorf("prune: --last %d: at least 1", k.Last))
	}
	if k.Days < 0 {
		return k, usage(fmt.Errorf("prune: --days %d: not a number of days", k.Days))
	}
	return k, nil
}

func (a *app) printPruned(rep pruneReport) {
	removed, freed := "removed", "freed "+diskspace.Text(rep.Freed)
	if rep.DryRun {
		removed, freed = "would remove", ""
	}
	done := false
	for _, s := range rep.Slots {
		for _, name := range s.Removed {
			fmt.Fprintf(a.stdout, "%s: %s %s\n", s.Slot, removed, name)
		}
		for _, k := range s.Kept {
			fmt.Fprintf(a.stdout, "%s: %s stays: %s\n", s.Slot, k.Generation, printable(keptText(k)))
		}
		if s.Debris > 0 {
			fmt.Fprintf(a.stdout, "%s: removed what %d interrupted runs or ended processes had left\n", s.Slot, s.Debris)
		}
		done = done || len(s.Removed) > 0 || s.Debris > 0 || s.Error != ""
	}
	for _, name := range rep.Tarballs.Names {
		fmt.Fprintf(a.stdout, "%s the kept tarball %s\n", removed, printable(name))
	}
	for _, name := range rep.Spools.Names {
		fmt.Fprintf(a.stdout, "%s the download of %s\n", removed, printable(name))
	}
	switch {
	case !done && len(rep.Spools.Names)+len(rep.Tarballs.Names) == 0:
		fmt.Fprintln(a.stdout, "nothing to remove")
	case freed != "":
		fmt.Fprintln(a.stdout, freed)
	}
}

// keptText says why a generation stays.
func keptText(k store.Kept) string {
	switch k.Why {
	case store.KeptActive:
		return "it is active"
	case store.KeptPrevious:
		return "it is the way back"
	case store.KeptHeld:
		return "it is held"
	case store.KeptGood:
		return "it is the last known good one"
	case store.KeptWaiting:
		return "it waits to be activated"
	case store.KeptInUse:
		return "used by " + k.Uses.Text()
	}
	return fmt.Sprintf("%d processes or leases that may use it cannot be seen (prune as root, or remove it with --force)", k.Uses.Unseen)
}
