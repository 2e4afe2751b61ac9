package fetch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// visit is what a request showed to a server.
type visit struct {
	method, path, team, auth, referer, cert string
	proto                                   int
}

// host is a server that remembers its visits, and serves an index and data.
type host struct {
	*httptest.Server
	mu     sync.Mutex
	visits []visit
	data   []byte
	sendTo string // every request is redirected here, if it is not ""
}

func newHost(t testing.TB, secure bool) *host {
	t.Helper()
	h := &host{data: random(7, 3*testSegment)}
	h.Server = httptest.NewUnstartedServer(h)
	if secure {
		h.EnableHTTP2 = true
		h.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
		h.StartTLS()
	} else {
		h.Start()
	}
	t.Cleanup(h.Close)
	return h
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := visit{method: r.Method, path: r.URL.Path, team: r.Header.Get("X-Team"), auth: r.Header.Get("Authorization"), referer: r.Referer(), proto: r.ProtoMajor}
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		v.cert = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	h.mu.Lock()
	h.visits = append(h.visits, v)
	to := h.sendTo
	h.mu.Unlock()
	switch {
	case to != "":
		http.Redirect(w, r, to+r.URL.Path, http.StatusFound)
	case strings.HasSuffix(r.URL.Path, ".tar.gz"):
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(h.data)))
	default:
		serveScript(`const files = [`+one+`]`)(w, r)
	}
}

func (h *host) seen() []visit {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.visits)
}

func (h *host) hostPort() string {
	return strings.TrimPrefix(strings.TrimPrefix(h.URL, "https://"), "http://")
}

func (h *host) caFile(t testing.TB) string {
	t.Helper()
	return write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})))
}

func write(t testing.TB, name, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// clientPEM makes a certificate of its own, and its key.
func clientPEM(t testing.TB, name string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	c.Subject.CommonName = name
	raw, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: rawKey}))
}

// take lists the index of one source, and downloads what it lists.
func take(t *testing.T, c *Client, s Source) error {
	t.Helper()
	l, err := c.List(t.Context(), "nightly", []Source{s})
	if err != nil {
		return err
	}
	d, err := c.Download(t.Context(), l.Releases[0], t.TempDir())
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = io.Copy(io.Discard, d)
	return err
}

// TestSettingsHoldForPagesAndTarballs: an authority, a certificate and
// headers of one index, over two versions of HTTP.
func TestSettingsHoldForPagesAndTarballs(t *testing.T) {
	h := newHost(t, true)
	cert, key := clientPEM(t, "builder")
	s := Source{URL: h.URL + "/tarball/", CAFile: h.caFile(t), HeadersFile: write(t, "headers", "X-Team: rocm\nAuthorization: Bearer t0ken\n"),
		ClientCert: write(t, "cert.pem", cert), ClientKey: write(t, "key.pem", key)}
	if err := take(t, testClient(t, nil), s); err != nil {
		t.Fatal(err)
	}
	pages, segments := 0, 0
	for _, v := range h.seen() {
		if v.team != "rocm" || v.auth != "Bearer t0ken" || v.cert != "builder" {
			t.Errorf("visit %+v", v)
		}
		if strings.HasSuffix(v.path, ".tar.gz") {
			segments++
			if v.proto != 1 {
				t.Errorf("a segment came over HTTP/%d", v.proto)
			}
		} else if pages++; v.proto != 2 {
			t.Errorf("an index came over HTTP/%d", v.proto)
		}
	}
	if pages != 1 || segments != 4 {
		t.Errorf("%d pages, %d requests for the tarball", pages, segments)
	}

	both := s
	both.ClientCert, both.ClientKey = write(t, "both.pem", cert+key), ""
	if err := take(t, testClient(t, nil), both); err != nil {
		t.Errorf("certificate and key in one file: %v", err)
	}
	caller := testClient(t, func(o *Options) { o.HTTP = &http.Client{Transport: &http.Transport{}} })
	if err := take(t, caller, s); err != nil {
		t.Errorf("with a caller's transport: %v", err)
	}
}

// TestOptionsSourcesHoldWithoutList: a download of a URL that was written down.
func TestOptionsSourcesHoldWithoutList(t *testing.T) {
	h := newHost(t, true)
	s := Source{URL: h.URL + "/tarball/", CAFile: h.caFile(t), HeadersFile: write(t, "headers", "X-Team: rocm")}
	rel := (&origin{url: h.URL + "/elsewhere/" + testName}).release()
	if _, err := testClient(t, nil).Stat(t.Context(), rel); err == nil || !strings.Contains(err.Error(), "ca_file") {
		t.Errorf("without the authority: %v", err)
	}
	c := testClient(t, func(o *Options) { o.Sources = []Source{s} })
	if o, err := c.Stat(t.Context(), rel); err != nil || o.Size != int64(len(h.data)) {
		t.Errorf("%+v, %v", o, err)
	}
	if v := h.seen(); len(v) == 0 || v[len(v)-1].team != "rocm" {
		t.Errorf("visits %+v", v)
	}
}

// TestLongestPrefixWins: two mirrors on one host, with headers of their own.
func TestLongestPrefixWins(t *testing.T) {
	h := newHost(t, false)
	source := func(path, team string) Source {
		return Source{URL: h.URL + path, HeadersFile: write(t, "headers", "X-Team: "+team)}
	}
	c := testClient(t, func(o *Options) {
		o.Sources = []Source{source("/", "root"), source("/a/", "a"), source("/a/b/index.html", "b"), source("/one", "one")}
	})
	for path, want := range map[string]string{"/x": "root", "/a/x": "a", "/a/b/x": "b", "/a/bc/x": "a", "/one": "one", "/one/x": "one", "/ones/x": "root", "/a/b/index.html": "b"} {
		if _, err := c.Get(t.Context(), h.URL+path, 1<<20); err != nil {
			t.Fatal(err)
		}
		if v := h.seen(); v[len(v)-1].team != want {
			t.Errorf("%s was asked for as %q, want %q", path, v[len(v)-1].team, want)
		}
	}
	l, err := c.List(t.Context(), "nightly", []Source{source("/a/", "new")})
	if err != nil || len(l.Releases) != 1 {
		t.Fatal(err)
	}
	if v := h.seen(); v[len(v)-1].team != "new" {
		t.Errorf("settings of a List are not used: %+v", v[len(v)-1])
	}
}

// TestSettingsThatCannotBeUsed: the error names key, file and line, and never
// what is in the file.
func TestSettingsThatCannotBeUsed(t *testing.T) {
	h := newHost(t, true)
	url := strings.Replace(h.URL, "https://", "https://me:s3cret@", 1) + "/"
	cert, key := clientPEM(t, "x")
	for says, s := range map[string]Source{
		"headers_file /no/such/file of " + h.URL + "/: no such file":              {HeadersFile: "/no/such/file"},
		"line 2 of " + h.URL + "/: it has no colon":                               {HeadersFile: write(t, "h", "A: b\ns3cret")},
		"it is larger than 64 KiB":                                                {HeadersFile: write(t, "h", strings.Repeat("#", 64<<10+1))},
		"it is not a regular file":                                                {HeadersFile: t.TempDir()},
		"ca_file /no/such/ca of":                                                  {CAFile: "/no/such/ca"},
		"it holds no certificate":                                                 {CAFile: write(t, "ca", "s3cret")},
		"client_cert /no/such/cert":                                               {ClientCert: "/no/such/cert"},
		"client_key /no/such/key":                                                 {ClientCert: write(t, "c", cert), ClientKey: "/no/such/key"},
		"private key does not match public key":                                   {ClientCert: write(t, "c", cert), ClientKey: write(t, "k", func() string { _, k := clientPEM(t, "y"); return k }())},
		"a certificate and its key are needed, both in PEM form, and the key not": {ClientCert: write(t, "c", cert)},
		"client_key of":                                                           {ClientKey: write(t, "k", key)},
		"allow_hosts of":                                                          {AllowHosts: []string{"https://b.example/"}},
		"name its certif":                                                         {},
		"to another host;":                                                        {CAFile: h.caFile(t)},
	} {
		t.Run(says, func(t *testing.T) {
			if strings.HasPrefix(says, "to another") {
				h.mu.Lock()
				h.sendTo = "https://b.example:8443"
				h.mu.Unlock()
			}
			s.URL = url
			begin := time.Now()
			_, err := testClient(t, nil).List(t.Context(), "nightly", []Source{s})
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Fatalf("error %v, want %q", err, says)
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error tells a secret: %v", err)
			}
			if !permanent(err) || time.Since(begin) > 2*time.Second {
				t.Errorf("it was tried again: %v", err)
			}
			h.mu.Lock()
			h.sendTo = ""
			h.mu.Unlock()
		})
	}
	custom := testClient(t, func(o *Options) { o.HTTP = &http.Client{Transport: roundTrip(nil)} })
	if _, err := custom.List(t.Context(), "nightly", []Source{{URL: h.URL, CAFile: h.caFile(t)}}); err == nil || !strings.Contains(err.Error(), "*http.Transport") {
		t.Errorf("a transport of another kind: %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestClientCertificateIsAskedFor: a host that shows the door is not asked
// again and again.
func TestClientCertificateIsAskedFor(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	defer srv.Close()
	h := &host{Server: srv}
	_, err := testClient(t, nil).List(t.Context(), "nightly", []Source{{URL: srv.URL, CAFile: h.caFile(t)}})
	if err == nil || !strings.Contains(err.Error(), "client_cert") || !permanent(err) {
		t.Errorf("error %v", err)
	}
}

func TestSourceInsecureIsOfItsHost(t *testing.T) {
	h := newHost(t, false)
	c := testClient(t, func(o *Options) { o.HTTP = dialTo(h.Server) })
	l, err := c.List(t.Context(), "nightly", []Source{{URL: "http://a.example/", Insecure: true}, {URL: "http://b.example/"}})
	if err != nil || l.Sources[0].Err != nil || !isA[*InsecureError](l.Sources[1].Err) {
		t.Fatalf("%+v, %v", l, err)
	}
	if _, err := c.Stat(t.Context(), l.Releases[0]); err != nil {
		t.Error(err)
	}
	rel := l.Releases[0]
	rel.URL = strings.Replace(rel.URL, "a.example", "b.example", 1)
	if _, err := c.Stat(t.Context(), rel); !isA[*InsecureError](err) {
		t.Errorf("error %v", err)
	}
	headers := Source{URL: "http://a.example/", Insecure: true, HeadersFile: write(t, "h", "X-Team: x")}
	if _, err := c.List(t.Context(), "nightly", []Source{headers}); err == nil || !strings.Contains(err.Error(), "use https") {
		t.Errorf("headers in the clear: %v", err)
	}
	for _, v := range h.seen() {
		if v.team != "" {
			t.Errorf("visit %+v", v)
		}
	}
}

// TestAuthorityIsAddedToTheSystems: a mirror may move to a public one.
func TestAuthorityIsAddedToTheSystems(t *testing.T) {
	h := newHost(t, true)
	s := &site{Source: Source{URL: h.URL, CAFile: h.caFile(t)}, at: mustURL(t, h.URL)}
	conf, err := s.tlsConfig()
	if err != nil {
		t.Fatal(err)
	}
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	want.AddCert(h.Certificate())
	if !conf.RootCAs.Equal(want) {
		t.Error("the pool is not that of the system and one more")
	}
}

func TestSitesAreNotKeptTwice(t *testing.T) {
	c := testClient(t, nil)
	for i := range 3 {
		c.register(Source{URL: "https://a.example/x/"}, Source{URL: "https://me@a.example/x/", AllowHosts: []string{fmt.Sprint(i)}}, Source{URL: "file:///srv"}, Source{URL: ":"})
	}
	if len(c.sites) != 1 {
		t.Errorf("%d sites", len(c.sites))
	}
}
