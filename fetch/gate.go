package fetch

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxPatience bounds how many segments per open request must succeed before
// a gate that was cut tries one more.
const maxPatience = 16

// gate decides how many segments of a download are asked for at once: as many
// as were configured, until the server refuses some (429, 503). Then it is as
// many as the server did not refuse, and one more after some success. When
// the server asks for a pause, everybody makes it.
type gate struct {
	most int // the configured number

	mu       sync.Mutex
	limit    int // how many may be open now
	open     int
	waiting  []int // segments that want to enter; the first of the file goes first
	until    time.Time
	good     int  // segments that succeeded since limit changed
	patience int  // of good per open request, before limit grows
	grown    bool // limit grew, and nobody was refused since
	changed  chan struct{}
}

func newGate(most int) *gate {
	return &gate{most: most, limit: most, patience: 1, changed: make(chan struct{})}
}

// enter returns when segment i may be asked for, or ctx ends.
func (g *gate) enter(ctx context.Context, i int) error {
	g.mu.Lock()
	g.waiting = append(g.waiting, i)
	for {
		pause := time.Until(g.until)
		if pause <= 0 && g.open < g.limit && slices.Min(g.waiting) == i {
			g.open++
			g.forget(i)
			g.mu.Unlock()
			return nil
		}
		changed := g.changed
		g.mu.Unlock()
		err := awaitChange(ctx, changed, pause)
		g.mu.Lock()
		if err != nil {
			g.forget(i)
			g.mu.Unlock()
			return err
		}
	}
}

// awaitChange waits for changed, for the end of a pause if there is one, or for ctx.
func awaitChange(ctx context.Context, changed <-chan struct{}, pause time.Duration) error {
	var over <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-changed:
	case <-over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// forget takes segment i off the list of those that wait; g.mu is held.
func (g *gate) forget(i int) {
	at := slices.Index(g.waiting, i)
	g.waiting = slices.Delete(g.waiting, at, at+1)
	g.wake()
}

// wake lets everybody who waits look again; g.mu is held.
func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// leave ends what enter began. It returns true if the server refused this
// request because of others that are still open: then it is to be made again
// when the gate allows it, and is no failure.
func (g *gate) leave(err error) (again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.wake()
	g.open--
	status, refused := refusal(err)
	switch {
	case err == nil:
		g.succeed()
		return false
	case !refused || status.RetryAfter > maxRetryAfter:
		return false
	}
	g.pause(status.RetryAfter)
	g.limit, g.good = max(1, min(g.limit, g.open)), 0
	if g.grown {
		g.grown, g.patience = false, min(2*g.patience, maxPatience)
	}
	return g.open > 0
}

// succeed counts a segment that arrived; g.mu is held.
func (g *gate) succeed() {
	if g.good++; g.limit < g.most && g.good >= g.limit*g.patience {
		g.limit, g.good, g.grown = g.limit+1, 0, true
	}
}

// hold lets nobody enter for so long.
func (g *gate) hold(pause time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pause(pause)
}

func (g *gate) pause(d time.Duration) {
	if until := time.Now().Add(d); until.After(g.until) {
		g.until = until
	}
}

// refusal returns the answer of a server that is asked too much at once.
func refusal(err error) (*StatusError, bool) {
	status, ok := errors.AsType[*StatusError](err)
	return status, ok && (status.Code == http.StatusTooManyRequests || status.Code == http.StatusServiceUnavailable)
}
