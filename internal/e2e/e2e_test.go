package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
)

// binary is the program under test, built by TestMain.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "rocm-nightly-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "rocm-nightly")
	out, err := exec.Command("go", "build", "-tags", buildTags, "-o", binary, "../../cmd/rocm-nightly").CombinedOutput()
	code := 1
	if err != nil {
		fmt.Fprintf(os.Stderr, "build the program: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// corpus returns the tarball made of Debian's packages, and the next night of it.
func corpus(t *testing.T) (first, second string) {
	t.Helper()
	first = os.Getenv("ROCM_NIGHTLY_CORPUS_TARBALL")
	second = strings.Replace(first, "10.2.0a20260930", "10.2.0a20261001", 1)
	for _, f := range []string{first, second} {
		if _, err := os.Stat(f); err != nil {
			t.Skip("the corpus is not built: run scripts/corpus.sh and scripts/corpus.sh --night 10.2.0a20261001, and set ROCM_NIGHTLY_CORPUS_TARBALL to what the first prints")
		}
	}
	return first, second
}

// result is how a run of the program ended.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the program with nothing but the environment that is given.
func run(t *testing.T, env []string, args ...string) result {
	t.Helper()
	return runCommand(t, env, append([]string{binary}, args...)...)
}

func runCommand(t *testing.T, env []string, argv ...string) result {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, append([]string{}, env...)
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

func (r result) want(t *testing.T, code int, stdout, stderr string) result {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		t.Fatalf("exit %d, want %d with %q and %q\nstdout: %s\nstderr: %s", r.code, code, stdout, stderr, r.stdout, r.stderr)
	}
	return r
}

func (r result) decode(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.stdout), v); err != nil {
		t.Fatalf("%v in %s", err, r.stdout)
	}
}

// site is an nginx that serves AMD's page and tarballs.
type site struct {
	dir string
	url string
}

func startNginx(t *testing.T) *site {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		if _, serr := os.Stat("/usr/sbin/nginx"); serr != nil {
			t.Skip("nginx is not installed (Debian package nginx-light)")
		}
		nginx = "/usr/sbin/nginx"
	}
	work := t.TempDir()
	s := &site{dir: filepath.Join(work, "www/rocm/core/tarball")}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// The server's workers may be another user.
	for d := s.dir; strings.HasPrefix(d, work); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	port := freePort(t)
	conf := filepath.Join(work, "nginx.conf")
	text := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events { worker_connections 64; }
http {
  access_log off; default_type application/octet-stream; types { text/html html; application/gzip gz; }
  client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
  server { listen 127.0.0.1:%[2]d; root %[1]s/www; index index.html; }
}
`, work, port)
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
	s.url = fmt.Sprintf("http://127.0.0.1:%d/rocm/core/tarball/", port)
	s.publish(t)
	for range 200 {
		if resp, err := http.Get(s.url); err == nil {
			resp.Body.Close()
			return s
		}
		select {
		case <-time.After(25 * time.Millisecond):
		case <-t.Context().Done():
		}
	}
	t.Fatalf("nginx does not answer: %s", log.String())
	return nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// add puts a tarball on the site, by link where that is possible.
func (s *site) add(t *testing.T, tarball string) string {
	t.Helper()
	dst := filepath.Join(s.dir, filepath.Base(tarball))
	os.Remove(dst)
	if err := os.Link(tarball, dst); err != nil {
		if out, err := exec.Command("cp", tarball, dst).CombinedOutput(); err != nil {
			t.Fatalf("%s", out)
		}
	}
	s.publish(t)
	return dst
}

// put puts other bytes on the site under a tarball's name.
func (s *site) put(t *testing.T, name string, body []byte) {
	t.Helper()
	dst := filepath.Join(s.dir, filepath.Base(name))
	os.Remove(dst) // never through the link into the corpus
	if err := os.WriteFile(dst, body, 0o644); err != nil {
		t.Fatal(err)
	}
	s.publish(t)
}

// publish writes the page for what is there.
func (s *site) publish(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(s.dir, "*.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []demo.IndexEntry
	for _, n := range names {
		entries = append(entries, demo.IndexEntry{Name: filepath.Base(n), MTime: time.Now().Add(-24 * time.Hour)})
	}
	if err := os.WriteFile(filepath.Join(s.dir, "index.html"), demo.Page(entries), 0o644); err != nil {
		t.Fatal(err)
	}
}

// config writes a config for the site and returns the arguments that name it.
func (s *site) config(t *testing.T, root string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("root: %s\nchannels: {nightly: {indexes: [{url: %q}]}}\ninstalls: [{target: gfx1036}]\npolicy: {settle: 0s}\ndownload: {retries: 1}\n", root, s.url)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"--config", file}
}
