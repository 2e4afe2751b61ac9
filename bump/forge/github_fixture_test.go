package forge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/githubtest"
	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

// hubClock is a machine's clock that goes on only when somebody sleeps.
type hubClock struct {
	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
}

func hubNewClock() *hubClock { return &hubClock{at: time.Now()} }

func (c *hubClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *hubClock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.slept = append(c.slept, d)
	return ctx.Err()
}

// longest is the longest sleep.
func (c *hubClock) longest() (d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slept {
		d = max(d, s)
	}
	return d
}

// hubAt opens owner/name on a server of GitHub's kind.
func hubAt(t *testing.T, c Config, api, repo string) *hub {
	t.Helper()
	c.Kind, c.API = GitHub, api
	c.Owner, c.Name, _ = strings.Cut(repo, "/")
	if c.Now == nil {
		k := hubNewClock()
		c.Now, c.Sleep = k.now, k.sleep
	}
	f, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return f.(*hub)
}

func hubToken(text string) Config { return Config{Auth: Auth{Token: secret.New(text)}} }

// hubWorld is a server with a repository that bot may push to.
type hubWorld struct {
	s    *githubtest.Server
	repo *githubtest.Repo
	bot  string // token
	hub  *hub
	k    *hubClock
}

func hubNewWorld(t *testing.T) *hubWorld {
	t.Helper()
	w := &hubWorld{s: githubtest.New(t), k: hubNewClock()}
	w.repo = w.s.Repo("me/flake", map[string]string{"pin.nix": "version = \"1\";\n", "dir/a": "a\n", "dir/sub/b": "b\n"})
	w.bot = w.s.User("bot")
	w.repo.Allow("bot", "push")
	w.hub = w.as(t, w.bot)
	return w
}

func (w *hubWorld) as(t *testing.T, text string) *hub {
	c := hubToken(text)
	c.Now, c.Sleep = w.k.now, w.k.sleep
	return hubAt(t, c, w.s.URL, "me/flake")
}

// commit makes a commit of one file on top of main, and a branch at it.
func hubMake(t *testing.T, f Forge, branch, text string) Commit {
	t.Helper()
	ctx := t.Context()
	trees := f.(Trees)
	tip, err := trees.Tip(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	n := NewCommit{Parent: tip.ID, Message: "bump\n\nwith a body", Files: []File{{Path: "pin.nix", Mode: "100644", Text: []byte(text)}}}
	tree, err := trees.Tree(ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	c, err := trees.Commit(ctx, n, tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := trees.Move(ctx, branch, "", c.ID); err != nil {
		t.Fatal(err)
	}
	return c
}

// prism is a validating proxy before a server.
type prism struct {
	base, server *url.URL
}

// RoundTrip sends what GitHub's description has to the proxy. It has no
// GraphQL, and its paths of one segment where GitHub takes several: slashes in
// them are escaped for the proxy, which hands them on.
func (p *prism) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	// Nor has it the media type of diffs, which GitHub documents in prose.
	if r.URL.Path == "/graphql" || strings.Contains(r.Header.Get("Accept"), "diff") {
		r.URL.Host, r.Host = p.server.Host, p.server.Host
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

// hubStartPrism starts the proxy before server; the test is skipped where it is not
// installed.
func hubStartPrism(t *testing.T, server string) *prism {
	t.Helper()
	for _, tool := range []string{"node", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is missing", tool)
		}
	}
	out, err := exec.Command("../../scripts/openapi.sh", "--print").Output()
	if err != nil {
		t.Skip("GitHub's OpenAPI description is not installed: run scripts/openapi.sh")
	}
	dir := strings.TrimSpace(string(out))
	port := hubFreePort(t)
	cmd := exec.Command("node", filepath.Join(dir, "node_modules/.bin/prism"), "proxy", filepath.Join(dir, "github.json"), server, "--errors", "--host", "127.0.0.1", "--port", port)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
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
		scanner := bufio.NewScanner(pipe)
		for scanner.Scan() {
			if strings.Contains(scanner.Text(), "is listening") {
				ready <- nil
			}
			if os.Getenv("PRISM_LOG") != "" {
				fmt.Fprintln(os.Stderr, scanner.Text())
			}
		}
		ready <- errors.New("prism has ended")
	}()
	select {
	case err := <-ready:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("prism does not start")
	}
	p := &prism{}
	if p.base, err = url.Parse("http://127.0.0.1:" + port); err != nil {
		t.Fatal(err)
	}
	if p.server, err = url.Parse(server); err != nil {
		t.Fatal(err)
	}
	return p
}

func hubFreePort(t *testing.T) string {
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
