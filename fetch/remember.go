package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxRemembered bounds how many indexes a Client remembers.
const maxRemembered = 64

// rememberFor is how long a server is believed that says "not modified": a
// broken cache in between would otherwise freeze an index for ever.
const rememberFor = 12 * time.Hour

// remembered is an index as it was when it was read.
type remembered struct {
	etag     string   // as sent, "" if none
	modified string   // Last-Modified as sent, "" if none, or if it proves nothing
	found    string   // pageKey of where it was in the end
	base     *url.URL // what its links are relative to
	read     time.Time
	page     *page  // nil if it comes from another process, and was not needed yet
	body     []byte // of which the page is to be made then
}

// pageKey names an index in memory and in the cache: its URL without
// credentials, hashed, for a query may be a secret too.
func pageKey(u *url.URL) string {
	v := *u
	v.User, v.Fragment, v.RawFragment = nil, "", ""
	sum := sha256.Sum256([]byte(v.String()))
	return hex.EncodeToString(sum[:])
}

// askAgain asks for a page; if it was read before, only for what is new. It
// returns an answer, or the page as it is remembered.
func (c *Client) askAgain(ctx context.Context, u *url.URL) (*http.Response, *page, error) {
	header := http.Header{"Accept": {"text/html,*/*;q=0.1"}}
	old, ok := c.recall(u)
	if !ok {
		resp, err := c.send(ctx, small, http.MethodGet, u, header)
		return resp, nil, err
	}
	conditional := header.Clone()
	if old.etag != "" {
		conditional.Set("If-None-Match", old.etag)
	}
	if old.modified != "" {
		conditional.Set("If-Modified-Since", old.modified)
	}
	resp, err := c.send(ctx, small, http.MethodGet, u, conditional)
	if err != nil || resp.StatusCode != http.StatusNotModified && resp.StatusCode != http.StatusPreconditionFailed {
		return resp, nil, err
	}
	resp.Body.Close()
	// A 412 to a GET is some proxy's mistake. Redirected to somewhere else, which cannot know what was read, or about
	// something else: then what is remembered says nothing.
	if resp.StatusCode == http.StatusNotModified && pageKey(resp.Request.URL) == old.found && old.confirmed(resp) {
		if p := c.revive(u, old); p != nil {
			same := *p // the one that is remembered is others' too
			same.unchanged = true
			return nil, &same, nil
		}
	}
	resp, err = c.send(ctx, small, http.MethodGet, u, header)
	return resp, nil, err
}

// confirmed reports whether a 304 is about what is remembered: the ETag that
// it repeats, if it does, must be the one that was asked about.
func (r *remembered) confirmed(resp *http.Response) bool {
	etag := resp.Header.Get("ETag")
	return etag == "" || r.etag == "" || strings.TrimPrefix(etag, "W/") == strings.TrimPrefix(r.etag, "W/")
}

// revive returns the page of old, nil if what was kept of it is none.
func (c *Client) revive(u *url.URL, old remembered) *page {
	if old.page != nil {
		return old.page
	}
	p, next, err := parseIndex(old.body, old.base, c.opts.Now())
	if err != nil || next != nil {
		return nil
	}
	old.page, old.body = p, nil
	c.keep(pageKey(u), old)
	return p
}

func (c *Client) recall(u *url.URL) (remembered, bool) {
	key := pageKey(u)
	c.readMu.Lock()
	old, ok := c.read[key]
	c.readMu.Unlock()
	if !ok {
		old, ok = c.cache.load(key, u)
	}
	age := c.opts.Now().Sub(old.read)
	return old, ok && age >= 0 && age < rememberFor
}

// remember keeps a page that was read, if the server can tell it from the
// next one.
func (c *Client) remember(u *url.URL, resp *http.Response, p *page, body []byte) {
	r := remembered{
		etag: resp.Header.Get("ETag"), modified: provenModified(resp.Header),
		found: pageKey(resp.Request.URL), base: resp.Request.URL, read: c.opts.Now(), page: p,
	}
	key := pageKey(u)
	if r.etag == "" && r.modified == "" {
		c.readMu.Lock()
		delete(c.read, key)
		c.readMu.Unlock()
		c.cache.forget(key)
		return
	}
	c.keep(key, r)
	if err := c.cache.store(key, u, r, body); err != nil {
		c.cache.failed.Do(func() {
			c.event(Event{Kind: EventNote, Message: fmt.Sprintf("what was read of an index cannot be kept for the next run: %v", err)})
		})
	}
}

// keep puts r into the memory of this Client.
func (c *Client) keep(key string, r remembered) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if _, again := c.read[key]; !again && len(c.read) >= maxRemembered {
		clear(c.read) // no channel has that many indexes
	}
	c.read[key] = r
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
