package main

import (
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strconv"

	guard "github.com/rocm-nightly/rocm-nightly/internal/trusted"
)

// trustRoot refuses to let root write into, or run programs of, a ROOT that another
// user could write: that user would be root then, by a link or a program in the right
// place. Verbs that only look go on, and so do those that root does for a service with
// a user of its own: prune removes, below directories that it holds open, and link and
// unlink touch what is outside of ROOT.
func (a *app) trustRoot(root string) error {
	rule := guard.Own()
	if !rule.Root() || !a.puts() {
		return nil
	}
	err := rule.CheckNearest(root)
	var why *guard.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &why) && why.UID > 0:
		return usage(fmt.Errorf("%w: run it as that user: %s -- rocm-nightly %s", err, asUser(why.UID), a.doing.Name()))
	case errors.As(err, &why):
		return usage(err)
	}
	return fmt.Errorf("find out who may write %s: %w", root, err)
}

// puts reports whether the verb writes into ROOT or executes what is in it.
func (a *app) puts() bool {
	if a.doing == nil {
		return false
	}
	if repair := a.doing.Flags().Lookup("repair"); repair != nil && repair.Changed {
		return true
	}
	return slices.Contains([]string{"update", "daemon", "fetch", "bump", "rollback", "use", "activate", "hold", "unhold", "exec", "lease", "remove", "uninstall"}, a.doing.Name())
}

// asUser begins a command that root runs as a user.
func asUser(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return "runuser -u " + u.Username
	}
	return fmt.Sprintf("setpriv --reuid=%d --clear-groups", uid)
}
