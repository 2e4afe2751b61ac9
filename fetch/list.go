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

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// maxPage is the largest index page that is read, in bytes. AMD's has about
// 80 bytes a file and some thousand files.
const maxPage = 64 << 20

// indexReaders is how many indexes of a channel are read at once.
const indexReaders = 4

// maxIndexRetries keeps one dead index from delaying a channel for minutes:
// the others are there for that.
const maxIndexRetries = 3

// Source is one index: a page of https, or a directory of file.
type Source struct {
	URL string
}

// Sources makes a Source of each URL.
func Sources(urls ...string) []Source {
	out := make([]Source, len(urls))
	for i, u := range urls {
		out[i].URL = u
	}
	return out
}

// SourceStatus is what one index said.
type SourceStatus struct {
	Source             // URL without credentials
	Err      error     // nil if the page was read
	Releases int       // names of AMD's grammar
	Unparsed int       // other names
	Refused  int       // references to another host or directory, which are not followed
	Newest   time.Time // the newest MTime on the page; zero if there is none
}

// Listing is what the indexes of one channel publish together.
type Listing struct {
	Channel  string
	Releases []release.Release // newest first by release.Compare; one per name, the first index that lists it wins
	Unparsed []string          // names that are not of AMD's grammar, made printable, sorted, each once
	Sources  []SourceStatus    // one per index, in the order given
}

// List reads the indexes of a channel and merges them. An index that fails is
// recorded in Sources and does not hide the others; the error is not nil only
// when every index failed, or ctx ended.
func (c *Client) List(ctx context.Context, channel string, indexes []Source) (*Listing, error) {
	if len(indexes) == 0 {
		return nil, fmt.Errorf("list %s: no index is configured (set channels.%s.indexes)", channel, channel)
	}
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
	return merge(channel, indexes, pages, errs), nil
}

func merge(channel string, indexes []Source, pages []*page, errs []error) *Listing {
	l := &Listing{Channel: channel}
	seen := map[string]bool{}
	for i, p := range pages {
		st := SourceStatus{Source: Source{URL: redact(indexes[i].URL)}, Err: errs[i]}
		if errs[i] == nil {
			st.Releases, st.Unparsed, st.Refused = len(p.releases), len(p.unparsed), p.refused
			l.Unparsed = append(l.Unparsed, p.unparsed...)
			for _, r := range p.releases {
				if r.MTime.After(st.Newest) {
					st.Newest = r.MTime
				}
				if !seen[r.Name] {
					seen[r.Name] = true
					r.Channel = channel
					l.Releases = append(l.Releases, r)
				}
			}
		}
		l.Sources = append(l.Sources, st)
	}
	slices.SortFunc(l.Releases, func(a, b release.Release) int { return release.Compare(b, a) })
	slices.Sort(l.Unparsed)
	l.Unparsed = slices.Compact(l.Unparsed)
	return l
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
		c.keepAuth(u)
		p, err = c.readPages(ctx, u)
	}
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	return p, nil
}

func (c *Client) readPages(ctx context.Context, first *url.URL) (*page, error) {
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
			return err
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
		c.remember(u, resp, p)
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

// Families returns the slugs that have a Linux release, sorted.
func (l *Listing) Families() []string {
	var out []string
	for _, r := range l.Releases {
		if usable(r) {
			out = append(out, r.Family)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// usable tells a ROCm for this system from its siblings.
func usable(r release.Release) bool { return r.Platform == "linux" && !r.Tests }
