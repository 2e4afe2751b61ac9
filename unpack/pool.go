package unpack

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

const (
	// chunkSize is the size of one write. Kernels with large folios reward
	// writes of a megabyte: the 32 KiB of io.Copy cost three times as much
	// system time.
	//
	// What was tried and left out, with 1.6 GB on ext4 on two cores: writes of
	// 2, 4 and 16 MiB (4.8 to 5.4 s of system time where 1 MiB takes 4.2 to
	// 4.4); fallocate before files of a megabyte and more (3.6 to 4.8 s), and
	// sync_file_range after each write (4.8 to 5.2 s, which takes 0.5 s from
	// the syncfs that follows). Package directio is what helps.
	chunkSize = 1 << 20
	// blocksOut is how many blocks of chunkSize may be between the decompressor
	// and the disk: 32 MiB.
	blocksOut = 32
	// editedOut bounds, in bytes, what is there besides: text that was edited.
	editedOut = 2 * MaxEdit
	// smallFile is the size up to which files share a block.
	smallFile = chunkSize / 8
)

// pool is the memory between the decompressor and the disk. What takes of it is
// the reading goroutine alone; anybody may release.
type pool struct {
	free   chan *block
	small  *block // what is left of it is for small files; one reference is the pool's
	used   int    // bytes of small
	edited *semaphore.Weighted
}

// block is memory for one chunk of a large file, or for several small files.
type block struct {
	data []byte
	refs atomic.Int32
}

// chunk is a piece of a file in memory. The zero chunk is empty.
type chunk struct {
	data    []byte
	release func() // gives the memory back, once; nil for none
}

func (c chunk) done() {
	if c.release != nil {
		c.release()
	}
}

func newPool() *pool {
	p := &pool{free: make(chan *block, blocksOut), edited: semaphore.NewWeighted(editedOut)}
	for range blocksOut {
		p.free <- nil // made on first use
	}
	return p
}

// take returns room for up to a chunk of a file of which left bytes remain.
func (p *pool) take(ctx context.Context, left int64) (chunk, error) {
	switch {
	case left == 0:
		return chunk{}, nil
	case left <= smallFile:
		return p.share(ctx, int(left))
	}
	b, err := p.block(ctx)
	if err != nil {
		return chunk{}, err
	}
	return chunk{b.data[:min(left, chunkSize)], func() { p.drop(b) }}, nil
}

// share returns n bytes of the block for small files.
func (p *pool) share(ctx context.Context, n int) (chunk, error) {
	if p.small != nil && n > chunkSize-p.used {
		p.drop(p.small)
		p.small = nil
	}
	if p.small == nil {
		b, err := p.block(ctx)
		if err != nil {
			return chunk{}, err
		}
		p.small, p.used = b, 0
	}
	b := p.small
	b.refs.Add(1)
	data := b.data[p.used : p.used+n : p.used+n]
	p.used += n
	return chunk{data, func() { p.drop(b) }}, nil
}

// block waits for a free block, and returns it with one reference.
func (p *pool) block(ctx context.Context) (*block, error) {
	select {
	case b := <-p.free:
		if b == nil {
			b = &block{data: make([]byte, chunkSize)}
		}
		b.refs.Store(1)
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pool) drop(b *block) {
	if b.refs.Add(-1) == 0 {
		p.free <- b // never waits: there is room for all
	}
}

// hold makes a chunk of memory that is not the pool's, once there is not too
// much of that.
func (p *pool) hold(ctx context.Context, data []byte) (chunk, error) {
	n := min(int64(len(data)), editedOut)
	if err := p.edited.Acquire(ctx, n); err != nil {
		return chunk{}, err
	}
	return chunk{data, func() { p.edited.Release(n) }}, nil
}
