package update

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// recheckEvery is how often the server is asked again for the headers of what
// is installed.
const recheckEvery = 24 * time.Hour

// recheck looks whether what is installed is still what AMD publishes under its
// name. The index tells when a tarball was uploaded again, and once a day the
// server is asked for its size, ETag and time. What differs is suspected; only a
// download tells whether the bytes are others, and then it is exit 5. A dry run
// is done with saying so.
func (t *task) recheck(ctx context.Context) (done bool, err error) {
	gens, err := t.slot.Generations()
	if err != nil || t.r.o.AcceptNewBytes {
		return false, err
	}
	last, err := t.slot.LastCheck()
	if err != nil {
		t.r.o.Log.Warn("when the server was asked last is not known", "install", t.out.Install, "error", err)
	}
	// A clock that was set back does not put the check off.
	due := !t.r.o.NoInstall && (t.r.o.Now().Sub(last.At) >= recheckEvery || t.r.o.Now().Before(last.At))
	asked := map[string]bool{}
	for _, g := range gens {
		s := t.suspect(&g)
		if s == nil || asked[s.rel.Name] || !due && !s.uploaded {
			continue
		}
		asked[s.rel.Name] = true
		check := store.Check{At: t.r.o.Now().UTC(), Name: s.rel.Name}
		done, err = t.question(ctx, s, &check)
		if s.active && !t.r.o.DryRun {
			err = errors.Join(err, t.slot.RecordCheck(ctx, check))
		}
		if err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// suspect is an installed release, as it is published now and as it was known.
type suspect struct {
	rel      release.Release
	known    []store.LedgerEntry // of the installed bytes, the oldest first
	uploaded bool                // the index has another time for it
	active   bool
}

// suspect finds out where the release of a generation is published. It is nil
// where nothing is known to compare with.
func (t *task) suspect(g *store.Generation) *suspect {
	m, err := g.Manifest()
	if err != nil {
		return nil
	}
	pins, err := t.r.pins(t.in.Channel, m.Name)
	if err != nil {
		return nil
	}
	if len(pins) == 0 || string(pins[len(pins)-1].Digest) != m.Digest {
		return nil // other bytes have been accepted since
	}
	s := &suspect{active: g.Active}
	for _, p := range pins {
		if string(p.Digest) == m.Digest {
			s.known = append(s.known, p)
		}
	}
	last := s.known[len(s.known)-1]
	pin, err := last.Pin()
	if err != nil {
		return nil
	}
	s.rel = pin.Release
	if t.l == nil {
		return s
	}
	for _, r := range t.l.Releases {
		if r.Name == last.Name {
			s.rel, s.uploaded = r, !last.MTime.Equal(r.MTime)
		}
	}
	return s
}

// same reports whether a server's headers are those of bytes that are known.
func (s *suspect) same(obj fetch.Object) bool {
	for _, k := range s.known {
		if obj.Size == k.Size && obj.ETag == k.ETag && (k.LastModified.IsZero() || obj.LastModified.Equal(k.LastModified)) {
			return true
		}
	}
	return false
}

// question asks the server about s.
func (t *task) question(ctx context.Context, s *suspect, check *store.Check) (done bool, err error) {
	c, err := t.r.client()
	if err != nil {
		return false, err
	}
	obj, err := c.Stat(ctx, s.rel)
	check.ETag, check.Size = obj.ETag, obj.Size
	var status *fetch.StatusError
	switch {
	case errors.As(err, &status) && status.Gone():
		check.Gone = true
		t.r.o.Log.Info("the server no longer has an installed release", "release", s.rel.Name, "url", s.rel.URL)
		return false, nil
	case err != nil:
		t.r.o.Log.Warn("the server does not say what it has of an installed release", "release", s.rel.Name, "error", err)
		return false, nil
	case s.same(obj):
		return false, nil
	}
	if refused, rerr := t.slot.Refused(suspectKey(s.rel, obj)); rerr != nil || refused != nil {
		if !s.active {
			return false, rerr // it was told when it was found
		}
		return false, errors.Join(rerr, knownBad(s.rel, refused))
	}
	what := "it has another " + s.differs(obj)
	check.Suspected = what
	t.r.o.Event(Event{Install: t.out.Install, Stage: "suspected", Message: s.rel.Name + ": " + what})
	if t.r.o.DryRun {
		t.out.To, t.out.Message = t.out.From, fmt.Sprintf("%s was uploaded again (%s): would download %s to see whether its bytes are others", s.rel.Version, what, s.rel.URL)
		return s.active, nil
	}
	t.r.o.Log.Warn("an installed release is suspected to have new bytes; downloading it to see", "release", s.rel.Name, "because", what)
	return false, t.confirm(ctx, s, obj)
}

// differs names what of the headers is not as it was.
func (s *suspect) differs(obj fetch.Object) string {
	k := s.known[len(s.known)-1]
	switch {
	case obj.Size != k.Size:
		return fmt.Sprintf("size: %d bytes, not %d", obj.Size, k.Size)
	case obj.ETag != k.ETag:
		return fmt.Sprintf("ETag: %s, not %s", obj.ETag, k.ETag)
	}
	return fmt.Sprintf("time: %s, not %s", obj.LastModified.Format(time.RFC3339), k.LastModified.Format(time.RFC3339))
}

// suspectKey names what was found wrong, so that it is not downloaded again
// every day: the same object need not be judged twice.
func suspectKey(rel release.Release, obj fetch.Object) string {
	return fmt.Sprintf("%s%s %d %s %d", newBytesKey, rel.Name, obj.Size, obj.ETag, obj.LastModified.Unix())
}

// knownBad is the error about bytes that were found to be others before.
func knownBad(rel release.Release, refused *store.Refusal) error {
	if refused == nil {
		return nil
	}
	return fmt.Errorf("%s: %w (seen %s: %s); if AMD says that it was replaced: rocm-nightly update --accept-new-bytes",
		rel.Name, errNewBytesBefore, refused.At.Format("2006-01-02"), refused.Reason)
}

// confirm downloads a known release and compares its digest with the ledger's.
func (t *task) confirm(ctx context.Context, s *suspect, obj fetch.Object) (err error) {
	dl, rel, err := t.r.download(ctx, s.rel, t.allowSpool(ctx, t.r.o.Store.SpoolDir(s.rel.Channel, s.rel.Name)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dl.Close()) }()
	v := release.NewVerifiedReader(dl, release.Expectation{Digest: s.known[0].Digest, Source: ledgerKind})
	_, err = io.Copy(io.Discard, v)
	if errorsAs[*release.MismatchError](err) {
		return errors.Join(t.newBytes(ctx, s.rel, err, dl), t.slot.Refuse(ctx, suspectKey(s.rel, obj), err.Error()))
	}
	if err != nil {
		return fmt.Errorf("compare %s with what is installed: %w", s.rel.Name, err)
	}
	t.r.o.Log.Info("the bytes are the same", "release", s.rel.Name)
	pin := release.Pin{Release: rel, Digest: v.Digest(), Size: v.Size(), ETag: dl.ETag()}
	t.r.spools = append(t.r.spools, t.r.o.Store.SpoolDir(rel.Channel, rel.Name))
	return t.r.o.ledger().Append(store.NewLedgerEntry(pin, dl.LastModified()))
}

// discarder is a download whose bytes can be thrown away.
type discarder interface{ Discard() error }

// newBytes remembers that a name has new bytes, so that they are not fetched
// every night, and says what to do.
func (t *task) newBytes(ctx context.Context, rel release.Release, mismatch error, dl discarder) error {
	err := errors.Join(mismatch, t.slot.Refuse(ctx, newBytesKey+t.refusalKey(rel), mismatch.Error()), dl.Discard())
	t.r.o.Event(Event{Install: t.out.Install, Stage: "new bytes", Message: rel.Name + " has new bytes under a known name"})
	return fmt.Errorf("%s has new bytes under a known name: %w; if AMD says that it was replaced: rocm-nightly update --accept-new-bytes", rel.Name, err)
}

// expiringSoon is how long before its end the end of a release is announced.
const expiringSoon = 14 * 24 * time.Hour

// expiring says that AMD is about to delete what is, or has become, active here:
// after that nobody can install it again.
func (t *task) expiring(g *store.Generation) {
	m, err := g.Manifest()
	if err != nil {
		return
	}
	v, err := release.ParseVersion(g.Version)
	if err != nil {
		return
	}
	var published time.Time
	if pins, err := t.r.pins(t.in.Channel, m.Name); err == nil && len(pins) > 0 {
		published = pins[len(pins)-1].MTime
	}
	end, ok := Expiry(v, published, t.r.o.Channels[t.in.Channel].Retention)
	if !ok || end.Sub(t.r.o.Now()) > expiringSoon {
		return
	}
	t.out.Expires = end.Format(time.DateOnly)
	t.r.o.Log.Warn("AMD deletes what is active here about then: keep a copy (rocm-nightly fetch), or move on",
		"install", t.out.Install, "release", g.Version, "day", t.out.Expires)
}

// Expiry returns the day on which AMD deletes a release that it keeps for
// retention after it was published, or after the day that its version names.
func Expiry(v release.Version, published time.Time, retention time.Duration) (time.Time, bool) {
	if published.IsZero() {
		published, _ = v.Date()
	}
	if retention <= 0 || published.IsZero() {
		return time.Time{}, false
	}
	return published.Add(retention).UTC(), true
}
