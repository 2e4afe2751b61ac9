package fetch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter is the longest wait that a server may ask for. A hostile or
// broken one would otherwise stop a nightly run for ever.
const maxRetryAfter = 10 * time.Minute

// checkURL allows https, and http where nobody can listen in. It never allows
// file, which only a user may name (parseURL): no server may lead there.
func checkURL(u *url.URL, insecure bool) error {
	switch {
	case u.Scheme == "http" && !insecure && !isLoopback(u.Hostname()):
		return &InsecureError{URL: redactURL(u), Reason: "http is for loopback only; use https, or set insecure: true for this mirror"}
	case u.Scheme != "http" && u.Scheme != "https":
		return &InsecureError{URL: redactURL(u), Reason: fmt.Sprintf("the scheme %q is not supported, only https (and http) is", u.Scheme)}
	case u.Host == "":
		return &InsecureError{URL: redactURL(u), Reason: "the URL names no host"}
	}
	return nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// parseURL reads and checks a URL that came from a user or a page.
func (c *Client) parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, &InsecureError{URL: redact(raw), Reason: "it is not a URL"}
	}
	if isFile(u) {
		return u, checkFileURL(u)
	}
	return u, checkURL(u, c.opts.Insecure || c.site(u).Insecure)
}

// send makes one request. The body of the answer, and the wait for it, end
// with an *IdleError when nothing arrives for the idle timeout. Bytes are
// asked for, and refused, as they are: see EncodingError.
func (c *Client) send(ctx context.Context, l lane, method string, u *url.URL, header http.Header) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	idle := c.opts.IdleTimeout
	timer := time.AfterFunc(idle, func() { cancel(&IdleError{After: idle}) })
	resp, err := c.follow(ctx, l, method, u, header)
	timer.Stop()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", strings.ToLower(method), redactURL(u), idleCause(ctx, redactError(err)))
		cancel(nil)
		return nil, err
	}
	resp.Body = &idleBody{body: resp.Body, ctx: ctx, cancel: cancel, timer: timer, idle: idle}
	return resp, nil
}

// patient gives what has few bytes a time in which all of them must be there:
// a server that sends one now and then is not idle, and would be waited for
// for ever.
func (c *Client) patient(ctx context.Context, u *url.URL) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, c.patience, &SlowError{URL: redactURL(u), After: c.patience})
}

// idleCause returns the *IdleError or *SlowError that ended ctx, or err.
func idleCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if isA[*IdleError](cause) || isA[*SlowError](cause) {
		return cause
	}
	return err
}

// idleBody limits the wait for each read, not the time between reads: a slow
// disk or a rate limit is not the server's fault.
type idleBody struct {
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
}

func (b *idleBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	n, err := b.body.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF {
		err = idleCause(b.ctx, err)
	}
	return n, err
}

func (b *idleBody) Close() error {
	b.timer.Stop()
	err := b.body.Close()
	b.cancel(nil)
	return err
}

// statusError reads what an answer says about itself that is no success.
func (c *Client) statusError(u *url.URL, resp *http.Response) error {
	e := &StatusError{URL: redactURL(u), Code: resp.StatusCode}
	e.RetryAfter = parseRetryAfter(resp.Header.Get("Retry-After"), c.opts.Now())
	return e
}

// parseRetryAfter reads RFC 9110's Retry-After: seconds or a date.
func parseRetryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}
