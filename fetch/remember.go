package fetch

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// maxRemembered bounds how many indexes a Client remembers.
const maxRemembered = 64

// rememberFor is how long a server is believed that says "not modified": a
// broken cache in between would otherwise freeze an index for ever.
const rememberFor = 12 * time.Hour

// remembered is an index as it was when it was read.
type remembered struct {
	etag     string // as sent, "" if none
	modified string // Last-Modified as sent, "" if none, or if it proves nothing
	found    string // where it was in the end: its links are relative to that
	read     time.Time
	page     *page
}

// askAgain asks for a page; if this Client has read it before, only for what
// is new. It returns an answer, or the page as it is remembered.
func (c *Client) askAgain(ctx context.Context, u *url.URL) (*http.Response, *page, error) {
	header := http.Header{"Accept": {"text/html,*/*;q=0.1"}}
	old, ok := c.recall(u)
	if !ok {
		resp, err := c.send(ctx, http.MethodGet, u, header)
		return resp, nil, err
	}
	conditional := header.Clone()
	if old.etag != "" {
		conditional.Set("If-None-Match", old.etag)
	}
	if old.modified != "" {
		conditional.Set("If-Modified-Since", old.modified)
	}
	resp, err := c.send(ctx, http.MethodGet, u, conditional)
	if err != nil || resp.StatusCode != http.StatusNotModified {
		return resp, nil, err
	}
	resp.Body.Close()
	if resp.Request.URL.String() == old.found {
		return nil, old.page, nil
	}
	// Redirected to somewhere else, which cannot know what was read.
	resp, err = c.send(ctx, http.MethodGet, u, header)
	return resp, nil, err
}

func (c *Client) recall(u *url.URL) (remembered, bool) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	old, ok := c.read[u.String()]
	age := c.opts.Now().Sub(old.read)
	return old, ok && age >= 0 && age < rememberFor
}

// remember keeps a page that was read, if the server can tell it from the
// next one.
func (c *Client) remember(u *url.URL, resp *http.Response, p *page) {
	r := remembered{
		etag: resp.Header.Get("ETag"), modified: provenModified(resp.Header),
		found: resp.Request.URL.String(), read: c.opts.Now(), page: p,
	}
	c.readMu.Lock()
	defer c.readMu.Unlock()
	delete(c.read, u.String())
	if r.etag == "" && r.modified == "" {
		return
	}
	if len(c.read) >= maxRemembered {
		clear(c.read) // no channel has that many indexes
	}
	c.read[u.String()] = r
}

// provenModified returns Last-Modified if it tells this page from the next:
// a page that is written twice in one second has the same one (RFC 9110,
// 8.8.2.2), and AMD's is written once for every file of a night.
func provenModified(h http.Header) string {
	modified := h.Get("Last-Modified")
	m, err1 := http.ParseTime(modified)
	date, err2 := http.ParseTime(h.Get("Date"))
	if err1 != nil || err2 != nil || date.Sub(m) < 2*time.Second {
		return ""
	}
	return modified
}
