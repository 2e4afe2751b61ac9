package diff

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Options shape a comparison. The zero value is fine.
type Options struct {
	// Jobs bounds the parallel work; 0 is GOMAXPROCS, at most 8.
	Jobs int
	// Listed bounds each list of files of the report; 0 is 5,000.
	Listed int
}

// comparer is the state of one Compare.
type comparer struct {
	a, b  *side
	jobs  int
	limit int
	r     *Report

	pairs   []pair  // what both have, sorted by the path in B
	added   []*file // what only B has, sorted
	removed []*file // what only A has, sorted

	mu    sync.Mutex // of notes, while files are read in parallel
	notes notes
}

// Compare compares two trees, a the older one. An error means that the
// comparison could not be made; a file that cannot be read is a note.
func Compare(ctx context.Context, a, b Source, o Options) (*Report, error) {
	c := &comparer{jobs: o.Jobs, limit: o.Listed, r: &Report{Schema: Schema}}
	if c.jobs <= 0 {
		c.jobs = min(runtime.GOMAXPROCS(0), 8)
	}
	if c.limit <= 0 {
		c.limit = 5000
	}
	defer c.close()
	if err := c.open(ctx, a, b); err != nil {
		return nil, fmt.Errorf("compare two trees: %w", err)
	}
	for _, step := range []func(context.Context) error{
		c.match, c.contents, c.sources, c.versions, c.tally, c.abi, c.texts, c.kernels, c.wrapping,
	} {
		if err := step(ctx); err != nil {
			return nil, fmt.Errorf("compare two trees: %w", err)
		}
	}
	c.finish()
	return c.r, nil
}

// open reads both sides at once.
func (c *comparer) open(ctx context.Context, a, b Source) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, one := range []struct {
		to  **side
		src Source
	}{{&c.a, a}, {&c.b, b}} {
		g.Go(func() error {
			s, err := openSide(ctx, one.src, c.jobs)
			if err != nil {
				return fmt.Errorf("read %s: %w", one.src.Dir, err)
			}
			*one.to = s
			return nil
		})
	}
	return g.Wait()
}

func (c *comparer) close() {
	for _, s := range []*side{c.a, c.b} {
		if s != nil {
			s.root.Close() // opened for reading
		}
	}
}

// note records what could not be compared.
func (c *comparer) note(what, path string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes.add(what, path, err)
}

// each does something for every index below n, in parallel.
func (c *comparer) each(ctx context.Context, n int, do func(i int)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.jobs)
	const part = 16
	for lo := 0; lo < n; lo += part {
		g.Go(func() error {
			for i := lo; i < min(n, lo+part); i++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				do(i)
			}
			return nil
		})
	}
	return g.Wait()
}

// finish fills in what follows from the rest, and makes everything printable.
func (c *comparer) finish() {
	c.r.A, c.r.B = c.a.Side, c.b.Side
	c.r.Risks = c.risks()
	for _, ns := range []notes{c.notes, c.a.notes, c.b.notes} {
		c.r.Notes = append(c.r.Notes, ns.lines()...)
	}
	slices.Sort(c.r.Notes)
	c.r.settle()
}
