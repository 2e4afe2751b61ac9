package update

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// client returns the one client of a run: all downloads share its limits.
func (r *run) client() (*fetch.Client, error) {
	if r.fetcher != nil {
		return r.fetcher, nil
	}
	c, err := r.o.Client(func(e fetch.Event) {
		switch e.Kind {
		case fetch.EventRetry, fetch.EventNote:
			log := r.o.Log
			if e.Release != "" {
				log = log.With("release", e.Release)
			}
			log.Warn(e.Message)
		default:
			now := Event{Stage: "download", Done: e.Done, Total: e.Total}
			if at := r.at.Load(); at != nil {
				now.Install = *at
			}
			r.o.Event(now)
		}
	})
	r.fetcher = c
	return c, err
}

// hangUp closes the connections of the run: the process may live on, and the next
// run has a client of its own.
func (r *run) hangUp() {
	if r.fetcher != nil {
		r.fetcher.CloseIdle()
	}
}

// listed is what the indexes of a channel said, once for all installs of it.
type listed struct {
	l   *fetch.Listing
	err error
	at  time.Time // UTC
}

// list reads the indexes of a channel, once.
func (r *run) list(ctx context.Context, channel string) (*fetch.Listing, error) {
	if l := r.listings[channel]; l != nil {
		return l.l, l.err
	}
	l := &listed{at: r.o.Now().UTC()}
	r.listings[channel] = l
	l.l, l.err = r.ask(ctx, channel)
	return l.l, l.err
}

func (r *run) ask(ctx context.Context, channel string) (*fetch.Listing, error) {
	ch, ok := r.o.Channels[channel]
	if !ok {
		return nil, &UsageError{fmt.Errorf("no index is known for channel %q", channel)}
	}
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	r.o.Event(Event{Stage: "list", Message: "reading the " + channel + " index"})
	l, err := c.List(ctx, channel, ch.Indexes)
	if err != nil {
		return nil, err
	}
	for _, s := range l.Sources {
		switch {
		case s.Err != nil:
			r.o.Log.Warn("an index could not be read", "url", s.URL, "error", s.Err)
			r.unread = append(r.unread, IndexError{channel, s.URL, s.Err.Error()})
		case s.Releases == 0 && len(l.Sources) > 1:
			r.o.Log.Warn("an index lists nothing", "url", s.URL)
			r.unread = append(r.unread, IndexError{channel, s.URL, "it lists nothing"})
		}
	}
	return l, nil
}

// found is a target, and the release that was chosen for it.
type found struct {
	res gfx.Resolution
	rel release.Release
	l   *fetch.Listing // nil: the lock has chosen, and no index was asked
	by  *word          // the lock that has chosen, or nil
}

// find resolves the target of an install. With a lock, that names the release
// too; else it is to be chosen from the listing.
func (r *run) find(ctx context.Context, in Install) (*found, error) {
	lock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	if lock != nil && r.o.Version == "" {
		return r.named(lock, in)
	}
	l, err := r.list(ctx, in.Channel)
	if l, err = r.withKept(l, err, in.Channel); err != nil {
		return nil, err
	}
	res, err := r.resolve(l, in)
	return &found{res: res, l: l}, err
}

// named finds an install in the lock. It asks no index: a machine that is told
// what to install does not look for what else there is.
func (r *run) named(lock *word, in Install) (*found, error) {
	name, _ := r.o.GFX.Canonical(in.Target)
	pin, ok := lock.lock.Find(in.Channel, name)
	if !ok {
		for _, p := range lock.lock.Pins {
			if p.Channel == in.Channel && p.Family == name {
				pin, ok = p, true
			}
		}
	}
	if !ok {
		return nil, fmt.Errorf("%s of channel %s is not in %s, which has %v (write it there with: rocm-nightly lock)", name, in.Channel, redacted(lock.place.URL), lock.lock.Targets())
	}
	p, err := pin.Pin()
	return &found{res: gfx.Resolution{Target: name, Family: pin.Family}, by: lock, rel: p.Release}, err
}

// resolve finds the family that serves the target.
func (r *run) resolve(l *fetch.Listing, in Install) (gfx.Resolution, error) {
	published := l.Families()
	res, err := r.o.GFX.Resolve(in.Target, published)
	if err == nil {
		return res, nil
	}
	name, ok := r.o.GFX.Canonical(in.Target)
	if ok && r.o.Policy.Multiarch == "fallback" && slices.Contains(published, gfx.Multiarch) {
		return gfx.Resolution{Target: name, Family: gfx.Multiarch}, nil
	}
	return res, err
}

// policy is what of the options decides about releases.
func (r *run) policy() fetch.Policy {
	p := r.o.Policy
	o := fetch.Policy{
		Prefer: p.Prefer, Series: p.Series, Version: r.o.Version, MinAge: p.MinAge, Settle: p.Settle,
		Deny: slices.Clone(p.Deny), Now: r.o.Now(),
	}
	if r.o.Version != "" {
		o.MinAge, o.Settle = 0, 0 // who names a version does not want to wait for it
	}
	return o
}
