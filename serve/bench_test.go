package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// bench runs a Daemon in a bubble of synctest, of which time begins at midnight UTC,
// the first of January 2000.
type bench struct {
	t      *testing.T
	ctx    context.Context
	cancel context.CancelFunc
	d      *Daemon
	o      Options
	ahead  atomic.Int64 // of the wall clock
	err    chan error

	mu   sync.Mutex
	told []string
	runs []string // job, why and when, by the wall clock
	log  strings.Builder
}

// midnight is when bubbles begin.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func newBench(t *testing.T) *bench {
	b := &bench{t: t, err: make(chan error, 1)}
	b.o = Options{
		Now:    func() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) },
		Notify: func(s string) { b.note(&b.told, s) },
		Log:    slog.New(slog.NewTextHandler(b, nil)),
		Jitter: func(time.Duration) time.Duration { return 0 },
		Hub:    new(state.Hub),
		Sys:    fstest.MapFS{},
	}
	return b
}

// Write implements io.Writer for the log.
func (b *bench) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(p)
}

func (b *bench) note(list *[]string, s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*list = append(*list, s)
}

// ran says that a run has begun.
func (b *bench) ran(job string, why Why) {
	b.note(&b.runs, fmt.Sprintf("%s %s %s", job, why, b.o.Now().UTC().Format("02T15:04")))
}

// job makes one that notes its runs, and then does what do says.
func (b *bench) job(name, spec string, do func(context.Context, Turn) Result) Job {
	return Job{Name: name, Kind: Update, Spec: spec, Run: func(ctx context.Context, t Turn) Result {
		b.ran(name, t.Why)
		if do == nil {
			return Result{}
		}
		return do(ctx, t)
	}}
}

func (b *bench) start(jobs ...Job) {
	b.t.Helper()
	b.ctx, b.cancel = context.WithCancel(context.Background())
	var err error
	if b.d, err = New(jobs, b.o); err != nil {
		b.t.Fatal(err)
	}
	go func() { b.err <- b.d.Run(b.ctx) }()
	synctest.Wait()
}

func (b *bench) stop() {
	b.t.Helper()
	b.cancel()
	if err := <-b.err; err != nil {
		b.t.Error(err)
	}
}

// jump sets the wall clock, or has the machine sleep: for a timer both are the same.
func (b *bench) jump(by time.Duration) { b.ahead.Add(int64(by)) }

// want compares what has run since it was last asked.
func (b *bench) want(runs ...string) {
	b.t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if got, want := strings.Join(b.runs, ", "), strings.Join(runs, ", "); got != want {
		b.t.Errorf("ran %s\nwant %s\nlog:\n%s", got, want, b.log.String())
	}
	b.runs = nil
}

func (b *bench) logged(text string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.Contains(b.log.String(), text) {
		b.t.Errorf("the log does not say %q:\n%s", text, b.log.String())
	}
}

// said reports whether systemd was told.
func (b *bench) said(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(strings.Join(b.told, "|"), text)
}

func failing(times int) func(context.Context, Turn) Result {
	return func(context.Context, Turn) Result {
		if times--; times >= 0 {
			return Result{Exit: 1, Err: errors.New("no route to host")}
		}
		return Result{}
	}
}

// plug is a /sys that changes.
type plug struct{ now atomic.Pointer[fstest.MapFS] }

func (p *plug) put(sys fstest.MapFS) { p.now.Store(&sys) }

// Open implements fs.FS.
func (p *plug) Open(name string) (fs.File, error) { return p.now.Load().Open(name) }
