package update

import (
	"context"
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
)

// bumps brings every repository to the pins that this run rests on.
func (r *run) bumps(ctx context.Context, rep *Report) {
	for _, b := range r.o.Bumps {
		pins, outs := r.pins(b, rep.Installs)
		if len(pins) == 0 {
			continue // nothing of it is installed, or nothing is verified yet
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
				if out.Error == "" {
					out.Err = fmt.Errorf("bump %s: %w", b.Name, err)
					out.Error = out.Err.Error()
				}
			}
		}
	}
}

// pins finds, for each target that a repository names, the install that has a
// verified release for it.
func (r *run) pins(b Bump, installs []*Outcome) (map[string]bump.Pin, []*Outcome) {
	pins := map[string]bump.Pin{}
	var outs []*Outcome
	for _, f := range b.Files {
		want, _ := gfx.Canonical(f.Target)
		for _, out := range installs {
			if out.pin == nil || out.channel != b.Channel || out.target != want && out.pin.Family != want {
				continue
			}
			if _, have := pins[f.Target]; !have {
				pins[f.Target] = bump.FromPin(*out.pin, out.target)
				outs = append(outs, out)
			}
		}
	}
	return pins, outs
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
