package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The example of docs/serve.md, with a real nginx before the socket: a browser signs
// in and acts, and another site's page does not.
func TestBehindNginx(t *testing.T) {
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if nginx, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("nginx is missing")
		}
	}
	doc, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	location := regexp.MustCompile(`(?s)    location / \{\n.*?\n    \}\n`).Find(doc)
	if location == nil {
		t.Fatal("docs/serve.md has no location")
	}
	dir, err := os.MkdirTemp("", "nginx") // short: the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cert, key := pair(t, dir, 1)
	sock, front := filepath.Join(dir, "page.sock"), filepath.Join(dir, "front.sock")
	done, ended := new(deeds), make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	go func() {
		ended <- Serve(ctx, Options{Listen: "unix:" + sock, Hosts: []string{"rocm.example.net"}, Source: hub(running()), Actions: done, Token: testToken, Now: func() time.Time { return noon }})
	}()
	user := ""
	if os.Getuid() == 0 {
		user = "user root;"
	}
	conf := fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log %[1]s/error.log; %[2]s
events { worker_connections 64; }
http { access_log off; client_body_temp_path %[1]s/a; proxy_temp_path %[1]s/b; fastcgi_temp_path %[1]s/c; uwsgi_temp_path %[1]s/d; scgi_temp_path %[1]s/e;
server { listen unix:%[3]s ssl; server_name rocm.example.net; ssl_certificate %[4]s; ssl_certificate_key %[5]s;
%[6]s} }`, dir, user, front, cert, key, strings.ReplaceAll(string(location), "/run/rocm-nightly/page.sock", sock))
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(nginx, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }()

	tr := &http.Transport{TLSClientConfig: trusting(), DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", front)
	}}
	defer tr.CloseIdleConnections()
	do := func(method, path, form string, header ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "https://rocm.example.net"+path, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		deadline := time.After(20 * time.Second)
		for {
			res, err := tr.RoundTrip(req)
			if err == nil && res.StatusCode != http.StatusBadGateway {
				t.Cleanup(func() { res.Body.Close() })
				return res
			}
			select {
			case <-deadline:
				t.Fatal("nginx does not answer: ", err)
			case <-time.After(20 * time.Millisecond): // until both listen
			}
		}
	}
	if res := do("GET", "/", ""); res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	res := do("POST", "/login", url.Values{"token": {testToken}}.Encode(), append(formHeader, "Origin", "https://rocm.example.net")...)
	c, err := http.ParseSetCookie(res.Header.Get("Set-Cookie"))
	if err != nil || !c.Secure || c.Name != cookieTLS {
		t.Fatalf("%s: %+v %v", res.Status, c, err)
	}
	page, err := io.ReadAll(do("GET", "/", "", "Cookie", c.Name+"="+c.Value).Body)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`name="csrf" value="([0-9a-f]{64})"`).FindSubmatch(page)
	if m == nil {
		t.Fatal("not signed in")
	}
	form := "job=update&csrf=" + string(m[1])
	header := append(formHeader, "Cookie", c.Name+"="+c.Value)
	if res := do("POST", "/actions/run", form, append(header, "Origin", "https://evil.example")...); res.StatusCode != 403 {
		t.Errorf("another site's page: %s", res.Status)
	}
	if res := do("POST", "/actions/run", form, append(header, "Origin", "https://rocm.example.net")...); res.StatusCode != 303 || len(done.all) != 1 {
		t.Errorf("%s, done %q", res.Status, done.all)
	}
	// Events come through at once, and not when nginx has a buffer full.
	events := do("GET", "/events", "")
	if k, err := events.Body.Read(make([]byte, 16)); err != nil || k == 0 {
		t.Errorf("no events: %v", err)
	}
}
