package pgunzip

import "sync"

// pool keeps memory for the next chunk.
type pool struct {
	mu      sync.Mutex
	most    int // of each kind that are kept
	bytes   [][]byte
	symbols [][]uint16
}

func (p *pool) growBytes(old []byte, n int) []byte { return grow(p, &p.bytes, old, n) }

func (p *pool) growSymbols(old []uint16, n int) []uint16 { return grow(p, &p.symbols, old, n) }

// put takes back what c holds.
func (p *pool) put(c *chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep(p.most, &p.bytes, c.bytes)
	keep(p.most, &p.symbols, c.symbols)
	c.bytes, c.symbols, c.plain, c.marked = nil, nil, nil, nil
}

func (p *pool) putBytes(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep(p.most, &p.bytes, b)
}

func keep[T symbol](most int, list *[][]T, b []T) {
	if cap(b) > 0 && len(*list) < most {
		*list = append(*list, b[:cap(b)])
	}
}

// grow returns memory for at least n, with what is in old, which it takes.
func grow[T symbol](p *pool, list *[][]T, old []T, n int) []T {
	p.mu.Lock()
	b := take(list, n)
	p.mu.Unlock()
	if b == nil {
		b = make([]T, n)
	}
	copy(b, old)
	p.mu.Lock()
	defer p.mu.Unlock()
	keep(p.most, list, old)
	return b
}

// take removes the smallest that has at least n from list.
func take[T symbol](list *[][]T, n int) []T {
	best := -1
	for i, b := range *list {
		if len(b) >= n && (best < 0 || len(b) < len((*list)[best])) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	b, last := (*list)[best], len(*list)-1
	(*list)[best], (*list)[last] = (*list)[last], nil
	*list = (*list)[:last]
	return b
}

// putSymbols takes back the marked part of c, which is not needed once it is
// resolved.
func (p *pool) putSymbols(c *chunk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keep(p.most, &p.symbols, c.symbols)
	c.symbols, c.marked = nil, nil
}
