package fetch

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// proxiedURL makes a run of this test binary the process that TestProxies
// starts: net/http reads the environment once.
const proxiedURL = "FETCH_TEST_PROXIED_URL"

// testProxy is a proxy that knows one server, under every name.
type testProxy struct {
	to  string
	mu  sync.Mutex
	log []string // method, host and user of each request
}

func (p *testProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.log = append(p.log, strings.TrimSpace(r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization")))
	p.mu.Unlock()
	if r.Method != http.MethodConnect {
		io.WriteString(w, "["+entry("linux-gfx1151-10.2.0a20260930", 1790737964)+"]")
		return
	}
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer up.Close()
	w.WriteHeader(http.StatusOK)
	down, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer down.Close()
	go func() {
		io.Copy(up, buf)
		up.Close()
	}()
	io.Copy(down, up)
}

// TestProxies: those of the environment are used, with an index's own
// authority too, and none is left out because its address is wrong.
func TestProxies(t *testing.T) {
	if at := os.Getenv(proxiedURL); at != "" {
		client := testClient(t, func(o *Options) { o.Retries = -1 })
		_, err := client.List(t.Context(), "nightly", []Source{{URL: at, CAFile: os.Getenv(proxiedURL + "_CA"), Insecure: true}})
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	srv := httptest.NewTLSServer(serveScript(`const files = [` + entry("linux-gfx1151-10.2.0a20260930", 1790737964) + `];`)) // for example.com
	t.Cleanup(srv.Close)
	ca := write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	for name, c := range map[string]struct {
		url  string
		env  []string
		log  string // what the proxy saw
		says string // what is wrong; "" if nothing
	}{
		"https":             {"https://example.com/", []string{"HTTPS_PROXY=http://HERE"}, "CONNECT example.com:443", ""},
		"lower case":        {"https://example.com/", []string{"https_proxy=HERE"}, "CONNECT example.com:443", ""},
		"with a password":   {"https://example.com/", []string{"HTTPS_PROXY=http://me:pw@HERE"}, "CONNECT example.com:443 Basic bWU6cHc=", ""},
		"http":              {"http://example.invalid/", []string{"HTTP_PROXY=http://HERE"}, "GET example.invalid", ""},
		"not for this host": {"http://example.invalid/", []string{"HTTP_PROXY=http://HERE", "NO_PROXY=.invalid"}, "", "get http://example.invalid/: dial"},
		"not for https":     {"https://example.invalid/", []string{"HTTP_PROXY=http://HERE"}, "", "get https://example.invalid/: dial"},
		"no address":        {"https://example.invalid/", []string{"HTTPS_PROXY=http://me:pa%ss@HERE"}, "", "the proxy in HTTPS_PROXY cannot be read"},
		"no address, http":  {"http://example.invalid/", []string{"http_proxy=http://me:pa%ss@HERE"}, "", "the proxy in HTTP_PROXY cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &testProxy{to: srv.Listener.Addr().String()}
			proxy := httptest.NewServer(p)
			defer proxy.Close()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxies$")
			cmd.Env = []string{proxiedURL + "=" + c.url, proxiedURL + "_CA=" + ca}
			for _, e := range c.env {
				cmd.Env = append(cmd.Env, strings.ReplaceAll(e, "HERE", strings.TrimPrefix(proxy.URL, "http://")))
			}
			out, err := cmd.CombinedOutput()
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(string(out), c.says)) || strings.Contains(string(out), "pa%ss") {
				t.Errorf("%v: %s", err, out)
			}
			var want []string
			if c.log != "" {
				want = []string{c.log}
			}
			if p.mu.Lock(); !slices.Equal(p.log, want) {
				t.Errorf("the proxy saw %q, want %q", p.log, want)
			}
			p.mu.Unlock()
		})
	}
}
