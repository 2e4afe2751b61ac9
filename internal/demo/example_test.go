package demo_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/demo"
)

// One night is made and published, as AMD publishes it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "demo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path, err := demo.Night(ctx, dir, demo.NightOptions{Version: "10.2.0a20260930", Family: "gfx110X-all"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(filepath.Base(path))

	url, stop, err := demo.Serve(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	resp, err := http.Get(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	for line := range strings.Lines(string(page)) {
		if strings.Contains(line, "const files") {
			fmt.Println(strings.TrimSpace(line))
		}
	}
	// Output:
	// therock-dist-linux-gfx110X-all-10.2.0a20260930.tar.gz
	// const files = [{"name": "therock-dist-linux-gfx110X-all-10.2.0a20260930.tar.gz", "mtime": 1790769600.0}];
}
