package web_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/serve/web"
)

func ExampleServe() {
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "page.sock")

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error)
	go func() {
		ended <- web.Serve(ctx, web.Options{Listen: "unix:" + socket, Source: new(state.Hub)})
	}()

	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		for { // until it listens
			c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
			if err == nil || ctx.Err() != nil {
				return c, err
			}
			<-time.After(time.Millisecond)
		}
	}}}
	res, err := client.Get("http://localhost/api/v1/alarms")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	fmt.Print(string(body), err, "\n")

	stop()
	fmt.Println(<-ended)
	// Output:
	// {"schema":1,"time":"0001-01-01T00:00:00Z","alarms":[]}
	// <nil>
	// <nil>
}
