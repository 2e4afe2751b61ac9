package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/hostpkg"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// linkReport is the JSON form of what link did.
type linkReport struct {
	Schema int    `json:"schema"`
	Path   string `json:"path"`
	Slot   string `json:"slot"`
	Target string `json:"target"` // the text of the link
	Before string `json:"before"` // what the link that was taken over points to; "" if none was
}

func (a *app) linkCmd() *cobra.Command {
	var takeOver bool
	c := &cobra.Command{
		Use:   "link [T] PATH",
		Short: "Make a path a link to what is active",
		Long: `Make PATH, such as /opt/rocm, a link to what is active in a slot: its bin/hipcc is
the wrapper. It follows every switch by itself. update makes it anew if it is
gone, status lists it, unlink and uninstall remove it.

Only what is absent, or a link of ours, is touched. --take-over replaces a link
of somebody else, such as that of AMD's packages, in one step; what it pointed to
is remembered, and unlink puts it back. A directory or a file is never touched.
T is a target or slot; it may be left out where there is one slot.`,
		Example: "  sudo rocm-nightly link /opt/rocm\n  rocm-nightly link gfx1151 ~/rocm\n  sudo rocm-nightly link --take-over /opt/rocm",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			slot := ""
			if len(args) == 2 {
				slot = args[0]
			}
			return a.link(cmd.Context(), slot, args[len(args)-1], takeOver)
		},
	}
	c.Flags().BoolVar(&takeOver, "take-over", false, "replace a link that is not ours; unlink puts it back")
	a.jsonFlag(c)
	return c
}

func (a *app) link(ctx context.Context, slot, path string, takeOver bool) error {
	path, err := absolute("link", path)
	if err != nil {
		return err
	}
	cfg, err := a.config()
	if err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	sl, err := st.FindSlot(slot)
	if err != nil {
		return err
	}
	if err := a.finishLinks(ctx, st); err != nil {
		return err
	}
	l, err := st.MakeLink(ctx, sl, store.LinkOptions{Path: path, By: linkBy(cfg, sl, path), TakeOver: takeOver})
	if err != nil {
		return a.owned(ctx, st, path, err)
	}
	ls, err := st.LinkStatus(l.Path)
	if err != nil {
		return err
	}
	if other := askedLink(cfg, path); other != nil && !sameInstall(cfg, *other, sl) {
		a.log(a.stderr).Warn("the config wants this link for another install: the next update makes it so", "link", path, "install", other.Channel+"-"+other.Target)
	}
	if a.json {
		a.printJSON(linkReport{1, l.Path, sl.Name(), ls.Target, l.Before})
		return nil
	}
	fmt.Fprintf(a.stdout, "%s -> %s\n", plain.Text(l.Path), plain.Text(ls.Target))
	if l.Before != "" {
		fmt.Fprintf(a.stdout, "  it pointed to %s; to put that back: rocm-nightly unlink %s\n", plain.Text(l.Before), plain.Text(l.Path))
	}
	return nil
}

// absolute is a path of the command line.
func absolute(verb, path string) (string, error) {
	if path == "" {
		return "", usage(errors.New(verb + ": the path is empty"))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", verb, path, err)
	}
	return abs, nil
}

// linkBy is who wants a link: an install of the config that asks for the very
// same goes on to be the one that does.
func linkBy(cfg *config.Config, sl *store.Slot, path string) string {
	if in := askedLink(cfg, path); in != nil && sameInstall(cfg, *in, sl) {
		return store.LinkByConfig
	}
	return store.LinkByVerb
}

// askedLink is the install of the config whose link a path is, nil if none.
func askedLink(cfg *config.Config, path string) *config.Install {
	for i, in := range cfg.Installs {
		if in.Link != "" && filepath.Clean(in.Link) == path {
			return &cfg.Installs[i]
		}
	}
	return nil
}

// sameInstall reports whether a slot is that of an install; that of auto may be.
func sameInstall(cfg *config.Config, in config.Install, sl *store.Slot) bool {
	name, known := cfg.GFX.Canonical(in.Target)
	return in.Channel == sl.Channel() && (!known || name == sl.Target())
}

// finishLinks ends what was interrupted; what cannot be is no reason not to go on,
// unless the record itself cannot be read.
func (a *app) finishLinks(ctx context.Context, st *store.Store) error {
	err := st.FinishLinks(ctx)
	if errors.Is(err, store.ErrNewer) {
		return err
	}
	if err != nil {
		a.log(a.stderr).Warn("a link that was being made or removed could not be finished", "error", err)
	}
	return nil
}

// owned adds to an error about what is at a path whose package that is.
func (a *app) owned(ctx context.Context, st *store.Store, path string, err error) error {
	var taken *store.LinkError
	if ls, serr := st.LinkStatus(path); !errors.As(err, &taken) || serr != nil || ls.State != store.LinkForeign {
		return err
	}
	if owner := (hostpkg.Owners{}).Of(ctx, path); owner != "" {
		taken.What += "; it belongs to " + owner
	}
	return err
}
