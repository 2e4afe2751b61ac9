package fetch

import (
	"context"
	"sync"
	"time"
)

// limiter shares a number of bytes per second among all connections. Bytes
// are paid for after they arrived, in the order in which they did.
type limiter struct {
	perSecond float64

	mu   sync.Mutex
	free time.Time // when what was taken so far is paid for
}

// WaitN returns once n more bytes are paid for, or ctx ends.
func (l *limiter) WaitN(ctx context.Context, n int) error {
	timer := time.NewTimer(l.take(n))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *limiter) take(n int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(n) / l.perSecond * float64(time.Second)))
	return l.free.Sub(now)
}
