package web

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// A page is as old as this at most, for its words such as "3 min ago", and is made
// at most so often, however often the State changes: progress comes many times a
// second, and making it is work that the run beside it would have to wait for.
const (
	pageAge    = 15 * time.Second
	pageEvery  = 200 * time.Millisecond
	pagesBurst = 10
)

// body is an answer that many get: its bytes, compressed too, and its tag.
type body struct {
	plain, gzip []byte
	tag         string
}

// minGzip is what is worth compressing.
const minGzip = 1024

func newBody(b []byte) *body {
	sum := sha256.Sum256(b)
	out := &body{plain: b, tag: `W/"` + hex.EncodeToString(sum[:12]) + `"`}
	if len(b) < minGzip {
		return out
	}
	var buf bytes.Buffer
	// A bytes.Buffer takes everything, and the level is a valid one.
	zw, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	_, _ = zw.Write(b)
	_ = zw.Close()
	if buf.Len() < len(b) {
		out.gzip = buf.Bytes()
	}
	return out
}

// send answers with b, or that nothing has changed since the client asked last.
func (b *body) send(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", b.tag)
	h.Add("Vary", "Accept-Encoding")
	if matches(r.Header.Get("If-None-Match"), b.tag) {
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	out := b.plain
	if b.gzip != nil && takesGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		out = b.gzip
	}
	h.Set("Content-Length", fmt.Sprint(len(out)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(out)
	}
}

// matches compares as RFC 9110 13.1.2 asks for: weakly.
func matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// takesGzip reads Accept-Encoding as far as that needs: gzip named, and not with q=0.
func takesGzip(header string) bool {
	for one := range strings.SplitSeq(header, ",") {
		name, q, _ := strings.Cut(one, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q = strings.ReplaceAll(q, " ", "")
			return q != "q=0" && !strings.HasPrefix(q, "q=0.000") && q != "q=0.0" && q != "q=0.00"
		}
	}
	return false
}

// section is one part of the page, which is replaced when it changes.
type section struct {
	id   string
	html []byte
	sum  [sha256.Size]byte
}

// page is the page of one State, for those who are signed in or not.
type page struct {
	of       *state.State
	made     time.Time
	title    string
	sections []section
	whole    *body // for those who are not signed in
}

// cache holds what was made last.
type cache struct {
	source Source
	now    func() time.Time
	make   func(s *state.State, now time.Time, in bool, mark string) (*page, error)
	mark   string // stands for a session's token in what is kept

	mu    sync.Mutex
	pages [2]*page
	spent bucket

	apiMu    sync.Mutex
	apiOf    *state.State
	apiSpent bucket
	bodies   map[string]*body
	own      *body // the description of the API
}

func newCache(o Options, make func(*state.State, time.Time, bool, string) (*page, error)) *cache {
	// Nobody can guess the mark, so that nothing in a State can be one.
	return &cache{source: o.Source, now: o.Now, make: make, mark: "mark-" + rand.Text()}
}

// page returns the page of the State, or one that is a blink older where pages are
// made too often.
func (c *cache) page(in bool) (*page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, now, which := c.source.State(), c.now(), 0
	if in {
		which = 1
	}
	old := c.pages[which]
	c.spent.settle(now, pageEvery)
	if old != nil {
		age := now.Sub(old.made)
		if fresh := age >= 0 && age < pageAge; fresh && (old.of == s || c.spent.spent > pagesBurst-1) {
			return old, nil
		}
	}
	c.spent.spent = min(c.spent.spent+1, pagesBurst)
	made, err := c.make(s, now, in, c.mark)
	if err != nil {
		return nil, err
	}
	c.pages[which] = made
	return made, nil
}

// api returns the body with this name of the State, made by make once.
func (c *cache) api(name string, make func(*state.State) ([]byte, error)) (*body, error) {
	c.apiMu.Lock()
	defer c.apiMu.Unlock()
	c.apiSpent.settle(c.now(), pageEvery)
	if s := c.source.State(); c.apiOf != s && (c.apiOf == nil || c.apiSpent.spent <= pagesBurst-1) {
		c.apiOf, c.bodies = s, map[string]*body{}
		c.apiSpent.spent++
	}
	if b := c.bodies[name]; b != nil {
		return b, nil
	}
	made, err := make(c.apiOf)
	if err != nil {
		return nil, err
	}
	b := newBody(made)
	c.bodies[name] = b
	return b, nil
}

// static returns a file of the program's own.
func (c *cache) static(name string) (*body, error) {
	b, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	c.apiMu.Lock()
	defer c.apiMu.Unlock()
	if c.own == nil {
		c.own = newBody(b)
	}
	return c.own, nil
}
