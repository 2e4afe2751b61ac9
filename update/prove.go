package update

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// HealthError says that the health command failed for a generation, and what
// became of it.
type HealthError struct {
	Check *Checkup
	What  string // the version, or the generation
	Then  string // what was done about it; "" before the switch: nothing was
}

func (e *HealthError) Error() string {
	text := fmt.Sprintf("the health command failed for %s %s the switch: %s", e.What, e.Check.Phase, e.Check.said())
	if e.Then != "" {
		text += "; " + e.Then
	}
	return text
}

// errNotChecked says that the health command could not be run. That is no verdict:
// nothing is refused, and nothing is activated.
var errNotChecked = errors.New("the health command was not run")

// recipeIn returns what a prefix was made of, the digest of its tarball too.
func (t *task) recipeIn(dir string) string {
	g := store.Generation{Name: t.rel.Version.String(), Dir: dir}
	m, err := g.Manifest()
	if err != nil {
		return ""
	}
	return m.Recipe
}

// previous is the directory of what is, or was, active before; "" for nothing.
func (t *task) previous() string {
	if t.from == nil {
		return ""
	}
	return t.from.Dir
}

// before runs the health command on what is in dir before the switch to it.
func (t *task) before(ctx context.Context, dir, gen string, rec *Record) error {
	if !t.r.o.Health.on() {
		return nil
	}
	t.say("health", "running the health command")
	c, err := t.checkup(ctx, subject{phase: phaseBefore, prefix: dir, dir: dir, version: t.rel.Version.String(), previous: t.previous()})
	if err != nil {
		return err
	}
	rec.Health, t.out.Health = append(rec.Health, c), append(t.out.Health, c)
	switch c.Status {
	case checkNotRun:
		hint := ""
		if c.noCage {
			hint = "; health.sandbox: off would run it without a cage"
		}
		return fmt.Errorf("%w: %s; what is active stays%s", errNotChecked, c.Detail, hint)
	case checkPassed:
		return nil
	}
	what := gen
	if gen == "" {
		what = t.rel.Version.String()
	}
	return t.refuse(ctx, kindHealth, t.healthKey(t.recipeIn(dir)), gen, &HealthError{Check: c, What: what})
}

// after runs the health command on what has become current, and goes back once
// if it fails.
func (t *task) after(ctx context.Context, name string, rec *Record) error {
	t.say("health", "running the health command again, after the switch")
	gen, err := t.slot.Generation(fullName(name))
	if err != nil {
		return err
	}
	c, err := t.checkup(ctx, t.behind(gen, t.previous()))
	if err != nil {
		return err // the next run makes this check
	}
	rec.Health, t.out.Health = append(rec.Health, c), append(t.out.Health, c)
	switch c.Status {
	case checkPassed:
		return t.slot.Prove(ctx, name)
	case checkNotRun:
		return fmt.Errorf("%w after the switch to %s: %s; the next run tries again", errNotChecked, name, c.Detail)
	}
	return t.goBack(ctx, gen, c, rec)
}

// behind is a generation as it is seen through current.
func (t *task) behind(g *store.Generation, previous string) subject {
	return subject{phase: phaseAfter, prefix: t.slot.CurrentPath(), dir: g.Dir, version: g.Version, previous: previous}
}

// goBack leaves a generation that has failed after the switch.
func (t *task) goBack(ctx context.Context, gen *store.Generation, c *Checkup, rec *Record) error {
	herr := &HealthError{Check: c, What: gen.Name}
	r := store.Refusal{Kind: kindHealth, Version: gen.Version, Generation: gen.Name, Reason: herr.Error()}
	to, err := t.slot.Revert(ctx, gen.Name, t.healthKey(t.recipeIn(gen.Dir)), r)
	if errorsAs[*store.RecordError](err) {
		t.r.o.Log.Warn("it is active, but that could not be recorded", "error", err)
	} else if err != nil {
		return errors.Join(herr, err)
	}
	t.out.Changed, t.out.pin = false, nil
	switch {
	case to == nil:
		herr.Then = "there is nothing to go back to: it stays active"
		return herr
	case to.Name == gen.Name:
		herr.Then = "it stays active"
		return herr
	}
	t.out.To, t.out.Prefix = to.Name, to.Dir
	t.out.Message = fmt.Sprintf("%s failed its health check and was left again: back to %s", gen.Name, to.Name)
	herr.Then = fmt.Sprintf("went back to %s", to.Name)
	t.r.o.Log.Warn("went back", "from", gen.Name, "to", to.Name, "because", c.said())
	again, err := t.checkup(ctx, t.behind(to, gen.Dir))
	if err != nil {
		return errors.Join(herr, err)
	}
	rec.Health, t.out.Health = append(rec.Health, again), append(t.out.Health, again)
	if again.Status == checkFailed {
		herr.Then += ", which fails too, and stays: the cause may be this machine, its driver for one, or the command (" + again.said() + ")"
	}
	return herr
}

// settle makes the check that a run which died after the switch has left open.
func (t *task) settle(ctx context.Context) error {
	if t.r.o.DryRun || t.r.o.NoInstall {
		return nil
	}
	st, err := t.slot.State()
	if err != nil || st.Unproven == nil {
		return err
	}
	name := st.Unproven.Generation
	if !t.r.o.Health.on() {
		return t.slot.Prove(ctx, name) // nobody asks any more
	}
	t.r.o.Log.Info("a run that ended early has left the check after a switch to be made", "generation", name)
	gen, err := t.slot.Generation(fullName(name))
	if err != nil {
		return err
	}
	if v, err := release.ParseVersion(gen.Version); err == nil && t.rel.Name == "" {
		t.rel.Version = v
	}
	was := t.from
	if t.from, err = t.generationOr(st.Unproven.From); err != nil {
		return err
	}
	rec := t.recordOf(gen)
	err = t.after(ctx, name, rec)
	t.from = was
	t.writeRecord(rec, err)
	return errors.Join(err, t.current())
}

// generationOr is a generation by its full name, nil for "" and for one that is gone.
func (t *task) generationOr(name string) (*store.Generation, error) {
	if name == "" {
		return nil, nil
	}
	g, err := t.slot.Generation(fullName(name))
	if errorsAs[*store.GenerationError](err) {
		return nil, nil
	}
	return g, err
}
