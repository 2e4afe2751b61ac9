package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// wire is what a chaosProxy does to one connection. Bytes are counted from
// server to client, headers and TLS included. The zero wire does nothing.
type wire struct {
	latency, jitter time.Duration // added in each direction; jitter at most
	rate            int64         // bytes per second; 0 is no limit
	then            string        // what happens at byte at; "" is nothing
	at              int64
	slow            int           // for "trickle": so many bytes come one by one,
	pace            time.Duration // and so far apart
	call            func()        // for "call"
}

// What a wire does at its byte.
const (
	thenReset   = "reset"   // RST, in both directions
	thenClose   = "close"   // FIN
	thenStall   = "stall"   // nothing more comes, and nothing ends
	thenFlip    = "flip"    // one bit is wrong
	thenTrickle = "trickle" // see wire.slow
	thenCall    = "call"    // the test does something elsewhere
)

// chaosProxy stands between a client and a server, below HTTP and TLS.
type chaosProxy struct {
	addr     string
	upstream string
	ctx      context.Context
	wg       sync.WaitGroup

	mu        sync.Mutex
	plan      func(n int) wire // of the nth connection, from 1; nil is an honest wire
	n         int
	broken    int   // connections that were reset, closed or stalled
	delivered int64 // bytes that clients were sent
}

// newChaosProxy forwards a port of its own to upstream until the test ends.
func newChaosProxy(t testing.TB, upstream string, plan func(n int) wire) *chaosProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &chaosProxy{addr: l.Addr().String(), upstream: upstream, ctx: ctx, plan: plan}
	p.wg.Go(func() { p.accept(l) })
	t.Cleanup(func() { cancel(); l.Close(); p.wg.Wait() })
	return p
}

// heal lets every later connection pass unharmed.
func (p *chaosProxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan = nil
}

func (p *chaosProxy) counts() (connections, broken int, delivered int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n, p.broken, p.delivered
}

func (p *chaosProxy) accept(l net.Listener) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.n++
		var w wire
		if p.plan != nil {
			w = p.plan(p.n)
		}
		p.mu.Unlock()
		p.wg.Go(func() { p.forward(client, w) })
	}
}

// forward joins one client to the server, until either ends or w says so.
func (p *chaosProxy) forward(client net.Conn, w wire) {
	defer client.Close()
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		defer cancel() // a client that leaves ends all
		(&pump{ctx: ctx, from: client, to: server, wire: wire{latency: w.latency, jitter: w.jitter}}).run()
	})
	both.Go(func() {
		defer cancel()
		(&pump{ctx: ctx, from: server, to: client, wire: w, proxy: p}).run()
	})
	<-ctx.Done()
	server.Close()
	client.Close()
	both.Wait()
}

// pump carries bytes in one direction.
type pump struct {
	ctx      context.Context
	from, to net.Conn
	wire     wire
	proxy    *chaosProxy // nil from client to server
	sent     int64
	free     time.Time // when what was sent is paid for, at the rate
}

// packet is what was read at once, and when it is due.
type packet struct {
	data []byte
	due  time.Time
}

func (p *pump) run() {
	if p.proxy == nil && p.wire.latency == 0 && p.wire.jitter == 0 {
		io.Copy(p.to, p.from)
		return
	}
	queue := make(chan packet, p.depth())
	var reader sync.WaitGroup
	reader.Go(func() { p.read(queue) })
	for pk := range queue {
		if !p.wait(time.Until(pk.due)) || !p.send(pk.data) {
			break
		}
	}
	p.from.Close()
	for range queue { // read ends by itself then
	}
	reader.Wait()
}

// depth is how many packets may be on their way at once. Without latency it
// is next to none: a server feels a slow wire.
func (p *pump) depth() int {
	if p.wire.latency == 0 {
		return 1
	}
	return 1024
}

func (p *pump) read(queue chan<- packet) {
	defer close(queue)
	for {
		buf := make([]byte, 32<<10)
		n, err := p.from.Read(buf)
		if n > 0 {
			delay := p.wire.latency
			if p.wire.jitter > 0 {
				delay += rand.N(p.wire.jitter)
			}
			select {
			case queue <- packet{buf[:n], time.Now().Add(delay)}:
			case <-p.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns false if the connection ended meanwhile.
func (p *pump) wait(d time.Duration) bool {
	if d <= 0 {
		return p.ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}

func (p *pump) send(b []byte) bool {
	for len(b) > 0 {
		n, delay, ok := p.next(b)
		if !ok || !p.wait(delay) || !p.write(b[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

// next returns how much of b goes next, and after which delay; and false
// when the connection is over.
func (p *pump) next(b []byte) (n int64, delay time.Duration, ok bool) {
	w := &p.wire
	n = int64(len(b))
	switch {
	case w.then == "":
	case p.sent < w.at:
		n = min(n, w.at-p.sent)
	case w.then == thenTrickle && w.slow > 0:
		w.slow--
		return 1, w.pace, true
	case !p.act(b):
		return 0, 0, false
	}
	if w.rate > 0 {
		n = min(n, max(w.rate/100, 1))
		now := time.Now()
		if p.free.Before(now) {
			p.free = now
		}
		p.free = p.free.Add(time.Duration(n) * time.Second / time.Duration(w.rate))
		delay = p.free.Sub(now)
	}
	return n, delay, true
}

func (p *pump) write(b []byte) bool {
	if p.proxy != nil {
		p.proxy.mu.Lock()
		p.proxy.delivered += int64(len(b))
		p.proxy.mu.Unlock()
	}
	p.sent += int64(len(b))
	_, err := p.to.Write(b)
	return err == nil
}

// act does what the wire does at this byte. It returns false when the
// connection is over.
func (p *pump) act(b []byte) bool {
	then := p.wire.then
	p.wire.then = ""
	switch then {
	case thenTrickle:
		return true
	case thenFlip:
		b[0] ^= 1
		return true
	case thenCall:
		p.wire.call()
		return true
	}
	p.proxy.mu.Lock()
	p.proxy.broken++
	p.proxy.mu.Unlock()
	switch then {
	case thenReset:
		p.to.(*net.TCPConn).SetLinger(0)
	case thenStall:
		<-p.ctx.Done()
	}
	return false
}

// server is a real nginx that serves one directory, of which the tarball is a
// file. Tests stop it, start it again, and read its log.
type server struct {
	t         testing.TB
	nginx     string
	addr      string
	dir, work string // what is served; what is nginx's

	mu  sync.Mutex
	cmd *exec.Cmd
}

// serverConf is what goes into which block of nginx.conf.
type serverConf struct {
	Listen string // after the address
	HTTP   string
	Server string
}

const serverText = `daemon off; master_process off; worker_processes 1; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 256; }
http {
  log_format test '$connection|$server_protocol|$request_method|$status|$http_range|$http_x_token|$ssl_client_verify|$host|$ssl_protocol|';
  access_log %[1]s/access.log test; sendfile on; default_type application/gzip;
  client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
  %[4]s
  server { listen %[2]s %[5]s; root %[3]s; %[6]s }
}
`

// findNginx skips the test where there is no nginx.
func findNginx(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} { // not on every user's PATH
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("nginx is not on PATH (Debian package nginx-light)")
	return ""
}

// startServer serves data as testName until the test ends.
func startServer(t testing.TB, data []byte, conf serverConf) *server {
	t.Helper()
	s := &server{t: t, nginx: findNginx(t), dir: t.TempDir(), work: t.TempDir()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	l.Close()
	text := fmt.Sprintf(serverText, s.work, s.addr, s.dir, conf.HTTP, conf.Listen, conf.Server)
	writeAt(t, filepath.Join(s.work, "conf"), []byte(text), time.Now())
	s.put(data, time.Date(2026, 9, 30, 3, 0, 0, 0, time.UTC))
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop()
		if b, _ := os.ReadFile(filepath.Join(s.work, "error.log")); t.Failed() {
			t.Logf("nginx: %s", b)
		}
	})
	return s
}

// put replaces the tarball as a careful publisher does: by a rename.
func (s *server) put(data []byte, modified time.Time) {
	next := filepath.Join(s.work, "next")
	err := errors.Join(os.WriteFile(next, data, 0o644), os.Chtimes(next, modified, modified), os.Rename(next, filepath.Join(s.dir, testName)))
	if err != nil {
		s.t.Error(err)
	}
}

// start returns once nginx accepts connections.
func (s *server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = exec.Command(s.nginx, "-p", s.work, "-c", filepath.Join(s.work, "conf"))
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 400 {
		if conn, err := net.Dial("tcp", s.addr); err == nil {
			return conn.Close()
		}
		<-time.After(10 * time.Millisecond)
	}
	return fmt.Errorf("nginx does not listen on %s", s.addr)
}

// stop kills nginx, and with it every connection.
func (s *server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// logged returns the fields of each request that nginx has answered.
func (s *server) logged() (lines [][]string) {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.work, "access.log"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		lines = append(lines, strings.Split(line, "|"))
	}
	return lines
}

// release is the tarball as it is found at an address, of s or of a proxy.
func (s *server) release(scheme, addr string) release.Release {
	return release.Release{Channel: "nightly", Name: testName, Family: "gfx1151", URL: scheme + "://" + addr + "/" + testName}
}
