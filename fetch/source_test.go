package fetch

import (
	"fmt"
	"strings"
	"testing"
)

func TestHostRules(t *testing.T) {
	for _, c := range []struct {
		rule, url string
		want      bool
	}{
		{"cdn.example", "https://cdn.example/x", true},
		{"CDN.example.", "https://cdn.EXAMPLE:443/x", true},
		{"cdn.example", "https://cdn.example./x", true},
		{"cdn.example", "https://cdn.example:8443/x", false},
		{"cdn.example:8443", "https://cdn.example:8443/x", true},
		{"cdn.example:8443", "https://cdn.example/x", false},
		{"cdn.example:443", "https://cdn.example/x", true},
		{"cdn.example", "http://cdn.example/x", true},
		{"cdn.example", "https://a.cdn.example/x", false},
		{"cdn.example", "https://xcdn.example/x", false},
		{"cdn.example", "https://cdn.example.evil/x", false},
		{"*.example.com", "https://a.example.com/x", true},
		{"*.example.com", "https://a.b.example.com/x", true},
		{"*.example.com", "https://example.com/x", false},
		{"*.example.com", "https://badexample.com/x", false},
		{"*.example.com:8443", "https://a.example.com:8443/x", true},
		{"*.example.com:8443", "https://a.example.com/x", false},
		{"*.0.0.1", "https://127.0.0.1/x", false},
		{"127.0.0.1:81", "http://127.0.0.1:81/x", true},
		{"127.0.0.1:81", "http://127.0.0.1:82/x", false},
		{"::1", "https://[::1]/x", true},
		{"[::1]:81", "http://[0:0::1]:81/x", true},
		{"[::1]", "https://[::2]/x", false},
	} {
		r, err := parseHostRule(c.rule)
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		if got := r.allows(mustURL(t, c.url)); got != c.want {
			t.Errorf("%s for %s: %v", c.rule, c.url, got)
		}
	}
	for _, bad := range []string{"", "*", "*.", "a.*", "*a.example", "https://a.example", "a.example/x", "a b", "u@h", "h:0", "h:99999", "h:x", "a..b", ".a", "a:b:c", "[::1"} {
		if r, err := parseHostRule(bad); err == nil {
			t.Errorf("%q is taken as %+v", bad, r)
		}
	}
}

func TestSourceValidate(t *testing.T) {
	for says, s := range map[string]Source{
		"http is for loopback only":         {URL: "http://h.example/"},
		"it is not a URL":                   {URL: "http://me:s3cret@h%zz/"},
		"absolute path on this machine":     {URL: "file://host/etc"},
		"client_key of":                     {URL: "https://h.example/", ClientKey: "/k"},
		"allow_hosts of https://h.example/": {URL: "https://me:s3cret@h.example/", AllowHosts: []string{"*"}},
		"could read the headers; use https": {URL: "http://me:s3cret@h.example/", Insecure: true, HeadersFile: "/h"},
	} {
		err := s.Validate()
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("error %v, want %q", err, says)
		}
	}
	for _, ok := range []Source{{URL: "http://h.example/", Insecure: true}, {URL: "http://localhost:8/", HeadersFile: "/h"}, {URL: "file:///srv/x"},
		{URL: "https://h.example/x/", HeadersFile: "/none", ClientCert: "/none", AllowHosts: []string{"*.b.example"}}} {
		if err := ok.Validate(); err != nil {
			t.Errorf("%+v: %v", ok, err)
		}
	}
}

func TestParseHeaders(t *testing.T) {
	h, lerr := parseHeaders([]byte("\xef\xbb\xbf# who we are\r\nauthorization:  Bearer a:b=\r\n\nX-Team: one\nx-team:two\t\nX-Empty:\n   \n"))
	if lerr != nil {
		t.Fatal(lerr)
	}
	if got := fmt.Sprint(h); got != "map[Authorization:[Bearer a:b=] X-Empty:[] X-Team:[one two]]" {
		t.Errorf("headers %s", got)
	}
	for bad, says := range map[string]string{
		"s3cret":                             "line 1: it has no colon",
		"X: 1\ns3cret value: x":              "line 2: what stands before",
		"X : s3cret":                         "line 1: what stands before",
		" X: s3cret":                         "line 1: what stands before",
		": s3cret":                           "line 1: what stands before",
		"X: s3\rcret":                        "line 1: the value has a control",
		"X: s3\x00cret":                      "line 1: the value has a control",
		"\n#\nrange: bytes=s3cret":           "line 3: Range is set by this program",
		"HOST: s3cret":                       "Host is set",
		"If-None-Match: s3cret":              "If-None-Match is set",
		"if-anything: s3cret":                "If-Anything is set",
		"Connection: s3cret":                 "Connection is set",
		"te: s3cret":                         "Te is set",
		"transfer-encoding: s3cret":          "Transfer-Encoding is set",
		"accept-encoding: s3cret":            "Accept-Encoding is set",
		"Proxy-Authorization: s3cret":        "Proxy-Authorization is set",
		"http2-settings: s3cret":             "Http2-Settings is set",
		strings.Repeat("X-S: s3cret\n", 101): "line 101: more than 100",
	} {
		_, lerr := parseHeaders([]byte(bad))
		if lerr == nil || !strings.Contains(lerr.Error(), says) || strings.Contains(lerr.Error(), "s3") {
			t.Errorf("%.40q: %v, want %q", bad, lerr, says)
		}
	}
}

func FuzzParseHeaders(f *testing.F) {
	f.Add([]byte("Authorization: Bearer x\n# y\nX-A:\n"))
	f.Add([]byte("Range: x"))
	f.Add([]byte("X: a\r\n b"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, lerr := parseHeaders(raw)
		if lerr != nil && (lerr.line < 1 || h != nil) {
			t.Errorf("%v, %v", h, lerr)
		}
		for name, values := range h {
			if !isToken(name) || reservedHeader(name) || strings.ContainsFunc(strings.Join(values, ""), notInValue) {
				t.Errorf("%q: %q", name, values)
			}
		}
	})
}

func FuzzHostRule(f *testing.F) {
	f.Add("*.example.com", "a.example.com")
	f.Add("[::1]:80", "[::1]:80")
	f.Fuzz(func(t *testing.T, rule, host string) {
		r, err := parseHostRule(rule)
		if err != nil {
			return
		}
		u := mustURL(t, "https://x/")
		u.Host = host
		if name := strings.ToLower(u.Hostname()); r.allows(u) && !strings.HasSuffix(strings.TrimSuffix(name, "."), r.name) && !strings.Contains(r.name, ":") {
			t.Errorf("%q allows %q", rule, host)
		}
	})
}
