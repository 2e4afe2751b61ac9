package update

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/bump/body"
	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// bumps brings every repository to what was verified: by this run, or by an
// earlier one of which the record is here.
func (r *run) bumps(ctx context.Context, rep *Report) {
	for _, b := range r.o.Bumps {
		j, outs := r.jobOf(ctx, b, rep.Installs)
		if len(outs) == 0 && !r.o.DryRun {
			r.o.Log.Info("this run was about nothing that a repository pins", "repository", b.Name)
			continue
		}
		if len(j.pins) == 0 && j.err == nil {
			r.noPins(ctx, b, rep)
			continue
		}
		for _, done := range r.propose(ctx, b, j) {
			rep.add(done, outs)
		}
	}
}

// add puts what became of a repository into the report.
func (rep *Report) add(done *Bumped, outs []*Outcome) {
	rep.Bumps = append(rep.Bumps, done)
	for _, out := range outs {
		out.Bump = append(out.Bump, done)
		if done.Err != nil {
			out.Exit = gravest(out.Exit, done.exit())
		}
	}
	if done.Err != nil {
		rep.Exit = gravest(rep.Exit, done.exit())
	}
}

// job is one repository, and what it may be brought to.
type job struct {
	pins    map[string]*recorded // by the target that the repository names
	missing []string             // targets without one
	err     error
}

// jobOf finds what each target that a repository names may be brought to, and the
// installs of this run that are about one of them.
func (r *run) jobOf(ctx context.Context, b Bump, installs []*Outcome) (*job, []*Outcome) {
	j := &job{pins: map[string]*recorded{}}
	var outs []*Outcome
	seen := map[string]bool{}
	for _, f := range b.Files {
		if seen[f.Target] {
			continue
		}
		seen[f.Target] = true
		want, _ := r.o.GFX.Canonical(f.Target)
		out := aboutTarget(installs, b.Channel, want)
		if out != nil {
			outs = append(outs, out)
		}
		p, err := r.pinFor(ctx, b.Channel, want, out)
		if err != nil {
			j.err = err
			continue
		}
		if p == nil {
			if !slices.Contains(j.missing, want) {
				j.missing = append(j.missing, want)
			}
			continue
		}
		p.target = want
		j.pins[f.Target] = p
	}
	return j, outs
}

// aboutTarget returns the install of this run that is about a target, or about the
// family that a repository names.
func aboutTarget(installs []*Outcome, channel, want string) *Outcome {
	for _, out := range installs {
		if out.channel != channel {
			continue
		}
		if out.target == want || out.pin != nil && out.pin.Family == want || out.rel != nil && out.rel.Family == want {
			return out
		}
	}
	return nil
}

// pinFor is what a target may be brought to. What this run has verified counts; a
// record of an earlier one does where this run has verified nothing, or something
// that does not vouch for others. When one name has had two contents, nothing is
// proposed before a person has looked.
func (r *run) pinFor(ctx context.Context, channel, want string, out *Outcome) (*recorded, error) {
	if out != nil && out.Exit == ExitNewBytes {
		return nil, nil
	}
	if out != nil && out.pin == nil && out.Err == nil && out.planned {
		return nil, nil // the run would verify something newer: see rehearse
	}
	if out != nil && out.pin != nil {
		if p := r.vouched(r.o.Store.Slot(channel, out.target), out.pin.Version.String()); p != nil {
			p.target = want
			if ok, err := r.mayPropose(ctx, p); ok || err != nil {
				return p, err
			}
		}
	}
	return r.recorded(ctx, channel, want)
}

// propose runs the bump of one repository.
func (r *run) propose(ctx context.Context, b Bump, j *job) []*Bumped {
	if j.err != nil {
		return r.o.bumped(b.Name, nil, j.err)
	}
	r.o.Event(Event{Stage: "bump", Message: "bumping " + b.Name})
	pins := map[string]bump.Pin{}
	for target, p := range j.pins {
		pins[target] = p.bumpPin()
	}
	res, err := bump.Run(ctx, b.Repo, pins, r.bumpOptions(b, j))
	all := r.o.bumped(b.Name, res, err)
	for _, done := range all {
		done.version = j.newest()
	}
	return all
}

// bumpOptions say what the pins of a repository rest on.
func (r *run) bumpOptions(b Bump, j *job) bump.Options {
	o := bump.Options{
		DryRun: r.o.DryRun, Depth: r.o.Depth, Migrate: r.o.Migrate, Force: r.o.Force, Older: r.o.PinsMayGoBack(), Now: r.o.Now, Log: r.o.Log,
		Published: r.published(b.Channel), Proofs: map[string]body.Proof{},
		Proof: func(ctx context.Context, target string, old string) (*body.Proof, error) {
			for named, p := range j.pins {
				if named == target || p.target == target {
					return r.proofFrom(ctx, p, old)
				}
			}
			return nil, nil
		},
		Event: func(e bump.Event) { r.o.Event(Event{Stage: "bump", Message: e.Repo + ": " + e.Message}) },
	}
	for _, named := range slices.Sorted(maps.Keys(j.pins)) {
		p := j.pins[named]
		o.Proofs[p.target] = p.proof()
	}
	return o
}

// PinsMayGoBack reports whether a pin may take the place of a newer version: who names a
// version knows what they do, and by date the newest may be a lower one.
func (o Options) PinsMayGoBack() bool {
	return o.Version != "" || o.Policy.AllowDowngrade || o.Policy.Prefer == fetch.PreferDate
}

// published tells whether an index of the channel still lists a name; nil where no
// index was read as a whole in this run.
func (r *run) published(channel string) func(name string) bool {
	l := r.listings[channel]
	if l == nil || l.err != nil || r.o.Version != "" || r.o.Policy.Series != "" {
		return nil // or only those indexes were asked that may have the one version
	}
	names := map[string]bool{}
	for _, s := range l.l.Sources {
		if s.Err != nil || s.Releases == 0 {
			return nil // it may be what lists the name
		}
	}
	for _, rel := range l.l.Releases {
		names[rel.Name] = true
	}
	return func(name string) bool { return names[name] }
}

// noPins says why a repository is left alone: because a dry run has verified
// nothing yet, or because nothing that it names was verified.
func (r *run) noPins(ctx context.Context, b Bump, rep *Report) {
	for _, out := range rep.Installs {
		switch {
		case !r.names(b, out):
			continue
		case out.Err == nil && out.planned:
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
		want, _ := r.o.GFX.Canonical(f.Target)
		if about := aboutTarget(rep.Installs, b.Channel, want); about != nil && about.Err == nil && about.planned {
			pins[f.Target] = bump.FromPin(release.Pin{Release: *about.rel, Digest: unknownDigest}, want)
		}
	}
	res, err := bump.Run(ctx, b.Repo, pins, bump.Options{DryRun: true, Depth: bump.DepthLookup, Migrate: r.o.Migrate, Older: r.o.PinsMayGoBack(), Now: r.o.Now, Log: r.o.Log})
	for _, done := range r.o.bumped(b.Name, res, err) {
		done.Diff, done.Body, done.Edits = "", "", nil // their hash is none
		if done.Err == nil && done.Changed {
			done.Message = fmt.Sprintf("would push %q to branch %s once the download is verified and audited; the hash is known then", done.Title, done.Branch)
		}
		rep.add(done, []*Outcome{out})
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
