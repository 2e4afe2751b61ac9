package fetch

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// pingAfter is how long a connection of HTTP/2 may be silent before it is
// asked whether it is still there; without that, a dead one would be used
// again until the idle timeout of each request.
const pingAfter = 15 * time.Second

// newDoors returns the clients of the lanes, with conf if it is not nil. None
// of them follows redirects: see follow.
func (c *Client) newDoors(conf *tls.Config) (*doors, error) {
	var d doors
	if c.opts.HTTP == nil {
		for l := range lanes {
			t := newTransport(c.opts.IdleTimeout, c.opts.Connections, l)
			t.TLSClientConfig = conf.Clone()
			d[l] = &http.Client{Transport: t, CheckRedirect: stay}
		}
		return &d, nil
	}
	caller := *c.opts.HTTP
	caller.CheckRedirect = stay
	if conf != nil {
		t, err := withTLS(caller.Transport, conf)
		if err != nil {
			return nil, err
		}
		caller.Transport = t
	}
	for l := range lanes {
		d[l] = &caller
	}
	return &d, nil
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// withTLS returns a transport like rt, with the authorities and the
// certificate of conf.
func withTLS(rt http.RoundTripper, conf *tls.Config) (*http.Transport, error) {
	if rt == nil {
		rt = http.DefaultTransport
	}
	t, ok := rt.(*http.Transport)
	if !ok {
		return nil, errors.New("they need a client whose Transport is an *http.Transport")
	}
	t = t.Clone()
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{}
	}
	// Clone has written there what rt offers, which is HTTP/2 even where a
	// transport with TLS settings of its own will not speak it.
	t.TLSClientConfig.NextProtos = nil
	if conf.RootCAs != nil {
		t.TLSClientConfig.RootCAs = conf.RootCAs
	}
	if conf.Certificates != nil {
		t.TLSClientConfig.Certificates = conf.Certificates
	}
	return t, nil
}

// newTransport returns a transport for one lane. That of segments speaks
// HTTP/1.1 only: multiplexed over one HTTP/2 connection they would share one
// congestion window and one stall.
func newTransport(idle time.Duration, connections int, l lane) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(l == small)
	dialer := &net.Dialer{Timeout: min(idle, 30*time.Second), KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            dialer.DialContext,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		TLSHandshakeTimeout:    min(idle, 30*time.Second),
		ResponseHeaderTimeout:  idle,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    connections,
		MaxResponseHeaderBytes: 256 << 10,
		ReadBufferSize:         64 << 10,
		DisableCompression:     true,
	}
}

// proxy is the proxy of the environment. One whose address cannot be read is
// an error: net/http would go without it, past the wish of whoever set it.
// What is wrong with the address is not repeated: it may hold a password.
func proxy(req *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(req)
	if err != nil || u == nil && !isLoopback(req.URL.Hostname()) && !readableProxy(req.URL.Scheme) {
		name := strings.ToUpper(req.URL.Scheme) + "_PROXY"
		return nil, &InsecureError{URL: redactURL(req.URL), Reason: "the address of the proxy in " + name + " cannot be read; write it as http://host:port"}
	}
	return u, nil
}

// readableProxy reports whether the environment's proxy for a scheme, if any,
// has an address that net/http can read.
func readableProxy(scheme string) bool {
	name := scheme + "_proxy"
	at := cmp.Or(os.Getenv(strings.ToUpper(name)), os.Getenv(name))
	if _, err := url.Parse(at); err == nil {
		return true
	}
	_, err := url.Parse("http://" + at)
	return err == nil
}

// certificateError says that one side does not take the other's certificate.
// It is not worth a second try.
type certificateError struct {
	err error
	try string
}

func (e *certificateError) Error() string { return fmt.Sprintf("%v (%s)", e.err, e.try) }
func (e *certificateError) Unwrap() error { return e.err }

// explainTLS adds which setting may help to an error of a handshake.
func explainTLS(err error, at *url.URL) error {
	if isA[x509.UnknownAuthorityError](err) {
		return &certificateError{err, "if " + at.Host + " has an authority of its own, name its certificate in ca_file"}
	}
	op, ok := errors.AsType[*net.OpError](err)
	if ok && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate") {
		return &certificateError{err, "if " + at.Host + " asks for a certificate, set client_cert and client_key"}
	}
	return err
}
