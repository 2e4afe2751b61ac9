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
