//go:build heavy

package feed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// TestRenovateReadsIt: Renovate itself, with the config of docs/feed.md, finds
// the newest version and its digest in a feed. ROCM_NIGHTLY_RENOVATE is the
// program (node_modules/.bin/renovate); without it, the PATH is looked at.
func TestRenovateReadsIt(t *testing.T) {
	renovate := os.Getenv("ROCM_NIGHTLY_RENOVATE")
	if renovate == "" {
		renovate, _ = exec.LookPath("renovate")
	}
	if renovate == "" {
		t.Skip("renovate is missing: npm install renovate@42, and name it in ROCM_NIGHTLY_RENOVATE")
	}
	doc, err := os.ReadFile("../../docs/feed.md")
	if err != nil {
		t.Fatal(err)
	}
	config := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(doc)
	if config == nil {
		t.Fatal("docs/feed.md has no config for Renovate")
	}
	for _, n := range []int{1, 3} { // a list of one is what JSONata makes no list of
		f := Feed{Channel: "nightly", Family: "gfx1151"}
		for day := range n {
			f.Entries = append(f.Entries, night(day+10))
		}
		text := encoded(t, f)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/feed/nightly-gfx1151.json" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text))
		}))
		defer srv.Close()
		last := f.Entries[n-1]
		d, err := release.ParseDigest(last.Digest)
		if err != nil {
			t.Fatal(err)
		}
		value, digest := proposal(t, renovate, strings.ReplaceAll(string(config[1]), "https://example.org", srv.URL))
		if value != last.Version || digest != release.SRI(d) {
			t.Errorf("of %d: Renovate proposes %q, %q; the feed says %q, %q", n, value, digest, last.Version, release.SRI(d))
		}
	}
}

// proposal runs Renovate in a directory with a pin, and returns the version and
// the digest that it would write.
func proposal(t *testing.T, renovate, config string) (value, digest string) {
	t.Helper()
	dir := t.TempDir()
	pin := "{\n  # rocm: gfx1151\n  version = \"10.2.0a20260901\";\n  srcHash = \"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\";\n}\n"
	for name, text := range map[string]string{"pins.nix": pin, "renovate.json": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		git := exec.Command("git", args...)
		git.Dir = dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("git: %s", out)
		}
	}
	cmd := exec.Command(renovate, "--platform=local", "--dry-run=lookup")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LOG_FORMAT=json", "LOG_LEVEL=debug", "RENOVATE_BASE_DIR="+t.TempDir(), "PATH="+filepath.Dir(renovate)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("renovate: %v\n%s", err, out)
	}
	scan := bufio.NewScanner(bytes.NewReader(out))
	scan.Buffer(nil, 16<<20)
	for scan.Scan() {
		var line struct {
			Msg    string `json:"msg"`
			Config map[string][]struct {
				Deps []struct {
					Updates []struct {
						NewValue  string `json:"newValue"`
						NewDigest string `json:"newDigest"`
					} `json:"updates"`
				} `json:"deps"`
			} `json:"config"`
		}
		if json.Unmarshal(scan.Bytes(), &line) != nil || line.Msg != "packageFiles with updates" {
			continue
		}
		for _, file := range line.Config["regex"] {
			for _, dep := range file.Deps {
				for _, u := range dep.Updates {
					return u.NewValue, u.NewDigest
				}
			}
		}
	}
	t.Logf("%s", out)
	return "", ""
}
