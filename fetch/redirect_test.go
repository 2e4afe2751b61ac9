package fetch

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestRedirectsTakeNothingAlong: to a host that is allowed, without what the
// first host needs; with what that host itself needs, if it is known.
func TestRedirectsTakeNothingAlong(t *testing.T) {
	b := newHost(t, true)
	a := newHost(t, true)
	a.sendTo = b.URL
	cert, key := clientPEM(t, "of-a")
	source := Source{URL: strings.Replace(a.URL, "https://", "https://me:s3cret@", 1) + "/tarball/?token=s3cret", CAFile: a.caFile(t),
		HeadersFile: write(t, "headers", "X-Team: a\nAuthorization: Bearer a\n"), ClientCert: write(t, "c", cert+key), AllowHosts: []string{b.hostPort()}}
	// The authority is of the first host only, too.
	if err := take(t, testClient(t, nil), source); err == nil || !strings.Contains(err.Error(), "ca_file") || len(b.seen()) > 0 {
		t.Errorf("error %v, visits %+v", err, b.seen())
	}
	c := testClient(t, func(o *Options) {
		o.Sources = []Source{{URL: b.URL + "/", CAFile: b.caFile(t), HeadersFile: write(t, "headers", "X-Team: b")}}
	})
	if err := take(t, c, source); err != nil {
		t.Fatal(err)
	}
	for _, v := range a.seen() {
		if v.team != "a" || v.cert != "of-a" || v.auth != "Bearer a" {
			t.Errorf("at the first host: %+v", v)
		}
	}
	if len(b.seen()) < 2 {
		t.Errorf("visits %+v", b.seen())
	}
	for _, v := range b.seen() {
		if v.team != "b" || v.auth != "" || v.cert != "" || v.referer != "" {
			t.Errorf("at the second host: %+v", v)
		}
	}
}

// TestRedirectsOnLoopback: another port is another host, and must be spelled.
func TestRedirectsOnLoopback(t *testing.T) {
	b := newHost(t, false)
	a := newHost(t, false)
	a.sendTo = b.URL
	for _, allow := range [][]string{nil, {"127.0.0.1"}, {"*.0.0.1"}, {"localhost"}} {
		err := take(t, testClient(t, nil), Source{URL: a.URL + "/", AllowHosts: allow})
		if !isA[*InsecureError](err) || !strings.Contains(err.Error(), `set allow_hosts: ["`+b.hostPort()+`"]`) {
			t.Errorf("allow_hosts %v: %v", allow, err)
		}
	}
	if len(b.seen()) != 0 {
		t.Errorf("visits %+v", b.seen())
	}
	if err := take(t, testClient(t, nil), Source{URL: a.URL + "/", AllowHosts: []string{b.hostPort()}}); err != nil {
		t.Error(err)
	}
	// What the second host allows counts for what begins there.
	b.sendTo = a.URL + "/x"
	if err := take(t, testClient(t, nil), Source{URL: b.URL + "/", AllowHosts: []string{a.hostPort()}}); err == nil || !strings.Contains(err.Error(), "more than 5 redirects") {
		t.Errorf("in a circle: %v", err)
	}
}

func TestCheckRedirect(t *testing.T) {
	for _, c := range []struct {
		first, from, to string
		insecure        bool
		allow           string
		says            string
	}{
		{"http://a.example/", "http://a.example/", "https://a.example/x", true, "", ""},
		{"http://a.example:81/", "http://a.example:81/", "https://a.example/x", true, "", "to another host"},
		{"https://a.example/", "https://a.example/", "https://a.example:8443/", false, "", `"a.example:8443"`},
		{"https://a.example/", "https://a.example/", "https://b.example:443/", false, "", `"b.example"`},
		{"https://a.example/", "https://a.example/", "https://b.example/", false, "b.example", ""},
		{"https://a.example/", "https://b.example/", "https://a.example/", false, "b.example", ""},
		{"https://a.example/", "https://b.example/", "https://c.example/", false, "b.example", `"c.example"`},
		{"https://a.example/", "https://b.example/", "http://b.example/", true, "b.example", "from https to http"},
		{"https://a.example/", "https://a.example/", "http://127.0.0.1/", true, "127.0.0.1", "from https to http"},
		{"http://a.example/", "http://a.example/", "http://b.example/", true, "b.example", ""},
		{"http://127.0.0.1/", "http://127.0.0.1/", "http://b.example/", false, "b.example", "loopback only"},
		{"http://127.0.0.1/", "http://127.0.0.1/", "file:///etc/passwd", true, "b.example", "without https"},
	} {
		rules, err := hostRules("", strings.Fields(c.allow))
		if err != nil {
			t.Fatal(err)
		}
		home := &site{Source: Source{Insecure: c.insecure}, allow: rules}
		err = testClient(t, nil).checkRedirect(home, mustURL(t, c.first), mustURL(t, c.from), mustURL(t, c.to), 1)
		if c.says == "" && err != nil || c.says != "" && (!isA[*InsecureError](err) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s, from %s to %s: %v, want %q", c.first, c.from, c.to, err, c.says)
		}
	}
}

// TestCallersCheckRedirect: it may forbid more, and see where the way led.
func TestCallersCheckRedirect(t *testing.T) {
	h := newHost(t, false)
	h.sendTo = h.URL + "/x"
	no := errors.New("not today")
	c := testClient(t, func(o *Options) {
		o.HTTP = &http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Path != "/x/y" || len(via) != 1 || via[0].URL.Path != "/y" {
				t.Errorf("%s after %v", req.URL, via)
			}
			return no
		}}
		o.Retries = -1
	})
	if _, err := c.Get(t.Context(), h.URL+"/y", 100); !errors.Is(err, no) || len(h.seen()) != 1 {
		t.Errorf("error %v after %d requests", err, len(h.seen()))
	}
	if _, err := testClient(t, nil).Get(t.Context(), indexServer(t, status(302, "Location", "http://[")), 100); !isA[*InsecureError](err) {
		t.Errorf("an unreadable redirect: %v", err)
	}
	if _, err := testClient(t, nil).Get(t.Context(), indexServer(t, status(302)), 100); !isA[*StatusError](err) {
		t.Errorf("a redirect to nowhere: %v", err)
	}
}
