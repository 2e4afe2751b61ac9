package update

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// Linked is what became of a link that is not an install's own: one of `link`,
// or a file of the host.
type Linked struct {
	Path    string `json:"path"`
	Slot    string `json:"slot,omitempty"`
	Kind    string `json:"kind"` // link, or of the host: profile, fish, ldconfig, opencl, modulefiles
	Changed bool   `json:"changed"`
	Message string `json:"message,omitempty"` // for people; "" if all is as it was
	Error   string `json:"error,omitempty"`
}

// link keeps the symlink that the install asks for. A foreign one is left
// alone: the install has succeeded, and another name beside it leads to it.
func (t *task) link(ctx context.Context) error {
	if t.in.Link == "" || t.r.o.NoInstall {
		return nil
	}
	var l store.Link
	err := fault.Do("update.link", func() (err error) {
		l, err = t.r.o.Store.MakeLink(ctx, t.slot, store.LinkOptions{Path: t.in.Link, By: store.LinkByConfig})
		return err
	})
	if err == nil {
		t.out.Linked = l.Path
		return nil
	}
	var taken *store.LinkError
	if !errors.As(err, &taken) {
		return err
	}
	t.out.Link = taken.Error()
	if owner := t.r.owner(ctx, t.in.Link); owner != "" {
		t.out.Link += "; it belongs to " + owner
	}
	t.r.o.Log.Warn("the link was left alone", "error", t.out.Link)
	return t.linkInstead(ctx)
}

// insteadOf is the name beside a link that is taken.
func insteadOf(link string) string { return filepath.Clean(link) + "-nightly" }

// linkInstead links /opt/rocm-nightly where /opt/rocm is taken, unless that is
// taken too or leads to another slot.
func (t *task) linkInstead(ctx context.Context) error {
	st := t.r.o.Store
	path := insteadOf(t.in.Link)
	if ls, err := st.LinkStatus(t.in.Link); err != nil || ls.State != store.LinkForeign || t.r.asked(path) {
		return nil // it is not there that something else is in the way
	}
	ls, err := st.LinkStatus(path)
	if err != nil || ls.State == store.LinkForeign || ls.State == store.LinkOurs && ls.Slot != t.slot.Name() {
		t.out.Link += fmt.Sprintf("; %s is taken too", path)
		return nil
	}
	l, err := st.MakeLink(ctx, t.slot, store.LinkOptions{Path: path, By: store.LinkByConfig, Instead: filepath.Clean(t.in.Link)})
	if err != nil {
		t.out.Link += fmt.Sprintf("; %s could not be made in its place: %v", path, err)
		return nil
	}
	t.out.Linked = l.Path
	t.out.Link += "; " + l.Path + " leads to it instead"
	return nil
}

// asked reports whether a path is the link of an install of the config.
func (r *run) asked(path string) bool {
	return slices.ContainsFunc(r.o.Installs, func(in Install) bool { return in.Link != "" && filepath.Clean(in.Link) == path })
}

// owner names the package that a path is of, "" if none is known.
func (r *run) owner(ctx context.Context, path string) string {
	if r.o.Owner == nil {
		return ""
	}
	ls, err := r.o.Store.LinkStatus(path)
	if err != nil || ls.State != store.LinkForeign {
		return ""
	}
	return r.o.Owner(ctx, ls.Path)
}

// keepLinks makes the links of the verb `link` that are gone, and finishes
// what was interrupted.
func (r *run) keepLinks(ctx context.Context) []Linked {
	st := r.o.Store
	if err := st.FinishLinks(ctx); err != nil {
		r.o.Log.Warn("a link that was being made or removed could not be finished", "error", err)
	}
	links, err := st.Links()
	if err != nil {
		r.o.Log.Warn("the links are not known", "error", err)
	}
	var out []Linked
	for _, l := range links {
		if l.By != store.LinkByVerb {
			continue
		}
		ls, err := st.LinkStatus(l.Path)
		switch {
		case err == nil && ls.State == store.LinkOurs:
			continue
		case err == nil && ls.State == store.LinkForeign:
			err = fmt.Errorf("%s: %s is there now, which is not ours (rocm-nightly unlink %s forgets it)", l.Path, ls.What, l.Path)
		case err == nil && !st.Believed():
			err = fmt.Errorf("%s: it is gone, and the store is not root's (to make it anew: rocm-nightly link %s %s)", l.Path, l.Slot, l.Path)
		case err == nil:
			sl, ferr := st.FindSlot(l.Slot)
			if err = ferr; err == nil {
				_, err = st.MakeLink(ctx, sl, store.LinkOptions{Path: l.Path, File: l.File, By: l.By})
			}
		}
		done := Linked{Path: l.Path, Slot: l.Slot, Kind: "link", Changed: err == nil, Message: "made anew"}
		if err != nil {
			done.Error, done.Message = err.Error(), "left alone"
			r.o.Log.Warn("a link is not as it was made", "path", l.Path, "error", err)
		}
		out = append(out, done)
	}
	return out
}

// finish ends what an uninstall that was interrupted has left.
func (r *run) finish() {
	if r.o.DryRun {
		return
	}
	if err := r.o.Store.FinishUninstall(); err != nil {
		r.o.Log.Warn("what an uninstall has left could not be removed", "error", err)
	}
}

// label gives what is staged the SELinux labels of programs and libraries.
func (t *task) label(ctx context.Context, staging *store.Staging) error {
	done, err := staging.Label(ctx)
	if done.Trouble != "" {
		t.r.o.Log.Warn("the SELinux labels could not be set; confined services may be refused what is installed", "error", done.Trouble)
	}
	return err
}
