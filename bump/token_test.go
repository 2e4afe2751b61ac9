package bump

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/secret"
)

const testToken = "ghp_S3cret/Token+with=odd&bytes"

// newForge serves u by https, as a forge does, to whoever brings the token as
// the password of user.
func newForge(t *testing.T, u *upstream, user string) *httptest.Server {
	t.Helper()
	return newForgeAt(t, u, user, filepath.Dir(u.bare))
}

// newForgeAt serves what is below root.
func newForgeAt(t *testing.T, u *upstream, user, root string) *httptest.Server {
	t.Helper()
	backend := filepath.Join(u.git(u.work, "--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("git-http-backend is missing: apt install git")
	}
	u.git(u.bare, "config", "http.receivepack", "true")
	h := &cgi.Handler{
		Path: backend, Root: "/",
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"},
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, pass, ok := r.BasicAuth(); !ok || name != user || pass != testToken {
			w.Header().Set("WWW-Authenticate", `Basic realm="forge"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// forgeEnv trusts s, has a token in FORGE_TOKEN, and a git in PATH that notes
// its arguments in the file returned before it becomes the real one.
func forgeEnv(t *testing.T, s *httptest.Server, token string) (env func(string) string, argv string) {
	t.Helper()
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	argv = filepath.Join(dir, "argv")
	real, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is missing: apt install git")
	}
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >>" + argv + "\nexec " + real + " \"$@\"\n"
	if err := errors.Join(os.WriteFile(ca, block, 0o600), os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	return func(name string) string {
		switch name {
		case "PATH":
			return dir + ":" + os.Getenv("PATH")
		case "GIT_SSL_CAINFO":
			return ca
		case "FORGE_TOKEN":
			return token
		case "GIT_TRACE", "GIT_CURL_VERBOSE", "GIT_TRACE_CURL":
			return "1"
		case "HOME":
			return os.Getenv("HOME")
		}
		return ""
	}, argv
}

func mustNotLeak(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range secretsOf("github", "", testToken) {
		if strings.Contains(text, secret) {
			t.Errorf("the token is in %s: %s", where, text)
		}
	}
}

// TestTokenReachesTheForgeAndNothingElse pushes by https for real.
func TestTokenReachesTheForgeAndNothingElse(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	s := newForge(t, u, "x-access-token")
	env, argv := forgeEnv(t, s, testToken+"\n")
	repo := u.repo()
	repo.Forge, repo.URL, repo.Token = "git", s.URL+"/up.git", secret.Source{Env: "FORGE_TOKEN"}
	o := u.options()
	o.Env = env
	var events strings.Builder
	o.Event = func(e Event) { events.WriteString(e.Kind + e.Message + "\n") }
	res, err := Run(context.Background(), repo, night(newVersion), o)
	if err != nil {
		t.Fatal(err)
	}
	if !res.Pushed || u.tip(branch) != res.Commit {
		t.Errorf("%+v", res)
	}
	said, err := os.ReadFile(argv)
	if err != nil || !strings.Contains(string(said), "push\n") {
		t.Fatalf("the git of PATH was not run: %v", err)
	}
	mustNotLeak(t, "an argument", string(said))
	mustNotLeak(t, "an event", events.String())
	mustNotLeak(t, "the result", strings.Join([]string{res.Message, res.URL, res.Body, res.Diff}, "\n"))
	mustNotLeak(t, "the commit", u.git(u.bare, "cat-file", "commit", res.Commit))
}

func TestWrongTokenIsExplainedAndNotShown(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	s := newForge(t, u, "oauth2")
	repo := u.repo()
	repo.Forge, repo.URL, repo.Token = "git", s.URL+"/up.git", secret.Source{Env: "FORGE_TOKEN"}
	o := u.options()
	o.Env, _ = forgeEnv(t, s, testToken)
	_, err := Run(context.Background(), repo, night(newVersion), o)
	if err == nil || !strings.Contains(err.Error(), "authentication") {
		t.Fatalf("got %v", err)
	}
	mustNotLeak(t, "the error", err.Error())

	repo.URL = strings.Replace(repo.URL, "https://", "https://oauth2@", 1)
	if _, err := Run(context.Background(), repo, night(newVersion), o); err != nil {
		t.Errorf("the same token under the right user name: %v", err)
	}
}

func TestTokenIsNotSentOnToAnotherHost(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	var met atomic.Bool
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { met.Store(true) }))
	defer other.Close()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
	}))
	defer s.Close()
	repo := u.repo()
	repo.URL, repo.Token = s.URL+"/a/up.git", secret.Source{Env: "FORGE_TOKEN"}
	o := u.options()
	o.Env, _ = forgeEnv(t, s, testToken)
	_, err := Run(context.Background(), repo, night(newVersion), o)
	if err == nil || met.Load() {
		t.Fatalf("got %v, redirect followed: %v", err, met.Load())
	}
	if !strings.Contains(err.Error(), "write its new address") {
		t.Errorf("got %v", err)
	}
	mustNotLeak(t, "the error", err.Error())
}

func TestGitEnvironment(t *testing.T) {
	t.Parallel()
	lookup := func(name string) string {
		switch name {
		case "PATH", "HOME", "SSH_AUTH_SOCK":
			return "/" + name
		}
		return "planted" // GIT_TRACE, GIT_DIR, LD_PRELOAD and all others
	}
	r, err := parseRemote("https://me@forge.example:8443/a/b.git")
	if err != nil {
		t.Fatal(err)
	}
	env := gitEnv(lookup, r, "gitea", testToken, "/scratch")
	all := "\n" + strings.Join(env, "\n") + "\n"
	for _, want := range []string{
		"GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C", "HOME=/scratch", "PATH=/PATH",
		"GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=/dev/null",
		"=http.https://forge.example:8443/.extraHeader", "=Authorization: Basic " + basic("gitea", "me", testToken),
		"=http.followRedirects", "=protocol.allow",
	} {
		if !strings.Contains(all, want+"\n") {
			t.Errorf("%s is missing from %s", want, all)
		}
	}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "GIT_TRACE", "GIT_TRACE_CURL", "GIT_CURL_VERBOSE", "GIT_DIR", "GIT_ASKPASS", "SSH_ASKPASS", "LD_PRELOAD", "GIT_EXEC_PATH", "GIT_CONFIG_PARAMETERS", "GIT_ALLOW_PROTOCOL":
			t.Errorf("%s got through", name)
		}
	}
	if strings.Contains(r.url, "me@") || strings.Contains(r.shown, "me@") {
		t.Errorf("user in %+v", r)
	}
	bare := strings.Join(gitEnv(lookup, r, "git", "", "/scratch"), "\n")
	if strings.Contains(bare, "Authorization") || !strings.Contains(bare, "HOME=/HOME") {
		t.Errorf("without a token: %s", bare)
	}
}

func TestScrub(t *testing.T) {
	t.Parallel()
	secrets := secretsOf("github", "", testToken)
	text := "fatal: unable to access 'https://x-access-token:" + testToken + "@h/a/': no\nAuthorization: Basic " + secrets[0] +
		"\nremote: \x1b[31mred\x1b[0m " + testToken + "\nssh://bob:pw@host/x https://a%2Fb@h/ kept@example.org\n"
	got := scrub(text, secrets)
	mustNotLeak(t, "scrubbed text", got)
	for _, bad := range []string{"bob", "pw", "\x1b", "a%2Fb", "x-access-token"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is left in %s", bad, got)
		}
	}
	if !strings.Contains(got, "kept@example.org") || !strings.Contains(got, "https://h/a/") {
		t.Errorf("too much is gone: %s", got)
	}
}

func TestTokenIsOneWord(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{" " + testToken + "\n": testToken, "two words": "", "two\nlines": "", "tøken": "", "a\x00b": "", " \n": "", "": ""} {
		got, err := readToken(Repo{Token: secret.Source{Env: "T"}}, func(string) string { return text })
		if got != want || (err == nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), " T ") || text != "" && strings.TrimSpace(text) != "" && strings.Contains(err.Error(), text)) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if got, err := readToken(Repo{}, func(string) string { return "x" }); got != "" || err != nil {
		t.Errorf("no place: %q, %v", got, err)
	}
}
