package update

import (
	"context"
	"fmt"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// bumps brings every repository to the pins that were verified: those of this
// run, and for targets that it was not about those of the active generations.
func (r *run) bumps(ctx context.Context, rep *Report) {
	for _, b := range r.o.Bumps {
		pins, outs := r.bumpPins(b, rep.Installs)
		if len(pins) == 0 {
			r.noPins(ctx, b, rep)
			continue
		}
		r.o.Event(Event{Stage: "bump", Message: "bumping " + b.Name})
		res, err := bump.Run(ctx, b.Repo, pins, bump.Options{
			DryRun: r.o.DryRun, Now: r.o.Now, Verified: verifiedLines(outs),
			Event: func(e bump.Event) { r.o.Event(Event{Stage: "bump", Message: e.Repo + ": " + e.Message}) },
		})
		done := bumped(b.Name, res, err)
		if r.o.DryRun && res != nil {
			done.Diff = res.Diff
		}
		rep.Bumps = append(rep.Bumps, done)
		for _, out := range outs {
			out.Bump = append(out.Bump, done)
			if err != nil {
				out.Exit = gravest(out.Exit, ExitFailed)
			}
		}
		if err != nil {
			rep.Exit = gravest(rep.Exit, ExitFailed)
		}
	}
}

// noPins says why a repository is left alone: because a dry run has verified
// nothing yet, or because nothing that it names is installed.
func (r *run) noPins(ctx context.Context, b Bump, rep *Report) {
	for _, out := range rep.Installs {
		switch {
		case !r.names(b, out):
			continue
		case r.o.DryRun && out.Err == nil && out.rel != nil && out.Changed:
			r.rehearse(ctx, b, rep, out)
		default:
			r.o.Log.Info("the repository waits", "repository", b.Name, "because", out.Install+": "+out.Message)
		}
		return
	}
	r.o.Log.Warn("nothing that this repository pins is verified here, so it is left alone", "repository", b.Name, "channel", b.Channel)
}

// unknownDigest stands for the digest that only the download will tell.
const unknownDigest = release.Digest("sha256:0000000000000000000000000000000000000000000000000000000000000000")

// rehearse plans a bump of which everything is known but the digest, so that a
// dry run tells what a real one would run into.
func (r *run) rehearse(ctx context.Context, b Bump, rep *Report, out *Outcome) {
	pins := map[string]bump.Pin{}
	for _, f := range b.Files {
		if want, _ := r.o.GFX.Canonical(f.Target); out.target == want {
			pins[f.Target] = bump.FromPin(release.Pin{Release: *out.rel, Digest: unknownDigest}, out.target)
		}
	}
	res, err := bump.Run(ctx, b.Repo, pins, bump.Options{DryRun: true, Now: r.o.Now})
	done := bumped(b.Name, res, err)
	if err == nil && res.Changed {
		done.Message = fmt.Sprintf("would push %q to branch %s once the download is verified and audited; the hash is known then", res.Title, res.Branch)
	}
	rep.Bumps = append(rep.Bumps, done)
	out.Bump = append(out.Bump, done)
	if err != nil {
		out.Exit = gravest(out.Exit, ExitFailed)
		rep.Exit = gravest(rep.Exit, ExitFailed)
	}
}

// names reports whether a repository has a pin for what an install is about.
func (r *run) names(b Bump, out *Outcome) bool {
	for _, f := range b.Files {
		if want, _ := r.o.GFX.Canonical(f.Target); out.channel == b.Channel && out.target == want {
			return true
		}
	}
	return false
}

// bumpPins finds the verified release of each target that a repository names.
func (r *run) bumpPins(b Bump, installs []*Outcome) (map[string]bump.Pin, []*Outcome) {
	pins := map[string]bump.Pin{}
	var outs []*Outcome
	for _, f := range b.Files {
		if _, have := pins[f.Target]; have {
			continue
		}
		want, _ := r.o.GFX.Canonical(f.Target)
		out := pinned(installs, b.Channel, want)
		switch {
		case out != nil:
			pins[f.Target] = bump.FromPin(*out.pin, out.target)
			outs = append(outs, out)
		case !about(installs, b.Channel, want):
			if pin := r.active(b.Channel, want); pin != nil {
				pins[f.Target] = bump.FromPin(*pin, want)
			}
		}
	}
	if len(outs) == 0 && !r.o.DryRun {
		return nil, nil // this run is about nothing of this repository
	}
	return pins, outs
}

// pinned returns the install of this run that has a verified release for a
// target or family.
func pinned(installs []*Outcome, channel, want string) *Outcome {
	for _, out := range installs {
		if out.pin != nil && out.channel == channel && (out.target == want || out.pin.Family == want) {
			return out
		}
	}
	return nil
}

// about reports whether an install of this run was about a target: then what it
// has verified counts, and nothing older.
func about(installs []*Outcome, channel, want string) bool {
	for _, out := range installs {
		if out.channel == channel && out.target == want {
			return true
		}
	}
	return false
}

// active returns the pin of a slot's active generation. There is none when the
// user went back to it: a repository is not taken back with one machine.
func (r *run) active(channel, target string) *release.Pin {
	slot := r.o.Store.Slot(channel, target)
	gens, err := slot.Generations()
	if err != nil {
		return nil
	}
	for _, g := range gens {
		if !g.Active {
			continue
		}
		v, verr := release.ParseVersion(g.Version)
		pin, perr := r.pinOf(&g)
		if verr != nil || perr != nil {
			return nil
		}
		for _, other := range gens {
			if w, err := release.ParseVersion(other.Version); err == nil && w.Compare(v) > 0 {
				return nil
			}
		}
		return pin
	}
	return nil
}

// pinOf returns what the ledger says of the tarball that a generation was made
// of, nil if it says nothing.
func (r *run) pinOf(g *store.Generation) (*release.Pin, error) {
	m, err := g.Manifest()
	if err != nil {
		return nil, err
	}
	return r.ledgerPin(m.Channel, m.Name, release.Digest(m.Digest)), nil
}

// ledgerPin finds the last pin of a tarball with this digest in the ledger.
func (r *run) ledgerPin(channel, name string, digest release.Digest) *release.Pin {
	entries, err := r.pins(channel, name)
	if err != nil {
		return nil
	}
	for _, e := range slices.Backward(entries) {
		if pin, err := e.Pin(); err == nil && e.Digest == digest {
			return &pin
		}
	}
	return nil
}

// verifiedLines says what the pins rest on, for the commit message.
func verifiedLines(outs []*Outcome) []string {
	var lines []string
	for _, out := range outs {
		line := fmt.Sprintf("%s: sha256 of the whole tarball, %d bytes", out.Install, out.pin.Size)
		if a := out.Audit; a != nil {
			line += fmt.Sprintf("; audit: %d fatal, %d required, %d warnings", a.Fatal, a.Required, a.Warnings)
		}
		lines = append(lines, line)
	}
	return lines
}
