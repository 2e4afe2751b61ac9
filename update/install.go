package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// task is one install on its way.
type task struct {
	r     *run
	in    Install
	out   *Outcome
	slot  *store.Slot
	rel   release.Release
	asked release.Release   // as it was chosen: rel may come from another index
	by    *word             // the lock that chose rel, or nil
	l     *fetch.Listing    // nil if no index was asked
	from  *store.Generation // nil if none

	est    *estimate // what the tarball will become, once it was asked
	warned bool      // that there may not be enough room
	told   bool      // what it takes of the disk

	sums   *store.PartSums // of the download, if it is to be kept
	anew   bool            // the generation was made by this run
	stages stages
	early  early // what is newer, and has to wait
	began  time.Time
}

// install brings one install up to date.
func (r *run) install(ctx context.Context, in Install) *Outcome {
	name, _ := r.o.GFX.Canonical(in.Target)
	out := &Outcome{Install: in.Channel + "-" + name, Bump: []*Bumped{}, channel: in.Channel, target: name}
	t := &task{r: r, in: in, out: out, began: r.o.Now()}
	r.at.Store(&out.Install)
	defer r.at.Store(nil)
	err := t.run(ctx)
	t.noteAttempt(ctx, err)
	defer t.noteHold()
	if cutShort(ctx, err) {
		if !errors.Is(err, context.Canceled) { // a program that was ended says so in its own words
			err = fmt.Errorf("%w: %w", context.Canceled, err)
		}
	} else {
		defer t.noteLook(err)
	}
	if err != nil {
		out.Err, out.Error = err, err.Error()
		out.Exit = gravest(out.Exit, exitOf(err))
		if !out.Changed {
			out.pin = nil // what could not be kept here is not proposed to others
		}
		if out.Message == "" {
			out.Message = "failed"
		}
	}
	return out
}

// ExitOf maps an error of this package, or of one of the rooms that it joins, to
// its exit code.
func ExitOf(err error) int { return exitOf(err) }

// exitOf maps an error to its exit code.
func exitOf(err error) int {
	var mismatch *release.MismatchError
	switch {
	case errors.Is(err, errNewBytesBefore):
		return ExitNewBytes
	case errorsAs[*repack.RefusedError](err), errorsAs[*SmokeError](err), errorsAs[*HealthError](err), heldBefore(err):
		return ExitRefused
	case errors.As(err, &mismatch) && knownBytes(mismatch.Want):
		return ExitNewBytes
	case errorsAs[*UsageError](err):
		return ExitUsage
	}
	return ExitFailed
}

// run takes the steps from the index to the switch.
func (t *task) run(ctx context.Context) error {
	err := t.find(ctx)
	if t.slot == nil { // the index did not answer; what is active is known all the same
		t.slot = t.r.o.Store.Slot(t.in.Channel, t.out.target)
		err = errors.Join(err, t.current())
	}
	t.takeInterrupted(ctx)
	if serr := t.settle(ctx); serr != nil || err != nil {
		return errors.Join(serr, err)
	}
	gen, why, err := t.decide()
	if err != nil {
		return err
	}
	if why != "" || t.from != nil && t.from.Version == t.rel.Version.String() {
		if done, err := t.recheck(ctx); err != nil || done {
			return err
		}
	}
	switch {
	case why != "":
		t.out.To, t.out.Message = t.out.From, why
		if t.out.pin != nil { // of a run that installs nothing
			return t.withhold(ctx)
		}
		if t.from != nil && t.from.Version == t.rel.Version.String() {
			t.leftover(ctx)
		}
		return t.stay(ctx)
	case t.r.o.DryRun:
		return t.plan(ctx, gen)
	case gen != nil:
		t.leftover(ctx)
		if err := t.activate(ctx, gen.Name, nil); err != nil {
			return err
		}
		if t.out.Waits != nil { // perhaps for months
			if _, err := t.recheck(ctx); err != nil {
				return err
			}
		}
		return t.link(ctx)
	}
	return t.make(ctx)
}

// find resolves the target, opens the slot and picks the release.
func (t *task) find(ctx context.Context) error {
	f, err := t.r.find(ctx, t.in)
	if err != nil {
		return err
	}
	t.out.Install, t.out.target = t.in.Channel+"-"+f.res.Target, f.res.Target
	if t.r.slots[t.out.Install] {
		return &UsageError{fmt.Errorf("%q and another install are both %s: remove one of them from the config", t.in.Target, t.out.Install)}
	}
	t.r.slots[t.out.Install] = true
	t.r.keeps[t.out.Install] = t.in.KeepTarballs
	t.in.Repack.Target = f.res.Target
	t.in.Repack.Env = t.r.o.env(t.in, f.res)
	t.slot = t.r.o.Store.Slot(t.in.Channel, f.res.Target)
	if err := t.current(); err != nil {
		return err
	}
	if err := t.in.Repack.Check(t.slot.CurrentPath()); err != nil {
		return &UsageError{err}
	}
	t.l, t.by = f.l, f.by
	if t.by != nil {
		t.out.Locked = redacted(t.by.place.URL)
		t.take(f.rel)
		if t.from != nil && t.from.Version == f.rel.Version.String() {
			return nil // whether another recipe of it failed, decide asks
		}
		return t.refusedBefore()
	}
	t.stale(f.res.Family)
	t.lookAhead(f.res.Family)
	return t.choose(f.res.Family)
}

// take makes rel the release that this install is to have.
func (t *task) take(rel release.Release) {
	if t.asked.Name != rel.Name {
		t.asked = rel
	}
	t.rel, t.out.Release, t.out.rel = rel, rel.URL, &rel
}

// current reads what is active. What somebody has broken by hand is as good as
// nothing: the next activation mends it.
func (t *task) current() (err error) {
	t.from, err = t.slot.Current()
	if errors.Is(err, store.ErrBroken) {
		t.r.o.Log.Warn("nothing usable is active", "install", t.out.Install, "error", err)
		t.from, err = nil, nil
	}
	if t.from != nil {
		t.out.From, t.out.To = t.from.Name, t.from.Name
	}
	return err
}

// choose picks the newest admissible release. A night that was refused before
// is not admissible; it is named only when nothing else is left to take.
func (t *task) choose(family string) error {
	o := t.r.policy()
	var refused error
	for {
		rel, err := fetch.Select(t.l, family, o)
		if err != nil && refused != nil {
			return refused
		}
		if err != nil {
			return err
		}
		t.take(rel)
		if t.from != nil && t.from.Version == rel.Version.String() {
			return nil // whether another recipe of it failed, decide asks
		}
		err = t.refusedBefore()
		if err == nil {
			return nil
		}
		if exitOf(err) == ExitFailed {
			return err
		}
		if refused == nil {
			refused = err
		}
		t.r.o.Log.Warn("passed over", "release", rel.Name, "reason", err)
		t.out.PassedOver = append(t.out.PassedOver, PassedOver{rel.Version.String(), err.Error()})
		o.Deny = append(o.Deny, rel.Name)
	}
}

// stale raises exit 3 when nothing new has been published for too long: an
// index that has moved goes on answering with the list of its last day.
func (t *task) stale(family string) {
	after := t.r.o.Channels[t.in.Channel].StaleAfter
	s, f := t.r.stale(t.l, t.in.Channel, family)
	t.out.Moves = s == nil && t.r.o.Version == "" // of a version that was named nobody asks how old it is
	switch {
	case s != nil:
		t.out.Exit, t.out.Stale = ExitStale, s
		t.r.o.Event(Event{Install: t.out.Install, Stage: "stale", Message: "the index is stale: " + f.Detail})
		t.r.o.Log.Warn("the index is stale", "family", family, "age", f.Age.Round(time.Minute), "limit", after, "cause", f.Cause, "detail", f.Detail)
	case f.Cause != "":
		t.r.o.Log.Warn("an index of this channel is out of date", "cause", f.Cause, "detail", f.Detail)
	}
}

// stale tells for how long nothing was published; nil if that is not too long,
// or if a version was named, which may be as old as it likes.
func (r *run) stale(l *fetch.Listing, channel, family string) (*Stale, fetch.Freshness) {
	if r.o.Version != "" {
		return nil, fetch.Freshness{}
	}
	f := l.Freshness(family, r.o.Channels[channel].StaleAfter, r.o.Now())
	if !f.Stale {
		return nil, f
	}
	return &Stale{Age: f.Age.Round(time.Second).String(), Cause: f.Cause, Detail: f.Detail}, f
}

// stay keeps the link right and offers the active release to the bumps.
func (t *task) stay(ctx context.Context) error {
	if t.from == nil || t.r.o.NoInstall {
		return nil
	}
	t.out.Prefix = t.from.Dir
	t.expiring(t.from)
	if t.from.Version == t.rel.Version.String() {
		var err error
		if t.out.pin, err = t.r.pinOf(t.from); err != nil {
			return err
		}
	}
	if t.r.o.DryRun {
		if l, err := t.r.o.Store.LinkStatus(t.in.Link); t.in.Link != "" && (err != nil || l.State == store.LinkAbsent) {
			t.out.Message += t.planLink()
		}
		return nil
	}
	t.prune(ctx) // a run that died after the switch has not
	return t.link(ctx)
}

// damage reports whether an error is about the bytes of the tarball rather
// than the way they came or where they went: then the spool is of no use.
func damage(err error, source *sourceReader) bool {
	switch {
	case source.err != nil && source.err != io.EOF && !errorsAs[*release.MismatchError](source.err):
		return false // the download's own error: it knows what to keep
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errorsAs[syscall.Errno](err):
		return false // the disk: full, read-only, failing
	case errorsAs[*repack.RefusedError](err), errorsAs[*repack.OmitError](err):
		return false // the bytes are right; somebody may want to look, or to change the config
	}
	return true
}

// sourceReader remembers how its source ended.
type sourceReader struct {
	io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil {
		s.err = err
	}
	return n, err
}
