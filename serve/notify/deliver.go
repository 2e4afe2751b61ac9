package notify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// How long telling may take: one event to one sink, and all of them. A run waits
// for it, and so does systemd when it stops the daemon.
const (
	sinkTimeout = 30 * time.Second
	tellTimeout = time.Minute
)

// outcome is what became of one event that was to be sent to one sink.
type outcome struct {
	pending
	kind  string
	took  time.Duration
	tried bool // false: an earlier event of this sink has failed already
	err   error
}

// deliver sends what is due, to all sinks at once and to each in turn, and returns
// what became of each. It returns when all have answered or ctx has ended.
func (n *Notifier) deliver(ctx context.Context, due []pending) []outcome {
	var mu sync.Mutex
	var all []outcome
	var wg sync.WaitGroup
	for _, r := range n.receivers {
		var own []pending
		for _, p := range due {
			if p.Sink == r.Name {
				own = append(own, p)
			}
		}
		if len(own) == 0 {
			continue
		}
		wg.Go(func() {
			results := n.deliverTo(ctx, r, own)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, results...)
		})
	}
	wg.Wait()
	slices.SortStableFunc(all, func(a, b outcome) int { return cmp.Compare(a.Sink, b.Sink) })
	return all
}

// deliverTo sends one sink its events: those that were tried least first, so that
// one that it never takes does not keep the others back, and of these the gravest.
// After one has failed the others wait for the next call.
func (n *Notifier) deliverTo(ctx context.Context, r receiver, own []pending) []outcome {
	slices.SortStableFunc(own, func(a, b pending) int {
		return cmp.Or(cmp.Compare(a.Tries, b.Tries), cmp.Compare(gravity(a.Event.Kind), gravity(b.Event.Kind)), a.Since.Compare(b.Since))
	})
	var all []outcome
	failed := false
	for _, p := range own {
		o := outcome{pending: p, kind: r.Kind}
		if !failed {
			began := time.Now()
			o.tried, o.err = true, n.sendOne(ctx, r, p)
			o.took = time.Since(began)
			failed = o.err != nil
		}
		all = append(all, o)
	}
	return all
}

// gravity is the place of a kind in the order of sending.
func gravity(kind string) int { return slices.Index(Kinds(), kind) }

// sendOne sends one event, in the words of the sink.
func (n *Notifier) sendOne(ctx context.Context, r receiver, p pending) error {
	e, err := r.text.apply(p.Event)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	return r.send(ctx, p.ID, e)
}

// failures joins the errors of a delivery, one for each sink.
func failures(all []outcome) error {
	var errs []error
	for _, o := range all {
		if o.err != nil {
			errs = append(errs, fmt.Errorf("notify %s of %s: %w", o.Sink, o.Event.Kind, o.err))
		}
	}
	return errors.Join(errs...)
}

// eventID names an event for as long as it is tried, so that who gets it twice can
// tell.
func eventID(e Event) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d", e.Host, e.Kind, e.Key, e.Mark, e.Time.UnixNano()))
	return fmt.Sprintf("evt_%x", sum[:16])
}

// errBusy says that a service of shoutrrr does not come back.
var errBusy = errors.New("the message before this one is still under way")

// Desk is what the Notifiers of one process share: which sinks have not come back
// from a message (shoutrrr's services take no context, and some wait for ever), and
// what was told where no file can remember that. The zero Desk is ready.
type Desk struct {
	mu   sync.Mutex
	busy map[string]bool
	mem  *memory

	remembering sync.Mutex // held while mem is changed, where no file is
}

// run calls f, which may ignore ctx, and waits for it or for ctx. While f has not
// come back there is no second one of that name. A panic of f is an error.
func (d *Desk) run(ctx context.Context, name string, f func() error) error {
	d.mu.Lock()
	if d.busy[name] {
		d.mu.Unlock()
		return errBusy
	}
	if d.busy == nil {
		d.busy = map[string]bool{}
	}
	d.busy[name] = true
	d.mu.Unlock()
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("the code of the service failed: %v", p)
			}
			d.mu.Lock()
			delete(d.busy, name)
			d.mu.Unlock()
			done <- err
		}()
		err = f()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer in time: %w", ctx.Err())
	}
}
