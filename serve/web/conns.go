package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// How many connections there are at most, in all and of one address. A proxy on
// this machine stands for many: loopback and sockets count in all only.
const (
	maxConns        = 512
	maxConnsAddress = 64
)

// conns accepts connections, and bounds them. When there are too many, the one
// that has waited longest without a request under way makes room: who opens
// connections and sends nothing, or a byte now and then, loses them to who asks.
type conns struct {
	max, perAddress int

	mu   sync.Mutex
	open map[*conn]struct{}
	by   map[netip.Prefix]int
	tick uint64
}

func newConns() *conns {
	return &conns{max: maxConns, perAddress: maxConnsAddress, open: map[*conn]struct{}{}, by: map[netip.Prefix]int{}}
}

// conn is one connection. busy counts its requests under way, idle is when it
// last had none, by the count of the tick.
type conn struct {
	net.Conn
	all  *conns
	from netip.Prefix
	once sync.Once
	busy int
	idle uint64
}

// limited is a listener whose connections are counted.
type limited struct {
	net.Listener
	all *conns
}

// Accept implements net.Listener.
func (l limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if kept := l.all.add(c); kept != nil {
			return kept, nil
		}
	}
}

// add counts c, and makes room for it; nil: there is none, and c was closed.
func (s *conns) add(raw net.Conn) *conn {
	c := &conn{Conn: raw, all: s, from: address(raw.RemoteAddr().String())}
	s.mu.Lock()
	full := c.from.IsValid() && s.by[c.from] >= s.perAddress
	var goes *conn
	if !full && len(s.open) >= s.max {
		goes = s.longestIdle()
		full = goes == nil
	}
	if !full {
		if goes != nil {
			s.forget(goes)
		}
		s.tick++
		c.idle = s.tick
		s.open[c] = struct{}{}
		if c.from.IsValid() {
			s.by[c.from]++
		}
	}
	s.mu.Unlock()
	if goes != nil && !full {
		goes.Conn.Close()
	}
	if full {
		raw.Close()
		return nil
	}
	return c
}

func (s *conns) longestIdle() *conn {
	var longest *conn
	for c := range s.open {
		if c.busy == 0 && (longest == nil || c.idle < longest.idle) {
			longest = c
		}
	}
	return longest
}

// forget no longer counts c. The lock is held.
func (s *conns) forget(c *conn) {
	if _, there := s.open[c]; !there {
		return
	}
	delete(s.open, c)
	if s.by[c.from]--; s.by[c.from] <= 0 {
		delete(s.by, c.from)
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.all.mu.Lock()
		c.all.forget(c)
		c.all.mu.Unlock()
	})
	return c.Conn.Close()
}

// work marks that a request is under way, until what it returns is called.
func (c *conn) work() func() {
	c.all.mu.Lock()
	c.busy++
	c.all.mu.Unlock()
	return func() {
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		c.busy--
		c.all.tick++
		c.idle = c.all.tick
	}
}

type connKey struct{}

// connContext is http.Server's: it lets a request find its connection.
func connContext(ctx context.Context, nc net.Conn) context.Context {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // *tls.Conn
		nc = t.NetConn()
	}
	if c, ok := nc.(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// working marks r's connection as one with a request under way.
func working(r *http.Request) func() {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		return c.work()
	}
	return func() {}
}

// address is what limits count by: an IPv4 address, or the /64 that one IPv6
// customer has. It is not valid for this machine's own, which may be a proxy's.
func address(remote string) netip.Prefix {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil || ap.Addr().Unmap().IsLoopback() {
		return netip.Prefix{}
	}
	ip, bits := ap.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
