package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
)

// filesOf reads a page as a reader of AMD's page has to.
func filesOf(t *testing.T, page []byte) []map[string]any {
	t.Helper()
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	if n := doc.Find("a").Length(); n != 0 {
		t.Errorf("the document has %d links", n)
	}
	m := regexp.MustCompile(`(?s)const files = (\[.*?\]);`).FindStringSubmatch(doc.Find("script").Text())
	if m == nil {
		t.Fatalf("no array in %s", page)
	}
	var files []map[string]any
	if err := json.Unmarshal([]byte(m[1]), &files); err != nil {
		t.Fatal(err)
	}
	return files
}

func TestPage(t *testing.T) {
	at := time.Unix(1790726400, 500e6)
	hostile := `a</script><a href="x">"b.tar.gz`
	files := filesOf(t, Page([]IndexEntry{{"therock-dist-linux-gfx1151-10.2.0a20260930+bkc.20261001.tar.gz", at}, {hostile, at.Add(250 * time.Millisecond)}}))
	if len(files) != 2 || files[0]["mtime"] != 1790726400.5 || files[1]["mtime"] != 1790726400.75 || files[1]["name"] != hostile {
		t.Errorf("read back: %v", files)
	}
	if files := filesOf(t, Page(nil)); len(files) != 0 {
		t.Errorf("empty page: %v", files)
	}
}

func get(t *testing.T, url string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

func TestServe(t *testing.T) {
	dir := t.TempDir()
	const name = "therock-dist-linux-gfx1151-10.2.0a20260930+bkc.20261001.tar.gz"
	write := func(name, content string, at time.Time) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Unix(1790726400, 0)
	write(name, "0123456789", at)
	write("notes.txt", "not a tarball", at)
	ctx, cancel := context.WithCancel(t.Context())
	base, stop, err := Serve(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, page := get(t, base); len(filesOf(t, page)) != 1 || filesOf(t, page)[0]["name"] != name {
		t.Errorf("page: %s", page)
	}
	url := base + strings.ReplaceAll(name, "+", "%2B")
	resp, body := get(t, url)
	tag := resp.Header.Get("ETag")
	if string(body) != "0123456789" || !regexp.MustCompile(`^"[0-9a-f]{32}-1"$`).MatchString(tag) || resp.Header.Get("Last-Modified") == "" {
		t.Errorf("%s: %s %v", url, body, resp.Header)
	}
	resp, body = get(t, url, "Range", "bytes=4-6", "If-Range", tag)
	if resp.StatusCode != http.StatusPartialContent || string(body) != "456" {
		t.Errorf("range: %s %q", resp.Status, body)
	}
	write(name, "abcdefghij", at.Add(time.Minute))
	resp, body = get(t, url, "Range", "bytes=4-6", "If-Range", tag)
	if resp.StatusCode != http.StatusOK || string(body) != "abcdefghij" {
		t.Errorf("range of what was replaced: %s %q", resp.Status, body)
	}
	for _, path := range []string{"absent.tar.gz", "notes.txt", "../notes.txt", "%2e%2e%2fnotes.txt", "a%2fb.tar.gz"} {
		if resp, _ := get(t, base+path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	cancel()
	stop()
	stop()
	if resp, err := http.Get(base); err == nil {
		resp.Body.Close()
		t.Error("still serving")
	}
}

func TestServeWantsADirectory(t *testing.T) {
	if _, _, err := Serve(t.Context(), filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("no error")
	}
}
