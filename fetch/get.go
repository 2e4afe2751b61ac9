package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"
)

// Get reads one small file, of at most limit bytes: a lock, a ledger, a
// signature. The rules of everything else hold for it too: https, or http on
// this machine, or file, and redirects as the Source of its host allows.
func (c *Client) Get(ctx context.Context, rawURL string, limit int64) ([]byte, error) {
	u, err := c.parseURL(rawURL)
	if err != nil {
		return nil, fmt.Errorf("get a file: %w", err)
	}
	if isFile(u) {
		body, err := readFileURL(u, limit)
		if err != nil {
			return nil, fmt.Errorf("get %s: %w", redactURL(u), err)
		}
		return body, nil
	}
	note := func(err error, wait time.Duration) {
		c.event(Event{Kind: EventRetry, Message: fmt.Sprintf("%v; again in %s", err, wait.Round(time.Millisecond))})
	}
	var body []byte
	err = retry(ctx, min(c.opts.Retries, maxIndexRetries), c.pause, note, func() (err error) {
		body, _, err = c.getOnce(ctx, u, limit)
		return notLater(err)
	})
	if err != nil {
		return nil, fmt.Errorf("get a file: %w", err)
	}
	return body, nil
}

// getOnce asks once for a small file, and reports whether the server calls it
// a web page.
func (c *Client) getOnce(ctx context.Context, u *url.URL, limit int64) (body []byte, html bool, err error) {
	ctx, cancel := c.patient(ctx, u)
	defer cancel()
	resp, err := c.send(ctx, small, http.MethodGet, u, nil)
	if err != nil {
		return nil, false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, false, c.statusError(u, resp)
	}
	if enc := contentEncoding(resp); enc != "" {
		return nil, false, &EncodingError{URL: redactURL(u), Encoding: printable([]byte(enc))}
	}
	body, err = readUpTo(resp.Body, redactURL(u), limit)
	if err != nil {
		return nil, false, fmt.Errorf("read %s: %w", redactURL(u), err)
	}
	return body, isHTML(resp), nil
}

// readUpTo reads all of r, which must not have more than limit bytes.
func readUpTo(r io.Reader, at string, limit int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(body)) > limit {
		return nil, &SizeError{URL: at, Reason: fmt.Sprintf("it has more than %d bytes", limit)}
	}
	return body, err
}

// readFileURL reads a small regular file of this machine.
func readFileURL(u *url.URL, limit int64) ([]byte, error) {
	f, err := os.OpenFile(u.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	return readRegular(f, redactURL(u), limit)
}

func readRegular(f *os.File, at string, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &SizeError{URL: at, Reason: "it is not a regular file"}
	}
	return readUpTo(f, at, limit)
}

// withoutPath drops a path that the message around it has already.
func withoutPath(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}
