package fetch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func refuse(wait time.Duration) error { return &StatusError{Code: 503, RetryAfter: wait} }

// enterAll lets n segments in, or fails.
func enterAll(t *testing.T, g *gate, n int) {
	t.Helper()
	for i := range n {
		if !enters(t, g, i) {
			t.Fatalf("%d of %d may enter", i, n)
		}
	}
}

// enters reports whether one more may enter now.
func enters(t *testing.T, g *gate, i int) bool {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	return g.enter(ctx, i) == nil
}

// TestGateFindsTheLimit of a server that serves two requests at once.
func TestGateFindsTheLimit(t *testing.T) {
	g := newGate(4)
	enterAll(t, g, 4)
	for range 2 {
		if !g.leave(refuse(0)) {
			t.Fatal("a refusal counts as a failure though others are served")
		}
	}
	if g.limit != 2 {
		t.Fatalf("limit %d after two refusals of four", g.limit)
	}
	if enters(t, g, 5) {
		t.Error("a third request while two are served")
	}
	for range 3 { // each time it takes longer until one more is tried
		took := 0
		for ; g.limit == 2 && took < 100; took++ {
			g.leave(nil)
			enterAll(t, g, 1)
		}
		if want := 2 * g.patience; took != want {
			t.Errorf("one more after %d segments, want %d", took, want)
		}
		enterAll(t, g, 1)
		if !g.leave(refuse(0)) || g.limit != 2 {
			t.Errorf("limit %d after the third was refused", g.limit)
		}
	}
	if g.patience != 8 {
		t.Errorf("patience %d", g.patience)
	}
}

// TestGateGrowsBack when the server is well again, and no further.
func TestGateGrowsBack(t *testing.T) {
	g := newGate(4)
	enterAll(t, g, 1)
	if g.leave(refuse(0)) || g.limit != 1 {
		t.Fatalf("limit %d; a request that was alone must count as a failure", g.limit)
	}
	for range 20 {
		enterAll(t, g, 1)
		g.leave(nil)
	}
	if g.limit != 4 {
		t.Errorf("limit %d, want 4", g.limit)
	}
	enterAll(t, g, 4)
	if enters(t, g, 9) {
		t.Error("five of four")
	}
	g.leave(errors.New("reset"))
	if g.limit != 4 || !enters(t, g, 9) {
		t.Errorf("limit %d after a failure that is no refusal", g.limit)
	}
}

func TestGatePauseIsForAll(t *testing.T) {
	g := newGate(4)
	enterAll(t, g, 2)
	g.leave(refuse(60 * time.Millisecond))
	g.leave(nil)
	begin := time.Now()
	if enters(t, g, 1) {
		t.Error("nobody may enter while the server wants a pause")
	}
	if err := g.enter(t.Context(), 1); err != nil || time.Since(begin) < 50*time.Millisecond {
		t.Errorf("entered after %s, %v", time.Since(begin), err)
	}
	g.leave(refuse(2 * maxRetryAfter))
	if time.Until(g.until) > time.Second {
		t.Errorf("a pause until %s, which is longer than any that is made", g.until)
	}
}

// TestGateServesTheReaderFirst: the first segment of the file is the one that
// the reader waits for.
func TestGateServesTheReaderFirst(t *testing.T) {
	g := newGate(1)
	enterAll(t, g, 1)
	var wg sync.WaitGroup
	order := make(chan int, 3)
	for _, i := range []int{7, 3, 5} {
		wg.Go(func() {
			if g.enter(t.Context(), i) == nil {
				order <- i
				g.leave(nil)
			}
		})
	}
	deadline := time.Now().Add(5 * time.Second)
	for waiting := 0; waiting < 3 && time.Now().Before(deadline); {
		g.mu.Lock()
		waiting = len(g.waiting)
		g.mu.Unlock()
	}
	g.leave(nil)
	wg.Wait()
	if a, b, c := <-order, <-order, <-order; a != 3 || b != 5 || c != 7 {
		t.Errorf("entered in the order %d, %d, %d", a, b, c)
	}
}
