package serve

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/robfig/cron/v3"
)

// maxJitter is how much a time differs by chance, beside the part of each host: so
// that two hosts of one image, with one machine id, do not knock as one.
const maxJitter = time.Minute

// maxBackoff is the longest pause before it is tried again, unless the first is longer.
const maxBackoff = time.Hour

// splayOf is how much later than at its times a host runs a job: always the same, and
// spread evenly over hosts and jobs. It is less than half of the shortest pause, so
// that one time never reaches the next.
func splayOf(host, job string, most time.Duration, s cron.Schedule, now time.Time) time.Duration {
	if most = min(most, closest(s, now)/2); most <= 0 {
		return 0
	}
	sum := sha256.Sum256([]byte("rocm-nightly splay\x00" + host + "\x00" + job))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(most)).Truncate(time.Second)
}

// chance is a random time below most.
func chance(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most)
}

// backoff is the pause after the tries-th failure of a window, and up to a tenth of
// it by chance.
func backoff(first time.Duration, tries int, jitter func(time.Duration) time.Duration) time.Duration {
	d := first
	for range tries - 1 {
		if d >= maxBackoff {
			break
		}
		d = min(2*d, maxBackoff)
	}
	return d + jitter(d/10)
}
