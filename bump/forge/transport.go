package forge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

const (
	// writePause is what GitHub asks to be left between requests that change
	// something: "wait at least one second between each request".
	writePause = time.Second
	// secondaryWait is the least wait for a secondary limit that names no time.
	secondaryWait = time.Minute
)

// transport is the HTTP below a forge's library. It sends requests to one host
// only, reads answers whole and bounded, leaves a pause between requests that
// change something, waits for limits, and tries again what may be tried again:
// reads, and what a caller has marked with repeatable.
type transport struct {
	under    http.RoundTripper
	base     *url.URL // of the API
	now      func() time.Time
	sleep    func(ctx context.Context, d time.Duration) error
	maxWait  time.Duration
	log      *slog.Logger  // nil: silent
	patience time.Duration // with one attempt

	hidden  sync.Mutex // guards secrets
	secrets []secret.Secret

	writes    sync.Mutex // held while a request changes something
	lastWrite time.Time
}

// newTransport returns the transport to the API at base, which must be https,
// or http on this machine.
func newTransport(c Config, base string) (*transport, error) {
	u, err := apiAddress(base)
	if err != nil {
		return nil, clean(err, c.Auth.Token)
	}
	t := &transport{
		under: c.HTTP, base: u, now: c.Now, sleep: c.Sleep, maxWait: c.MaxWait, log: c.Log, patience: attemptTime,
		secrets: []secret.Secret{c.Auth.Token, c.Auth.PrivateKey},
	}
	if t.under == nil {
		t.under = defaultHTTP()
	}
	if t.now == nil {
		t.now = time.Now
	}
	if t.sleep == nil {
		t.sleep = sleep
	}
	if t.maxWait <= 0 {
		t.maxWait = defaultWait
	}
	return t, nil
}

// client returns an HTTP client over t, or over what wraps t. It follows no
// redirect to another host, and none that would turn a change into a read.
func (t *transport) client(over http.RoundTripper) *http.Client {
	return &http.Client{Transport: over, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return errors.New("too many redirects")
		case !t.own(req.URL):
			return fmt.Errorf("a redirect to another host, %s, is not followed: the token is for %s", plain.Cut(req.URL.Host, 100), t.base.Host)
		case req.Method != via[0].Method:
			return fmt.Errorf("the repository has moved, to %s: change its address in the config", plain.Cut(req.URL.Path, 200))
		}
		return nil
	}}
}

func (t *transport) own(u *url.URL) bool {
	return u.Scheme == t.base.Scheme && strings.EqualFold(u.Host, t.base.Host)
}

// RoundTrip does one request, and again where that helps and does no harm.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.own(req.URL) {
		return nil, fmt.Errorf("a request to %s is not made: the token is for %s", plain.Cut(req.URL.Host, 100), t.base.Host)
	}
	if !reads(req) {
		t.writes.Lock()
		defer t.writes.Unlock()
		defer func() { t.lastWrite = t.now() }()
		if rest := writePause - t.now().Sub(t.lastWrite); !t.lastWrite.IsZero() && rest > 0 {
			if err := t.sleep(req.Context(), min(rest, writePause)); err != nil {
				return nil, err
			}
		}
	}
	return t.again(req)
}

func (t *transport) again(req *http.Request) (*http.Response, error) {
	b := budgetOf(req.Context(), t.maxWait)
	secondary := 0
	for attempt := 1; ; attempt++ {
		res, err := t.attempt(req)
		if err == nil {
			limit := limitOf(res, t.now(), secondary)
			if limit == nil && res.StatusCode < 500 {
				return res, nil
			}
			if limit != nil {
				if limit.Secondary {
					secondary++
				}
				attempt-- // the request was refused, not tried
				if err := t.wait(req.Context(), b, limit.Until.Sub(t.now()), limit); err != nil {
					return nil, err
				}
				continue
			}
		}
		if !repeats(req, err) || attempt >= maxAttempts || req.Context().Err() != nil || permanent(err) {
			return res, err
		}
		if t.wait(req.Context(), b, backoff(attempt), err) != nil {
			return res, err
		}
	}
}

// wait waits d if the call's budget has it, else it returns reason. One second
// is the least: a limit that ends now has not ended for every server of theirs.
func (t *transport) wait(ctx context.Context, b *budget, d time.Duration, reason error) error {
	d = max(d, time.Second)
	if !b.take(d) {
		if reason == nil {
			reason = errors.New("no time is left to try again")
		}
		return reason
	}
	var limit *LimitError
	if errors.As(reason, &limit) {
		logWait(ctx, t.log, t.base.Host, d)
	}
	return t.sleep(ctx, d)
}

// backoff is half of 1 s, 2 s, 4 s … and up to as much again.
func backoff(attempt int) time.Duration {
	d := time.Second << (attempt - 1)
	return d/2 + rand.N(d/2+1)
}

// attempt does the request once and reads its answer.
func (t *transport) attempt(req *http.Request) (res *http.Response, err error) {
	r := req.Clone(req.Context())
	if req.GetBody != nil {
		if r.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	if r.Header.Get("User-Agent") == "" {
		r.Header.Set("User-Agent", userAgent)
	}
	res, err = exchange(t.under, r, t.patience)
	if err != nil {
		return nil, t.clean(err)
	}
	bare := req.Method == http.MethodDelete || strings.Contains(req.Header.Get("Accept"), "diff")
	if res.StatusCode/100 == 2 && !bare && empty(res) {
		return nil, &badAnswer{"is empty"}
	}
	res.Request = req
	return res, nil
}

// empty reports whether there is nothing in an answer that should have
// something: GitHub's library takes that for an answer, and has none.
func empty(res *http.Response) bool {
	text, err := io.ReadAll(res.Body)
	res.Body = io.NopCloser(bytes.NewReader(text))
	return err != nil || len(bytes.TrimSpace(text)) == 0
}

func (t *transport) clean(err error) error {
	t.hidden.Lock()
	defer t.hidden.Unlock()
	return clean(err, t.secrets...)
}

func (t *transport) scrub(text string) string {
	t.hidden.Lock()
	defer t.hidden.Unlock()
	return secret.Scrub(text, t.secrets...)
}

// hide adds a secret to those that no error shows. The newest few stay: a token
// is good for an hour.
func (t *transport) hide(s secret.Secret) {
	t.hidden.Lock()
	defer t.hidden.Unlock()
	if len(t.secrets) >= 16 {
		t.secrets = append(t.secrets[:2:2], t.secrets[3:]...)
	}
	t.secrets = append(t.secrets, s)
}

// detail makes text of the forge's fit for an error: one line, no secret, not
// long.
func (t *transport) detail(text string) string { return oneLine(t.scrub(text)) }

type repeatableKey struct{}

// repeatable marks the requests of ctx as doing no harm when they are done
// twice, though they change something.
func repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatableKey{}, true)
}

// repeats reports whether req may be sent again after err: because it does no
// harm when nobody knows whether it was done, or because it never left.
func repeats(req *http.Request, err error) bool {
	harmless := reads(req) || req.Context().Value(repeatableKey{}) != nil || err != nil && unsent(err)
	return harmless && (req.Body == nil || req.GetBody != nil)
}

type budgetKey struct{}

// budget is what is left of the waiting that one call may do.
type budget struct {
	mu   sync.Mutex
	left time.Duration
}

func (b *budget) take(d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d > b.left {
		return false
	}
	b.left -= d
	return true
}

// call returns the context of one call, with its budget of waiting; a call
// within a call shares the outer one's.
func (t *transport) call(ctx context.Context) context.Context {
	if ctx.Value(budgetKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, budgetKey{}, &budget{left: t.maxWait})
}

func budgetOf(ctx context.Context, all time.Duration) *budget {
	if b, ok := ctx.Value(budgetKey{}).(*budget); ok {
		return b
	}
	return &budget{left: all}
}
