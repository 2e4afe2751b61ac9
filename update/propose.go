package update

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/bump"
)

// Proposal says what Propose is about.
type Proposal struct {
	Names   []string // bumps of Options.Bumps; none: all
	Targets []string // of their files only those; none: all
}

// Proposed is what Propose did.
type Proposed struct {
	Schema int       `json:"schema"`
	DryRun bool      `json:"dry_run,omitempty"`
	Bumps  []*Bumped `json:"bumps"`
	Exit   int       `json:"exit"`
}

// UnverifiedError says that nothing may be proposed for some targets: no run here
// has downloaded, verified, repacked and audited a night of them.
type UnverifiedError struct {
	Channel string
	Targets []string
	Version string // the one that was asked for, "" for any
}

func (e *UnverifiedError) Error() string {
	night := "a night"
	if e.Version != "" {
		night = e.Version
	}
	return fmt.Sprintf("no run here has verified, repacked and audited %s of channel %s for %s, and a pin rests on such a record (make one: %s)",
		night, e.Channel, strings.Join(e.Targets, ", "), e.Command())
}

// Command is what makes the records. A target on the command line is of the channel
// that the config's install of it has, else of nightly.
func (e *UnverifiedError) Command() string {
	text := "rocm-nightly update --no-install"
	if e.Channel == "nightly" {
		for _, t := range e.Targets {
			text += " --arch " + t
		}
	}
	if e.Version != "" {
		text += " --version " + e.Version
	}
	if e.Channel != "nightly" {
		text += ", with installs of channel " + e.Channel + " in the config"
	}
	return text
}

// Propose brings repositories to what earlier runs have verified: it downloads
// nothing, asks no index and installs nothing. Options.Version names the version;
// "" is the newest of each target. An error means that nothing was begun; what
// became of each repository is in the report.
func Propose(ctx context.Context, o Options, p Proposal) (*Proposed, error) {
	o = o.withDefaults()
	o.Installs = nil // which GPUs this machine has does not matter
	if _, err := o.expand(); err != nil {
		return nil, err
	}
	all, err := o.chosenBumps(p)
	if err != nil {
		return nil, err
	}
	r := newRun(o)
	rep := &Proposed{Schema: Schema, DryRun: o.DryRun, Bumps: []*Bumped{}}
	for _, b := range all {
		j, _ := r.jobOf(ctx, b, nil)
		if len(j.pins) == 0 && j.err == nil {
			j.err = &UnverifiedError{b.Channel, j.missing, o.Version}
		}
		for _, done := range r.propose(ctx, b, j) {
			if len(done.Waiting) > 0 {
				done.Message += "; to make what is missing: " + (&UnverifiedError{b.Channel, done.Waiting, o.Version}).Command()
			}
			rep.Bumps = append(rep.Bumps, done)
			rep.Exit = gravest(rep.Exit, done.exit())
		}
	}
	r.keepBumps(rep.Bumps)
	return rep, nil
}

// chosenBumps are the bumps that a proposal is about, with the files that it is about.
func (o Options) chosenBumps(p Proposal) ([]Bump, error) {
	for _, name := range p.Names {
		if !slices.ContainsFunc(o.Bumps, func(b Bump) bool { return b.Name == name }) {
			return nil, &UsageError{fmt.Errorf("no bump of the config is called %q (it has: %s)", name, o.bumpNames())}
		}
	}
	wanted := map[string]bool{}
	for _, t := range p.Targets {
		name, ok := o.GFX.Canonical(t)
		if !ok {
			return nil, &UsageError{fmt.Errorf("%q is no GPU target", t)}
		}
		wanted[name] = true
	}
	var out []Bump
	for _, b := range o.Bumps {
		if len(p.Names) > 0 && !slices.Contains(p.Names, b.Name) {
			continue
		}
		b.Files = slices.DeleteFunc(slices.Clone(b.Files), func(f bump.File) bool {
			name, _ := o.GFX.Canonical(f.Target)
			return len(wanted) > 0 && !wanted[name]
		})
		if len(b.Files) > 0 {
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		return nil, &UsageError{errors.New("the config has no bump for that: write one under bump (see config.yaml), or edit a checkout with --write")}
	}
	return out, nil
}

func (o Options) bumpNames() string {
	var names []string
	for _, b := range o.Bumps {
		names = append(names, b.Name)
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// Pins returns what each target may be pinned to, by the targets as they are named:
// the newest night that an earlier run has verified, or Options.Version. It is an
// *UnverifiedError when a target has none.
func Pins(ctx context.Context, o Options, channel string, targets []string) (map[string]bump.Pin, error) {
	o = o.withDefaults()
	b := Bump{Channel: channel}
	for _, t := range targets {
		if _, ok := o.GFX.Canonical(t); !ok {
			return nil, &UsageError{fmt.Errorf("%q is no GPU target", t)}
		}
		b.Files = append(b.Files, bump.File{Target: t})
	}
	o.Installs = nil // which GPUs this machine has does not matter
	if _, err := o.expand(); err != nil {
		return nil, err
	}
	r := newRun(o)
	j, _ := r.jobOf(ctx, b, nil)
	if j.err != nil {
		return nil, j.err
	}
	if len(j.missing) > 0 {
		return nil, &UnverifiedError{channel, j.missing, o.Version}
	}
	pins := map[string]bump.Pin{}
	for target, p := range j.pins {
		pins[target] = p.bumpPin()
	}
	return pins, nil
}
