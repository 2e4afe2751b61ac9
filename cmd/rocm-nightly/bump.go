package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

type bumpOptions struct {
	names   []string
	arch    []string
	version string
	dryRun  string // "", or how far
	write   string // "", or the checkout
	migrate bool
	force   bool
	ledger  string
	trust   []string
	outputs bool
}

func (a *app) bumpCmd() *cobra.Command {
	var o bumpOptions
	c := &cobra.Command{
		Use:   "bump [NAME…]",
		Short: "Propose what was verified here to the repositories of the config",
		Long: `Bring the pins of every repository of the config (or of each NAME) to the newest
night that a run here has downloaded, verified, repacked and audited: one branch,
one commit, and on a forge one pull request, edited in place. Nothing is
downloaded and nothing is installed. Without the record of such a run it exits
with 1 and says which command makes one.

--dry-run pushes nothing: lookup names what would change, diff shows the diff and
the text of the request, full (the default) also what the forge would be asked
to do. --write edits a local checkout alone, without git and without the network:
the files that the config names or, where the config has no bump, the pins that
are found in it; then the config that was inferred is printed.

With --json there is one value: for each request an event, updated, up-to-date or
no-result.`,
		Example: "  rocm-nightly update --no-install --arch gfx1151 && rocm-nightly bump\n  rocm-nightly bump --dry-run=diff my-flake\n  rocm-nightly bump --write --arch gfx1151",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := emptyFlag(cmd, "version", "ledger", "dry-run", "write"); err != nil {
				return err
			}
			o.names = args
			return a.bump(cmd.Context(), o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.dryRun, "dry-run", "", "push nothing; how far to go: `lookup, diff or full`")
	f.Lookup("dry-run").NoOptDefVal = bump.DepthFull
	f.StringVar(&o.write, "write", "", "edit the checkout in this `directory` and nothing else")
	f.Lookup("write").NoOptDefVal = "."
	f.StringArrayVar(&o.arch, "arch", nil, "only the pins of this `target`; may be given again")
	f.StringVar(&o.version, "version", "", "propose this `version` and no other")
	f.BoolVar(&o.migrate, "migrate", false, "edit host and directory of addresses too, where nothing is served any more")
	f.BoolVar(&o.force, "force", false, "make the branch anew whoever's commits it holds, and offer again what was closed")
	f.StringVar(&o.ledger, "ledger", "", "the `file` that update was told to remember tarballs in, if not the store's ledger")
	trustFlag(c, &o.trust)
	outputsFlag(c, &o.outputs)
	a.jsonFlag(c)
	return c
}

// check refuses options that do not go together.
func (o bumpOptions) check() error {
	depths := []string{"", bump.DepthLookup, bump.DepthDiff, bump.DepthFull}
	switch {
	case !slices.Contains(depths, o.dryRun):
		return fmt.Errorf("bump: --dry-run %q is not one of lookup, diff, full", o.dryRun)
	case o.write != "" && o.dryRun != "":
		return errors.New("bump: --write and --dry-run: a checkout shows its own diff (git diff)")
	case o.write != "" && (o.force || o.outputs):
		return errors.New("bump: --force and --github-output are about a request, and --write makes none")
	}
	return nil
}

func (a *app) bump(ctx context.Context, o bumpOptions) error {
	if err := o.check(); err != nil {
		return usage(err)
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	p := a.newProgress(a.stderr)
	defer p.close()
	uo := a.updateOptions(cfg, o.version, p.event, a.log(p))
	uo.Store = st
	if o.ledger != "" {
		uo.Ledger = store.OpenLedger(o.ledger)
	}
	if uo.Trust, err = trusted(uo.Trust, o.trust); err != nil {
		return usage(err)
	}
	uo.DryRun, uo.Depth, uo.Migrate, uo.Force = o.dryRun != "", o.dryRun, o.migrate, o.force
	if o.write != "" {
		return a.bumpWrite(ctx, cfg, uo, o)
	}
	rep, err := update.Propose(ctx, uo, update.Proposal{Names: o.names, Targets: o.arch})
	if err != nil {
		return err
	}
	p.close()
	a.code = rep.Exit
	if !rep.DryRun {
		if err := a.tellBumps(ctx, cfg, rep.Bumps); err != nil {
			a.log(a.stderr).Warn("not everybody could be told what became of the repositories", "error", err)
		}
	}
	if o.outputs {
		if err := a.githubOutput(rep.Bumps); err != nil {
			return err
		}
	}
	if a.json {
		a.printJSON(rep)
	} else {
		a.printBumps(rep.Bumps)
	}
	a.failBumps(rep.Bumps)
	return nil
}

// printBumps tells a person what became of the repositories.
func (a *app) printBumps(bumps []*update.Bumped) {
	for _, b := range bumps {
		fmt.Fprintf(a.stdout, "bump %s: %s\n", b.Name, printable(b.Message))
		switch {
		case b.URL != "" && b.Number != 0:
			fmt.Fprintf(a.stdout, "  the request: %s\n", printable(b.URL))
		case b.URL != "":
			fmt.Fprintf(a.stdout, "  open the pull request at %s\n", printable(b.URL))
		}
		for _, action := range b.Actions {
			fmt.Fprintf(a.stdout, "  %s\n", printable(action))
		}
		if b.Diff == "" && b.Event == update.EventUpdated {
			for _, e := range b.Edits {
				fmt.Fprintf(a.stdout, "  %s\n", printable(editText(e)))
			}
		}
		if b.Diff != "" {
			io.WriteString(a.stdout, printable(b.Diff))
		}
		if b.Body != "" {
			fmt.Fprintf(a.stdout, "\n%s\n\n%s\n", printable(b.Title), strings.TrimRight(printable(b.Body), "\n"))
		}
	}
}

// failBumps prints what went wrong with single repositories.
func (a *app) failBumps(bumps []*update.Bumped) {
	for _, b := range bumps {
		switch name := "bump " + b.Name + ":"; {
		case b.Err == nil:
		case strings.HasPrefix(b.Err.Error(), name):
			a.fail(b.Err)
		default:
			a.fail(fmt.Errorf("%s %w", name, b.Err))
		}
	}
}
