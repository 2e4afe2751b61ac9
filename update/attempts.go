package update

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/store"
)

// Attempt is how an earlier attempt on the same version ended: of a night that is
// tried again and again, the record says each time why.
type Attempt struct {
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished"`
	Exit       int       `json:"exit"`
	Error      string    `json:"error,omitempty"`
	Generation string    `json:"generation,omitempty"`
}

// maxAttempts is how many earlier attempts a record keeps.
const maxAttempts = 10

// NoRelease is the name of the record of attempts that failed before it was known
// which version they are about: the index did not answer, or nothing that it lists
// is admissible. It has no version.
const NoRelease = "no-release"

// cutShort reports whether a run was told to end before it was done. That is no
// failure, and nothing is known by it: the next run goes on.
func cutShort(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && exitOf(err) == ExitFailed
}

// attemptsBefore returns what the record called name knows of earlier attempts: its
// own, and those that it has from records before it.
func (t *task) attemptsBefore(name string) []Attempt {
	var was struct {
		Attempt
		Attempts []Attempt `json:"attempts"`
	}
	err := t.slot.ReadRunPart(name, &was, "audit", "smoke", "reused", "repack")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		t.r.o.Log.Warn("what earlier attempts came to is lost", "record", name, "error", err)
		return nil
	}
	all := was.Attempts
	if !was.Finished.IsZero() {
		was.Error = cut(was.Error)
		all = append(all, was.Attempt)
	}
	return slices.Clone(all[max(0, len(all)-maxAttempts):])
}

// noteAttempt writes down an attempt that failed before its version was known,
// where the slot is there already: looks.json has it in any case.
func (t *task) noteAttempt(ctx context.Context, err error) {
	if err == nil || t.rel.Name != "" || t.slot == nil || t.r.o.DryRun || ctx.Err() != nil || errorsAs[*UsageError](err) {
		return
	}
	if _, serr := os.Stat(t.slot.Dir()); serr != nil {
		return
	}
	rec := &Record{
		Schema: Schema, Install: t.slot.Name(), Started: t.began, Finished: t.r.o.Now(), From: t.out.From, Exit: exitOf(err), Error: err.Error(),
		Tool: t.r.o.Tool, Host: hostname(), Attempts: t.attemptsBefore(NoRelease),
	}
	if werr := t.slot.WriteRun(NoRelease, rec); werr != nil && !errors.Is(werr, store.ErrNewer) {
		t.r.o.Log.Warn("the run record could not be written", "error", werr)
	}
}

// interrupted is the error of a run that left nothing but its begin.
const interrupted = "it was interrupted: the program was killed, or the machine stopped"

// begin writes down that a run begins: of one that is killed nothing else would say
// that there was one.
func (t *task) begin(rec *Record) {
	if err := t.slot.WriteBegun(rec); err != nil && !errors.Is(err, store.ErrNewer) {
		t.r.o.Log.Warn("that a run begins could not be written down", "error", err)
	}
}

// end forgets what begin has written, once there is more to read.
func (t *task) end(ctx context.Context) {
	if err := t.slot.DropBegun(context.WithoutCancel(ctx)); err != nil {
		t.r.o.Log.Warn("that a run has begun could not be forgotten", "error", err)
	}
}

// Interrupted is the record of a run of a slot that was killed, nil if none was, or
// if it has been taken into the records. Finished is when it began: nobody knows
// more. No lock is taken; a run that is under way is none.
func Interrupted(st *store.Store, sl *store.Slot) (*Record, error) {
	rec, err := leftBegun(sl)
	if by, ok := st.Runner(); rec != nil && ok && !rec.Started.Before(by.Since) {
		return nil, err
	}
	return rec, err
}

// leftBegun is Interrupted where nothing is under way.
func leftBegun(sl *store.Slot) (*Record, error) {
	rec := &Record{}
	err := sl.ReadBegun(rec)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rec.Finished, rec.Exit, rec.Error = rec.Started, ExitFailed, interrupted
	if was := (Record{}); sl.ReadRunPart(rec.Version, &was, "audit", "smoke", "reused", "repack") == nil && was.knows(rec.Started) {
		return nil, nil // it was killed between its record and the end
	}
	return rec, nil
}

// knows reports whether an attempt that began then is in the record.
func (rec *Record) knows(began time.Time) bool {
	return rec.Started.Equal(began) || slices.ContainsFunc(rec.Attempts, func(a Attempt) bool { return a.Started.Equal(began) })
}

// takeInterrupted puts a run that was killed among the attempts on its version. What
// an earlier run has found out of that version stays.
func (t *task) takeInterrupted(ctx context.Context) {
	if t.r.o.DryRun {
		return
	}
	killed, err := leftBegun(t.slot)
	switch {
	case errors.Is(err, store.ErrNewer):
		return
	case err != nil:
		t.r.o.Log.Warn("what the last run was about is not known", "error", err)
	case killed != nil:
		t.r.o.Log.Info("the last run was interrupted", "install", t.slot.Name(), "release", killed.Version, "began", killed.Started)
		t.writeInterrupted(killed)
	}
	t.end(ctx)
}

func (t *task) writeInterrupted(killed *Record) {
	rec := &Record{}
	if err := t.slot.ReadRun(killed.Version, rec); err != nil {
		rec = killed
	} else {
		rec.Attempts = append(rec.Attempts, Attempt{Started: killed.Started, Finished: killed.Finished, Exit: killed.Exit, Error: killed.Error})
		rec.Attempts = rec.Attempts[max(0, len(rec.Attempts)-maxAttempts):]
	}
	if err := t.slot.WriteRun(killed.Version, rec); err != nil && !errors.Is(err, store.ErrNewer) {
		t.r.o.Log.Warn("the run record could not be written", "error", err)
	}
}
