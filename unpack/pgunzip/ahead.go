package pgunzip

import (
	"context"
	"sync"
)

// ahead is the engine of one goroutine that decodes in order, while what it
// has decoded is read: with two processors that is all that can be gained.
type ahead struct {
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	z      *serial
	blocks chan decoded
	free   chan []byte
	cur    []byte // the buffer that was handed out last
	taken  int64
}

// decoded is what one buffer brought.
type decoded struct {
	buf   []byte
	p     []byte // of buf
	taken int64
	err   error // without p
}

// buffersAhead is how many buffers there are besides the one that is decoded to.
const buffersAhead = 4

func newAhead(ctx context.Context, z *serial) *ahead {
	ctx, cancel := context.WithCancel(ctx)
	z.ctx = ctx
	a := &ahead{ctx: ctx, cancel: cancel, z: z, blocks: make(chan decoded, buffersAhead), free: make(chan []byte, buffersAhead+1)}
	for range buffersAhead {
		a.free <- newBuffer()
	}
	a.group.Go(a.run)
	return a
}

// run decodes to the end, which it sends as an error.
func (a *ahead) run() {
	for {
		block, err := a.decode()
		if len(block.p) > 0 && !a.send(block) {
			return
		}
		if err != nil {
			a.send(decoded{taken: a.z.taken(), err: err})
			return
		}
	}
}

// decode fills a buffer, as far as the source goes without being waited for. It
// waits where nothing at all has come out.
func (a *ahead) decode() (decoded, error) {
	s := a.z.s
	from := s.at
	for {
		why, err := a.z.advance()
		if err == nil && why == needInput && s.at == from {
			err = a.z.fill()
			why = atBlock
		}
		if err == nil && why != roomless && why != needInput {
			continue
		}
		block := decoded{buf: s.out, p: s.out[from:s.at], taken: a.z.taken()}
		if err == nil {
			err = a.swap()
		}
		return block, err
	}
}

// swap gives the stream another buffer, that begins with its window.
func (a *ahead) swap() error {
	select {
	case buf := <-a.free:
		a.z.s.moveTo(buf)
		return nil
	case <-a.ctx.Done():
		return a.ctx.Err()
	}
}

func (a *ahead) send(block decoded) bool {
	select {
	case a.blocks <- block:
		return true
	case <-a.ctx.Done():
		return false
	}
}

// next implements engine.
func (a *ahead) next() ([]byte, int64, error) {
	if a.cur != nil {
		a.free <- a.cur // never waits: there is room for all
		a.cur = nil
	}
	select {
	case block := <-a.blocks:
		a.cur, a.taken = block.buf, block.taken
		return block.p, a.taken, block.err
	case <-a.ctx.Done():
		return nil, a.taken, a.ctx.Err()
	}
}

// close implements engine.
func (a *ahead) close() {
	a.cancel()
	a.group.Wait()
}
