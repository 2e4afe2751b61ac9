package notify

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// Payload is what a webhook is sent: the frame that the Standard Webhooks
// specification proposes (type, timestamp, data), and a version.
type Payload struct {
	Schema    int       `json:"schema"`
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Event     `json:"data"`
}

// Bounds of a webhook: of what is read of an answer in bytes, and of the time between
// two tries.
const (
	maxAnswer = 64 << 10
	firstWait = time.Second
	maxWait   = 15 * time.Second
)

// webhook makes a sender of JSON.
func (n *Notifier) webhook(s Sink) (func(context.Context, string, Event) error, error) {
	h := &hook{sink: s, agent: cmp.Or(n.o.Agent, "rocm-nightly"), now: n.o.Now, hide: newHider(s.URL, s.Secret, false)}
	if s.Secret != "" {
		key, err := ParseKey(secret.New(s.Secret))
		if err != nil {
			return nil, err
		}
		h.key = &key
	}
	h.client = n.client()
	return h.send, nil
}

// client follows no redirects: they would take the message, and what signs it, to
// somebody whom the config does not name.
func (n *Notifier) client() *http.Client {
	transport := n.o.Transport
	if transport == nil {
		transport = http.DefaultTransport // it honours HTTPS_PROXY and its like
		if t, ok := transport.(*http.Transport); ok {
			t = t.Clone()
			t.DisableKeepAlives = true // minutes or days lie between two events
			transport = t
		}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// hook sends to one address.
type hook struct {
	sink   Sink
	agent  string
	key    *Key
	client *http.Client
	now    func() time.Time
	hide   hider
}

// send posts an event until it is taken, it is refused for good, or the time of ctx
// does not suffice for another try.
func (h *hook) send(ctx context.Context, id string, e Event) error {
	body, err := json.Marshal(Payload{Schema: 1, Type: e.Kind, Timestamp: e.Time.UTC(), Data: e})
	if err != nil {
		return fmt.Errorf("write the event as JSON: %w", err)
	}
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		retry, err := h.post(ctx, id, body)
		if err == nil || retry < 0 || ctx.Err() != nil {
			return err
		}
		pause := max(wait, retry)
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// forGood says that another try would come to the same.
const forGood = time.Duration(-1)

// post sends once. retry is how long the receiver wants to be left alone, or forGood.
func (h *hook) post(ctx context.Context, id string, body []byte) (retry time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.sink.URL, bytes.NewReader(body))
	if err != nil {
		return forGood, errors.New("its address is no URL")
	}
	at := h.now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", h.agent)
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	if h.key != nil {
		req.Header.Set("Webhook-Signature", h.key.Sign(id, at, body))
	}
	res, err := h.client.Do(req)
	if err != nil {
		return 0, h.hide.error(err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	said, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if res.StatusCode/100 == 2 {
		return 0, nil
	}
	err = fmt.Errorf("it answered %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	if to := res.Header.Get("Location"); res.StatusCode/100 == 3 && to != "" {
		return forGood, fmt.Errorf("%w: it leads to another address, which is not followed (name that one)", err)
	}
	if text := plain.Cut(string(bytes.TrimSpace(said)), 200); text != "" {
		err = fmt.Errorf("%w: %s", err, h.hide.text(text))
	}
	switch {
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusRequestTimeout, res.StatusCode/100 == 5:
		return retryAfter(res.Header.Get("Retry-After"), at), err
	}
	return forGood, err
}

// retryAfter reads the header, seconds or a date (RFC 9110, section 10.2.3); 0 if it
// says nothing.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// withoutAddress is an error of net/http less the address that it begins with.
func withoutAddress(err error) error {
	var of *url.Error
	for errors.As(err, &of) {
		err = of.Err
	}
	return err
}
