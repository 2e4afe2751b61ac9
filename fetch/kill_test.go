package fetch

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// killedURL and killedSpool make a run of this test binary the process that
// TestKilledAndResumed kills.
const (
	killedURL   = "FETCH_TEST_URL"
	killedSpool = "FETCH_TEST_SPOOL"
	killedConns = "FETCH_TEST_CONNECTIONS"
)

// TestKilledAndResumed: SIGKILL in the middle of a segment costs that segment.
func TestKilledAndResumed(t *testing.T) {
	if u := os.Getenv(killedURL); u != "" {
		beKilled(t, u, os.Getenv(killedSpool))
		return
	}
	data := random(1, 6*testSegment)
	o := newOrigin(t, data)
	asked := make(chan struct{})
	var once sync.Once
	o.breakWith(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if from, _ := rangeOf(r); from != 4*testSegment {
			return false
		}
		once.Do(func() { close(asked) })
		o.hang(100)(w, r)
		return true
	})
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledAndResumed$")
	cmd.Env = append(os.Environ(), killedURL+"="+o.url, killedSpool+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the process was not killed")
	}
	o.heal()
	d, err := testClient(t, nil).Download(t.Context(), o.release(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got, err := io.ReadAll(d)
	if err != nil || !bytes.Equal(got, data) || d.Resumed() != 4*testSegment {
		t.Errorf("%d bytes, resumed %d, %v", len(got), d.Resumed(), err)
	}
}

func beKilled(t *testing.T, url, spool string) {
	connections, err := strconv.Atoi(os.Getenv(killedConns))
	if err != nil {
		connections = 1
	}
	c := testClient(t, func(o *Options) { o.Connections = connections })
	d, err := c.Download(t.Context(), release.Release{Name: testName, URL: url}, spool)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	n, err := io.Copy(io.Discard, d)
	t.Fatalf("%d bytes, %v: nobody killed this process", n, err)
}
