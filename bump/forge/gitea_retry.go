package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// What one answer may weigh, and how often one request is tried.
const (
	maxRefusal  = 64 << 10 // bytes of an error's text that are read
	maxTries    = 5
	maxRedirect = 5
)

// refusal is an answer that is not a success.
type refusal struct {
	status  int
	message string // what the forge said, on one line
	scopes  []string
	has     []string // the token's scopes, where the forge says them
}

func (r *refusal) Error() string {
	if r.message == "" {
		return fmt.Sprintf("the forge answered %d", r.status)
	}
	return fmt.Sprintf("the forge answered %d: %s", r.status, r.message)
}

// sdkCall carries the requests of one call of a Forge. It stands under a
// client library of somebody else, so that all of them keep the same promises:
// the token goes to the host of base alone, an answer is bounded, waiting is
// bounded for the whole call, and what is no success is a *refusal.
type sdkCall struct {
	doing string
	base  *url.URL
	auth  func(http.Header)
	under http.RoundTripper
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
	until time.Time // no waiting goes on beyond it
	raw   bool      // the answer is no JSON
}

// newCall returns the carrier of one call, described by doing.
func (c *Config) newCall(doing string, base *url.URL, auth func(http.Header)) *sdkCall {
	call := &sdkCall{doing: doing, base: base, auth: auth, under: c.HTTP, now: c.Now, sleep: c.Sleep}
	if call.now == nil {
		call.now = time.Now
	}
	if call.sleep == nil {
		call.sleep = sleepFor
	}
	wait := c.MaxWait
	if wait <= 0 {
		wait = 10 * time.Minute
	}
	call.until = call.now().Add(wait)
	return call
}

// sdkTransport is what stands under everything where the caller gives nothing.
func sdkTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   30 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute,
		IdleConnTimeout:       30 * time.Second,
		ForceAttemptHTTP2:     true,
	}
}

// apiBase reads the base of an API: raw, or web where raw is empty, without
// the suffix that the client library adds. A token leaves in the open only for
// this machine.
func apiBase(raw, web, suffix string) (*url.URL, error) {
	if raw == "" {
		raw = web
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, errors.New("read the address of the forge's API: it is not an address of a host and a path (want e.g. https://git.example.org)")
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return nil, fmt.Errorf("read the address of the forge's API, %s: a token is sent by https only", u.Redacted())
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), suffix)
	u.RawPath = ""
	return u, nil
}

func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// client returns what a client library sends its requests through.
func (s *sdkCall) client() *http.Client {
	return &http.Client{Transport: s, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		// A redirected POST becomes a GET, which would look like success.
		if first := via[0].Method; first != http.MethodGet && first != http.MethodHead {
			return fmt.Errorf("the forge sends this request on to %s (write the repository's new address in the config)", req.URL.Redacted())
		}
		if len(via) >= maxRedirect {
			return errors.New("the forge sends this request on again and again")
		}
		return nil
	}}
}

// RoundTrip sends req, again where that is safe and may help.
func (s *sdkCall) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != s.base.Scheme || req.URL.Host != s.base.Host {
		return nil, fmt.Errorf("the forge sends this request on to another host, %s (write that address in the config, if it is right)", req.URL.Host)
	}
	body, err := wholeBody(req)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		resp, err := s.once(req, body)
		if err == nil && resp.StatusCode < 400 {
			resp.Body = &bounded{ReadCloser: resp.Body, left: maxAnswer}
			if err := s.whole(resp); err != nil {
				return nil, err
			}
			return resp, nil
		}
		pause, again := s.pause(req, resp, err, try)
		if err == nil {
			err = readRefusal(resp)
		}
		if !again {
			return nil, err
		}
		if s.now().Add(pause).After(s.until) || try >= maxTries {
			return nil, s.outOfTime(err, pause)
		}
		if serr := s.sleep(req.Context(), pause); serr != nil {
			return nil, serr
		}
	}
}

// whole reads an answer to its end and refuses a list in which something is
// null, which client libraries do not survive.
func (s *sdkCall) whole(resp *http.Response) error {
	if s.raw || resp.StatusCode >= 300 {
		return nil
	}
	data, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		return nil // no list; what it is the library finds out
	}
	for _, one := range list {
		if string(one) == "null" {
			return errors.New("the forge answered with a list that has holes")
		}
	}
	return nil
}

// once sends one copy of req.
func (s *sdkCall) once(req *http.Request, body []byte) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Header.Del("Authorization")
	out.Header.Del("Private-Token")
	out.Header.Del("Job-Token")
	out.Header.Set("User-Agent", "rocm-nightly")
	s.auth(out.Header)
	out.Body, out.ContentLength = http.NoBody, 0
	if len(body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return s.under.RoundTrip(out)
}

func wholeBody(req *http.Request) ([]byte, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return nil, nil
	}
	defer req.Body.Close()
	return io.ReadAll(req.Body)
}

// pause says whether req may be sent again, and how long after. Of a request
// that changes something nothing is known once it has left, so that it is sent
// again only when it cannot have arrived or the forge says that it did nothing.
func (s *sdkCall) pause(req *http.Request, resp *http.Response, err error, try int) (time.Duration, bool) {
	backoff := time.Second << (try - 1)
	reads := req.Method == http.MethodGet || req.Method == http.MethodHead
	if err != nil {
		var op *net.OpError
		dial := errors.As(err, &op) && op.Op == "dial"
		return backoff, req.Context().Err() == nil && (reads || dial)
	}
	asked, told := pauseAsked(resp.Header, s.now())
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		if !told {
			asked = 30 * backoff
		}
		return asked, true
	case http.StatusServiceUnavailable:
		if told {
			return asked, true
		}
		return backoff, reads
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return backoff, reads
	}
	return 0, false
}

// outOfTime is the error of a request that would have to wait for too long.
func (s *sdkCall) outOfTime(err error, pause time.Duration) error {
	var r *refusal
	if errors.As(err, &r) && r.status == http.StatusTooManyRequests {
		return &LimitError{Doing: s.doing, Secondary: true, Until: s.now().Add(pause)}
	}
	return err
}

// pauseAsked reads how long the forge asks to be left alone: Retry-After, or
// GitLab's and Forgejo's RateLimit-Reset in seconds since 1970 once nothing
// remains. It is a second at least.
func pauseAsked(h http.Header, now time.Time) (time.Duration, bool) {
	if after, told := retryAfter(h.Get("Retry-After"), now); told {
		return max(after, time.Second), true
	}
	if h.Get("RateLimit-Remaining") != "0" {
		return 0, false
	}
	return max(resetOf(h, now).Sub(now), time.Second), true
}

// bounded is an answer that fails when it goes on for too long.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the forge's answer is larger than %d MiB", maxAnswer>>20)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// readRefusal reads and closes an answer that is no success.
func readRefusal(resp *http.Response) error {
	defer resp.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // what came is enough
	r := &refusal{status: resp.StatusCode}
	var answer struct {
		Message     any    `json:"message"`
		Error       any    `json:"error"`
		Description string `json:"error_description"`
		Scope       string `json:"scope"` // GitLab: those that would do
	}
	if json.Unmarshal(data, &answer) != nil {
		// A page of HTML is of a proxy, and of no use on one line.
		if !bytes.Contains(data, []byte("<")) {
			r.message = oneLine(string(data))
		}
		return r
	}
	r.scopes = strings.Fields(answer.Scope)
	for _, part := range []string{said(answer.Message), said(answer.Error), answer.Description} {
		if part != "" && !strings.Contains(r.message, part) {
			r.message = strings.TrimPrefix(r.message+"; "+part, "; ")
		}
	}
	r.message = oneLine(r.message)
	r.readGiteaScopes()
	return r
}

// said writes what a forge said, which on GitLab may be a list, or lists by
// name of a field.
func said(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var parts []string
		for _, one := range v {
			parts = append(parts, said(one))
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		var parts []string
		for _, name := range sortedNames(v) {
			parts = append(parts, strings.TrimPrefix(name+": ", "base: ")+said(v[name]))
		}
		return strings.Join(parts, "; ")
	}
	return ""
}

// oneLine makes text of the forge fit for an error.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 }), " ")
	if len(text) > 400 {
		text = strings.ToValidUTF8(text[:400], "") + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
