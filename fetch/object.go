package fetch

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxObject is the largest tarball that is downloaded, in bytes. It only
// keeps a hostile size from being believed; AMD's largest are 15 GB.
const maxObject = 1 << 40

// object is what a server says about a tarball. Two answers that agree with
// one object (agrees) are about the same bytes.
type object struct {
	url         *url.URL
	size        int64
	etag        string // as sent, "" if none
	modified    string // Last-Modified as sent, "" if none
	contentType string
	ranges      bool // it can be asked for in parts
}

// strong reports whether the ETag promises equal bytes (RFC 9110, 8.8.1).
func (o *object) strong() bool { return strings.HasPrefix(o.etag, `"`) }

// identified reports whether a replaced object can be told from this one.
func (o *object) identified() bool { return o.strong() || o.modified != "" }

// validator is the value for If-Range: a weak ETag is not allowed there.
func (o *object) validator() string {
	if o.strong() {
		return o.etag
	}
	return o.modified
}

func (o *object) lastModified() time.Time {
	t, err := http.ParseTime(o.modified)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// agrees returns an error when an answer is not, or cannot be told to be,
// about o.
func (o *object) agrees(resp *http.Response) error {
	etag, modified := resp.Header.Get("ETag"), resp.Header.Get("Last-Modified")
	if o.etag != "" && etag != "" && etag != o.etag {
		return &ChangedError{URL: redactURL(o.url), What: "ETag", Was: o.etag, Is: printable([]byte(etag))}
	}
	if o.modified != "" && modified != "" && modified != o.modified {
		return &ChangedError{URL: redactURL(o.url), What: "Last-Modified", Was: o.modified, Is: printable([]byte(modified))}
	}
	named := o.strong() && etag != "" || o.modified != "" && modified != ""
	if o.identified() && !named {
		return &RangeError{URL: redactURL(o.url), Want: "an answer about " + o.validator(), Got: "one without ETag and Last-Modified"}
	}
	return nil
}

// probe learns what there is to download, trying again where that can help.
func (c *Client) probe(ctx context.Context, name string, u *url.URL) (*object, error) {
	note := func(err error, wait time.Duration) {
		c.event(Event{Kind: EventRetry, Release: name, Message: fmt.Sprintf("%v; again in %s", err, wait.Round(time.Millisecond))})
	}
	var o *object
	err := retry(ctx, c.opts.Retries, c.pause, note, func() (err error) {
		o, err = c.probeOnce(ctx, u)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Parts of an object that cannot be told from its successor must not be
	// joined: it is read in one piece.
	o.ranges = o.ranges && o.identified()
	return o, o.checkSize()
}

func (o *object) checkSize() error {
	switch {
	case o.size < 0:
		return &SizeError{URL: redactURL(o.url), Reason: "the server does not say how large it is, so a truncated copy could not be told from a whole one"}
	case o.size == 0:
		return &SizeError{URL: redactURL(o.url), Reason: "the file on the server is empty"}
	case o.size > maxObject:
		return &SizeError{URL: redactURL(o.url), Reason: fmt.Sprintf("the server says %d bytes, which is more than any tarball has", o.size)}
	}
	return nil
}

// probeOnce asks with HEAD, and with a range of one byte where HEAD is
// refused or does not say whether ranges work.
func (c *Client) probeOnce(ctx context.Context, u *url.URL) (*object, error) {
	resp, err := c.send(ctx, bulk, http.MethodHead, u, nil)
	if err != nil {
		if ctx.Err() != nil || permanent(err) {
			return nil, err
		}
		return c.probeRange(ctx, u)
	}
	resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return nil, c.statusError(u, resp)
	default:
		return c.probeRange(ctx, u)
	}
	o := newObject(u, resp, resp.ContentLength)
	if isHTML(resp) {
		return nil, c.notArchive(ctx, o)
	}
	accept := strings.ToLower(resp.Header.Get("Accept-Ranges"))
	if o.size < 0 || accept != "bytes" && accept != "none" {
		return c.probeRange(ctx, u)
	}
	o.ranges = accept == "bytes"
	return o, nil
}

// probeRange asks for the first byte and learns the size from Content-Range.
func (c *Client) probeRange(ctx context.Context, u *url.URL) (*object, error) {
	resp, err := c.send(ctx, bulk, http.MethodGet, u, http.Header{"Range": {"bytes=0-0"}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	o := newObject(u, resp, resp.ContentLength)
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusPartialContent:
		o.ranges = true
		o.size, err = totalOf(resp.Header.Get("Content-Range"))
		if err != nil {
			return nil, &RangeError{URL: redactURL(u), Want: "bytes 0-0 of a known total", Got: err.Error()}
		}
	case http.StatusRequestedRangeNotSatisfiable:
		o.size = 0
		return o, o.checkSize()
	default:
		return nil, c.statusError(u, resp)
	}
	if isHTML(resp) {
		return nil, c.notArchive(ctx, o)
	}
	if resp.Uncompressed {
		return nil, &EncodingError{URL: redactURL(u), Encoding: contentEncoding(resp)}
	}
	return o, nil
}

func newObject(u *url.URL, resp *http.Response, size int64) *object {
	return &object{
		url: u, size: size, etag: resp.Header.Get("ETag"), modified: resp.Header.Get("Last-Modified"),
		contentType: resp.Header.Get("Content-Type"),
	}
}

// totalOf reads the total out of "bytes 0-0/1234".
func totalOf(contentRange string) (int64, error) {
	total, ok := strings.CutPrefix(contentRange, "bytes 0-0/")
	n, err := strconv.ParseInt(total, 10, 64)
	if !ok || err != nil || n < 1 {
		return 0, fmt.Errorf("Content-Range %q", printable([]byte(contentRange)))
	}
	return n, nil
}

func isHTML(resp *http.Response) bool {
	t, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return t == "text/html" || t == "application/xhtml+xml"
}

// notArchive fetches the start of what is not a tarball, to show it.
func (c *Client) notArchive(ctx context.Context, o *object) error {
	ctx, cancel := context.WithTimeout(ctx, c.opts.IdleTimeout)
	defer cancel()
	e := &NotArchiveError{URL: redactURL(o.url), ContentType: o.contentType}
	resp, err := c.send(ctx, bulk, http.MethodGet, o.url, http.Header{"Range": {fmt.Sprintf("bytes=0-%d", snippetLen-1)}})
	if err == nil {
		e.Start = snippet(resp.Body)
		resp.Body.Close()
	}
	return e
}

func snippet(r io.Reader) string {
	start, _ := io.ReadAll(io.LimitReader(r, snippetLen)) // what there is of it
	return printable(start)
}

// open asks for the bytes from..to (inclusive) of o, and returns an answer
// only if it is exactly them. Every other answer is a typed error.
func (c *Client) open(ctx context.Context, o *object, from, to int64) (io.ReadCloser, error) {
	header := http.Header{}
	if o.ranges {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to))
		header.Set("If-Range", o.validator())
	}
	resp, err := c.send(ctx, bulk, http.MethodGet, o.url, header)
	if err != nil {
		return nil, err
	}
	if err := c.checkAnswer(o, resp, from, to); err != nil {
		resp.Body.Close()
		return nil, err
	}
	body := &exactBody{ReadCloser: resp.Body, left: to - from + 1}
	body.tooLong = &RangeError{URL: redactURL(o.url), Want: fmt.Sprintf("%d bytes", body.left), Got: "more"}
	return body, nil
}

func (c *Client) checkAnswer(o *object, resp *http.Response, from, to int64) error {
	at := redactURL(o.url)
	switch resp.StatusCode {
	case http.StatusPartialContent, http.StatusOK:
	case http.StatusPreconditionFailed:
		return &ChangedError{URL: at, What: "version", Was: o.validator(), Is: "another"}
	case http.StatusRequestedRangeNotSatisfiable:
		return &ChangedError{URL: at, What: "size", Was: strconv.FormatInt(o.size, 10), Is: printable([]byte(resp.Header.Get("Content-Range")))}
	default:
		return c.statusError(o.url, resp)
	}
	if isHTML(resp) {
		return &NotArchiveError{URL: at, ContentType: resp.Header.Get("Content-Type"), Start: snippet(resp.Body)}
	}
	if err := o.agrees(resp); err != nil {
		return err
	}
	if err := o.checkRange(resp, from, to); err != nil {
		return err
	}
	want := to - from + 1
	// An object may be stored with a Content-Encoding: then the raw bytes are
	// what was published, and their number is the proof of it.
	if enc := contentEncoding(resp); resp.Uncompressed || enc != "" && resp.ContentLength != want {
		return &EncodingError{URL: at, Encoding: printable([]byte(enc))}
	}
	if resp.ContentLength >= 0 && resp.ContentLength != want {
		return &RangeError{URL: at, Want: fmt.Sprintf("%d bytes", want), Got: fmt.Sprintf("%d", resp.ContentLength)}
	}
	return nil
}

// checkRange compares status and Content-Range with what was asked for.
func (o *object) checkRange(resp *http.Response, from, to int64) error {
	if !o.ranges {
		if resp.StatusCode != http.StatusOK {
			return &RangeError{URL: redactURL(o.url), Want: "the whole file", Got: fmt.Sprintf("HTTP %d", resp.StatusCode)}
		}
		return nil
	}
	want := fmt.Sprintf("bytes %d-%d/%d", from, to, o.size)
	if resp.StatusCode != http.StatusPartialContent {
		return &RangeError{URL: redactURL(o.url), Want: want, Got: "the whole file (HTTP 200)"}
	}
	if got := resp.Header.Get("Content-Range"); got != want {
		return &RangeError{URL: redactURL(o.url), Want: want, Got: orNone(printable([]byte(got)))}
	}
	return nil
}

// exactBody is a body of exactly so many bytes: less is
// io.ErrUnexpectedEOF, more is tooLong.
type exactBody struct {
	io.ReadCloser
	left    int64
	tooLong error
}

func (b *exactBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, b.end()
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if err == io.EOF {
		if b.left > 0 {
			return n, io.ErrUnexpectedEOF
		}
		return n, io.EOF
	}
	return n, err
}

// end reads on to the end of the answer, which must be here.
func (b *exactBody) end() error {
	var extra [1]byte
	for {
		n, err := b.ReadCloser.Read(extra[:])
		if n > 0 {
			return b.tooLong
		}
		if err != nil {
			return err
		}
	}
}
