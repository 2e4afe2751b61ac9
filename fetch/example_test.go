package fetch_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// mirror serves an index page and the files that it lists.
func mirror() *httptest.Server {
	modified := time.Date(2026, 9, 30, 3, 12, 44, 0, time.UTC)
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			fmt.Fprint(w, `<html><script>const files = [
				{"name": "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz", "mtime": 1790737964.5},
				{"name": "therock-dist-linux-gfx1151-7.9.0.tar.gz", "mtime": 1790737964.5}];</script></html>`)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		http.ServeContent(w, r, path.Base(r.URL.Path), modified, bytes.NewReader([]byte("\x1f\x8b pretend that this is a tarball")))
	}))
}

func ExampleClient_List() {
	srv := mirror()
	defer srv.Close()
	client, err := fetch.New(fetch.Options{})
	if err != nil {
		log.Fatal(err)
	}
	listing, err := client.List(context.Background(), "nightly", fetch.Sources(srv.URL+"/tarball/"))
	if err != nil {
		log.Fatal(err)
	}
	newest, err := fetch.Select(listing, "gfx1151", fetch.Policy{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(newest.Version, "of", listing.Families())
	_, err = fetch.Select(listing, "gfx1151", fetch.Policy{Series: "8"})
	fmt.Println(err)
	// Output:
	// 10.2.0a20260930 of [gfx1151]
	// no admissible release of gfx1151 in channel nightly: 10.2.0a20260930 is not of series 8; 7.9.0 is not of series 8
}

func ExampleClient_Download() {
	srv := mirror()
	defer srv.Close()
	spool, err := os.MkdirTemp("", "spool")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(spool)
	client, err := fetch.New(fetch.Options{UserAgent: "rocm-nightly/example"})
	if err != nil {
		log.Fatal(err)
	}
	const name = "therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz"
	download, err := client.Download(context.Background(), release.Release{Name: name, URL: srv.URL + "/tarball/" + name}, spool)
	if err != nil {
		log.Fatal(err)
	}
	defer download.Close()
	// AMD publishes no digest: measure it, and settle it before the bytes are used.
	verified := release.NewVerifiedReader(download)
	if _, err := io.Copy(io.Discard, verified); err != nil {
		log.Fatal(err)
	}
	fmt.Println(verified.Size(), verified.Digest())
	// Output:
	// 33 sha256:0585c63d1f907190b9f9a53bb21c0904265dc1cbab6c99d7beccbc62e18eab0b
}
