package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func indexServer(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL + "/tarball/"
}

func serveScript(script string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, page1(script))
	}
}

func entry(name string, mtime int64) string {
	return fmt.Sprintf(`{"name":"therock-dist-%s.tar.gz","mtime":%d}`, name, mtime)
}

func nightClient(t testing.TB) *Client {
	return testClient(t, func(o *Options) { o.Now = func() time.Time { return testNow } })
}

func TestListMergesIndexes(t *testing.T) {
	newer := indexServer(t, serveScript(`const files = [`+entry("linux-gfx1151-10.2.0a20260930", 1790737964)+`,`+entry("linux-gfx1151-10.1.0a20260822", 1790000000)+`,{"name":"odd","mtime":1}]`))
	older := indexServer(t, serveScript(`const files = [`+entry("linux-gfx1151-10.1.0a20260822", 1780000000)+`,`+entry("linux-gfx110X-all-9.9.0+bkc.20260101", 1780000001)+`,{"name":"odd","mtime":1}]`))
	empty := indexServer(t, serveScript(`const files = [];`))
	broken := indexServer(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>Access Denied</html>") })
	gone := indexServer(t, status(403))
	l, err := nightClient(t).List(t.Context(), "nightly", Sources(newer, broken, older, empty, gone))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range l.Releases {
		got = append(got, r.Version.String())
		if r.Channel != "nightly" {
			t.Errorf("%s is of channel %q", r.Name, r.Channel)
		}
	}
	if want := "10.2.0a20260930 10.1.0a20260822 9.9.0+bkc.20260101"; strings.Join(got, " ") != want {
		t.Errorf("releases %v, want %s", got, want)
	}
	if u := l.Releases[1].URL; !strings.HasPrefix(u, newer) {
		t.Errorf("listed twice, taken from %s", u)
	}
	if u := l.Releases[2].URL; u != older+"therock-dist-linux-gfx110X-all-9.9.0%2Bbkc.20260101.tar.gz" {
		t.Errorf("URL %s", u)
	}
	if len(l.Unparsed) != 1 || l.Unparsed[0] != "odd" {
		t.Errorf("unparsed %q", l.Unparsed)
	}
	s := l.Sources
	if len(s) != 5 || s[0].Err != nil || s[0].Releases != 2 || s[0].Unparsed != 1 || !isA[*LayoutError](s[1].Err) || s[2].Releases != 2 || s[3].Err != nil || s[3].Releases != 0 {
		t.Errorf("sources %+v", s)
	}
	if s[4].Err == nil || !strings.Contains(s[4].Err.Error(), "absent or moved") {
		t.Errorf("403: %v", s[4].Err)
	}
	if got := strings.Join(l.Families(), " "); got != "gfx110X-all gfx1151" {
		t.Errorf("families %s", got)
	}
	if s[0].Newest.Unix() != 1790737964 {
		t.Errorf("newest %v", s[0].Newest)
	}
}

func TestListEmptyIsNothingPublished(t *testing.T) {
	l, err := nightClient(t).List(t.Context(), "bkc", Sources(indexServer(t, serveScript(`const files = [];`))))
	if err != nil || len(l.Releases) != 0 || len(l.Families()) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestListFailsWhenEveryIndexDoes(t *testing.T) {
	var hits int
	var mu sync.Mutex
	down := indexServer(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		hits++
		mu.Unlock()
		w.WriteHeader(502)
	})
	gone := indexServer(t, status(404))
	_, err := nightClient(t).List(t.Context(), "nightly", Sources(down, gone, "ftp://host/x", "file:///srv/no-mirror/", "http://host.example/x"))
	for _, says := range []string{"HTTP 502", "absent or moved (HTTP 404)", `scheme "ftp" is not supported`, "/srv/no-mirror: no such file or directory", "http is for loopback only"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
	if hits != 1+maxIndexRetries {
		t.Errorf("asked %d times", hits)
	}
	if _, err := nightClient(t).List(t.Context(), "nightly", nil); err == nil {
		t.Error("no index is no error")
	}
}

func TestListHostilePages(t *testing.T) {
	for name, c := range map[string]struct {
		h    http.HandlerFunc
		says string
	}{
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			block := make([]byte, 1<<20)
			for range maxPage>>20 + 1 {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "larger than 64 MiB"},
		"re-coded": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			w.Write([]byte("x"))
		}, "Content-Encoding br"},
		"stalls": {func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "<html>")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, "sent nothing for 200ms"},
		"closes early": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			io.WriteString(w, page1(`const files = [`+one+`]`))
		}, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			c2 := testClient(t, func(o *Options) { o.IdleTimeout = 200 * time.Millisecond; o.Retries = 1 })
			if name == "too large" {
				c2 = testClient(t, nil)
			}
			_, err := c2.List(t.Context(), "nightly", Sources(indexServer(t, c.h)))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v does not say %q", err, c.says)
			}
		})
	}
}

func TestListEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	index := indexServer(t, func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	if _, err := nightClient(t).List(ctx, "nightly", Sources(index)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestCredentialsStayOut: a mirror may want a password; nothing that is
// printed or written down may hold it.
func TestCredentialsStayOut(t *testing.T) {
	o := newOrigin(t, random(1, testSegment))
	var page http.HandlerFunc = serveScript(`const files = [` + one + `]`)
	o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if user, pass, _ := r.BasicAuth(); user != "me" || pass != "s3cret" {
			w.WriteHeader(401)
			return true
		}
		if !strings.HasSuffix(r.URL.Path, ".tar.gz") {
			page(w, r)
			return true
		}
		return false
	}
	u := mustURL(t, o.url)
	c := nightClient(t)
	l, err := c.List(t.Context(), "nightly", Sources("http://me:s3cret@"+u.Host+"/?token=s3cret"))
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%+v", l); strings.Contains(s, "s3cret") {
		t.Errorf("the listing tells a secret: %s", s)
	}
	d, err := c.Download(t.Context(), l.Releases[0], t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, d); err != nil {
		t.Error(err)
	}
	d.Close()
	for _, bad := range []string{"http://me:s3cret@127.0.0.1:1/?token=s3cret", "ftp://me:s3cret@h/", "http://me:s3cret@h.example/", "http://me:s3cret@h%zz/"} {
		if _, err := c.List(t.Context(), "nightly", Sources(bad)); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// dialTo sends every connection to one server, whatever the host is called.
func dialTo(srv *httptest.Server) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
		},
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

func TestRedirects(t *testing.T) {
	const index = "/index/"
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		serveScript(`const files = [`+one+`]`)(w, r)
	})
	secure, plain := httptest.NewTLSServer(handler), httptest.NewServer(handler)
	defer secure.Close()
	defer plain.Close()
	for _, c := range []struct {
		srv      *httptest.Server
		from, to string
		insecure bool
		says     string // "" is allowed
	}{
		{secure, "https://a.example", "https://b.example" + index, false, `if a.example may send you there, set allow_hosts: ["b.example"]`},
		{secure, "https://a.example", index, false, ""},
		{secure, "https://a.example", "http://a.example" + index, false, "from https to http"},
		{secure, "https://a.example", "http://127.0.0.1" + index, false, "from https to http"},
		{secure, "https://a.example", "http://a.example" + index, true, "from https to http"},
		{secure, "https://a.example", "ftp://a.example" + index, false, "from https to ftp"},
		{plain, "http://127.0.0.1", "file:///etc/", true, "to another host"},
		{secure, "https://a.example", "file:///etc/", false, "from https to file"},
		{plain, "http://127.0.0.1", index, false, ""},
		{plain, "http://127.0.0.1", "http://localhost" + index, false, "another host"},
		{plain, "http://a.example", index, true, ""},
		{plain, "http://a.example", index, false, "loopback only"},
	} {
		t.Run(c.from+" to "+c.to, func(t *testing.T) {
			client := testClient(t, func(o *Options) { o.HTTP = dialTo(c.srv); o.Insecure = c.insecure })
			l, err := client.List(t.Context(), "nightly", Sources(c.from+"/?to="+c.to))
			if c.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				if u := mustURL(t, l.Releases[0].URL); u.Path != index+testName {
					t.Errorf("links are relative to the page that was found, got %s", u)
				}
				return
			}
			if !isA[*InsecureError](err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want one that says %q", err, c.says)
			}
		})
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Options{Connections: -1}); err == nil {
		t.Error("negative connections are no error")
	}
	c, err := New(Options{})
	if err != nil || c.opts.Retries != DefaultRetries || c.opts.IdleTimeout != DefaultIdleTimeout || c.opts.SegmentSize != DefaultSegmentSize {
		t.Errorf("%+v, %v", c, err)
	}
	for l, http2 := range map[lane]bool{small: true, bulk: false} {
		tr, ok := c.doors[l].Transport.(*http.Transport)
		if !ok || !tr.DisableCompression || tr.ResponseHeaderTimeout == 0 || tr.TLSHandshakeTimeout == 0 || tr.Protocols.HTTP2() != http2 || !tr.Protocols.HTTP1() || c.doors[l].Timeout != 0 {
			t.Errorf("default transport %+v", tr)
		}
	}
}

func TestUserAgent(t *testing.T) {
	var agent string
	index := indexServer(t, func(w http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
		serveScript(`const files = []`)(w, r)
	})
	if _, err := nightClient(t).List(t.Context(), "nightly", Sources(index)); err != nil || !strings.HasPrefix(agent, "rocm-nightly/") {
		t.Errorf("agent %q, %v", agent, err)
	}
}
