package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// maxPage is the largest index page that is read, in bytes. AMD's has about
// 80 bytes a file and some thousand files.
const maxPage = 64 << 20

// indexReaders is how many indexes of a channel are read at once.
const indexReaders = 4

// maxIndexWait is the longest Retry-After that an index, or another small
// file, is waited for: who asks for more is asked by the next run.
const maxIndexWait = 30 * time.Second

// maxIndexRetries keeps one dead index from delaying a channel for minutes:
// the others are there for that.
const maxIndexRetries = 3

// List reads the indexes of a channel and merges them. An index that fails is
// recorded in Sources and does not hide the others; the error is not nil only
// when every index failed, or ctx ended.
func (c *Client) List(ctx context.Context, channel string, indexes []Source) (*Listing, error) {
	if len(indexes) == 0 {
		return nil, fmt.Errorf("list %s: no index is configured (set channels.%s.indexes)", channel, channel)
	}
	routes, err := routesOf(indexes)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", channel, err)
	}
	c.register(indexes...)
	pages := make([]*page, len(indexes))
	errs := make([]error, len(indexes))
	var g errgroup.Group
	g.SetLimit(indexReaders)
	for i, ix := range indexes {
		g.Go(func() error {
			pages[i], errs[i] = c.readIndex(ctx, ix.URL)
			return nil
		})
	}
	_ = g.Wait() // each index keeps its own error
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list %s: %w", channel, context.Cause(ctx))
	}
	if !slices.Contains(errs, nil) {
		return nil, fmt.Errorf("list %s: no index could be read: %w", channel, errors.Join(errs...))
	}
	return merge(channel, c.opts.Now(), indexes, routes, pages, errs), nil
}

// readIndex reads one index, page after page, trying again where that can help.
func (c *Client) readIndex(ctx context.Context, raw string) (*page, error) {
	u, err := c.parseURL(raw)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	var p *page
	if isFile(u) {
		p, err = c.readDirectory(ctx, u)
	} else {
		p, err = c.readPages(ctx, u)
	}
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	return p, nil
}

func (c *Client) readPages(ctx context.Context, first *url.URL) (*page, error) {
	ctx, cancel := c.patient(ctx, first)
	defer cancel()
	note := func(err error, wait time.Duration) {
		c.event(Event{Kind: EventRetry, Message: fmt.Sprintf("read index: %v; again in %s", err, wait.Round(time.Millisecond))})
	}
	all := &page{}
	at := first
	for n := 1; ; n++ {
		var p *page
		var next *cursor
		err := retry(ctx, min(c.opts.Retries, maxIndexRetries), c.pause, note, func() (err error) {
			p, next, err = c.readPage(ctx, at)
			return notLater(err)
		})
		if err != nil {
			return nil, err
		}
		if n == 1 && next == nil {
			return p, p.known(first)
		}
		all.join(p)
		switch {
		case next == nil:
			return all, all.known(first)
		case n == maxPages || all.names()+all.refused > maxFiles:
			return nil, &LayoutError{URL: redactURL(first), Reason: fmt.Sprintf("its listing of a bucket has more than %d pages or %d keys; add a prefix to the URL", maxPages, maxFiles)}
		}
		after := next.url(first)
		if after.RawQuery == at.RawQuery {
			return nil, &LayoutError{URL: redactURL(first), Reason: "a page of its listing says that it is followed by itself"}
		}
		at = after
	}
}

// notLater makes an error final whose server asks for a long pause.
func notLater(err error) error {
	if status, ok := errors.AsType[*StatusError](err); ok && status.RetryAfter > maxIndexWait {
		return &finalError{err}
	}
	return err
}

// readPage reads one page. Where the server says that it is as it was when
// this Client read it last, what was read then is returned.
func (c *Client) readPage(ctx context.Context, u *url.URL) (*page, *cursor, error) {
	resp, known, err := c.askAgain(ctx, u)
	if err != nil || known != nil {
		return known, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, c.statusError(u, resp)
	}
	if enc := contentEncoding(resp); enc != "" {
		return nil, nil, &EncodingError{URL: redactURL(u), Encoding: enc}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", redactURL(u), err)
	}
	if len(body) > maxPage {
		return nil, nil, &LayoutError{URL: redactURL(u), Reason: fmt.Sprintf("it is larger than %d MiB", maxPage>>20)}
	}
	// Links are relative to where the page was found in the end.
	p, next, err := parseIndex(body, resp.Request.URL, c.opts.Now())
	if err == nil && next == nil {
		c.remember(u, resp, p, body)
	}
	return p, next, err
}

// contentEncoding returns what was done to the bytes, "" for nothing.
func contentEncoding(resp *http.Response) string {
	enc := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	if resp.Uncompressed {
		return "gzip (removed on the way)"
	}
	if enc == "identity" {
		return ""
	}
	return enc
}
