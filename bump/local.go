package bump

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// local refuses a change that has a repository of another machine fetch from this
// one: from a directory, or from a server that listens here alone. Nobody else could
// fetch that, and it tells where things lie on this machine.
func (r remote) local(edits []Edit) error {
	if r.host == "" || loopback(r.host) {
		return nil
	}
	for _, e := range edits {
		if u, err := url.Parse(e.To); err == nil && (u.Scheme == "file" || strings.HasPrefix(u.Scheme, "http") && loopback(u.Host)) {
			return fmt.Errorf("edit %s: %s would be an address that only this machine can fetch from, for its index is a mirror here (verify the night from AMD's index, or from a mirror that others reach)", e.Path, e.Attr)
		}
	}
	return nil
}

// loopback reports whether a host, with a port or without, is this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host = strings.Trim(host, "[]"); host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}
