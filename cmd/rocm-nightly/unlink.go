package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rocm-nightly/rocm-nightly/internal/config"
	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// unlinkReport is the JSON form of what unlink did.
type unlinkReport struct {
	Schema int `json:"schema"`
	store.Unlinked
}

func (a *app) unlinkCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "unlink [PATH]",
		Short: "Remove a link to what is active, and put back what it had taken over",
		Long: `Remove a link that leads to what is active, and put back the link that it had
taken over. What somebody else has put there since is left as it is, and said.
PATH may be left out where there is one link.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.unlink(cmd.Context(), args) },
	}
	a.jsonFlag(c)
	return c
}

func (a *app) unlink(ctx context.Context, args []string) error {
	cfg, err := a.config()
	if err != nil {
		return err
	}
	st, err := a.store()
	if err != nil {
		return err
	}
	path, err := unlinkPath(cfg, st, args)
	if err != nil {
		return err
	}
	if err := a.finishLinks(ctx, st); err != nil {
		return err
	}
	u, err := st.DropLink(ctx, path)
	if err != nil {
		return a.owned(ctx, st, path, err)
	}
	in := askedLink(cfg, u.Path)
	if in == nil && u.Instead != "" {
		in = askedLink(cfg, u.Instead)
	}
	if in != nil && u.Removed {
		a.log(a.stderr).Warn("the config asks for this link: the next update makes it again", "install", in.Channel+"-"+in.Target)
	}
	if slices.ContainsFunc(hostLinks(cfg, a), func(p string) bool { return p == u.Path }) {
		a.log(a.stderr).Warn("the config's host asks for this link: the next update makes it again")
	}
	if isLDConfig(u.File) && u.Removed {
		a.ldconfigNow(ctx, cfg)
	}
	if a.json {
		a.printJSON(unlinkReport{1, u})
		return nil
	}
	fmt.Fprintln(a.stdout, unlinkText(u))
	return nil
}

// unlinkText says what became of a link.
func unlinkText(u store.Unlinked) string {
	path := plain.Text(u.Path)
	switch {
	case u.Left != "":
		return fmt.Sprintf("%s: left as it is: %s is there now, which is not ours", path, plain.Text(u.Left))
	case u.Restored != "":
		return fmt.Sprintf("%s -> %s again", path, plain.Text(u.Restored))
	case u.Removed:
		return path + ": removed"
	}
	return path + ": nothing is there"
}

// unlinkPath is the path that is meant.
func unlinkPath(cfg *config.Config, st *store.Store, args []string) (string, error) {
	if len(args) > 0 {
		return absolute("unlink", args[0])
	}
	paths, err := ownLinks(cfg, st)
	if err != nil {
		return "", err
	}
	switch len(paths) {
	case 0:
		return "", errors.New("unlink: there is no link of ours")
	case 1:
		return paths[0], nil
	}
	return "", usage(fmt.Errorf("unlink: there are several links, name one of: %s", strings.Join(paths, ", ")))
}

// ownLinks lists the links that lead to prefixes, but for those of the host:
// on record, and of the config where an older program made them.
func ownLinks(cfg *config.Config, st *store.Store) ([]string, error) {
	links, err := st.Links()
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, l := range links {
		if l.By != store.LinkByHost {
			paths = append(paths, l.Path)
		}
	}
	for _, in := range cfg.Installs {
		if in.Link == "" {
			continue
		}
		if ls, err := st.LinkStatus(in.Link); err == nil && ls.State == store.LinkOurs && !slices.Contains(paths, ls.Path) {
			paths = append(paths, ls.Path)
		}
	}
	return paths, nil
}
