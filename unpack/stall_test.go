package unpack

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// hung is a source that gives what it has and then hangs.
type hung struct {
	data    io.Reader
	stalled chan struct{} // closed when a Read hangs
	free    chan struct{} // closed by the test's end
	once    sync.Once
}

func newHung(t *testing.T, data []byte) *hung {
	h := &hung{data: bytes.NewReader(data), stalled: make(chan struct{}), free: make(chan struct{})}
	t.Cleanup(func() { close(h.free) })
	return h
}

func (h *hung) Read(p []byte) (int, error) {
	if n, err := h.data.Read(p); err == nil {
		return n, nil
	}
	h.once.Do(func() { close(h.stalled) })
	<-h.free
	return 0, errors.New("late")
}

// flushed is a gzip stream that has not ended, but shows all of raw.
func flushed(t *testing.T, raw []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	if _, err := gz.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := gz.Flush(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// soon runs Tree and fails if it does not come back.
func soon(t *testing.T, ctx context.Context, r io.Reader, root *os.Root) error {
	t.Helper()
	res := make(chan error, 1)
	go func() {
		_, err := Tree(ctx, r, root, Options{})
		res <- err
	}()
	select {
	case err := <-res:
		return err
	case <-time.After(5 * time.Second):
		t.Fatal("Tree does not come back while the source hangs")
		return nil
	}
}

func TestCancelWhileTheSourceHangs(t *testing.T) {
	t.Parallel()
	whole := archive(t, entry{name: "./a", body: strings.Repeat("abc", 5000)})
	raw := rawTar(t, entry{name: "./a", body: strings.Repeat("abc", 5000)})
	for what, data := range map[string][]byte{
		"at the beginning":     nil,
		"in the gzip header":   whole[:5],
		"in a file":            flushed(t, raw[:3000]),
		"before the gzip ends": flushed(t, raw),
		"after the gzip ended": whole,
	} {
		ctx, cancel := context.WithCancel(context.Background())
		h := newHung(t, data)
		go func() {
			<-h.stalled
			cancel()
		}()
		root, _ := openRoot(t)
		if err := soon(t, ctx, h, root); !errors.Is(err, context.Canceled) || err.Error() != "unpack: context canceled" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRefusalWhileTheSourceHangs(t *testing.T) {
	h := newHung(t, flushed(t, rawTar(t, entry{name: "./../victim", body: "x"})))
	root, _ := openRoot(t)
	if err := soon(t, context.Background(), h, root); !errors.Is(err, ErrRefused) {
		t.Errorf("error %v", err)
	}
}

// The disk's error is reported, not the cancellation that it causes.
func TestWriteErrorWhileTheSourceHangs(t *testing.T) {
	h := newHung(t, flushed(t, rawTar(t, entry{name: "./a", body: "x"})[:1024]))
	root, dir := openRoot(t)
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var ee *EntryError
	if err := soon(t, context.Background(), h, root); !errors.Is(err, fs.ErrExist) || !errors.As(err, &ee) {
		t.Errorf("error %v", err)
	}
}

// cancelling ends its context in the middle of its data.
type cancelling struct {
	data   io.Reader
	left   int
	cancel context.CancelFunc
}

func (c *cancelling) Read(p []byte) (int, error) {
	if c.left <= 0 {
		c.cancel()
	}
	n, err := c.data.Read(p[:min(len(p), 1000)])
	c.left -= n
	return n, err
}

func TestCancellationBlamesNoFile(t *testing.T) {
	t.Parallel()
	whole := archive(t, amdLike()...)
	for left := range 6 {
		ctx, cancel := context.WithCancel(context.Background())
		root, _ := openRoot(t)
		endless := io.MultiReader(bytes.NewReader(whole[:100+left*40]), newHung(t, nil))
		err := soon(t, ctx, &cancelling{endless, left * 40, cancel}, root)
		if err == nil || err.Error() != "unpack: context canceled" {
			t.Errorf("%d: %v", left, err)
		}
	}
}

// A source that stops when the context ends has been left alone when Tree
// returns.
func TestTreeWaitsForASourceThatStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var left bool
	src := readerFunc(func([]byte) (int, error) {
		cancel()
		<-ctx.Done()
		left = true // the race detector says when Tree does not wait
		return 0, ctx.Err()
	})
	root, _ := openRoot(t)
	if err := soon(t, ctx, src, root); !errors.Is(err, context.Canceled) || !left {
		t.Errorf("error %v, left %v", err, left)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
