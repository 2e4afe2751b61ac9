package pgunzip

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

const (
	pieceSize = 1 << 20
	// overlap is how much of the next piece a guesser gets with one: its last
	// block ends there, if it is not larger. It is more than a header can have.
	overlap = 256 << 10
)

// parallel is the engine of several goroutines: one reads the source into
// pieces, one is the driver, and workers guess and resolve.
type parallel struct {
	ctx    context.Context
	cancel context.CancelFunc
	unhook func() bool
	group  sync.WaitGroup

	src     io.Reader
	size    int // of a piece
	overlap int
	workers int
	pool    pool
	items   chan *item // from the driver, in order

	mu     sync.Mutex
	cond   *sync.Cond // anything of what follows has changed
	pieces map[int64]*piece
	spare  [][]byte
	at     int64 // the driver's piece; those before are gone
	guess  int64 // no piece before is to be guessed
	length int64 // of the source; -1 until its end is seen
	srcErr error // what stands at its end in place of io.EOF
	tasks  []*task

	// Of the goroutine that calls next:
	m     member
	cur   *item
	part  int
	taken int64
}

// piece is a part of the source.
type piece struct {
	index int64
	buf   []byte // the piece, then the beginning of the next
	n     int    // of the piece, how much has been read
	over  int    // of the next
	users int    // guessers that read buf
	gone  bool   // the driver is behind it
	job   *job
}

// job is the guess at a piece.
type job struct {
	dropped atomic.Bool // the driver does not want it any more
	from    int64       // bit of the source at which the chunk begins, or -1
	done    bool
	chunk   *chunk // nil: nothing was found
	used    bool
}

// task is a chunk whose markers can be replaced.
type task struct {
	chunk  *chunk
	window []byte // before the chunk
	item   *item
}

// item is what the driver hands on: bytes, or the end of a member, or an error.
type item struct {
	ready chan struct{} // closed when the bytes are there
	parts [][]byte
	crc   uint32
	size  int64
	chunk *chunk // whose memory the second part is
	taken int64

	memberEnd bool
	endCRC    uint32
	endSize   uint32
	err       error
}

func newParallel(ctx context.Context, r io.Reader, workers int) *parallel {
	return newParallelSized(ctx, r, workers, pieceSize, overlap)
}

// newParallelSized takes the sizes too: tests have smaller ones. A header of a
// member must fit in the overlap, and that in a piece.
func newParallelSized(ctx context.Context, r io.Reader, workers, size, overlap int) *parallel {
	ctx, cancel := context.WithCancel(ctx)
	e := &parallel{
		ctx: ctx, cancel: cancel, src: r, size: size, overlap: overlap, workers: workers,
		pool: pool{most: workers + 2}, items: make(chan *item, 4+workers/2),
		pieces: map[int64]*piece{}, guess: 1, length: -1,
	}
	e.cond = sync.NewCond(&e.mu)
	e.unhook = context.AfterFunc(ctx, func() {
		e.mu.Lock() // so that nobody is between asking and waiting
		defer e.mu.Unlock()
		e.cond.Broadcast()
	})
	e.group.Go(e.read)
	e.group.Go(func() { newDriver(e).drive() })
	f := newFinder()
	for range workers {
		e.group.Go(func() { e.work(newGuesser(f, &e.pool)) })
	}
	return e
}

// close implements engine.
func (e *parallel) close() {
	e.cancel()
	e.group.Wait()
	e.unhook()
}

// next implements engine.
func (e *parallel) next() ([]byte, int64, error) {
	for {
		if e.cur != nil && e.part < len(e.cur.parts) {
			p := e.cur.parts[e.part]
			e.part++
			if len(p) > 0 {
				return p, e.taken, nil
			}
			continue
		}
		e.recycle()
		if err := e.receive(); err != nil {
			return nil, e.taken, err
		}
	}
}

// recycle gives the memory of what was read back.
func (e *parallel) recycle() {
	if e.cur == nil {
		return
	}
	if e.cur.chunk != nil {
		e.pool.putBytes(e.cur.parts[0])
		e.pool.put(e.cur.chunk)
	}
	e.cur = nil
}

// receive takes the next item.
func (e *parallel) receive() error {
	var it *item
	select {
	case it = <-e.items:
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
	e.taken = it.taken
	if it.err != nil {
		return it.err
	}
	if it.memberEnd {
		return e.m.check(it.endCRC, it.endSize)
	}
	select {
	case <-it.ready:
	case <-e.ctx.Done():
		return e.ctx.Err()
	}
	e.m.crc = combine(e.m.crc, it.crc, it.size)
	e.m.size += it.size
	e.cur, e.part = it, 0
	return nil
}

// wait blocks until done says so. It returns false when the context ends. The
// caller holds mu.
func (e *parallel) wait(done func() bool) bool {
	for !done() {
		if e.ctx.Err() != nil {
			return false
		}
		e.cond.Wait()
	}
	return e.ctx.Err() == nil
}
