package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
)

// lane tells small requests from those that carry a tarball.
type lane int

const (
	small lane = iota // pages and side files: HTTP/2 where it is offered
	bulk              // segments: HTTP/1.1, a connection each
	lanes
)

// doors are the clients of the lanes.
type doors [lanes]*http.Client

func (d *doors) closeIdle() {
	for _, c := range d {
		c.CloseIdleConnections()
	}
}

// site is a Source as it is used.
type site struct {
	Source
	at   *url.URL
	dir  string        // the path of the directory, with its slash
	user *url.Userinfo // of the URL; nil if none

	once   sync.Once
	err    error
	allow  []hostRule
	header http.Header
	own    atomic.Pointer[doors] // nil if it needs no TLS of its own
}

// register makes the settings of sources hold for their origins. One that
// cannot be read is left to whoever uses it.
func (c *Client) register(sources ...Source) {
	c.sitesMu.Lock()
	defer c.sitesMu.Unlock()
	for _, src := range sources {
		u, err := url.Parse(src.URL)
		if err != nil || isFile(u) || u.Host == "" {
			continue
		}
		c.putSite(&site{Source: src, at: u, dir: pageDir(u), user: u.User})
	}
}

// putSite adds s in place of what its URL was said to need before.
func (c *Client) putSite(s *site) {
	for i, old := range c.sites {
		if old.sameSettings(s.Source) {
			return
		}
		if redactURL(old.at) == redactURL(s.at) && old.at.RawQuery == s.at.RawQuery {
			c.sites[i] = s
			return
		}
	}
	c.sites = append(c.sites, s)
}

// pageDir returns the path of the directory that a page lists, with its slash.
func pageDir(u *url.URL) string {
	if isPageName(path.Base(u.Path)) {
		return u.Path[:strings.LastIndexByte(u.Path, '/')+1]
	}
	return strings.TrimSuffix(u.Path, "/") + "/"
}

// isPageName tells the name of a page from that of a directory, for a URL
// without a slash at its end.
func isPageName(name string) bool {
	switch path.Ext(name) {
	case ".html", ".htm", ".json", ".jsonl", ".ndjson", ".xml":
		return true
	}
	return false
}

// site returns what is known of the place of u: of the Sources of its origin
// the one whose directory is the longest prefix, or the first of them, or one
// without settings.
func (c *Client) site(u *url.URL) *site {
	c.sitesMu.Lock()
	defer c.sitesMu.Unlock()
	var best *site
	for _, s := range c.sites {
		if sameHost(s.at, u) && (best == nil || s.closeness(u) > best.closeness(u)) {
			best = s
		}
	}
	if best == nil {
		return &site{at: u}
	}
	return best
}

// closeness ranks s among the sites of the origin of u.
func (s *site) closeness(u *url.URL) int {
	switch {
	case s.at.Path == u.Path:
		return 1 + len(s.dir) + 1
	case strings.HasPrefix(u.Path+"/", s.dir):
		return 1 + len(s.dir)
	}
	return 0
}

// ready reads the files that the settings name, the first time.
func (s *site) ready(c *Client) error {
	s.once.Do(func() { s.err = s.prepare(c) })
	return s.err
}

func (s *site) prepare(c *Client) error {
	if s.URL == "" {
		return nil // no Source speaks of it
	}
	if err := s.validate(c); err != nil {
		return err
	}
	var err error
	if s.allow, err = hostRules(redactURL(s.at), s.AllowHosts); err != nil {
		return err
	}
	if s.HeadersFile != "" {
		raw, err := readSetting(s.HeadersFile, maxHeadersFile)
		if err != nil {
			return s.broken("headers_file", s.HeadersFile, err, `it should hold lines "Name: value", and be readable by this user`)
		}
		h, lerr := parseHeaders(raw)
		if lerr != nil {
			return &SettingError{URL: redactURL(s.at), Key: "headers_file", File: s.HeadersFile, Line: lerr.line, Reason: lerr.reason}
		}
		s.header = h
	}
	if s.CAFile == "" && s.ClientCert == "" {
		return nil
	}
	conf, err := s.tlsConfig()
	if err != nil {
		return err
	}
	own, err := c.newDoors(conf)
	if err != nil {
		return s.broken("ca_file or client_cert", "", err, "")
	}
	s.own.Store(own)
	return nil
}

func (s *site) validate(c *Client) error {
	src := s.Source
	src.Insecure = src.Insecure || c.opts.Insecure
	return src.Validate()
}

func (s *site) broken(key, file string, err error, try string) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err // the file is named already
	}
	return &SettingError{URL: redactURL(s.at), Key: key, File: file, Err: err, Reason: try}
}

// tlsConfig makes TLS settings of the PEM files. Errors about a key do not
// hold any of it.
func (s *site) tlsConfig() (*tls.Config, error) {
	conf := &tls.Config{}
	if s.CAFile != "" {
		raw, err := readSetting(s.CAFile, maxPEM)
		if err != nil {
			return nil, s.broken("ca_file", s.CAFile, err, "it should be a PEM file that this user can read")
		}
		if conf.RootCAs, err = x509.SystemCertPool(); err != nil {
			conf.RootCAs = x509.NewCertPool() // a system without authorities
		}
		if !conf.RootCAs.AppendCertsFromPEM(raw) {
			return nil, s.broken("ca_file", s.CAFile, nil, `it holds no certificate in PEM form ("-----BEGIN CERTIFICATE-----")`)
		}
	}
	if s.ClientCert != "" {
		cert, err := s.clientCert()
		if err != nil {
			return nil, err
		}
		conf.Certificates = []tls.Certificate{cert}
	}
	return conf, nil
}

func (s *site) clientCert() (tls.Certificate, error) {
	var none tls.Certificate
	cert, err := readSetting(s.ClientCert, maxPEM)
	if err != nil {
		return none, s.broken("client_cert", s.ClientCert, err, "it should be a PEM file that this user can read")
	}
	key, keyKey, keyFile := cert, "client_cert", s.ClientCert
	if s.ClientKey != "" {
		keyKey, keyFile = "client_key", s.ClientKey
		if key, err = readSetting(s.ClientKey, maxPEM); err != nil {
			return none, s.broken(keyKey, keyFile, err, "it should be a PEM file that this user can read")
		}
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return none, s.broken(keyKey, keyFile, err, "a certificate and its key are needed, both in PEM form, and the key not encrypted")
	}
	return pair, nil
}

// door returns the client to send a request to s with.
func (s *site) door(c *Client, l lane) *http.Client {
	if own := s.own.Load(); own != nil {
		return own[l]
	}
	return c.doors[l]
}

// allows reports whether a redirect that began at s may lead to the host of u.
func (s *site) allows(u *url.URL) bool {
	for _, r := range s.allow {
		if r.allows(u) {
			return true
		}
	}
	return false
}

// CloseIdle closes every connection that nothing uses, but those of a client that was
// given in Options.HTTP. The Client goes on to be of use; who lives on without it
// calls this, or they stay open for a while.
func (c *Client) CloseIdle() {
	if c.opts.HTTP == nil { // else they are the caller's too
		c.doors.closeIdle()
	}
	c.sitesMu.Lock()
	defer c.sitesMu.Unlock()
	for _, s := range c.sites {
		if own := s.own.Load(); own != nil {
			own.closeIdle()
		}
	}
}
