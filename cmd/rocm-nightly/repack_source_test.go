package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestInterruptibleReadsEverything(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for what, r := range map[string]io.Reader{
		"whole": bytes.NewReader(want), "halves": iotest.HalfReader(bytes.NewReader(want)), "error with data": iotest.DataErrReader(bytes.NewReader(want)),
	} {
		in, stop := interruptible(context.Background(), r)
		got, err := io.ReadAll(in)
		stop()
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", what, len(got), err)
		}
	}
}

// end waits for a run that must not hang.
func end(t *testing.T, done <-chan int) int {
	t.Helper()
	select {
	case code := <-done:
		return code
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on though it was interrupted")
		return 0
	}
}

func start(ctx context.Context, stdin io.Reader, stderr io.Writer, args ...string) <-chan int {
	a := &app{stdin: stdin, stdout: io.Discard, stderr: stderr, getenv: func(string) string { return "" }, uid: 1000}
	done := make(chan int, 1)
	go func() { done <- a.run(ctx, append(args, "--root", "/nonexistent")) }()
	return done
}

func TestRepackEndsWhileStandardInputStalls(t *testing.T) {
	parent := t.TempDir()
	in, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stderr bytes.Buffer
	done := start(ctx, in, &stderr, "repack", "-", "--prefix", filepath.Join(parent, "deep/p"))
	if _, err := feed.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3}); err != nil { // returns when it is read
		t.Fatal(err)
	}
	cancel()
	if code := end(t, done); code != 1 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit %d, %s", code, &stderr)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// An interrupted download is kept beside the prefix, under a name that does not
// depend on how long the prefix's is.
func TestInterruptedDownloadIsKept(t *testing.T) {
	asked := make(chan struct{}, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"one"`)
		w.Header().Set("Accept-Ranges", "bytes")
		w.Header().Set("Content-Length", "1000000")
		if r.Method == http.MethodHead {
			return
		}
		w.Header().Set("Content-Range", "bytes 0-999999/1000000")
		w.WriteHeader(http.StatusPartialContent)
		w.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3})
		w.(http.Flusher).Flush()
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	parent := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stderr bytes.Buffer
	done := start(ctx, nil, &stderr, "repack", server.URL+"/therock-dist-linux-gfx1151-10.2.0a20260930.tar.gz", "--prefix", filepath.Join(parent, "new", strings.Repeat("n", 250)))
	<-asked
	cancel()
	if code := end(t, done); code != 1 {
		t.Errorf("exit %d", code)
	}
	left, err := filepath.Glob(filepath.Join(parent, "new/.*"))
	if err != nil || len(left) != 1 || !strings.Contains(left[0], ".rocm-nightly-download-") {
		t.Errorf("left: %v, %v: %s", left, err, &stderr)
	}
}

func TestUnfinished(t *testing.T) {
	if !unfinished(fmt.Errorf("x: %w", context.Canceled)) || unfinished(errors.New("the tree is bad")) || unfinished(nil) {
		t.Error("what is kept of a download is not what another run can use")
	}
}
