package fetch

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates that no system trusts.
type authority struct {
	t    testing.TB
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.issue("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.issue("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.issue("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return a
}

// file returns the path of ca.pem, server.pem, client.pem, and of their keys.
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// issue completes a certificate, signs it, and writes NAME.pem and NAME.key.
func (a *authority) issue(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test " + name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(name+".pem", "CERTIFICATE", der)
	a.write(name+".key", "PRIVATE KEY", secret)
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) write(name, kind string, der []byte) {
	if err := os.WriteFile(a.file(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// serve is startServer over TLS with HTTP/2 offered, an index, and more.
func (a *authority) serve(data []byte, more string) *server {
	return startServer(a.t, data, serverConf{
		Listen: "ssl http2",
		HTTP:   fmt.Sprintf("ssl_certificate %s; ssl_certificate_key %s;", a.file("server.pem"), a.file("server.key")),
		Server: "autoindex on; " + more,
	})
}

// source is the Source that trusts a, for what answers at addr.
func (a *authority) source(addr string) Source {
	return Source{URL: "https://" + addr + "/", CAFile: a.file("ca.pem")}
}

func tlsClient(t *testing.T, sources []Source, change func(*Options)) *Client {
	t.Helper()
	return testClient(t, func(o *Options) {
		o.Sources, o.SegmentSize, o.Connections = sources, chaosSegment, 4
		if change != nil {
			change(o)
		}
	})
}

// TestSegmentsShareNoConnection: where HTTP/2 is offered the index takes it,
// and each segment that is under way has a connection of its own.
func TestSegmentsShareNoConnection(t *testing.T) {
	data := random(1, chaosSize)
	for _, version := range []string{"TLSv1.2", "TLSv1.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			a := newAuthority(t)
			s := a.serve(data, "ssl_protocols "+version+";")
			p := newChaosProxy(t, s.addr, every(wire{rate: 8 << 20})) // slow enough for all to be busy
			client := tlsClient(t, nil, nil)
			l, err := client.List(t.Context(), "nightly", []Source{a.source(p.addr)})
			if err != nil || len(l.Releases) != 1 {
				t.Fatalf("%+v, %v", l, err)
			}
			got, _, err := receive(t, client, l.Releases[0].URL, t.TempDir())
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			checkConnections(t, s.logged(), version)
		})
	}
}

// checkConnections reads what nginx saw: connection, protocol, method,
// status, range, and, later in the line, the version of TLS.
func checkConnections(t *testing.T, log [][]string, version string) {
	t.Helper()
	connections := map[string]bool{}
	for _, line := range log {
		segment := strings.HasPrefix(line[4], "bytes=")
		switch {
		case segment && line[1] != "HTTP/1.1":
			t.Errorf("a segment came over %s", line[1])
		case segment:
			connections[line[0]] = true
		case line[2] == "GET" && line[1] != "HTTP/2.0":
			t.Errorf("the index came over %s", line[1])
		}
		if line[8] != version {
			t.Errorf("%s was used", line[8])
		}
	}
	if len(connections) < 4 {
		t.Errorf("%d connections for segments, want 4", len(connections))
	}
}

// TestClientCertificate: who must show one shows it to this host, for pages
// and for segments, and who lacks a setting is told which.
func TestClientCertificate(t *testing.T) {
	data := random(1, chaosSize)
	a := newAuthority(t)
	s := a.serve(data, "ssl_verify_client on; ssl_client_certificate "+a.file("ca.pem")+";")
	two := a.source(s.addr)
	two.ClientCert, two.ClientKey = a.file("client.pem"), a.file("client.key")
	one := a.source(s.addr)
	one.ClientCert = a.file("both.pem")
	cert, err := os.ReadFile(two.ClientCert)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(two.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(one.ClientCert, append(cert, key...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, src := range []Source{two, one} {
		got, _, err := receive(t, tlsClient(t, []Source{src}, nil), src.URL+testName, t.TempDir())
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
	}
	for _, line := range s.logged() {
		if line[6] != "SUCCESS" {
			t.Errorf("a request with the certificate %s: %q", line[6], line)
		}
	}
	for lacks, src := range map[string]Source{"ca_file": {URL: two.URL}, "": a.source(s.addr)} {
		got, _, err := receive(t, tlsClient(t, []Source{src}, nil), two.URL+testName, t.TempDir())
		if err == nil || len(got) != 0 || !strings.Contains(err.Error(), lacks) {
			t.Errorf("without %q: %d bytes, %v", lacks, len(got), err)
		}
	}
}

// TestRedirectTakesNothingAlong: neither the headers nor the certificate of
// the first host reach the second, which allow_hosts has to name.
func TestRedirectTakesNothingAlong(t *testing.T) {
	data := random(1, chaosSize)
	a := newAuthority(t)
	optional := "ssl_verify_client optional; ssl_client_certificate " + a.file("ca.pem") + "; "
	second := a.serve(data, optional)
	here := a.serve(data, optional+"location = /"+testName+" { return 302 https://"+second.addr+"/"+testName+"; }")
	src := a.source(here.addr)
	src.ClientCert, src.ClientKey = a.file("client.pem"), a.file("client.key")
	src.HeadersFile = filepath.Join(t.TempDir(), "headers")
	if err := os.WriteFile(src.HeadersFile, []byte("X-Token: secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sources := []Source{src, a.source(second.addr)}
	got, _, err := receive(t, tlsClient(t, sources, nil), src.URL+testName, t.TempDir())
	if !isA[*InsecureError](err) || !strings.Contains(err.Error(), "allow_hosts") || len(got) != 0 {
		t.Errorf("to a host that is not allowed: %d bytes, %v", len(got), err)
	}
	sources[0].AllowHosts = []string{second.addr}
	got, _, err = receive(t, tlsClient(t, sources, nil), src.URL+testName, t.TempDir())
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("to a host that is allowed: %d bytes, %v", len(got), err)
	}
	for _, line := range here.logged() {
		if line[5] != "secret" || line[6] != "SUCCESS" {
			t.Errorf("the first host was sent %q", line)
		}
	}
	for _, line := range second.logged() {
		if line[5] != "-" || line[6] != "NONE" {
			t.Errorf("the second host was sent %q", line)
		}
	}
}

// TestFaultsUnderTLS: what changes bytes on the way breaks the connection
// then, and passes as that.
func TestFaultsUnderTLS(t *testing.T) {
	data := random(1, chaosSize)
	a := newAuthority(t)
	s := a.serve(data, "")
	for name, w := range map[string]wire{
		"a flipped bit":                  {then: thenFlip, at: 100 << 10},
		"early close, without a goodbye": {then: thenClose, at: 100 << 10},
		"reset in the handshake":         {then: thenReset, at: 500},
		"stall in the handshake":         {then: thenStall, at: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newChaosProxy(t, s.addr, first(3, w))
			client := tlsClient(t, []Source{a.source(p.addr)}, func(o *Options) {
				o.IdleTimeout, o.Retries = 300*time.Millisecond, 6
			})
			dir := t.TempDir()
			got, _, err := receive(t, client, "https://"+p.addr+"/"+testName, dir)
			if n, _, _ := p.counts(); err != nil || !bytes.Equal(got, data) || n < 4 {
				t.Errorf("%d bytes over %d connections, %v", len(got), n, err)
			}
			checkSpool(t, dir, data, chaosSegment)
		})
	}
}
