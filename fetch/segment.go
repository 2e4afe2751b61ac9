package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cavaliergopher/grab/v3"
)

// grabBuffer is the size of grab's copy buffer, in bytes: its default of 32
// KiB costs half of the throughput of a fast line.
const grabBuffer = 1 << 20

// segment is one part of the tarball. All fields but off and size are
// guarded by Download.mu.
type segment struct {
	off, size int64
	avail     int64 // bytes on disk that may be read
	most      int64 // the largest avail that there ever was
	gen       int   // counts how often the file was begun anew
	whole     bool  // synced, under its final name
}

// mostTries bounds the tries that bring something: each must bring at least so
// small a part of the segment. A hostile server that breaks off after each byte
// is not followed for years.
const mostTries = 8192

// fetchSegment brings segment i to disk. Only tries that bring nothing new
// count as failures: a line that breaks every few megabytes is slow, not dead.
func (d *Download) fetchSegment(ctx context.Context, i int) error {
	what := fmt.Sprintf("segment %d of %d", i+1, len(d.segments))
	note := func(err error, wait time.Duration) {
		if _, refused := refusal(err); refused {
			d.gate.hold(wait)
		}
		d.event(EventRetry, fmt.Sprintf("%s: %v; again in %s", what, err, wait.Round(time.Millisecond)))
	}
	err := retry(ctx, d.client.opts.Retries, d.client.pause, note, func() error {
		before := d.reached(i)
		err := d.trySegmentInTurn(ctx, i, what)
		if err != nil && d.reached(i) > before+d.segments[i].size/mostTries {
			return &furtherError{err}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// trySegmentInTurn tries when the gate allows it, and again while it is only
// the other requests of this download that the server has enough of.
func (d *Download) trySegmentInTurn(ctx context.Context, i int, what string) error {
	for {
		if err := d.gate.enter(ctx, i); err != nil {
			return err
		}
		err := d.trySegment(ctx, i)
		if !d.gate.leave(err) {
			return err
		}
		d.event(EventRetry, fmt.Sprintf("%s: %v; again after the others", what, err))
	}
}

// reached returns how much of segment i was on disk at any time, in bytes.
func (d *Download) reached(i int) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.segments[i].most
}

// trySegment is one attempt, with a grab.Request of its own: grab keeps the
// Range header of an earlier attempt in a reused one, and then writes the
// tail of a file where its head belongs.
func (d *Download) trySegment(ctx context.Context, i int) error {
	if err := d.cleanPart(i); err != nil {
		return err
	}
	// grab never sees the network: the attempt answers it.
	req, err := grab.NewRequest(d.spool.partPath(i), redactURL(d.object.url))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	a := &attempt{download: d, index: i}
	req = req.WithContext(ctx)
	req.Size = d.segments[i].size
	req.NoCreateDirectories = true
	req.IgnoreRemoteTime = true
	req.BufferSize = d.bufferSize()
	req.RateLimiter = a
	client := &grab.Client{HTTPClient: a, UserAgent: d.client.opts.UserAgent}
	if err := client.Do(req).Err(); err != nil {
		return err
	}
	if err := d.spool.commit(i); err != nil {
		return err
	}
	d.finished(i)
	return nil
}

// bufferSize keeps one read well below what a rate limit allows in a second.
func (d *Download) bufferSize() int {
	if rate := d.client.opts.RateLimit; rate > 0 {
		return int(min(max(rate/8, 4<<10), grabBuffer))
	}
	return grabBuffer
}

// cleanPart removes a part that cannot be continued. One that grab would take
// for complete by its size alone is among them, and so is one whose length
// is not what this download wrote.
func (d *Download) cleanPart(i int) error {
	p := d.spool.partPath(i)
	d.mu.Lock()
	avail := d.segments[i].avail
	d.mu.Unlock()
	fi, err := os.Lstat(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if avail == 0 {
			return nil
		}
	case err != nil:
		return fmt.Errorf("look at part: %w", err)
	default:
		if d.object.ranges && fi.Mode().IsRegular() && fi.Size() == avail && avail < d.segments[i].size {
			return nil
		}
		if err := os.Remove(p); err != nil {
			return fmt.Errorf("remove part: %w", err)
		}
	}
	return d.beginAnew(i)
}

// attempt is what grab takes for the network and for a rate limiter. As
// the first, it shows a segment as a file of its own that the server can
// resume; as the second, it learns what grab has written.
type attempt struct {
	download *Download
	index    int
	written  int64 // bytes of the segment on disk
}

// Do implements grab.HTTPClient.
func (a *attempt) Do(req *http.Request) (*http.Response, error) {
	seg := &a.download.segments[a.index]
	if req.Method == http.MethodHead {
		return present(req, http.StatusOK, seg.size, http.NoBody), nil
	}
	from, status := int64(0), http.StatusOK
	if r := req.Header.Get("Range"); r != "" {
		n, err := resumeOffset(r)
		if err != nil || n >= seg.size || n > 0 && !a.download.object.ranges {
			return nil, &RangeError{URL: redactURL(a.download.object.url), Want: "a part of a segment", Got: r}
		}
		from, status = n, http.StatusPartialContent
	}
	body, err := a.download.client.open(req.Context(), a.download.object, seg.off+from, seg.off+seg.size-1)
	if err != nil {
		return nil, err
	}
	a.written = from
	return present(req, status, seg.size-from, body), nil
}

// resumeOffset reads grab's "bytes=N-".
func resumeOffset(header string) (int64, error) {
	s, ok := strings.CutPrefix(header, "bytes=")
	s, ok2 := strings.CutSuffix(s, "-")
	n, err := strconv.ParseInt(s, 10, 64)
	if !ok || !ok2 || err != nil || n < 0 {
		return 0, fmt.Errorf("range %q is not one of grab's", header)
	}
	return n, nil
}

// WaitN implements grab.RateLimiter. grab calls it after each write.
func (a *attempt) WaitN(ctx context.Context, n int) error {
	a.written += int64(n)
	a.download.advance(a.index, a.written)
	if l := a.download.client.limiter; l != nil {
		return l.WaitN(ctx, n)
	}
	return nil
}

// present makes an answer of the virtual server that grab talks to.
func present(req *http.Request, status int, length int64, body io.ReadCloser) *http.Response {
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Accept-Ranges": {"bytes"}}, ContentLength: length, Body: body, Request: req,
	}
}
