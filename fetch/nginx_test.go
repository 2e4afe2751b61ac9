package fetch

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startNginx serves the directory dir with its autoindex in one format, and
// returns the URL of it. It skips the test where there is no nginx; the
// fixtures in testdata stand in for it then.
func startNginx(t *testing.T, dir, format string) string {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if _, serr := os.Stat("/usr/sbin/nginx"); err != nil && serr == nil {
		nginx, err = "/usr/sbin/nginx", nil // not on every user's PATH
	}
	if err != nil {
		t.Skip("nginx is not on PATH (Debian package nginx-light)")
	}
	work := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	conf := filepath.Join(work, "nginx.conf")
	text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
  server { listen %[2]s; location /rocm/tarball/ { alias %[3]s/; autoindex on; autoindex_format %[4]s; } }
}
`, work, at, dir, format)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), nginx, "-p", work, "-c", conf)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("nginx: %s", log.String())
		}
	})
	url := "http://" + at + "/rocm/tarball/"
	for range 200 {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			return url
		}
		select {
		case <-time.After(25 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Fatal("nginx does not answer")
	return ""
}

// TestListReadsNginx: not only what nginx wrote once.
func TestListReadsNginx(t *testing.T) {
	for format, grain := range map[string]time.Duration{"html": time.Minute, "json": time.Second} {
		t.Run(format, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "autoindex") // TempDir's parents may be closed to nginx's user
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			url := startNginx(t, dir, format)
			client := testClient(t, nil)
			l, err := client.List(t.Context(), "nightly", Sources(url))
			if err != nil || len(l.Releases) != 0 {
				t.Fatalf("empty: %+v, %v", l, err)
			}
			data := random(1, 2*testSegment)
			for _, n := range []string{testName, nameBKC, nameAdhoc} {
				writeAt(t, filepath.Join(dir, n), data, localTime)
			}
			l, err = client.List(t.Context(), "nightly", Sources(url+"?C=M;O=D"))
			if err != nil || len(l.Releases) != 2 || len(l.Unparsed) != 1 {
				t.Fatalf("%+v, %v", l, err)
			}
			for _, r := range l.Releases {
				if !r.MTime.Equal(localTime.Truncate(grain)) || r.URL != url+strings.ReplaceAll(r.Name, "+", "%2B") {
					t.Errorf("%s at %s of %v", r.Name, r.URL, r.MTime)
				}
				if o, err := client.Stat(t.Context(), r); err != nil || o.Size != int64(len(data)) {
					t.Errorf("%s: %+v, %v", r.URL, o, err)
				}
			}
		})
	}
}

// BenchmarkListUnchanged is a check that finds nothing new among 5000 names.
func BenchmarkListUnchanged(b *testing.B) {
	var entries []string
	for i := range 5000 {
		entries = append(entries, entry(fmt.Sprintf("linux-gfx1151-10.%d.0a20260930", i), 1790737964))
	}
	e := &editable{body: page1(`const files = [` + strings.Join(entries, ",") + `];`), etag: `"1"`}
	index := indexServer(b, e.ServeHTTP)
	client := testClient(b, nil)
	for b.Loop() {
		if l, err := client.List(b.Context(), "nightly", Sources(index)); err != nil || len(l.Releases) != 5000 {
			b.Fatal(err)
		}
	}
}
