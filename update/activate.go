package update

import (
	"context"
	"errors"
	"fmt"

	"github.com/rocm-nightly/rocm-nightly/internal/fault"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// activate makes a generation current and everything follow it, unless it has
// to wait. One that this run has not made, rec is nil then, is checked first.
func (t *task) activate(ctx context.Context, name string, rec *Record) error {
	if t.r.o.NoInstall {
		return nil
	}
	if stop, err := t.stands(ctx, name); err != nil || stop {
		return err
	}
	made := rec != nil
	if !made {
		gen, err := t.slot.Generation(fullName(name))
		if err != nil {
			return err
		}
		rec = t.recordOf(gen)
		if err = t.health(ctx, gen.Dir, name, rec); err != nil {
			t.writeRecord(rec, err)
			return err
		}
		// That may have taken its time, in which somebody held the slot or went back.
		if stop, err := t.stands(ctx, name); err != nil || stop {
			return err
		}
	}
	err := t.toCurrent(ctx, name, rec, made, store.WhyUpdate, false)
	if !made && (err != nil || len(rec.Health) > 0) {
		t.writeRecord(rec, err)
	}
	if err != nil {
		return err
	}
	t.prune(ctx)
	return fault.Point("update.pruned")
}

// stands reports whether something stands in the way of a generation now, and
// says what.
func (t *task) stands(ctx context.Context, name string) (bool, error) {
	if err := t.current(); err != nil {
		return false, err
	}
	waits, err := t.heldBack(ctx, name)
	if err != nil {
		return false, err
	}
	if waits != nil {
		t.waitsFor(ctx, name, waits)
		return true, nil
	}
	// Who went back while this ran is not overruled.
	if t.r.o.Version == "" && t.slot.Skip(t.rel.Version.String()) {
		t.out.Message = fmt.Sprintf("%s is here but not active: it was left by rollback or use meanwhile", name)
		return true, nil
	}
	return false, nil
}

// fullName names exactly one generation: a version alone means its newest revision.
func fullName(name string) string {
	if _, revision := splitRevision(name); revision == "" {
		return name + "-r1"
	}
	return name
}

// toCurrent is the switch, and the check after it. chosen says that a person
// named the generation.
func (t *task) toCurrent(ctx context.Context, name string, rec *Record, made bool, why string, chosen bool) error {
	t.say("activate", "activating "+name)
	check := t.r.o.Health.on()
	var err error
	switch {
	case chosen:
		err = t.slot.Choose(ctx, name, why, check)
	case check:
		err = t.slot.Try(ctx, name, why)
	default:
		err = t.slot.Activate(ctx, name, why)
	}
	if errorsAs[*store.RecordError](err) {
		t.r.o.Log.Warn("it is active, but that could not be recorded", "error", err)
	} else if err != nil {
		return err
	}
	cur, err := t.slot.Current()
	if err = errors.Join(err, fault.Point("update.activated")); err != nil {
		return err
	}
	if cur == nil {
		return fmt.Errorf("activate %s: nothing is active now", name)
	}
	t.out.To, t.out.Changed, t.out.Prefix = cur.Name, true, cur.Dir
	t.out.Message = "installed " + cur.Name
	if t.out.From != "" {
		t.out.Message += " over " + t.out.From
	}
	if !made {
		t.out.Message = "activated " + cur.Name + ", which was here already"
		if t.out.pin, err = t.r.pinOf(cur); err != nil {
			return err
		}
	}
	if check {
		if err := t.after(ctx, name, rec); err != nil {
			return err
		}
	}
	t.expiring(cur)
	if err := t.slot.ForgiveVersion(ctx, cur.Version); err != nil {
		t.r.o.Log.Warn("what was held against it could not be forgotten", "error", err)
	}
	return nil
}

// recordOf is the record of the run that made a generation, to which the checks
// of this run are added. Where there is none, one is begun.
func (t *task) recordOf(g *store.Generation) *Record {
	rec := &Record{}
	if err := t.slot.ReadRun(g.Version, rec); err != nil || rec.Generation != "" && rec.Generation != g.Name {
		now := t.r.o.Now()
		rec = &Record{Schema: Schema, Install: t.slot.Name(), Version: g.Version, Generation: g.Name, Started: now, From: t.out.From}
		if t.rel.Version.String() == g.Version {
			rec.URL = t.rel.URL
		}
	}
	rec.Generation = g.Name // its run may have been killed before it said so
	return rec
}

// maxCheckups is how many checks a record keeps, the newest.
const maxCheckups = 8

func (t *task) writeRecord(rec *Record, err error) {
	rec.Finished, rec.Exit, rec.Error = t.r.o.Now(), ExitOK, ""
	if err != nil {
		rec.Exit, rec.Error = exitOf(err), err.Error()
	}
	rec.Health = rec.Health[max(0, len(rec.Health)-maxCheckups):]
	if err := t.slot.WriteRun(rec.Version, rec); err != nil {
		t.r.o.Log.Warn("the run record could not be written", "error", err)
	}
}
