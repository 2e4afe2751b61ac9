package web

import (
	"net/netip"
	"sync"
	"time"
)

// rate is how often something may be done: burst at once, and one more each time
// that every has gone by, by one address and by all together.
type rate struct {
	burst, burstAll int
	every, everyAll time.Duration
}

// How often a token may be wrong, and how often something may be done with one.
var (
	wrongTokens = rate{burst: 5, every: 20 * time.Second, burstAll: 30, everyAll: 2 * time.Second}
	actionRate  = rate{burst: 10, every: 6 * time.Second, burstAll: 30, everyAll: 2 * time.Second}
)

// maxBuckets bounds the table of addresses.
const maxBuckets = 4096

// limiter counts by address, with a bucket of tokens for each.
type limiter struct {
	rate rate
	now  func() time.Time

	mu  sync.Mutex
	all bucket
	by  map[netip.Prefix]*bucket
}

func newLimiter(r rate, now func() time.Time) *limiter {
	return &limiter{rate: r, now: now, by: map[netip.Prefix]*bucket{}}
}

// bucket is what was spent, and when that was counted. The zero bucket is full.
type bucket struct {
	spent float64
	at    time.Time
}

// settle gives back what the time since has earned.
func (b *bucket) settle(now time.Time, every time.Duration) {
	if passed := now.Sub(b.at); passed > 0 {
		b.spent = max(0, b.spent-passed.Seconds()/every.Seconds())
		b.at = now
	}
}

// wait is how long nothing may be done by remote; 0: it may now.
func (l *limiter) wait(remote string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waits(l.bucket(remote))
}

// take spends one, unless there is none: then it says how long to wait.
func (l *limiter) take(remote string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(remote)
	if d := l.waits(b); d > 0 {
		return d
	}
	b.spent++
	l.all.spent++
	return 0
}

func (l *limiter) waits(b *bucket) time.Duration {
	short := func(spent float64, burst int, every time.Duration) time.Duration {
		return max(0, time.Duration((spent-float64(burst)+1)*float64(every)))
	}
	return max(short(b.spent, l.rate.burst, l.rate.every), short(l.all.spent, l.rate.burstAll, l.rate.everyAll))
}

// bucket finds remote's. The lock is held. A full table loses those that have
// spent nothing; if all have, the newcomer shares the bucket of this machine.
func (l *limiter) bucket(remote string) *bucket {
	now, key := l.now(), address(remote)
	l.all.settle(now, l.rate.everyAll)
	b := l.by[key]
	if b == nil && len(l.by) >= maxBuckets {
		for k, old := range l.by {
			if old.settle(now, l.rate.every); old.spent == 0 {
				delete(l.by, k)
			}
		}
		if len(l.by) >= maxBuckets {
			key = netip.Prefix{}
			b = l.by[key]
		}
	}
	if b == nil {
		b = &bucket{at: now}
		l.by[key] = b
	}
	b.settle(now, l.rate.every)
	return b
}
