package fetch

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Source is one index, and what it takes to talk to the host that serves it.
// Everything but URL may be left zero.
//
// The settings hold for the page and for every tarball, side file and
// redirect of the same origin (scheme, host and port). Where two Sources
// share an origin, the one whose directory is the longest prefix of a path
// is asked. Files are read when the origin is first talked to, once.
type Source struct {
	// URL is a page of https, or of http on this machine, or a directory of file.
	URL string
	// Insecure allows http:// from a host that is not this machine.
	Insecure bool
	// HeadersFile names a file of "Name: value" lines that are sent with every
	// request to this origin, and to no other: not on a redirect, and never
	// over http to another machine.
	HeadersFile string
	// CAFile names a PEM file of authorities that this origin's certificate
	// may be signed by, in addition to the system's.
	CAFile string
	// ClientCert names a PEM file with the certificate that this program
	// shows to this origin, and with its key if ClientKey is "".
	ClientCert string
	// ClientKey names a PEM file with the key of ClientCert.
	ClientKey string
	// AllowHosts lists the other hosts that redirects may lead to: a name, or
	// *.suffix for every name below suffix. A port other than the scheme's
	// own must be spelled, as in cdn.example:8443.
	AllowHosts []string
	// From and Until say which versions the index is known to serve, [From,
	// Until); "" is open.
	From, Until string
	// Frozen says that the index is known to publish nothing more.
	Frozen bool
}

// Sources makes a Source of each URL.
func Sources(urls ...string) []Source {
	out := make([]Source, len(urls))
	for i, u := range urls {
		out[i].URL = u
	}
	return out
}

// Validate reports what is wrong with the settings as they are written. It
// opens no file and asks no host.
func (s Source) Validate() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil:
		return &SettingError{URL: redact(s.URL), Key: "url", Reason: "it is not a URL"}
	case isFile(u):
		err = checkFileURL(u)
	default:
		err = checkURL(u, s.Insecure)
	}
	if err != nil {
		return err
	}
	if s.ClientKey != "" && s.ClientCert == "" {
		return &SettingError{URL: redactURL(u), Key: "client_key", Reason: "it is of no use without client_cert"}
	}
	if s.HeadersFile != "" && u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return &SettingError{URL: redactURL(u), Key: "headers_file", File: s.HeadersFile,
			Reason: "over http everybody on the way could read the headers; use https for this index"}
	}
	_, err = hostRules(redactURL(u), s.AllowHosts)
	return err
}

// sameSettings reports whether two Sources are talked to in the same way.
func (s Source) sameSettings(o Source) bool {
	return s.URL == o.URL && s.Insecure == o.Insecure && s.HeadersFile == o.HeadersFile && s.CAFile == o.CAFile &&
		s.ClientCert == o.ClientCert && s.ClientKey == o.ClientKey && slices.Equal(s.AllowHosts, o.AllowHosts)
}

// SettingError says that a setting of a Source cannot be used. It never holds
// what is in a file.
type SettingError struct {
	URL    string // of the index, without credentials
	Key    string // of the setting, as it is called in a config
	File   string // "" if it is not about one
	Line   int    // in File, from 1; 0 if it is about all of it
	Reason string // what is wrong, and what to try
	Err    error  // may be nil
}

func (e *SettingError) Error() string {
	s := e.Key
	if e.File != "" {
		s += " " + e.File
	}
	if e.Line > 0 {
		s += fmt.Sprintf(" line %d", e.Line)
	}
	s += " of " + e.URL
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

func (e *SettingError) Unwrap() error { return e.Err }

// hostRule is one entry of AllowHosts.
type hostRule struct {
	name  string // in lower case; of *.suffix what follows the star
	below bool   // *.suffix
	port  string // "" is the scheme's own
}

func hostRules(at string, hosts []string) ([]hostRule, error) {
	var rules []hostRule
	for _, h := range hosts {
		r, err := parseHostRule(h)
		if err != nil {
			return nil, &SettingError{URL: at, Key: "allow_hosts", Err: fmt.Errorf("%q: %w", printable([]byte(h)), err),
				Reason: "write a name as in cdn.example.com, or *.example.com, with :port if it is not the usual one"}
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseHostRule(s string) (hostRule, error) {
	var r hostRule
	if s == "" || strings.ContainsAny(s, "/@ \t?#") {
		return r, errors.New("it is not the name of a host")
	}
	host := s
	if net.ParseIP(s) == nil { // a bare IPv6 address has colons, and no port
		if h, p, err := net.SplitHostPort(s); err == nil {
			if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
				return r, errors.New("the port is not a number from 1 to 65535")
			}
			host, r.port = h, strings.TrimLeft(p, "0")
		} else {
			if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
				host = strings.TrimSuffix(inner, "]")
			}
		}
	}
	r.name = strings.TrimSuffix(strings.ToLower(host), ".")
	if net.ParseIP(r.name) != nil {
		return r, nil
	}
	labels, below := strings.CutPrefix(r.name, "*.")
	if below {
		r.name, r.below = "."+labels, true
	}
	for label := range strings.SplitSeq(labels, ".") {
		if label == "" || strings.ContainsFunc(label, notInName) {
			return r, errors.New("it is not the name of a host")
		}
	}
	return r, nil
}

func notInName(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_'
}

// allows reports whether u is on a host that r names.
func (r hostRule) allows(u *url.URL) bool {
	want := r.port
	if want == "" {
		want = port(&url.URL{Scheme: u.Scheme})
	}
	if port(u) != want {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if !r.below {
		if ip := net.ParseIP(host); ip != nil {
			return ip.Equal(net.ParseIP(r.name))
		}
		return host == r.name
	}
	return net.ParseIP(host) == nil && len(host) > len(r.name) && strings.HasSuffix(host, r.name)
}
