package update

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// Found is the release that a run would take, and what is known of its bytes.
type Found struct {
	Target  string
	Release release.Release
	Client  *fetch.Client
	Expect  []release.Expectation // digests that the bytes must have, the side files' excluded
	Stale   *Stale                // the index has not moved for too long; nil if it has
	Kept    *store.Tarball        // the tarball, where it is kept here; nil if it is not
}

// Find finds the release that a run would take for an install, and does
// nothing else. Options.Store may be nil; then only Options.Ledger is asked.
func Find(ctx context.Context, o Options, in Install) (*Found, error) {
	o = o.withDefaults()
	o.Installs = []Install{in}
	installs, err := o.expand()
	if err != nil {
		return nil, err
	}
	if len(installs) > 1 {
		return nil, &UsageError{fmt.Errorf("this machine has GPUs of %d targets: name one of %s and %s", len(installs), installs[0].Target, installs[1].Target)}
	}
	r := newRun(o)
	f, err := r.find(ctx, installs[0])
	if err != nil {
		return nil, err
	}
	var stale *Stale
	if f.l != nil {
		stale, _ = r.stale(f.l, installs[0].Channel, f.res.Family)
		if f.rel, err = fetch.Select(f.l, f.res.Family, r.policy()); err != nil {
			return nil, err
		}
	}
	expect, err := r.expect(ctx, f.rel)
	if err != nil {
		return nil, err
	}
	c, err := r.client()
	return &Found{Target: f.res.Target, Release: f.rel, Client: c, Expect: expect, Stale: stale, Kept: r.keptHere(f.rel, expect)}, err
}

// ledger is where pins are remembered; nil where nothing is.
func (o *Options) ledger() *store.Ledger {
	if o.Ledger == nil && o.Store != nil {
		return o.Store.Ledger()
	}
	return o.Ledger
}

// pins returns what the ledger says of a name in a channel, the oldest first.
// AMD's sanitizer builds have the names of the plain ones.
func (r *run) pins(channel, name string) ([]store.LedgerEntry, error) {
	l := r.o.ledger()
	if l == nil {
		return nil, nil
	}
	all, err := l.Find(name)
	return slices.DeleteFunc(all, func(e store.LedgerEntry) bool { return e.Channel != channel }), err
}

// expect lists the digests that a tarball is known by from before.
func (r *run) expect(ctx context.Context, rel release.Release) ([]release.Expectation, error) {
	var expect []release.Expectation
	pins, err := r.pins(rel.Channel, rel.Name)
	if err != nil {
		return nil, err
	}
	if n := len(pins); n > 0 && !r.o.AcceptNewBytes {
		expect = append(expect, release.Expectation{Digest: pins[n-1].Digest, Source: ledgerKind})
	}
	lock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	if lock != nil {
		if d, ok := lock.by[key(rel.Channel, rel.Name)]; ok {
			expect = append(expect, release.Expectation{Digest: d, Source: lockKind + " " + redacted(lock.place.URL), Kind: lockKind})
		}
	}
	for _, w := range r.words(ctx) {
		if d, ok := w.by[key(rel.Channel, rel.Name)]; ok && !r.o.AcceptNewBytes {
			expect = append(expect, w.expects(d))
		}
	}
	return expect, disagree(rel.Name, expect)
}

// disagree is an error when those who know a name know it by different bytes:
// whatever is downloaded, one of them would be contradicted.
func disagree(name string, expect []release.Expectation) error {
	for _, e := range expect[min(1, len(expect)):] {
		if e.Digest != expect[0].Digest {
			return fmt.Errorf("%s is known by two digests: %w", name,
				&release.MismatchError{Got: expect[0].Digest, Want: e})
		}
	}
	return nil
}

// beside asks for the digest files beside a tarball. AMD publishes none yet.
func (r *run) beside(ctx context.Context, rel release.Release) ([]release.Expectation, error) {
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	expect, notes, err := c.SideDigests(ctx, rel)
	for _, n := range notes {
		r.o.Log.Warn("a digest file is of no use", "release", rel.Name, "because", n)
	}
	return expect, err
}

// download begins to download rel, if allow lets it. Where the lock names an address from which
// AMD has deleted it, a mirror among the indexes may have it still.
func (r *run) download(ctx context.Context, rel release.Release, allow func(fetch.Ahead) error) (*fetch.Download, release.Release, error) {
	c, err := r.client()
	if err != nil {
		return nil, rel, err
	}
	spool := r.o.Store.SpoolDir(rel.Channel, rel.Name)
	dl, err := c.DownloadIf(ctx, rel, spool, allow)
	if other, ok := r.elsewhere(ctx, rel, err); ok {
		rel = other
		dl, err = c.DownloadIf(ctx, rel, spool, allow)
	}
	return dl, rel, err
}

// elsewhere finds the same name at another address than the lock's.
func (r *run) elsewhere(ctx context.Context, rel release.Release, err error) (release.Release, bool) {
	var status *fetch.StatusError
	if r.locked == nil || !errors.As(err, &status) || !status.Gone() {
		return rel, false
	}
	l, lerr := r.list(ctx, rel.Channel)
	if lerr != nil {
		r.o.Log.Warn("it is gone from where the lock says, and the indexes could not be read", "release", rel.Name, "error", lerr)
		return rel, false
	}
	for _, other := range l.Releases {
		if other.Name == rel.Name && other.URL != rel.URL {
			r.o.Log.Info("it is gone from where the lock says; taking it from another index", "release", rel.Name, "url", other.URL)
			return other, true
		}
	}
	return rel, false
}
