package pgunzip

import "io"

// ahead is how many pieces are in memory at once.
func (e *parallel) ahead() int64 { return int64(e.workers) + 2 }

// read reads the source into pieces, and makes what has come known at once.
func (e *parallel) read() {
	var last *piece
	for k := int64(0); ; k++ {
		p := e.newPiece(k)
		if p == nil || !e.fill(p, last) {
			return
		}
		last = p
	}
}

// newPiece waits until there is room for piece k. It returns nil when the
// context has ended.
func (e *parallel) newPiece(k int64) *piece {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.wait(func() bool { return k < e.at+e.ahead() }) {
		return nil
	}
	p := &piece{index: k}
	if n := len(e.spare); n > 0 {
		p.buf, e.spare = e.spare[n-1], e.spare[:n-1]
	} else {
		p.buf = make([]byte, e.size+e.overlap)
	}
	e.pieces[k] = p
	e.cond.Broadcast()
	return p
}

// fill reads one piece, and says whether there may be another.
func (e *parallel) fill(p, before *piece) bool {
	for empty := 0; p.n < e.size; {
		if e.ctx.Err() != nil {
			return false
		}
		n, err := e.src.Read(p.buf[p.n:e.size])
		if empty++; n > 0 {
			empty = 0
		} else if err == nil && empty == maxEmptyReads {
			err = io.ErrNoProgress
		}
		e.publish(p, before, n, err)
		if err != nil {
			if p.n == e.size {
				e.newPiece(p.index + 1) // the end too has a piece that it is in
			}
			return false
		}
	}
	return true
}

// publish makes n more bytes of p known, and puts a copy of the first of p
// behind the piece before it.
func (e *parallel) publish(p, before *piece, n int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	fresh := p.buf[p.n : p.n+n]
	p.n += n
	if before != nil && !before.gone && before.over < e.overlap {
		before.over += copy(before.buf[e.size+before.over:], fresh)
	}
	if err != nil {
		e.length = p.index*int64(e.size) + int64(p.n)
		if err != io.EOF {
			e.srcErr = err
		}
	}
	e.cond.Broadcast()
}

// view is what there is of a piece and of what follows it, and whether the
// source ends there. The caller holds mu.
func (e *parallel) view(p *piece) (in []byte, end bool) {
	n := p.n
	if n == e.size {
		n += p.over
	}
	return p.buf[:n], e.length == p.index*int64(e.size)+int64(n)
}

// moveOn makes k the driver's piece, and drops those before it. It says how
// many guesses were made there that the driver could not use, and whether it
// used any.
func (e *parallel) moveOn(k int64) (missed int, hit bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ; e.at < k; e.at++ {
		p := e.pieces[e.at]
		if p == nil {
			continue
		}
		delete(e.pieces, e.at)
		p.gone = true
		switch j := p.job; {
		case j == nil:
		case j.used:
			hit = true
		default:
			missed++
			e.drop(j)
		}
		e.release(p)
	}
	e.cond.Broadcast()
	return missed, hit
}

// drop gives up a guess. The caller holds mu.
func (e *parallel) drop(j *job) {
	j.dropped.Store(true)
	if j.done && j.chunk != nil {
		e.pool.put(j.chunk)
		j.chunk = nil
	}
}

// release gives the memory of a piece back when nobody needs it. The caller
// holds mu.
func (e *parallel) release(p *piece) {
	if p.gone && p.users == 0 && p.buf != nil {
		e.spare = append(e.spare, p.buf)
		p.buf = nil
	}
}
