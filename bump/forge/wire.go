package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// What every forge's carrier of requests promises in the same way.
const (
	// maxAnswer bounds an answer, in bytes: GitHub's largest blob, 40 MiB, is
	// 55 MiB as it is sent.
	maxAnswer = 64 << 20
	// attemptTime bounds one attempt at a request, its answer read to the end.
	attemptTime = 90 * time.Second
	// maxAttempts bounds how often trouble of the forge's or the network's is
	// tried again; waits for limits are bounded by their sum alone.
	maxAttempts = 5
	// maxDetail bounds what an error quotes of an answer, in bytes.
	maxDetail    = 400
	defaultWait  = 10 * time.Minute
	maxRedirects = 5
	userAgent    = "rocm-nightly"
)

// apiAddress reads the address of an API, which must be https, or http on this
// machine: a token goes there.
func apiAddress(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("read the address of the forge's API: it is no address of one (want e.g. https://git.example.org or https://HOST/api/v3)")
	case u.User != nil:
		return nil, fmt.Errorf("read the address of the forge's API, at %s: no user and password belong in it", u.Host)
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		return nil, fmt.Errorf("read the address of the forge's API, at %s: only https keeps the token from others (http is for this machine alone)", u.Host)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// defaultHTTP is a transport with a timeout for every step.
func defaultHTTP() http.RoundTripper {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    20 * time.Second,
		ResponseHeaderTimeout:  time.Minute,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 1 << 20,
		MaxIdleConnsPerHost:    2,
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// exchange does r once, and reads the answer to its end, within patience.
func exchange(under http.RoundTripper, r *http.Request, patience time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	res, err := under.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	closeErr := res.Body.Close()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the forge's answer: %w", err)
	case closeErr != nil:
		return nil, closeErr
	case len(text) > maxAnswer:
		return nil, &badAnswer{fmt.Sprintf("is larger than %d MiB", maxAnswer>>20)}
	}
	if res.StatusCode < 300 && hollow(text) {
		return nil, &badAnswer{"is null, or a list that has holes"}
	}
	res.Body = io.NopCloser(bytes.NewReader(text))
	return res, nil
}

// badAnswer is an answer that asking again does not make better.
type badAnswer struct{ is string }

func (b *badAnswer) Error() string { return "the forge's answer " + b.is }

// hollow reports whether text is the JSON null, or a list in which something is
// null: client libraries do not survive either.
func hollow(text []byte) bool {
	text = bytes.TrimSpace(text)
	if string(text) == "null" {
		return true
	}
	var list []json.RawMessage
	if !bytes.HasPrefix(text, []byte("[")) || json.Unmarshal(text, &list) != nil {
		return false // no list; what it is the library finds out
	}
	for _, one := range list {
		if string(one) == "null" {
			return true
		}
	}
	return false
}

// logWait tells that a forge has asked for a pause: minutes without a word look
// like a hang.
func logWait(ctx context.Context, log *slog.Logger, host string, d time.Duration) {
	if log != nil {
		log.InfoContext(ctx, "the forge wants fewer requests for now: waiting", "host", host, "seconds", int(d.Round(time.Second).Seconds()))
	}
}

// reads reports whether req changes nothing.
func reads(req *http.Request) bool {
	return req.Method == http.MethodGet || req.Method == http.MethodHead
}

// unsent reports whether err says that the request never left.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// permanent reports whether err stays whatever is tried.
func permanent(err error) bool {
	var bad *badAnswer
	var dns *net.DNSError
	return errors.As(err, &bad) || errors.As(err, &dns) && dns.IsNotFound || errors.Is(err, context.Canceled)
}

// clean hides the secrets in err's text, if they are there; err itself stays
// what it is where they are not.
func clean(err error, secrets ...secret.Secret) error {
	text := err.Error()
	if scrubbed := secret.Scrub(text, secrets...); scrubbed != text {
		return errors.New(scrubbed)
	}
	return err
}

// oneLine makes text of the forge fit for an error.
func oneLine(text string) string {
	return plain.Cut(strings.Join(strings.Fields(text), " "), maxDetail)
}
