package web

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// serving starts Serve on a port of its own and returns its address.
func serving(t *testing.T, o Options) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serveOn(ctx, o.withDefaults(), []net.Listener{l}) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(2 * leaveTime):
			t.Error("it does not end")
		}
	})
	return l.Addr().String()
}

func TestCheckRefusesWhatOthersReach(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:7151": "", "unix:/run/x": "", "systemd": "", "off": "",
		"0.0.0.0:7151": "serve.listen: others reach", "": "serve.listen:", "[::]:80": "public: true",
	} {
		err := Options{Listen: listen}.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", listen, err)
		}
	}
	if err := (Options{Listen: "127.0.0.1:1", Token: "short"}).Check(); err == nil || !strings.Contains(err.Error(), "openssl rand") || strings.Contains(err.Error(), "short") {
		t.Error(err)
	}
	if err := Serve(t.Context(), Options{Listen: "0.0.0.0:0", Source: new(state.Hub)}); err == nil {
		t.Error("it was served to everybody")
	}
	if err := Serve(t.Context(), Options{Listen: "systemd", Source: new(state.Hub)}); err == nil || !strings.Contains(err.Error(), ".socket unit") {
		t.Error(err)
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.sock")
	// What a daemon that was killed leaves behind.
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()
	l, err := openUnix(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != socketMode {
		t.Errorf("%v %v", info, err)
	}
	if _, err := openUnix(t.Context(), path); err == nil || !strings.Contains(err.Error(), "another daemon answers") {
		t.Errorf("a socket that is in use was taken: %v", err)
	}
	l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Error("the socket stays")
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openUnix(t.Context(), path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file was taken: %v", err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// Who opens connections and sends little is let go, and keeps nobody else out.
func TestSlowClientsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it waits for the limit of a slow header")
	}
	addr := serving(t, Options{Source: hub(quiet())})
	slow := make([]net.Conn, maxConns+50)
	for i := range slow {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: %d", i)
		slow[i] = c
	}
	begun := time.Now()
	if res, _ := ask(t, "GET", "http://"+addr+"/healthz", ""); res.StatusCode != 200 || time.Since(begun) > headerTime/2 {
		t.Errorf("%s after %s", res.Status, time.Since(begun))
	}
	if err := slow[len(slow)-1].SetReadDeadline(begun.Add(2 * headerTime)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(slow[len(slow)-1]); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("a header may take for ever")
	}
}

func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	all := newConns()
	for i := range maxConnsAddress + 10 {
		c := all.add(fake{addr: "203.0.113.7:9"})
		if (c == nil) != (i >= maxConnsAddress) {
			t.Fatalf("connection %d: %v", i, c)
		}
	}
	first := all.add(fake{addr: "203.0.113.8:9"})
	if first == nil {
		t.Fatal("another address is kept out")
	}
	first.Close()
	first.Close()
	if len(all.open) != maxConnsAddress || len(all.by) != 1 {
		t.Errorf("%d open, of %d addresses", len(all.open), len(all.by))
	}
	all.max = maxConnsAddress
	for c := range all.open {
		c.work()
	}
	if all.add(fake{addr: "203.0.113.9:9"}) != nil {
		t.Error("somebody whose request is under way was thrown out")
	}
}

// fake is a connection of an address.
type fake struct {
	net.Conn
	addr string
}

func (f fake) Close() error         { return nil }
func (f fake) RemoteAddr() net.Addr { return strAddr(f.addr) }

type strAddr string

func (a strAddr) Network() string { return "tcp" }
func (a strAddr) String() string  { return string(a) }

func TestLargeHeadersAreRefused(t *testing.T) {
	addr := serving(t, Options{Source: hub(quiet())})
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// No end of the header: what is not read yet would be a reset, not an answer.
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Large: %s", strings.Repeat("a", maxHeader+4096))
	if line, err := bufio.NewReader(c).ReadString('\n'); err == nil && !strings.Contains(line, "431") {
		t.Errorf("%q", line)
	}
}

// pair writes a certificate for 127.0.0.1 with a serial number.
func pair(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	kder, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: kder}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// trusting takes every certificate: these tests tell them apart by other means.
func trusting() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

func TestTLSIsRereadAndStrict(t *testing.T) {
	dir, log := t.TempDir(), new(bytes.Buffer)
	cert, key := pair(t, dir, 1)
	clock := make(chan time.Time, 1)
	clock <- noon
	now := func() time.Time { n := <-clock; clock <- n; return n }
	addr := serving(t, Options{Source: hub(quiet()), TLSCert: cert, TLSKey: key, Now: now, Log: slog.New(slog.NewTextHandler(log, nil))})
	get := func(c *tls.Config) (*http.Response, error) {
		c.InsecureSkipVerify = true // by its serial number
		tr := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
		defer tr.CloseIdleConnections()
		res, err := (&http.Client{Transport: tr}).Get("https://" + addr + "/")
		if err == nil {
			res.Body.Close()
		}
		return res, err
	}
	serial := func() int64 {
		res, err := get(&tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if res.ProtoMajor != 2 || res.Header.Get("Strict-Transport-Security") == "" {
			t.Errorf("%s, %v", res.Proto, res.Header)
		}
		return res.TLS.PeerCertificates[0].SerialNumber.Int64()
	}
	if n := serial(); n != 1 {
		t.Errorf("certificate %d", n)
	}
	pair(t, dir, 22)
	clock <- (<-clock).Add(2 * lookEvery)
	if n := serial(); n != 22 {
		t.Errorf("certificate %d after it has changed", n)
	}
	if err := os.WriteFile(cert, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	clock <- (<-clock).Add(2 * lookEvery)
	if n := serial(); n != 22 {
		t.Errorf("certificate %d after a bad one", n)
	}
	if _, err := get(&tls.Config{MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
}

// readUntil reads what a stream says until it has a line with want.
func readUntil(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for %q: %v", want, err)
		}
		if strings.Contains(line, want) {
			return
		}
	}
}

func TestEventsTellOfChanges(t *testing.T) {
	t.Parallel()
	for path, wants := range map[string][2]string{
		"/events":        {`"id":"running"`, "1.9 GiB of 3.2 GiB"},
		"/api/v1/events": {"event: state", `"done":2000000000`},
	} {
		t.Run(path, func(t *testing.T) {
			h := hub(running())
			addr := serving(t, Options{Source: h})
			req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			r := bufio.NewReader(res.Body)
			readUntil(t, r, wants[0])
			h.Update(func(s *state.State) {
				run := *s.Running
				run.Done = 2_000_000_000
				s.Running = &run
			})
			readUntil(t, r, wants[1])
		}) // and the server ends although somebody listens: serving says so otherwise
	}
}

func TestListenersAreBounded(t *testing.T) {
	s := newEventStreams()
	for i := range maxEventsAddress + 1 {
		if _, ok := s.enter("203.0.113.1:1"); ok != (i < maxEventsAddress) {
			t.Fatalf("stream %d of one address: %v", i, ok)
		}
	}
	var last func()
	for range maxEvents - maxEventsAddress {
		leave, ok := s.enter("127.0.0.1:1")
		if !ok {
			t.Fatal("this machine is kept out")
		}
		last = leave
	}
	if _, ok := s.enter("127.0.0.1:1"); ok {
		t.Error("too many")
	}
	last()
	if _, ok := s.enter("127.0.0.1:1"); !ok {
		t.Error("who leaves makes no room")
	}
}

// Who listens and does not read is dropped, and does not hold what it was sent.
func TestDeafListenersAreDropped(t *testing.T) {
	t.Parallel()
	h := hub(quiet())
	s, ts := start(t, Options{Source: h})
	s.slow = 200 * time.Millisecond
	c, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
	readUntil(t, bufio.NewReaderSize(c, 16), "200 OK")
	listening := func() int {
		s.streams.mu.Lock()
		defer s.streams.mu.Unlock()
		return s.streams.all
	}
	deadline, tick := time.After(30*time.Second), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for n := 0; listening() > 0; n++ {
		h.Update(func(s *state.State) { s.Root = strings.Repeat("x", 8<<20) + fmt.Sprint(n) })
		select {
		case <-deadline:
			t.Fatal("it is still there")
		case <-tick.C:
		}
	}
}
