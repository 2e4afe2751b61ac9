package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

var (
	hexA    = strings.Repeat("ab", 32)
	hexB    = strings.Repeat("cd", 32)
	digestA = release.Digest("sha256:" + hexA)
)

func TestParseSums(t *testing.T) {
	for _, c := range []struct {
		name, body string
		own        bool
		want       release.Digest
		unread     int
	}{
		{"text", hexA + "  " + testName + "\n", false, digestA, 0},
		{"binary", hexA + " *" + testName + "\n", false, digestA, 0},
		{"upper case", strings.ToUpper(hexA) + "  " + testName, false, digestA, 0},
		{"reversed BSD", hexA + " " + testName, false, digestA, 0},
		{"beside", hexA + "  ./" + testName, false, digestA, 0},
		{"CRLF and BOM", "\xef\xbb\xbf" + hexA + "  " + testName + "\r\n", false, digestA, 0},
		{"BSD", "SHA256 (" + testName + ") = " + hexA, false, digestA, 0},
		{"openssl", "SHA2-256(" + testName + ")= " + hexA, false, digestA, 0},
		{"among others", "# night\n\n" + hexB + "  other\n" + hexA + "  " + testName + "\n" + hexB + "  asan/" + testName + "\n", false, digestA, 0},
		{"twice the same", hexA + "  " + testName + "\n" + hexA + " *" + testName, false, digestA, 0},
		{"other algorithms", "MD5 (" + testName + ") = " + hexB[:32] + "\nSHA512 (" + testName + ") = " + hexB + hexB + "\n" + hexB[:40] + "  " + testName + "\nSHA256 (" + testName + ") = " + hexA, false, digestA, 0},
		{"not listed", hexB + "  other\n" + hexB + "  x" + testName + "\n" + hexB + "  " + testName + "x", false, "", 0},
		{"of a subdirectory", hexB + "  asan/" + testName, false, "", 0},
		{"lone, in a list", hexA, false, "", 1},
		{"short digest", hexA[:63] + "  " + testName, false, "", 1},
		{"long digest", hexA + "a  " + testName, false, "", 1},
		{"binary junk", "\x1f\x8b\x00\x00\n\xff", false, "", 2},
		{"signed", "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n" + hexA + "  " + testName + "\n", false, digestA, 2},
		{"own, lone", hexA + "\n", true, digestA, 0},
		{"own, prefixed", "sha256:" + hexA, true, digestA, 0},
		{"own, SRI", release.SRI(digestA), true, digestA, 0},
		{"own, Nix", release.Nix32(digestA) + "\n", true, digestA, 0},
		{"own, made elsewhere", hexA + "  /home/ci/out/" + testName, true, digestA, 0},
		{"own, made on Windows", hexA + ` *out\` + testName, true, digestA, 0},
		{"own, of another", hexA + "  other.tar.gz", true, "", 0},
		{"own, SHA-512", hexA + hexA, true, "", 1},
		{"own, from a pipe", hexA + "  -\n", true, digestA, 0},
		{"from a pipe, in a list", hexA + "  -\n", false, "", 0},
		{"spaces at the end", hexA + "  " + testName + " \t\r\n \n", false, digestA, 0},
		{"empty", "", true, "", 0},
	} {
		got, err := parseSums([]byte(c.body), testName, c.own)
		if err != nil || got.digest != c.want || got.unread != c.unread {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	for in, name := range map[string]string{`\` + hexA + `  a\nb\\n`: "a\nb\\n", `\SHA256 (a\rb) = ` + hexA: "a\rb", hexA + `  a\nb`: `a\nb`} {
		if got, d, ok := parseSumLine(in); got != name || d != digestA || !ok {
			t.Errorf("%q: %q, %v, %v", in, got, d, ok)
		}
	}
	for _, own := range []bool{true, false} {
		if _, err := parseSums([]byte(hexA+"  "+testName+"\nSHA256 ("+testName+") = "+hexB+"\n"), testName, own); err == nil || !strings.Contains(err.Error(), "two different digests") {
			t.Errorf("two digests: %v", err)
		}
	}
}

func FuzzParseSums(f *testing.F) {
	for _, s := range []string{hexA, hexA + "  " + testName, `\` + hexA + ` *` + testName, "SHA256 (" + testName + ") = " + hexA + "\n" + hexA + " x", "<html>"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, own bool) {
		s, err := parseSums(body, testName, own)
		if err != nil && s.digest != "" || s.digest != "" && s.digest.Validate() != nil {
			t.Errorf("%+v, %v", s, err)
		}
		if s.digest != "" && !own && !strings.Contains(strings.ReplaceAll(string(body), `\\`, `\`), testName) {
			t.Errorf("a digest of a name that is not there: %q", body)
		}
	})
}

// sideServer serves files beside a tarball, by the end of their names.
func sideServer(t *testing.T, files map[string]http.HandlerFunc) (release.Release, func() int) {
	t.Helper()
	var mu sync.Mutex
	n := 0
	index := indexServer(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		n++
		mu.Unlock()
		if f := files[strings.TrimPrefix(r.URL.Path, "/tarball/")]; f != nil {
			f(w, r)
			return
		}
		w.WriteHeader(404)
	})
	rel := release.Release{Name: nameBKC, URL: index + strings.ReplaceAll(nameBKC, "+", "%2B")}
	return rel, func() int { mu.Lock(); defer mu.Unlock(); return n }
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func TestSideDigests(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]http.HandlerFunc
		want  string // sources
		notes []string
		err   string
	}{
		"none":        {nil, "[]", nil, ""},
		"403 and 410": {map[string]http.HandlerFunc{nameBKC + ".sha256": status(403), sumsName: status(410)}, "[]", nil, ""},
		"all": {map[string]http.HandlerFunc{nameBKC + ".sha256": says(hexA), nameBKC + ".sha256sum": says(hexA + "  " + nameBKC), sumsName: says(hexA + " *" + nameBKC)},
			"[" + nameBKC + ".sha256 beside the tarball " + nameBKC + ".sha256sum beside the tarball SHA256SUMS beside the tarball]", nil, ""},
		"pages and failures": {map[string]http.HandlerFunc{nameBKC + ".sha256": func(w http.ResponseWriter, _ *http.Request) { htmlPage(w, "text/plain") }, nameBKC + ".sha256sum": status(500),
			sumsName: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				io.WriteString(w, hexA+"  "+nameBKC)
			}}, "[]", []string{"a web page", "HTTP 500", "a web page"}, ""},
		"odd": {map[string]http.HandlerFunc{nameBKC + ".sha256": says("soon"), nameBKC + ".sha256sum": says(hexA + "\nrest"), sumsName: says(hexA + "  other")},
			"[]", []string{"is not a list", "is not a list", "has no SHA-256 digest of it"}, ""},
		"too large":           {map[string]http.HandlerFunc{sumsName: says(strings.Repeat(hexA+"  "+nameBKC+"\n", maxSide/100))}, "[]", []string{"more than 1048576 bytes"}, ""},
		"a digest of nothing": {map[string]http.HandlerFunc{sumsName: says(hexA)}, "[]", []string{"is not a list"}, ""},
		"redirected away": {map[string]http.HandlerFunc{sumsName: status(302, "Location", "https://evil.example/")}, "[]",
			[]string{"allow_hosts"}, ""},
		"at odds with itself": {map[string]http.HandlerFunc{sumsName: says(hexA + "  " + nameBKC + "\n" + hexB + "  " + nameBKC)}, "[]", nil, "SHA256SUMS: it has two different digests"},
	} {
		t.Run(name, func(t *testing.T) {
			rel, asked := sideServer(t, c.files)
			wants, notes, err := testClient(t, nil).SideDigests(t.Context(), rel)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v", err)
				}
				return
			}
			sources := []string{}
			for _, w := range wants {
				sources = append(sources, w.Source)
				if w.Digest != digestA {
					t.Errorf("%+v", w)
				}
			}
			if err != nil || fmt.Sprint(sources) != c.want || len(notes) != len(c.notes) {
				t.Fatalf("%v, %q, %v", sources, notes, err)
			}
			for i, n := range notes {
				if !strings.Contains(n, c.notes[i]) {
					t.Errorf("note %q, want %q", n, c.notes[i])
				}
			}
			if asked() != 3 {
				t.Errorf("%d requests", asked())
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rel, _ := sideServer(t, nil)
	if _, _, err := testClient(t, nil).SideDigests(ctx, rel); err == nil {
		t.Error("an ended context is no error")
	}
	rel.URL = "http://127.0.0.1:1/" + nameBKC
	if wants, notes, err := testClient(t, nil).SideDigests(t.Context(), rel); err != nil || len(wants) != 0 || len(notes) != 3 {
		t.Errorf("nobody there: %v, %q, %v", wants, notes, err)
	}
}

func TestSideDigestsOfAMirror(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, sumsName), []byte(hexA+"  "+testName+"\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "..", "out.sha256"), []byte(hexB), 0o644))
	must(t, os.Symlink("../out.sha256", filepath.Join(dir, testName+".sha256")))
	must(t, os.Mkdir(filepath.Join(dir, testName+".sha256sum"), 0o755))
	wants, notes, err := testClient(t, nil).SideDigests(t.Context(), release.Release{Name: testName, URL: "file://" + dir + "/" + testName})
	if err != nil || len(wants) != 1 || wants[0].Digest != digestA || len(notes) != 2 {
		t.Errorf("%v, %q, %v", wants, notes, err)
	}
}
