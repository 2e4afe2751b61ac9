package update

import (
	"context"
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// Activate makes a generation of a slot current that is here: the newest that
// waits, or the one that version names. It asks no index and takes no run lock;
// the health of the generation is checked as in a run. in is the install that
// the slot belongs to.
func Activate(ctx context.Context, o Options, in Install, slot *store.Slot, version string) (*Outcome, error) {
	o = o.withDefaults()
	r := newRun(o)
	in.Channel = slot.Channel()
	t := &task{r: r, in: in, slot: slot, out: &Outcome{Install: slot.Name(), Bump: []*Bumped{}, channel: slot.Channel(), target: slot.Target()}}
	t.in.Repack.Env = in.Env
	err := t.choice(ctx, version)
	if err != nil {
		t.out.Err, t.out.Error, t.out.Exit = err, err.Error(), exitOf(err)
		if t.out.Message == "" {
			t.out.Message = "failed"
		}
	}
	t.noteHold()
	return t.out, nil
}

// choice is Activate's work.
func (t *task) choice(ctx context.Context, version string) error {
	if err := t.current(); err != nil {
		return err
	}
	if t.from != nil {
		t.out.Prefix = t.from.Dir
	}
	gen, err := t.chosen(version)
	if err != nil || gen == nil {
		return err
	}
	if pin, err := t.r.pinOf(gen); err == nil && pin != nil {
		t.take(pin.Release)
	} else if t.rel.Version, err = release.ParseVersion(gen.Version); err != nil {
		t.r.o.Log.Debug("not one of AMD's versions", "version", gen.Version)
	}
	// Others may be asked over the network: only where they must have vouched.
	if o := t.r.o; o.Verify == VerifyAgreed || o.Verify == VerifySigned {
		if waits, err := t.waits(ctx, gen.Name); err != nil || waits != "" {
			if err == nil {
				t.out.Waits = &Wait{gen.Name, waitsTrust, waits}
				err = fmt.Errorf("%s may not become active: %s", gen.Name, waits)
			}
			return err
		}
	}
	rec := t.recordOf(gen)
	if err = t.health(ctx, gen.Dir, gen.Name, rec); err == nil {
		err = t.toCurrent(ctx, gen.Name, rec, false, "activate", true)
	}
	if err != nil || len(t.out.Health) > 0 {
		t.writeRecord(rec, err)
	}
	if err != nil {
		return err
	}
	t.out.Message = "activated " + gen.Name
	if t.out.From != "" {
		t.out.Message += " (was " + t.out.From + ")"
	}
	return t.link(ctx)
}

// chosen is what is to become active, nil if there is nothing to do.
func (t *task) chosen(version string) (*store.Generation, error) {
	if version != "" {
		g, err := t.slot.Generation(version)
		if err == nil && g.Active {
			t.out.Message = g.Name + " is active already"
			return nil, nil
		}
		return g, err
	}
	if hold, err := t.slot.Held(); err != nil {
		return nil, err
	} else if hold != nil {
		return nil, &UsageError{fmt.Errorf("%s is %s: end that (rocm-nightly unhold %s), or name the version", t.slot.Name(), HoldText(hold, t.r.o.Now()), t.slot.Name())}
	}
	g, err := t.slot.Pending()
	if err == nil && g == nil {
		t.out.Message = "nothing waits"
		if t.from != nil {
			t.out.Message += ": " + t.from.Name + " is active, and nothing newer is here that was not left, replaced or refused"
		}
	}
	return g, err
}
