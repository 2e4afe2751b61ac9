package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/store"
)

type uninstallOptions struct {
	all    bool
	ledger bool
	dryRun bool
	force  bool
}

// uninstallReport is the JSON form of an uninstall.
type uninstallReport struct {
	Schema int  `json:"schema"`
	DryRun bool `json:"dry_run"`
	*store.Uninstalled
}

func (a *app) uninstallCmd() *cobra.Command {
	var o uninstallOptions
	c := &cobra.Command{
		Use:   "uninstall [T]",
		Short: "Remove an install: its generations, downloads, links and host files",
		Long: `Remove a slot with everything that is its own, the last generation too: downloads,
kept tarballs, links, which give back what they had taken over, and the files of
the host. What is not ours is left and named. The ledger, the record of what was
ever verified, stays. It does not ask; --dry-run shows what would go.

T is a target or slot; it may be left out where there is one slot. --all removes
every slot, and whatever else of the root is ours.`,
		Example: "  rocm-nightly uninstall --dry-run\n  rocm-nightly uninstall gfx1151\n  rocm-nightly uninstall --all --ledger",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.all && len(args) > 0 {
				return usage(errors.New("uninstall: --all takes every slot: name none"))
			}
			if o.ledger && !o.all {
				return usage(errors.New("uninstall: --ledger goes with --all: the ledger is of all slots"))
			}
			return a.uninstall(cmd.Context(), args, o)
		},
	}
	f := c.Flags()
	f.BoolVar(&o.all, "all", false, "every slot, and whatever else of the root is ours, but for the ledger")
	f.BoolVar(&o.ledger, "ledger", false, "with --all: the ledger too")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would go, and remove nothing")
	f.BoolVar(&o.force, "force", false, "also what is in use")
	a.jsonFlag(c)
	return c
}

func (a *app) uninstall(ctx context.Context, args []string, o uninstallOptions) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	uo := store.UninstallOptions{All: o.all, Ledger: o.ledger, DryRun: o.dryRun, Force: o.force}
	if !o.all {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		sl, err := st.FindSlot(name)
		if err != nil {
			return err
		}
		uo.Slots = []*store.Slot{sl}
	}
	for _, in := range cfg.Installs {
		if in.Link != "" {
			uo.Links = append(uo.Links, in.Link, in.Link+"-nightly")
		}
	}
	if !o.dryRun {
		if err := a.finishLinks(ctx, st); err != nil {
			return err
		}
	}
	u, err := st.Uninstall(ctx, uo)
	if u.LDConfig && !o.dryRun {
		a.ldconfigNow(ctx, cfg)
	}
	if err != nil {
		if len(u.Links)+len(u.Removed) > 0 && !o.dryRun {
			a.log(a.stderr).Warn("it was not finished: run it again", "links", len(u.Links), "removed", len(u.Removed))
		}
		return err
	}
	if o.all && !o.dryRun {
		a.forgetPages()
	}
	a.stillAsked(cfg, u)
	if o.all && !o.dryRun {
		a.unitsLeft()
	}
	if a.json {
		a.printJSON(uninstallReport{1, o.dryRun, u})
		return nil
	}
	a.printUninstall(u, o.dryRun)
	return nil
}

// forgetPages removes what is kept of indexes: it is asked for again by whoever
// looks next.
func (a *app) forgetPages() {
	if err := fetch.ForgetPages(filepath.Join(a.cacheDir(), "indexes")); err != nil {
		a.log(a.stderr).Warn("what was kept of the indexes is left", "error", err)
	}
	_ = os.Remove(a.cacheDir()) // if nothing else is in it
}

// stillAsked warns that the next update installs again what the config asks for.
func (a *app) stillAsked(cfg *config.Config, u *store.Uninstalled) {
	for _, in := range cfg.Installs {
		name, _ := cfg.GFX.Canonical(in.Target)
		for _, slot := range u.Slots {
			if len(a.read) > 0 && slot == in.Channel+"-"+name {
				a.log(a.stderr).Warn("the config asks for it: the next update installs it again", "install", slot)
			}
		}
	}
}

func (a *app) printUninstall(u *store.Uninstalled, dryRun bool) {
	would := ""
	if dryRun {
		would = "would be "
	}
	if len(u.Links)+len(u.Removed) == 0 {
		fmt.Fprintln(a.stdout, "nothing is installed")
	}
	for _, l := range u.Links {
		switch {
		case l.Left != "":
		case l.Restored != "":
			fmt.Fprintf(a.stdout, "%sput back: %s -> %s\n", would, plain.Text(l.Path), plain.Text(l.Restored))
		case l.Removed:
			fmt.Fprintf(a.stdout, "%sremoved: %s\n", would, plain.Text(l.Path))
		}
	}
	for _, path := range u.Removed {
		fmt.Fprintf(a.stdout, "%sremoved: %s\n", would, plain.Text(path))
	}
	for _, l := range u.Left {
		fmt.Fprintf(a.stdout, "left: %s: %s\n", plain.Text(l.Path), plain.Text(l.Why))
	}
	if u.Unseen > 0 {
		fmt.Fprintf(a.stdout, "note: %d processes of other users could not be looked into; they may be using it\n", u.Unseen)
	}
}
