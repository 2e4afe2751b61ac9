package pgunzip

import (
	"context"
	"io"
	"sync"
)

// PieceSize is what NewReader uses.
const PieceSize = pieceSize

// NewPieces is NewReader with several workers, and with pieces of another size,
// so that small files have many. The header of a member must fit in a quarter.
func NewPieces(ctx context.Context, r io.Reader, workers, piece int) *Reader {
	return &Reader{ctx: ctx, engine: newParallelSized(ctx, r, workers, piece, piece/4)}
}

// NewGuessed is NewPieces that does not follow the stream before the whole of
// the source is there and has been guessed at: so every guess that can be used is.
func NewGuessed(ctx context.Context, r io.Reader, workers, size int) *Reader {
	ctx, cancel := context.WithCancel(ctx)
	e := &parallel{
		ctx: ctx, cancel: cancel, src: r, size: size, overlap: size / 4, workers: 1 << 20, // all of the source
		pool: pool{most: workers}, items: make(chan *item, 4),
		pieces: map[int64]*piece{}, guess: 1, length: -1,
	}
	e.cond = sync.NewCond(&e.mu)
	e.unhook = context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.cond.Broadcast()
	})
	e.group.Go(e.read)
	for range workers {
		e.group.Go(func() { e.work(newGuesser(newFinder(), &e.pool)) })
	}
	e.mu.Lock()
	e.wait(e.guessed)
	e.mu.Unlock()
	e.group.Go(func() { newDriver(e).drive() })
	return &Reader{ctx: ctx, engine: e}
}

// guessed says whether all of the source is there, and all guesses are done.
func (e *parallel) guessed() bool {
	for k, p := range e.pieces {
		if k > 0 && p.n > 0 && (p.job == nil || !p.job.done) {
			return false
		}
	}
	return e.length >= 0
}
