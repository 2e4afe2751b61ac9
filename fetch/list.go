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

// Source is one index page.
type Source struct {
	URL string
}

// SourceStatus is what one index said.
type SourceStatus struct {
	Source             // URL without credentials
	Err      error     // nil if the page was read
	Releases int       // names of AMD's grammar
	Unparsed int       // other names
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
func (c *Client) List(ctx context.Context, channel string, indexes []string) (*Listing, error) {
	if len(indexes) == 0 {
		return nil, fmt.Errorf("list %s: no index is configured (set channels.%s.indexes)", channel, channel)
	}
	pages := make([]*page, len(indexes))
	errs := make([]error, len(indexes))
	var g errgroup.Group
	g.SetLimit(indexReaders)
	for i, raw := range indexes {
		g.Go(func() error {
			pages[i], errs[i] = c.readIndex(ctx, raw)
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

func merge(channel string, indexes []string, pages []*page, errs []error) *Listing {
	l := &Listing{Channel: channel}
	seen := map[string]bool{}
	for i, p := range pages {
		st := SourceStatus{Source: Source{URL: redact(indexes[i])}, Err: errs[i]}
		if errs[i] == nil {
			st.Releases, st.Unparsed = len(p.releases), len(p.unparsed)
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

// readIndex reads one page, trying again where that can help.
func (c *Client) readIndex(ctx context.Context, raw string) (*page, error) {
	u, err := c.parseURL(raw)
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	c.keepAuth(u)
	note := func(err error, wait time.Duration) {
		c.event(Event{Kind: EventRetry, Message: fmt.Sprintf("read index: %v; again in %s", err, wait.Round(time.Millisecond))})
	}
	var p *page
	err = retry(ctx, min(c.opts.Retries, maxIndexRetries), c.pause, note, func() (err error) {
		p, err = c.readPage(ctx, u)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read index: %w", err)
	}
	return p, nil
}

func (c *Client) readPage(ctx context.Context, u *url.URL) (*page, error) {
	resp, err := c.send(ctx, http.MethodGet, u, http.Header{"Accept": {"text/html,*/*;q=0.1"}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, c.statusError(u, resp)
	}
	if enc := contentEncoding(resp); enc != "" {
		return nil, &EncodingError{URL: redactURL(u), Encoding: enc}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", redactURL(u), err)
	}
	if len(body) > maxPage {
		return nil, &LayoutError{URL: redactURL(u), Reason: fmt.Sprintf("it is larger than %d MiB", maxPage>>20)}
	}
	// Links are relative to where the page was found in the end.
	return parsePage(body, resp.Request.URL, c.opts.Now())
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
