package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

// passedSocket is set for the process that is given a socket as systemd does it.
const passedSocket = "WEB_TEST_PASSED_SOCKET"

// A socket of systemd's is served, and again after the config was read again.
func TestSocketOfSystemd(t *testing.T) {
	if os.Getenv(passedSocket) != "" {
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- Serve(ctx, Options{Listen: "systemd", Source: hub(quiet())}) }()
			if _, err := fmt.Scanln(); err != nil { // until the parent has asked
				t.Error(err)
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			fmt.Println("ended")
		}
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// LISTEN_PID is the process's own: a shell knows it before it becomes another.
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" -test.run='^TestSocketOfSystemd$'`, os.Args[0])
	cmd.Env = append(os.Environ(), passedSocket+"=1", "LISTEN_FDS=1")
	cmd.ExtraFiles = []*os.File{file}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := c.Get("http://" + l.Addr().String() + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("ended\n"))
		if _, err := io.ReadFull(out, line); err != nil || string(line) != "ended\n" {
			t.Fatalf("%q %v", line, err)
		}
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
