package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// activated is the JSON form of an activation.
type activated struct {
	switched
	Changed bool              `json:"changed"`
	Message string            `json:"message"`
	Health  []*update.Checkup `json:"health,omitempty"`
	Hold    *store.Hold       `json:"hold,omitempty"`
	Waits   *update.Wait      `json:"waits,omitempty"`
	Link    string            `json:"link,omitempty"`
	Error   string            `json:"error,omitempty"`
	Exit    int               `json:"exit"`
}

func (a *app) activateCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "activate [T [VERSION]]",
		Short: "Make a night active that is here and waits",
		Long: `Make the newest night of a slot active that was staged and waits: because
activate is manual or idle in the config, or because a hold was on when it came.
With VERSION, that one, also during a hold, also one that was refused. Its health
is checked as in an update, before the switch and after it. Offline; it waits for
no download. Unless others have to vouch for it (policy.verify), nothing is asked.
T is a target or slot; without VERSION it may be left out where there is one slot.`,
		Example: "  rocm-nightly activate\n  rocm-nightly activate gfx1151 10.2.0a20260930",
		Args:    cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.activate(cmd.Context(), args)
		},
	}
	a.jsonFlag(c)
	return c
}

func (a *app) activate(ctx context.Context, args []string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	sl, want, err := a.slotAndVersion(args)
	if err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	p := a.newProgress(a.stderr)
	uo := a.updateOptions(cfg, "", p.event, a.log(p))
	uo.Store = st
	out, err := update.Activate(ctx, uo, updateInstall(cfg, installOf(cfg, sl)), sl, want)
	p.close()
	if err != nil {
		return err
	}
	a.code = out.Exit
	if out.Changed {
		a.ldconfigAfter(ctx, sl)
	}
	if a.json {
		a.printJSON(activated{
			switched: switched{Schema: 1, Slot: sl.Name(), From: out.From, To: out.To, Prefix: out.Prefix},
			Changed:  out.Changed, Message: out.Message, Health: out.Health, Hold: out.Hold, Waits: out.Waits, Link: out.Link, Error: out.Error, Exit: out.Exit,
		})
	} else {
		fmt.Fprintf(a.stdout, "%s: %s\n", sl.Name(), printable(out.Message))
	}
	if out.Err != nil {
		a.fail(fmt.Errorf("activate in %s: %w", sl.Name(), out.Err))
	}
	return nil
}

// slotAndVersion reads [T [VERSION]]. One argument that is no slot but a
// generation of the only slot is a version.
func (a *app) slotAndVersion(args []string) (sl *store.Slot, version string, err error) {
	st, err := a.store()
	if err != nil {
		return nil, "", err
	}
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	if len(args) > 1 {
		version = args[1]
	}
	sl, err = st.FindSlot(name)
	if err != nil && len(args) == 1 {
		if only, oerr := st.FindSlot(""); oerr == nil {
			if _, gerr := only.Generation(name); gerr == nil {
				return only, name, nil
			}
		}
	}
	return sl, version, err
}

// installOf finds the install of the config that a slot belongs to, or makes up
// one that has the settings of this machine.
func installOf(cfg *config.Config, sl *store.Slot) config.Install {
	for _, in := range cfg.Installs {
		if name, ok := cfg.GFX.Canonical(in.Target); ok && name == sl.Target() && in.Channel == sl.Channel() {
			return in
		}
	}
	in := archInstall(cfg, sl.Target())
	if in.Channel != sl.Channel() {
		in = config.Install{Target: sl.Target()}
	}
	in.Target, in.Channel = sl.Target(), sl.Channel()
	return in
}
