package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects is how often one request may be sent elsewhere.
const maxRedirects = 5

// follow makes a request, and the ones that redirects ask for. Each is made
// from nothing for the place that it goes to, with what that place is known
// to need: net/http would take headers, and the URL as a Referer, along.
func (c *Client) follow(ctx context.Context, l lane, method string, first *url.URL, header http.Header) (*http.Response, error) {
	home := c.site(first)
	if err := home.ready(c); err != nil {
		return nil, err
	}
	var via []*http.Request
	for at := first; ; {
		s := c.site(at)
		if err := s.ready(c); err != nil {
			return nil, err
		}
		req, err := c.request(ctx, s, method, at, header)
		if err != nil {
			return nil, err
		}
		if len(via) > 0 {
			if err := c.askCaller(req, via); errors.Is(err, http.ErrUseLastResponse) {
				return nil, &InsecureError{URL: redactURL(at), Reason: "a redirect that the caller's client does not follow"}
			} else if err != nil {
				return nil, err
			}
		}
		resp, err := s.door(c, l).Do(req)
		if err != nil {
			return nil, explain(redactError(err), at)
		}
		to, err := redirectOf(resp, at)
		if to == nil && err == nil {
			return resp, nil
		}
		endBody(resp)
		if err != nil {
			return nil, err
		}
		via = append(via, req)
		if err := c.checkRedirect(home, first, at, to, len(via)); err != nil {
			return nil, err
		}
		at = to
	}
}

// explain makes an error of a request fit for people.
func explain(err error, at *url.URL) error {
	// net/http reads Location even if it is not to follow it, and repeats it.
	if strings.HasPrefix(err.Error(), "failed to parse Location header") {
		return &InsecureError{URL: redactURL(at), Reason: "it redirects to what is not a URL"}
	}
	return explainTLS(err, at)
}

// request makes a request to the place at, which is of the site s.
func (c *Client) request(ctx context.Context, s *site, method string, at *url.URL, header http.Header) (*http.Request, error) {
	u := *at
	if u.User == nil {
		u.User = s.user
	}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", redactError(err))
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	for k, v := range s.header {
		req.Header[k] = v
	}
	// Set by hand so that no transport asks for gzip and inflates it unseen.
	req.Header.Set("Accept-Encoding", "identity")
	return req, nil
}

// askCaller lets the caller's own client refuse a redirect too.
func (c *Client) askCaller(req *http.Request, via []*http.Request) error {
	if c.opts.HTTP == nil || c.opts.HTTP.CheckRedirect == nil {
		return nil
	}
	return c.opts.HTTP.CheckRedirect(req, via)
}

// redirectOf returns where an answer sends its reader, nil if nowhere.
func redirectOf(resp *http.Response, at *url.URL) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to := resp.Header.Get("Location")
	if to == "" {
		return nil, nil
	}
	u, err := at.Parse(to)
	if err != nil {
		return nil, &InsecureError{URL: redactURL(at), Reason: "it redirects to what is not a URL"}
	}
	return u, nil
}

// endBody lets the connection be used again, if the rest of the answer is short.
func endBody(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 2<<10)
	resp.Body.Close()
}

// checkRedirect allows the nth redirect of a request that began at first, of
// the site home, if it keeps TLS, and leads to the same host or to one that
// home allows.
func (c *Client) checkRedirect(home *site, first, from, to *url.URL, n int) error {
	refuse := func(format string, args ...any) error {
		return &InsecureError{URL: redactURL(to), Reason: fmt.Sprintf(format, args...)}
	}
	if n > maxRedirects {
		return refuse("more than %d redirects", maxRedirects)
	}
	if from.Scheme == "https" && to.Scheme != "https" {
		return refuse("a redirect from https to %s", to.Scheme)
	}
	unsafe := checkURL(to, c.opts.Insecure || home.Insecure)
	if !staysOn(first, to) && !home.allows(to) {
		what := "a redirect to another host"
		if to.Scheme != "https" {
			what += " without https"
		}
		if unsafe == nil {
			what += fmt.Sprintf("; if %s may send you there, set allow_hosts: [%q] for it", first.Host, hostPort(to))
		}
		return refuse("%s", what)
	}
	return unsafe
}

// staysOn reports whether b is on the host of a, be it on TLS for the first time.
func staysOn(a, b *url.URL) bool {
	if sameHost(a, b) {
		return true
	}
	upgrade := a.Scheme == "http" && b.Scheme == "https" && port(a) == "80" && port(b) == "443"
	return upgrade && strings.EqualFold(a.Hostname(), b.Hostname())
}

// hostPort returns the host of u as allow_hosts spells it.
func hostPort(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if p := u.Port(); p != "" && p == port(&url.URL{Scheme: u.Scheme}) {
		host = strings.TrimSuffix(host, ":"+p)
	}
	return printable([]byte(host))
}
