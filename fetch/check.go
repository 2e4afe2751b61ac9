package fetch

import (
	"sync"
	"sync/atomic"
)

const (
	checkChunk = 256 << 10 // bytes
	checkQueue = 16        // chunks that may wait for one sum
)

// etagCheck computes an ETagSum beside the reader: each of its sums has a
// goroutine, which is some chunks behind. A reader that is faster than MD5
// for long waits for it; none that unpacks is.
type etagCheck struct {
	sum  *ETagSum
	in   []chan *chunk
	pool sync.Pool
	wg   sync.WaitGroup
}

// chunk is a copy of some bytes of the stream, for every sum.
type chunk struct {
	bytes []byte
	users atomic.Int32
}

// newETagCheck returns nil where there is nothing to compute.
func newETagCheck(size int64, etag string) *etagCheck {
	sum := NewETagSum(size, etag)
	if sum == nil || len(sum.sums) == 0 {
		return nil
	}
	return &etagCheck{sum: sum}
}

// write takes the next bytes of the stream.
func (e *etagCheck) write(p []byte) {
	if e == nil {
		return
	}
	if e.in == nil {
		e.start()
	}
	for len(p) > 0 {
		n := min(len(p), checkChunk)
		c, ok := e.pool.Get().(*chunk)
		if !ok {
			c = &chunk{}
		}
		c.bytes = append(c.bytes[:0], p[:n]...)
		c.users.Store(int32(len(e.in)))
		for _, in := range e.in {
			in <- c
		}
		p = p[n:]
	}
}

func (e *etagCheck) start() {
	for _, s := range e.sum.sums {
		in := make(chan *chunk, checkQueue)
		e.in = append(e.in, in)
		e.wg.Go(func() {
			for c := range in {
				s.write(c.bytes)
				if c.users.Add(-1) == 0 {
					e.pool.Put(c)
				}
			}
		})
	}
}

// end waits for what was written to be summed up, and for the goroutines.
func (e *etagCheck) end() {
	if e == nil {
		return
	}
	for _, in := range e.in {
		close(in)
	}
	e.in = nil
	e.wg.Wait()
}

// passed ends the check at the end of the stream, and says what was checked:
// that the object is as long as the server said, which Read sees to, and its
// ETag.
func (e *etagCheck) passed() []string {
	out := []string{"length"}
	if e == nil {
		return out
	}
	e.end()
	if text, matched := e.sum.Result(); matched {
		out = append(out, text)
	}
	return out
}
