package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// task is one install on its way.
type task struct {
	r      *run
	in     Install
	out    *Outcome
	slot   *store.Slot
	client *fetch.Client
	rel    release.Release
	from   *store.Generation // nil if none
}

// install brings one install up to date.
func (r *run) install(ctx context.Context, in Install) *Outcome {
	name, _ := gfx.Canonical(in.Target)
	out := &Outcome{Install: in.Channel + "-" + name, Bump: []*Bumped{}, channel: in.Channel, target: name}
	t := &task{r: r, in: in, out: out}
	err := t.run(ctx)
	if err != nil {
		if t.slot == nil { // the index did not answer; what is active is known all the same
			t.slot = r.o.Store.Slot(in.Channel, name)
			err = errors.Join(err, t.current())
		}
		out.Err, out.Error = err, err.Error()
		out.Exit = gravest(out.Exit, exitOf(err))
		if out.Message == "" {
			out.Message = "failed"
		}
	}
	return out
}

// exitOf maps an error to its exit code.
func exitOf(err error) int {
	var mismatch *release.MismatchError
	switch {
	case errors.Is(err, errNewBytesBefore):
		return ExitNewBytes
	case errorsAs[*repack.RefusedError](err), errors.Is(err, errRefusedBefore):
		return ExitRefused
	case errors.As(err, &mismatch) && mismatch.Want.Source == ledgerSource:
		return ExitNewBytes
	}
	return ExitFailed
}

// run takes the steps from the index to the switch.
func (t *task) run(ctx context.Context) error {
	if err := t.find(ctx); err != nil {
		return err
	}
	gen, why, err := t.decide()
	if err != nil {
		return err
	}
	if t.from != nil && t.from.Version == t.rel.Version.String() && !t.r.o.AcceptNewBytes {
		if done, err := t.replaced(ctx); err != nil || done {
			return err
		}
	}
	switch {
	case why != "":
		t.out.To, t.out.Message = t.out.From, why
		return t.stay()
	case t.r.o.DryRun:
		t.plan(gen)
		return nil
	case gen != nil:
		if err := t.activate(ctx, gen.Name, nil); err != nil {
			return err
		}
		return t.link()
	}
	return t.make(ctx)
}

// find resolves the target, picks the release and opens the slot.
func (t *task) find(ctx context.Context) error {
	l := t.r.list(ctx, t.in.Channel)
	if l.err != nil {
		return l.err
	}
	t.client = l.client
	res, err := t.resolve(l.l)
	if err != nil {
		return err
	}
	t.out.Install, t.out.target = t.in.Channel+"-"+res.Target, res.Target
	if t.r.slots[t.out.Install] {
		return &UsageError{fmt.Errorf("%q and another install are both %s: remove one of them from the config", t.in.Target, t.out.Install)}
	}
	t.r.slots[t.out.Install] = true
	t.in.Repack.Target = res.Target
	t.slot = t.r.o.Store.Slot(t.in.Channel, res.Target)
	if err := t.current(); err != nil {
		return err
	}
	t.stale(l.l, res.Family)
	return t.choose(l.l, res.Family)
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
func (t *task) choose(l *fetch.Listing, family string) error {
	p := t.r.o.Policy
	o := fetch.Policy{
		Prefer: p.Prefer, Series: p.Series, Version: t.r.o.Version, MinAge: p.MinAge, Settle: p.Settle,
		Deny: slices.Clone(p.Deny), Now: t.r.o.Now(),
	}
	if t.r.o.Version != "" {
		o.MinAge, o.Settle = 0, 0 // who names a version does not want to wait for it
	}
	var refused error
	for {
		rel, err := fetch.Select(l, family, o)
		if err != nil && refused != nil {
			return refused
		}
		if err != nil {
			return err
		}
		t.rel, t.out.Release, t.out.rel = rel, rel.URL, &rel
		if t.r.o.Version != "" || t.r.o.AcceptNewBytes || t.from != nil && t.from.Version == rel.Version.String() {
			return nil
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
		o.Deny = append(o.Deny, rel.Name)
	}
}

// resolve finds the family that serves the target.
func (t *task) resolve(l *fetch.Listing) (gfx.Resolution, error) {
	published := l.Families()
	res, err := gfx.Resolve(t.in.Target, published)
	if err == nil {
		return res, nil
	}
	name, ok := gfx.Canonical(t.in.Target)
	if ok && t.r.o.Policy.Multiarch == "fallback" && slices.Contains(published, gfx.Multiarch) {
		return gfx.Resolution{Target: name, Family: gfx.Multiarch}, nil
	}
	return res, err
}

// stale raises exit 3 when nothing new has been published for too long: an
// index that has moved goes on answering with the list of its last day.
func (t *task) stale(l *fetch.Listing, family string) {
	after := t.r.o.Policy.StaleAfter
	every := t.in.Channel == "nightly" || t.in.Channel == "dev" // the others publish when they are ready
	if after <= 0 || !every || t.r.o.Version != "" {
		return
	}
	age, is := fetch.Stale(l, family, after, t.r.o.Now())
	if !is {
		return
	}
	t.out.Exit = ExitStale
	t.r.o.Log.Warn("the index is stale: nothing new for too long; AMD may have moved it", "family", family, "age", age, "limit", after)
}

// stay keeps the link right and offers the active release to the bumps.
func (t *task) stay() error {
	if t.from == nil || t.r.o.NoInstall {
		return nil
	}
	t.out.Prefix = t.from.Dir
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
	return t.link()
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
	case errorsAs[*repack.RefusedError](err):
		return false // the bytes are right; somebody may want to look
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
