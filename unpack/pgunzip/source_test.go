package pgunzip_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rocm-nightly/rocm-nightly/unpack/pgunzip"
)

// readers opens a source with each number of workers and size of pieces.
func readers(t *testing.T, f func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader)) {
	for _, n := range workersUsed {
		t.Run(fmt.Sprintf("%d workers", n), func(t *testing.T) {
			f(t, func(ctx context.Context, r io.Reader) *pgunzip.Reader {
				return pgunzip.NewReader(ctx, r, pgunzip.Options{Workers: n})
			})
		})
		t.Run(fmt.Sprintf("%d workers, small pieces", n), func(t *testing.T) {
			f(t, func(ctx context.Context, r io.Reader) *pgunzip.Reader {
				return pgunzip.NewPieces(ctx, r, n, smallPiece)
			})
		})
	}
}

// noLeak fails the test if goroutines that it started do not end.
func noLeak(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				buf := make([]byte, 1<<16)
				t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
				return
			}
		}
	})
}

// lazy answers every other Read with nothing.
type lazy struct {
	io.Reader
	n int
}

func (l *lazy) Read(p []byte) (int, error) {
	if l.n++; l.n%2 == 0 {
		return 0, nil
	}
	return l.Reader.Read(p)
}

// ragged answers with any number of bytes.
type ragged struct {
	io.Reader
	r *rand.Rand
}

func (g *ragged) Read(p []byte) (int, error) {
	return g.Reader.Read(p[:min(len(p), 1+g.r.IntN(3000))])
}

// TestSources reads the same file through sources that deliver it in all ways
// that io.Reader allows.
func TestSources(t *testing.T) {
	noLeak(t)
	file := manyBlocks(t, rand.New(rand.NewPCG(15, 15)))
	file = slices.Concat(file, zip(t, []byte("end"), 6))
	want := reference(file, newStd())
	readers(t, func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader) {
		for name, src := range map[string]io.Reader{
			"whole":               whole(file),
			"one byte":            iotest.OneByteReader(whole(file)),
			"half":                iotest.HalfReader(whole(file)),
			"data with the error": iotest.DataErrReader(whole(file)),
			"one byte with it":    iotest.DataErrReader(iotest.OneByteReader(whole(file))),
			"lazy":                &lazy{Reader: whole(file)},
			"ragged":              &ragged{whole(file), rand.New(rand.NewPCG(1, 1))},
		} {
			wanted(t, name, run(t, open(t.Context(), src)), want)
		}
		z := open(t.Context(), whole(file))
		defer z.Close()
		if err := iotest.TestReader(z, want.content); err != nil {
			t.Error(err)
		}
	})
}

// TestTaken says that all of the input is counted at the end, and that the
// count never goes back.
func TestTaken(t *testing.T) {
	file := manyBlocks(t, rand.New(rand.NewPCG(15, 15)))
	readers(t, func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader) {
		z := open(t.Context(), whole(file))
		defer z.Close()
		buf := make([]byte, 10000)
		last := int64(0)
		for {
			_, err := io.ReadFull(z, buf)
			if n := z.Taken(); n < last || n > int64(len(file)) {
				t.Fatalf("%d bytes taken of %d, after %d", n, len(file), last)
			}
			last = z.Taken()
			if err != nil {
				break
			}
		}
		if last != int64(len(file)) {
			t.Errorf("%d bytes taken at the end, want %d", last, len(file))
		}
	})
}

var errSource = errors.New("the source has failed")

// TestSourceFails delivers all that came before the error of a source, and that
// error, be it told with the last bytes or after them; and again when asked again.
func TestSourceFails(t *testing.T) {
	noLeak(t)
	file := manyBlocks(t, rand.New(rand.NewPCG(16, 16)))
	o := new(oracle)
	for _, n := range []int{0, 5, 10, 11, 100, smallPiece, 2*smallPiece - 1, 5 * smallPiece, 5*smallPiece + 1, len(file) - 9, len(file) - 3, len(file)} {
		cut := o.compare(t, "the reference", file[:n])
		readers(t, func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader) {
			for name, src := range map[string]io.Reader{
				"after": io.MultiReader(whole(file[:n]), iotest.ErrReader(errSource)),
				"with":  &failing{iotest.DataErrReader(whole(file[:n]))},
			} {
				z := open(t.Context(), src)
				got, err := io.ReadAll(z)
				if !errors.Is(err, errSource) {
					t.Errorf("%d bytes, %s: %v, want the error of the source", n, name, err)
				}
				wanted(t, fmt.Sprintf("%d bytes, %s", n, name), result{got, cut.end}, cut)
				if _, again := z.Read(make([]byte, 1)); again != err {
					t.Errorf("%d bytes, %s: then %v", n, name, again)
				}
				z.Close()
			}
		})
	}
	z := pgunzip.NewReader(t.Context(), iotest.TimeoutReader(iotest.OneByteReader(whole(file))), pgunzip.Options{Workers: 2})
	defer z.Close()
	if _, err := io.ReadAll(z); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("a source that times out: %v", err)
	}
}

// failing has an error in place of the end.
type failing struct{ io.Reader }

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = errSource
	}
	return n, err
}

// TestNoProgress ends where a source answers nothing for ever.
func TestNoProgress(t *testing.T) {
	noLeak(t)
	file := zip(t, []byte(strings.Repeat("all that came ", 9)), 0)
	readers(t, func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader) {
		z := open(t.Context(), io.MultiReader(whole(file[:50]), nothing{}))
		defer z.Close()
		got, err := io.ReadAll(z)
		if !errors.Is(err, io.ErrNoProgress) || len(got) != 50-15 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

// stalling delivers what it has and then blocks until its context ends.
type stalling struct {
	io.Reader
	ctx     context.Context
	stalled chan<- struct{}
}

func (s *stalling) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); err != io.EOF {
		return n, err
	}
	select {
	case s.stalled <- struct{}{}:
	default:
	}
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// TestStall reads all that can be known of what a source has delivered before it
// stalled, and ends when the context does.
func TestStall(t *testing.T) {
	noLeak(t)
	file := manyBlocks(t, rand.New(rand.NewPCG(17, 17)))
	for _, n := range []int{0, 9, 50, smallPiece - 1, smallPiece, smallPiece + 1, 3*smallPiece + smallPiece/4, len(file) / 2, len(file) - 8, len(file)} {
		cut := new(oracle).compare(t, "the reference", file[:n])
		readers(t, func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader) {
			ctx, cancel := context.WithCancel(t.Context())
			z := open(ctx, &stalling{whole(file[:n]), ctx, nil})
			defer z.Close()
			got := make([]byte, len(cut.content))
			if _, err := io.ReadFull(z, got); err != nil || !bytes.Equal(got, cut.content) {
				t.Errorf("%d bytes: %v, or other content", n, err)
			}
			cancel()
			if _, err := io.ReadAll(z); !errors.Is(err, context.Canceled) {
				t.Errorf("%d bytes, cancelled: %v", n, err)
			}
		})
	}
}

// TestTakenWhenCancelled is about a Read that waits for the source.
func TestTakenWhenCancelled(t *testing.T) {
	noLeak(t)
	file := manyBlocks(t, rand.New(rand.NewPCG(15, 15)))
	for _, n := range []int{len(file) / 2, 3 * smallPiece, len(file) - 8} {
		cut := new(oracle).compare(t, "the reference", file[:n])
		readers(t, func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader) {
			ctx, cancel := context.WithCancel(t.Context())
			stalled := make(chan struct{}, 1)
			z := open(ctx, &stalling{whole(file[:n]), ctx, stalled})
			defer z.Close()
			if _, err := io.ReadFull(z, make([]byte, len(cut.content))); err != nil {
				t.Fatal(err)
			}
			was := z.Taken()
			go func() {
				<-stalled
				cancel()
			}()
			if _, err := io.Copy(io.Discard, z); !errors.Is(err, context.Canceled) || was == 0 || z.Taken() < was {
				t.Errorf("%d bytes taken, %d when cancelled: %v", was, z.Taken(), err)
			}
		})
	}
}

// TestCancel ends the context at several places, and while a Read waits.
func TestCancel(t *testing.T) {
	noLeak(t)
	file := manyBlocks(t, rand.New(rand.NewPCG(18, 18)))
	readers(t, func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader) {
		for _, n := range []int64{0, 1, 1000, 100 << 10, 200 << 10} {
			ctx, cancel := context.WithCancelCause(t.Context())
			z := open(ctx, whole(file))
			if got, err := io.CopyN(io.Discard, z, n); err != nil {
				t.Fatal(got, err)
			}
			cancel(nil)
			for range 2 {
				if _, err := io.Copy(io.Discard, z); !errors.Is(err, context.Canceled) {
					t.Errorf("after %d bytes: %v", n, err)
				}
			}
			z.Close()
		}
		ctx, cancel := context.WithCancel(t.Context())
		stalled := make(chan struct{}, 1)
		z := open(ctx, &stalling{whole(file[:len(file)/2]), ctx, stalled})
		go func() {
			<-stalled
			cancel()
		}()
		if _, err := io.Copy(io.Discard, z); !errors.Is(err, context.Canceled) {
			t.Errorf("while the source stalls: %v", err)
		}
		z.Close()
	})
}

// TestClose closes at several places, twice, and reads then.
func TestClose(t *testing.T) {
	noLeak(t)
	file := manyBlocks(t, rand.New(rand.NewPCG(19, 19)))
	readers(t, func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader) {
		for _, n := range []int64{0, 1, 1000, 100 << 10, 240 << 10} {
			z := open(t.Context(), whole(file))
			if got, err := io.CopyN(io.Discard, z, n); err != nil {
				t.Fatal(got, err)
			}
			for range 2 {
				if err := z.Close(); err != nil {
					t.Errorf("close after %d bytes: %v", n, err)
				}
				if got, err := z.Read(make([]byte, 10)); got != 0 || err == nil || err == io.EOF {
					t.Errorf("read after close: %d, %v", got, err)
				}
				if got, err := z.WriteTo(io.Discard); got != 0 || err == nil {
					t.Errorf("copy after close: %d, %v", got, err)
				}
			}
		}
	})
}

// TestWriteFails hands the error of a writer on.
func TestWriteFails(t *testing.T) {
	noLeak(t)
	file := manyBlocks(t, rand.New(rand.NewPCG(20, 20)))
	readers(t, func(t *testing.T, open func(context.Context, io.Reader) *pgunzip.Reader) {
		z := open(t.Context(), whole(file))
		defer z.Close()
		r, w := io.Pipe()
		r.CloseWithError(errSource)
		if n, err := z.WriteTo(w); n != 0 || !errors.Is(err, errSource) {
			t.Errorf("%d, %v", n, err)
		}
	})
}
