package pgunzip

// work is one worker. What has been decoded is finished before more is begun.
func (e *parallel) work(g *guesser) {
	for {
		t, p := e.nextTask()
		switch {
		case t != nil:
			e.resolve(g, t)
		case p != nil:
			e.try(g, p)
		default:
			return
		}
	}
}

// nextTask waits for something to do: a chunk whose window is known, or a
// piece to guess. It returns neither when the context has ended.
func (e *parallel) nextTask() (t *task, p *piece) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ok := e.wait(func() bool {
		if len(e.tasks) > 0 {
			t, e.tasks = e.tasks[0], e.tasks[1:]
			return true
		}
		p = e.guessable()
		return p != nil
	})
	if !ok {
		return nil, nil
	}
	return t, p
}

// guessable takes the next piece that is worth a guess: one that the driver
// is not at, and that is there with all that a guesser may look at. The caller
// holds mu.
func (e *parallel) guessable() *piece {
	k := max(e.guess, e.at+1)
	p := e.pieces[k]
	if p == nil || p.n == 0 {
		return nil
	}
	if _, end := e.view(p); !end && (p.n < e.size || p.over < e.overlap) {
		return nil
	}
	e.guess = k + 1
	p.job = &job{from: -1}
	p.users++
	return p
}

// try guesses at a piece.
func (e *parallel) try(g *guesser, p *piece) {
	e.mu.Lock()
	in, _ := e.view(p)
	j, base, end := p.job, p.index*int64(e.size)*8, min(p.n, e.size)*8
	e.mu.Unlock()

	stopped := func() bool { return j.dropped.Load() || e.ctx.Err() != nil }
	found := func(bit int) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if j.from = -1; bit >= 0 {
			j.from = base + int64(bit)
		}
		e.cond.Broadcast()
	}
	c := g.guess(in, end, stopped, found)

	e.mu.Lock()
	defer e.mu.Unlock()
	j.done, j.chunk = true, c
	if c == nil {
		j.from = -1
	}
	if j.dropped.Load() {
		e.drop(j)
	}
	p.users--
	e.release(p)
	e.cond.Broadcast()
}

// resolve finishes a chunk.
func (e *parallel) resolve(g *guesser, t *task) {
	marked, crc := g.resolve(t.chunk, t.window)
	e.pool.putSymbols(t.chunk)
	t.item.parts = [][]byte{marked, t.chunk.plain}
	t.item.crc = crc
	close(t.item.ready)
}
