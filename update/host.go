package update

import (
	"context"
	"fmt"
	"path"

	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// Host says what of a prefix is linked to where shells and loaders look.
type Host struct {
	Kinds  []string         // of store.HostKinds
	Places store.HostPlaces // where to
	// Of is the install that they follow, Slot its slot by name; one of them. A
	// slot that does not exist yet has nothing to link.
	Of   Install
	Slot string
	// LDConfig is run when what it reads has changed; nil is not to run anything.
	LDConfig func(context.Context) error
}

// host makes the host files what the config says. What goes wrong with them is
// told, and fails nothing: what was installed works without.
func (r *run) host(ctx context.Context, rep *Report) []Linked {
	o, st := r.o.Host, r.o.Store
	files, refused := o.Places.Files(o.Kinds)
	var out []Linked
	for _, no := range refused {
		out = append(out, Linked{Kind: no.Kind, Error: fmt.Sprintf("host.%s: %s", no.Kind, no.Why)})
	}
	sl, err := r.hostSlot()
	if err != nil && len(files) > 0 {
		out = append(out, Linked{Kind: "host", Error: err.Error()})
	}
	if sl == nil && len(files) > 0 {
		return r.warned(out) // nothing to lead to; what is on record is left
	}
	changes, err := st.SetHost(ctx, sl, files)
	if err != nil {
		out = append(out, Linked{Kind: "host", Error: err.Error()})
	}
	cache := false
	for _, c := range changes {
		done := hostLinked(c)
		if done.Error != "" {
			if owner := r.owner(ctx, c.Path); owner != "" {
				done.Error += "; it belongs to " + owner
			}
		}
		if done.Kind == store.HostLDConfig && c.Err == nil {
			cache = cache || c.Changed || r.switched(rep, c.Slot)
		}
		if c.Changed || done.Error != "" {
			out = append(out, done)
		}
	}
	if cache && o.LDConfig != nil {
		if err := o.LDConfig(ctx); err != nil {
			out = append(out, Linked{Kind: store.HostLDConfig, Error: fmt.Sprintf("run ldconfig: %v", err)})
		}
	}
	return r.warned(out)
}

func (r *run) warned(all []Linked) []Linked {
	for _, l := range all {
		if l.Error != "" {
			r.o.Log.Warn("a file of the host is not as the config wants it", "kind", l.Kind, "error", l.Error)
		}
	}
	return all
}

// hostSlot is the slot that the host's files follow, nil if there is none yet.
func (r *run) hostSlot() (*store.Slot, error) {
	o, st := r.o.Host, r.o.Store
	var sl *store.Slot
	switch {
	case o.Slot != "":
		var err error
		if sl, err = st.FindSlot(o.Slot); err != nil {
			return nil, fmt.Errorf("host.install: %w", err)
		}
	case o.Of.Target == gfx.Auto:
		m, err := r.o.GFX.Detect(r.o.Sys)
		if err != nil || len(m.Taken) == 0 {
			return nil, err
		}
		sl = st.Slot(o.Of.Channel, m.Taken[0])
	default:
		name, _ := r.o.GFX.Canonical(o.Of.Target)
		sl = st.Slot(o.Of.Channel, name)
	}
	if g, err := sl.Current(); err != nil || g == nil {
		return nil, nil
	}
	return sl, nil
}

// switched reports whether this run has made another generation of slot active.
func (r *run) switched(rep *Report, slot string) bool {
	for _, out := range rep.Installs {
		if out.Install == slot && out.Changed {
			return true
		}
	}
	return false
}

// hostKinds tells the kind of a host file by what it leads to.
var hostKinds = map[string]string{
	"profile.d": store.HostProfile, "ld.so.conf.d": store.HostLDConfig, "vendors": store.HostOpenCL, "modulefiles": store.HostModulefiles, "etc": store.HostFish,
}

// HostKind is the kind of a link to a file below a prefix, "link" for others.
func HostKind(l store.Link) string {
	if kind := hostKinds[path.Base(path.Dir(l.File))]; l.By == store.LinkByHost && kind != "" {
		return kind
	}
	return "link"
}

func hostLinked(c store.HostChange) Linked {
	done := Linked{Path: c.Path, Slot: c.Slot, Kind: HostKind(c.Link), Changed: c.Changed}
	switch {
	case c.Err != nil:
		done.Error, done.Message = c.Err.Error(), "left alone"
	case c.Gone != nil && c.Gone.Left != "":
		done.Error, done.Message = c.Gone.Left+" is there now, which is not ours", "forgotten"
	case c.Gone != nil:
		done.Message = "removed"
	case c.Changed:
		done.Message = "linked"
	}
	return done
}
