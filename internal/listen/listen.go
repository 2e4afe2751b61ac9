package listen

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// What an address can be.
const (
	Off     = "off"     // nowhere
	Systemd = "systemd" // the sockets that systemd hands over
	Unix    = "unix"    // a socket in the file system
	TCP     = "tcp"     // a host and a port
)

// maxUnixPath is what sockaddr_un has room for, less the zero at the end and the
// name that the socket has for a moment before it is moved into place: unix(7).
const maxUnixPath = 100

// Where says where something is served, and how.
type Where struct {
	Listen          string // host:port, unix:/path, systemd or off
	Public          bool   // others may reach it without TLS too
	TLSCert, TLSKey string // files, both or none
	Hosts           []string
}

// Fault is what is wrong with one key of a Where.
type Fault struct{ Key, Text string }

// Parse tells what kind of address s is, and its address: a path or host:port.
func Parse(s string) (kind, address string, err error) {
	switch path, unix := strings.CutPrefix(s, "unix:"); {
	case s == Off, s == Systemd:
		return s, "", nil
	case unix && (!filepath.IsAbs(path) || strings.ContainsAny(path, "\x00\n\r")):
		return "", "", fmt.Errorf("%.200q is not unix: and an absolute path", s)
	case unix && len(path) > maxUnixPath:
		return "", "", fmt.Errorf("the path of a socket has at most %d bytes, and this one %d", maxUnixPath, len(path))
	case unix:
		return Unix, filepath.Clean(path), nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "", "", fmt.Errorf("%.200q is not host:port, unix:/path, systemd or off", s)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", "", fmt.Errorf("%.20q is not the number of a port", port)
	}
	if _, err := netip.ParseAddr(host); host != "" && err != nil && !hostName.MatchString(host) {
		return "", "", fmt.Errorf("%.200q is neither an address nor a host name", host)
	}
	return TCP, s, nil
}

// hostName is a name of DNS (RFC 1123), with the underscore that people use.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$`)

// Check tells all that makes no sense, or is dangerous, by its key.
func (w Where) Check() []Fault {
	var faults []Fault
	add := func(key, format string, args ...any) {
		faults = append(faults, Fault{key, fmt.Sprintf(format, args...)})
	}
	kind, address, err := Parse(w.Listen)
	if err != nil {
		add("listen", "%v", err)
	}
	if (w.TLSCert == "") != (w.TLSKey == "") {
		add("tls_cert", "and tls_key belong together: one of them is missing")
	}
	for _, f := range []struct{ key, path string }{{"tls_cert", w.TLSCert}, {"tls_key", w.TLSKey}} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			add(f.key, "%.200q is not an absolute path", f.path)
		}
	}
	if err == nil && kind == TCP {
		if text := w.Exposed(address); text != "" {
			add("listen", "%s", text)
		}
	}
	for i, h := range w.Hosts {
		if _, err := netip.ParseAddr(h); err != nil && !hostName.MatchString(h) {
			add(fmt.Sprintf("hosts[%d]", i), "%.200q is not a host name alone, such as rocm.example.net", h)
		}
	}
	return faults
}

// Exposed says why address must not be listened on as it is; "" where it may.
func (w Where) Exposed(address string) string {
	if w.Public || w.TLSCert != "" && w.TLSKey != "" || Loopback(address) {
		return ""
	}
	return fmt.Sprintf("others reach %s, and there is no TLS: set tls_cert and tls_key; or public: true, if something else keeps them out; or listen on 127.0.0.1, or on a unix: socket", address)
}

// Loopback reports whether only this machine reaches address, a host:port.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
