package unpack

import (
	"context"
	"io"
	"time"
)

const (
	blockSize   = 1 << 20 // bytes that the source is read into
	blocks      = 5       // blocks between the source and the decompressor
	piecesAhead = 256     // reads of the source that may wait for the decompressor
	leastRead   = 64 << 10

	// closeGrace is how long Close waits for a Read of the source that is
	// under way. A live source answers within it; one that hangs is left.
	closeGrace = 100 * time.Millisecond
)

// readAhead reads its source in its own goroutine. Every read is handed on at
// once: what a stalled source sent before it stalled is still judged.
type readAhead struct {
	ctx    context.Context
	cancel context.CancelFunc
	full   chan piece
	free   chan []byte
	done   chan struct{}
	cur    piece
	off    int
}

// piece is what one read of the source brought.
type piece struct {
	data  []byte
	block []byte // goes back to the free blocks after data, if this is its last piece
	err   error
}

func newReadAhead(ctx context.Context, r io.Reader) *readAhead {
	ctx, cancel := context.WithCancel(ctx)
	a := &readAhead{
		ctx: ctx, cancel: cancel,
		full: make(chan piece, piecesAhead),
		free: make(chan []byte, blocks),
		done: make(chan struct{}),
	}
	for range blocks {
		a.free <- nil // allocated on first use
	}
	go a.run(r)
	return a
}

func (a *readAhead) run(r io.Reader) {
	defer close(a.done)
	for {
		var block []byte
		select {
		case block = <-a.free:
		case <-a.ctx.Done():
			return
		}
		if block == nil {
			block = make([]byte, blockSize)
		}
		if !a.fill(r, block) {
			return
		}
	}
}

// fill reads into block until too little room is left in it, and says whether
// to go on.
func (a *readAhead) fill(r io.Reader, block []byte) bool {
	for room := block; room != nil; {
		n, err := r.Read(room)
		p := piece{data: room[:n], err: err}
		if room = room[n:]; len(room) < leastRead {
			p.block, room = block, nil
		}
		select {
		case a.full <- p:
		case <-a.ctx.Done():
			return false
		}
		if err != nil {
			return false
		}
	}
	return true
}

// Read implements io.Reader. It returns as soon as the context ends, whatever
// the source does.
func (a *readAhead) Read(p []byte) (int, error) {
	if err := a.ctx.Err(); err != nil {
		return 0, err // before what the source makes of the same end
	}
	for a.off == len(a.cur.data) {
		if a.cur.err != nil {
			return 0, a.cur.err
		}
		if a.cur.block != nil {
			a.free <- a.cur.block // never waits: there is room for all
		}
		a.cur, a.off = piece{}, 0
		select {
		case a.cur = <-a.full:
		case <-a.ctx.Done():
			return 0, a.ctx.Err()
		}
	}
	n := copy(p, a.cur.data[a.off:])
	a.off += n
	return n, nil
}

// Close stops the goroutine and waits for it, but for a Read of the source
// that does not come back: nobody can stop that from outside.
func (a *readAhead) Close() {
	a.cancel()
	grace := time.NewTimer(closeGrace)
	defer grace.Stop()
	select {
	case <-a.done:
	case <-grace.C:
	}
}
