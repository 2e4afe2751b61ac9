package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// progressEvery is the shortest time between two events of progress.
const progressEvery = 100 * time.Millisecond

// Download is a tarball on its way: an io.ReadCloser over all of its bytes in
// order, readable while segments still arrive. Read is for one goroutine at a
// time; Close and Discard may be called from any.
type Download struct {
	client   *Client
	name     string
	object   *object
	spool    *spool
	segments []segment
	gate     *gate
	resumed  int64
	local    *localFile // in place of spool, segments and workers

	cancel context.CancelCauseFunc
	joined chan struct{} // closed when no worker is left
	next   atomic.Int64  // the segment to fetch next

	mu       sync.Mutex
	changed  *sync.Cond // of everything below, and of the segments
	done     int64      // bytes on disk
	reported time.Time  // of the last progress event
	complete bool       // every segment is whole
	err      error      // why there is no more to come
	poisoned bool       // what the spool holds is not a tarball
	closed   bool
	checked  []string // what the stream was checked against, when it has ended

	reader reader

	closing  sync.Once
	closeErr error
}

// Download begins to download rel into the directory spool, which is created
// and may hold what an earlier run left. It returns once the server has said
// what there is; the bytes arrive in the background until Close, or until ctx
// ends. One download uses a spool at a time. A file:// release is read from
// where it is, and needs no spool.
func (c *Client) Download(ctx context.Context, rel release.Release, spool string) (*Download, error) {
	return c.DownloadIf(ctx, rel, spool, nil)
}

// DownloadIf is Download, unless allow, which is told what it will take of the
// disk before anything of it is changed, returns an error; then that is its own.
func (c *Client) DownloadIf(ctx context.Context, rel release.Release, spool string, allow func(Ahead) error) (*Download, error) {
	d, err := c.begin(ctx, rel, spool, allow)
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", rel.Name, withHint(err))
	}
	return d, nil
}

// Object is what a server says of a tarball before it is downloaded.
type Object struct {
	Size         int64  // bytes
	ETag         string // as sent; "" if none
	LastModified time.Time
}

// Stat asks what there is to download, without downloading it. Of what was
// deleted, or never was there, IsGone reports that of the error.
func (c *Client) Stat(ctx context.Context, rel release.Release) (Object, error) {
	u, err := c.parseURL(rel.URL)
	if err != nil {
		return Object{}, fmt.Errorf("look at %s: %w", rel.Name, withHint(err))
	}
	o, err := c.look(ctx, rel.Name, u)
	if err != nil {
		return Object{}, fmt.Errorf("look at %s: %w", rel.Name, withHint(err))
	}
	return Object{Size: o.size, ETag: o.etag, LastModified: o.lastModified()}, nil
}

func (c *Client) look(ctx context.Context, name string, u *url.URL) (*object, error) {
	if !isFile(u) {
		return c.probe(ctx, name, u)
	}
	f, o, err := openLocal(name, u)
	if err != nil {
		return nil, err
	}
	return o, f.Close()
}

func (c *Client) begin(ctx context.Context, rel release.Release, dir string, allow func(Ahead) error) (*Download, error) {
	u, err := c.parseURL(rel.URL)
	if err != nil {
		return nil, err
	}
	if isFile(u) {
		return c.beginLocal(ctx, rel.Name, u, allow)
	}
	sp, err := openSpool(dir)
	if err != nil {
		return nil, err
	}
	o, err := c.probe(ctx, rel.Name, u)
	if err != nil {
		sp.close()
		return nil, err
	}
	if allow != nil {
		if err := allow(sp.ahead(o)); err != nil {
			_ = os.Remove(sp.dir) // if nothing is in it
			sp.close()
			return nil, err
		}
	}
	kept, err := sp.prepare(o, c.segmentSize(o.size))
	if err != nil {
		sp.close()
		return nil, err
	}
	d := newDownload(c, rel.Name, o, sp, kept)
	d.event(EventStart, "")
	if !o.ranges {
		d.event(EventNote, "the server cannot send parts of it: one connection, and an interrupted download begins again")
	}
	d.start(ctx)
	return d, nil
}

func newDownload(c *Client, name string, o *object, sp *spool, kept []bool) *Download {
	d := &Download{client: c, name: name, object: o, spool: sp, segments: make([]segment, len(kept)),
		gate: newGate(c.opts.Connections), joined: make(chan struct{})}
	d.changed = sync.NewCond(&d.mu)
	d.reader.etag = newETagCheck(o.size, o.etag)
	for i := range d.segments {
		seg := &d.segments[i]
		seg.off, seg.size = int64(i)*sp.state.PartSize, sp.segmentSize(i)
		if kept[i] {
			seg.avail, seg.whole = seg.size, true
			d.resumed += seg.size
		}
	}
	d.done = d.resumed
	return d
}

// start sets the workers going, and one goroutine that outlives them.
func (d *Download) start(ctx context.Context) {
	ctx, d.cancel = context.WithCancelCause(ctx)
	g, gctx := errgroup.WithContext(ctx)
	for range min(d.client.opts.Connections, len(d.segments)) {
		g.Go(func() error { return d.work(gctx) })
	}
	go func() {
		defer close(d.joined)
		err := g.Wait()
		if ctx.Err() != nil && err != nil {
			err = context.Cause(ctx)
		}
		d.end(err)
		d.cancel(nil)
	}()
}

// work fetches segments in order, so that the reader waits for the earliest.
func (d *Download) work(ctx context.Context) error {
	for {
		i := int(d.next.Add(1) - 1)
		if i >= len(d.segments) {
			return nil
		}
		d.mu.Lock()
		whole := d.segments[i].whole
		d.mu.Unlock()
		if whole {
			continue
		}
		if err := d.fetchSegment(ctx, i); err != nil {
			return err
		}
	}
}

// end records how the workers ended.
func (d *Download) end(err error) {
	d.mu.Lock()
	if err == nil {
		d.complete = true
	} else if d.err == nil {
		d.err = d.wrap(err)
	}
	d.changed.Broadcast()
	d.mu.Unlock()
	if err == nil {
		d.event(EventProgress, "")
		d.event(EventDone, "")
	}
}

// wrap says what is kept; d.mu is held.
func (d *Download) wrap(err error) error {
	e := &DownloadError{Name: d.name, Spool: d.spool.dir, Segments: len(d.segments), Missing: d.object.size - d.done, Err: err}
	for i := range d.segments {
		if d.segments[i].whole {
			e.Kept++
		}
	}
	return e
}

// advance makes the first n bytes of segment i readable.
func (d *Download) advance(i int, n int64) {
	d.mu.Lock()
	d.done += n - d.segments[i].avail
	d.segments[i].avail = n
	d.segments[i].most = max(d.segments[i].most, n)
	d.changed.Broadcast()
	due := false
	if now := d.client.opts.Now(); now.Sub(d.reported) >= progressEvery {
		d.reported, due = now, true
	}
	d.mu.Unlock()
	if due {
		d.event(EventProgress, "")
	}
}

// finished marks segment i as whole.
func (d *Download) finished(i int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seg := &d.segments[i]
	d.done += seg.size - seg.avail
	seg.avail, seg.whole = seg.size, true
	d.changed.Broadcast()
}

// beginAnew takes back the bytes of segment i. What of them was read already
// comes again, and is the same if the object can be identified.
func (d *Download) beginAnew(i int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	seg := &d.segments[i]
	if !d.object.identified() && d.reader.pos > seg.off {
		return &RangeError{URL: redactURL(d.object.url), Want: "the rest of the file after a transfer that broke off",
			Got: "no way to tell whether it is still the same file (no ETag, no Last-Modified)"}
	}
	d.done -= seg.avail
	seg.avail = 0
	seg.gen++
	return nil
}

// event reports something, with the bytes as they are when it is reported.
func (d *Download) event(kind, message string) {
	if d.client.opts.Event == nil {
		return
	}
	d.client.eventMu.Lock()
	defer d.client.eventMu.Unlock()
	d.mu.Lock()
	e := Event{Kind: kind, Release: d.name, Done: d.done, Total: d.object.size, Message: message}
	d.mu.Unlock()
	d.client.opts.Event(e)
}

// Size returns the size of the tarball in bytes.
func (d *Download) Size() int64 { return d.object.size }

// ETag returns the ETag as the server sent it, strong or weak, "" if none.
func (d *Download) ETag() string { return d.object.etag }

// LastModified returns what the server said, in UTC, or the zero time.
func (d *Download) LastModified() time.Time { return d.object.lastModified() }

// Left returns how many bytes are still to be written to the spool.
func (d *Download) Left() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.local != nil {
		return 0
	}
	return d.object.size - d.done
}

// Resumed returns how many bytes an earlier run had left on disk.
func (d *Download) Resumed() int64 { return d.resumed }

// Checked returns what the bytes were checked against on their way, in words:
// the length that the server stated, and the ETag, if it could be recomputed.
// It is nil until Read has returned io.EOF. It says nothing of digests: those
// are for whoever hashes the stream.
func (d *Download) Checked() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.checked)
}

// errClosed is what a Read after, or during, Close returns.
var errClosed = errors.New("the download was closed")

// Close ends the download and waits until nothing of it is left running.
// Finished segments stay in the spool for the next run, unless what arrived
// was no tarball at all.
func (d *Download) Close() error {
	d.closing.Do(func() { d.closeErr = d.shut() })
	return d.closeErr
}

func (d *Download) shut() error {
	if d.local != nil {
		return d.shutLocal()
	}
	d.mu.Lock()
	d.closed = true
	d.changed.Broadcast()
	d.mu.Unlock()
	d.cancel(errClosed)
	<-d.joined
	d.client.CloseIdle()
	err := d.reader.close()
	d.mu.Lock()
	poisoned := d.poisoned
	d.mu.Unlock()
	if poisoned {
		err = errors.Join(err, d.spool.clear())
	}
	if err = errors.Join(err, d.spool.close()); err != nil {
		return fmt.Errorf("close download: %w", err)
	}
	return nil
}

// Discard ends the download and removes what it left in the spool: the bytes
// turned out to be wrong. The directory itself stays, and so does the file of
// a file:// release.
func (d *Download) Discard() error {
	err := d.Close()
	if d.local != nil {
		return err // what it read is not its own
	}
	sp, lockErr := openSpool(d.spool.dir)
	if lockErr != nil {
		return errors.Join(err, fmt.Errorf("discard download: %w", lockErr))
	}
	err = errors.Join(err, sp.clear(), sp.close())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("discard download: %w", err)
	}
	return nil
}
