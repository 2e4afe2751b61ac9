package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
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
	token secret.Secret
	log   *slog.Logger // nil: silent
}

// newCall returns the carrier of one call, described by doing.
func (c *Config) newCall(doing string, base *url.URL, auth func(http.Header)) *sdkCall {
	call := &sdkCall{doing: doing, base: base, auth: auth, under: c.HTTP, now: c.Now, sleep: c.Sleep, token: c.Auth.Token, log: c.Log}
	if call.now == nil {
		call.now = time.Now
	}
	if call.sleep == nil {
		call.sleep = sleep
	}
	wait := c.MaxWait
	if wait <= 0 {
		wait = defaultWait
	}
	call.until = call.now().Add(wait)
	return call
}

// apiBase reads the base of an API: raw, or web where raw is empty, without
// the suffix that the client library adds.
func apiBase(raw, web, suffix string) (*url.URL, error) {
	if raw == "" {
		raw = web
	}
	u, err := apiAddress(raw)
	if err != nil {
		return nil, err
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), suffix)
	u.RawPath = ""
	return u, nil
}

// client returns what a client library sends its requests through.
func (s *sdkCall) client() *http.Client {
	return &http.Client{Transport: s, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		// A redirected POST becomes a GET, which would look like success.
		if first := via[0].Method; first != http.MethodGet && first != http.MethodHead {
			return fmt.Errorf("the forge sends this request on to %s (write the repository's new address in the config)", req.URL.Redacted())
		}
		if len(via) >= maxRedirects {
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
			return resp, nil
		}
		pause, again := s.pause(req, resp, err, try)
		if err == nil {
			err = s.readRefusal(resp)
		}
		if !again {
			return nil, err
		}
		if s.now().Add(pause).After(s.until) || try >= maxAttempts {
			return nil, s.outOfTime(err, pause)
		}
		if asked := resp != nil && resp.StatusCode == http.StatusTooManyRequests; asked {
			logWait(req.Context(), s.log, s.base.Host, pause)
		}
		if serr := s.sleep(req.Context(), pause); serr != nil {
			return nil, serr
		}
	}
}

// once sends one copy of req.
func (s *sdkCall) once(req *http.Request, body []byte) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Header.Del("Authorization")
	out.Header.Del("Private-Token")
	out.Header.Del("Job-Token")
	out.Header.Set("User-Agent", userAgent)
	s.auth(out.Header)
	out.Body, out.ContentLength = http.NoBody, 0
	if len(body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	resp, err := exchange(s.under, out, attemptTime)
	if err != nil {
		return nil, clean(err, s.token)
	}
	resp.Request = req
	return resp, nil
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
	if err != nil {
		return backoff, req.Context().Err() == nil && !permanent(err) && (reads(req) || unsent(err))
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
		return backoff, reads(req)
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return backoff, reads(req)
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

// readRefusal reads an answer that is no success.
func (s *sdkCall) readRefusal(resp *http.Response) error {
	data, _ := io.ReadAll(resp.Body) // it is here already
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
			r.message = oneLine(secret.Scrub(string(data), s.token))
		}
		return r
	}
	r.scopes = strings.Fields(answer.Scope)
	for _, part := range []string{said(answer.Message), said(answer.Error), answer.Description} {
		if part != "" && !strings.Contains(r.message, part) {
			r.message = strings.TrimPrefix(r.message+"; "+part, "; ")
		}
	}
	r.message = oneLine(secret.Scrub(r.message, s.token))
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
