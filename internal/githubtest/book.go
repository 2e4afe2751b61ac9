package githubtest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Book is a proxy before a server that holds every request and answer against
// GitHub's own OpenAPI description. It is the transport to use with URL: what
// breaks a rule is an error.
type Book struct {
	URL    string
	server *url.URL
}

// RoundTrip sends what the description has to the proxy. It has no GraphQL, and
// its paths are of one segment where GitHub takes several: slashes in them are
// escaped for the proxy, which hands them on.
func (b *Book) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	// Nor has it the media type of diffs, which GitHub documents in prose.
	if r.URL.Path == "/graphql" || strings.Contains(r.Header.Get("Accept"), "diff") {
		r.URL.Host, r.Host = b.server.Host, b.server.Host
		return http.DefaultTransport.RoundTrip(r)
	}
	for _, part := range []string{"/git/ref/", "/git/refs/"} {
		if before, after, ok := strings.Cut(r.URL.EscapedPath(), part); ok {
			r.URL.RawPath = before + part + strings.ReplaceAll(after, "/", "%2F")
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && strings.Contains(res.Header.Get("Sl-Violations"), `"Error"`) {
		return nil, fmt.Errorf("%s %s: %s", r.Method, r.URL.Path, res.Header.Get("Sl-Violations"))
	}
	return res, err
}

// ByTheBook starts the proxy before s, which ends with the test; the test is
// skipped where scripts/openapi.sh has not been run.
func ByTheBook(t testing.TB, s *Server) *Book {
	t.Helper()
	for _, tool := range []string{"go", "node", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing", tool)
		}
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("githubtest: find the module: %v", err)
	}
	out, err := exec.Command(filepath.Join(strings.TrimSpace(string(root)), "scripts", "openapi.sh"), "--print").Output()
	if err != nil {
		t.Skip("GitHub's OpenAPI description is not installed: run scripts/openapi.sh")
	}
	dir, port := strings.TrimSpace(string(out)), freePort(t)
	cmd := exec.Command("node", filepath.Join(dir, "node_modules/.bin/prism"), "proxy", filepath.Join(dir, "github.json"), s.URL, "--errors", "--host", "127.0.0.1", "--port", port)
	cmd.Env = append(cmd.Environ(), "NO_COLOR=1")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ready := make(chan error, 1)
	go func() {
		scanner, told := bufio.NewScanner(pipe), false
		for scanner.Scan() {
			if !told && strings.Contains(scanner.Text(), "is listening") {
				told = true
				ready <- nil
			}
		}
		if !told {
			ready <- errors.New("githubtest: prism has ended")
		}
	}()
	select {
	case err := <-ready:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("githubtest: prism does not start")
	}
	b := &Book{URL: "http://127.0.0.1:" + port}
	if b.server, err = url.Parse(s.URL); err != nil {
		t.Fatal(err)
	}
	return b
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
