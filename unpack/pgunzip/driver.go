package pgunzip

import (
	"cmp"
	"hash/crc32"
	"io"
)

// driver follows the stream through the pieces: it takes the chunks that were
// guessed right, and decodes the rest.
type driver struct {
	e     *parallel
	s     *stream
	piece *piece
	eof   bool // the source ends with what s.d has
	sent  int  // s.out up to here has been handed on

	misses int
	rest   int64 // pieces to leave alone after the next misses
}

const (
	// patience is how many guesses in a row may be wrong before the workers
	// rest, for firstRest pieces at first, and for twice as many each time
	// that the next guess is wrong too, up to longestRest.
	patience    = 4
	firstRest   = 16
	longestRest = 256
)

func newDriver(e *parallel) *driver {
	return &driver{e: e, s: newStream(), sent: window, rest: firstRest}
}

// drive runs to the end, which it sends as an error.
func (d *driver) drive() {
	err := d.enter(0)
	for err == nil {
		err = d.advance()
	}
	if d.piece != nil {
		err = located(err, d.base())
	}
	_ = d.send(&item{err: err}) // when the context ends, next says so itself
}

// base is the offset in the source of what s.d has.
func (d *driver) base() int64 { return d.piece.index * int64(d.e.size) }

// bit is where in the source the stream is.
func (d *driver) bit() int64 { return d.base()*8 + int64(d.s.d.bit()) }

// advance takes one step of the stream.
func (d *driver) advance() error {
	c, err := d.takeChunk()
	if err != nil {
		return err
	}
	if c != nil {
		return d.accept(c)
	}
	why, err := d.s.step(d.eof)
	if err != nil {
		return cmp.Or(d.emit(), err)
	}
	switch why {
	case roomless:
		err = d.emit()
		d.s.makeRoom()
		d.sent = d.s.at
	case atTrailer:
		if err = d.emit(); err == nil {
			end := d.s.memberEnd
			err = d.send(&item{memberEnd: true, endCRC: end.crc, endSize: end.size})
		}
	case atEnd:
		err = cmp.Or(d.emit(), io.EOF)
	case needInput:
		err = d.emit()
	case atBlock:
	}
	if err != nil {
		return err
	}
	return d.follow(why == needInput)
}

// follow goes to the next piece when this one is used, and where input is
// needed waits for more of it.
func (d *driver) follow(hungry bool) error {
	if d.s.d.pos >= d.e.size && !d.eof {
		pos := d.s.d.pos - d.e.size
		err := d.enter(d.piece.index + 1)
		d.s.d.pos = pos
		return err
	}
	if !hungry {
		return nil
	}
	d.e.mu.Lock()
	defer d.e.mu.Unlock()
	had := len(d.s.d.in)
	if !d.e.wait(func() bool { return d.look() || len(d.s.d.in) > had }) {
		return d.e.ctx.Err()
	}
	if len(d.s.d.in) == had {
		return d.e.srcErr // nil at the end
	}
	return nil
}

// look takes what there is of the piece, and says whether nothing follows: the
// stream may end there, or the source has failed. The caller holds mu of e.
func (d *driver) look() (last bool) {
	d.s.d.in, last = d.e.view(d.piece)
	d.eof = last && d.e.srcErr == nil
	return last
}

// enter makes k the piece that the stream is in, once it is there.
func (d *driver) enter(k int64) error {
	missed, hit := d.e.moveOn(k)
	d.judge(k, missed, hit)
	d.e.mu.Lock()
	defer d.e.mu.Unlock()
	if !d.e.wait(func() bool { d.piece = d.e.pieces[k]; return d.piece != nil }) {
		return d.e.ctx.Err()
	}
	d.look()
	return nil
}

// judge lets the workers rest after too many wrong guesses.
func (d *driver) judge(k int64, missed int, hit bool) {
	if hit {
		d.misses, d.rest = 0, firstRest
	}
	d.misses += missed
	if d.misses < patience {
		return
	}
	d.e.mu.Lock()
	defer d.e.mu.Unlock()
	d.e.guess = max(d.e.guess, k+d.rest)
	d.misses, d.rest = patience-1, min(2*d.rest, longestRest)
}

// emit hands on what s has decoded.
func (d *driver) emit() error {
	fresh := d.s.out[d.sent:d.s.at]
	d.sent = d.s.at
	if len(fresh) == 0 {
		return nil
	}
	p := append([]byte(nil), fresh...)
	it := &item{ready: make(chan struct{}), parts: [][]byte{p}, crc: crc32.ChecksumIEEE(p), size: int64(len(p))}
	close(it.ready)
	return d.send(it)
}

func (d *driver) send(it *item) error {
	if d.piece != nil {
		it.taken = d.base() + int64(d.s.d.pos)
	}
	select {
	case d.e.items <- it:
		return nil
	case <-d.e.ctx.Done():
		return d.e.ctx.Err()
	}
}

// takeChunk returns the chunk that begins where the stream is, if there is
// one. It waits for one that is being decoded, but not for one that is still searched for.
func (d *driver) takeChunk() (*chunk, error) {
	s := d.s
	if s.where != deflate || s.d.block != header || s.at-s.floor < window {
		return nil, nil
	}
	bit := d.bit()
	d.e.mu.Lock()
	defer d.e.mu.Unlock()
	p := d.e.pieces[bit/8/int64(d.e.size)]
	if p == nil || p.job == nil || p.job.used {
		return nil, nil
	}
	j := p.job
	if !d.e.wait(func() bool { return j.done || j.from != bit }) {
		return nil, d.e.ctx.Err()
	}
	if j.from != bit {
		return nil, nil
	}
	c := j.chunk
	j.chunk, j.used = nil, true
	return c, nil
}

// accept takes a chunk for the stream.
func (d *driver) accept(c *chunk) error {
	if err := d.emit(); err != nil {
		return err
	}
	s := d.s
	from := d.bit()
	win := append([]byte(nil), s.out[s.at-window:s.at]...)
	next := c.tail(win)
	size := int64(len(c.marked) + len(c.plain))
	it := &item{ready: make(chan struct{}), size: size, chunk: c}
	t := &task{chunk: c, window: win, item: it}
	to, final := from+int64(c.to-c.from), c.final

	d.e.mu.Lock()
	d.e.tasks = append(d.e.tasks, t)
	d.e.cond.Broadcast()
	d.e.mu.Unlock()
	if err := d.send(it); err != nil {
		return err
	}
	copy(s.out, next)
	s.floor, s.at, d.sent = 0, window, window
	return d.seek(to, final)
}

// seek goes to a bit of the source: a block begins there, or the last one of a
// member ends.
func (d *driver) seek(bit int64, final bool) error {
	size := int64(d.e.size)
	if err := d.enter(bit / 8 / size); err != nil {
		return err
	}
	d.s.d.seek(d.s.d.in, int(bit-d.base()*8))
	if final {
		d.s.d.align()
		d.s.where = trailer
	}
	return nil
}
