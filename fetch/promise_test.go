package fetch

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// TestPromiseAnInterruptedDownloadGoesOn kills a process that downloads over
// several connections, again and again, and counts what the server sends: each
// kill costs at most one segment of each connection.
func TestPromiseAnInterruptedDownloadGoesOn(t *testing.T) {
	if u := os.Getenv(killedURL); u != "" {
		beKilled(t, u, os.Getenv(killedSpool))
		return
	}
	const segments, connections, kills = 24, 3, 5
	seed := uint64(time.Now().UnixNano())
	if v, err := strconv.ParseUint(os.Getenv("FETCH_TEST_SEED"), 10, 64); err == nil {
		seed = v
	}
	t.Logf("FETCH_TEST_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	data := random(2, segments*testSegment)
	o := newOrigin(t, data)
	var sent, bodies, last, cut atomic.Int64
	asked := make(chan struct{}, 1)
	o.breakWith(func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if !isSegment(r) {
			return false
		}
		sent.Add(testSegment)
		if bodies.Add(1) >= last.Load() {
			select {
			case asked <- struct{}{}:
			default:
			}
			o.hang(int(cut.Load()))(w, r)
			return true
		}
		return false
	})
	dir := t.TempDir()
	for range kills {
		// one more than the connections: a segment is on disk when its
		// connection asks for another, so that each process leaves something
		last.Store(bodies.Load() + connections + 1 + rng.Int64N(2))
		cut.Store(rng.Int64N(testSegment))
		for len(asked) > 0 { // by a process that is dead
			<-asked
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestPromiseAnInterruptedDownloadGoesOn$")
		cmd.Env = append(os.Environ(), killedURL+"="+o.url, killedSpool+"="+dir, killedConns+"="+strconv.Itoa(connections))
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
	}
	last.Store(1 << 30)
	d, err := testClient(t, func(o *Options) { o.Connections = connections }).Download(t.Context(), o.release(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got, err := io.ReadAll(d)
	if err != nil || !bytes.Equal(got, data) || d.Resumed() == 0 {
		t.Errorf("%d bytes, resumed %d, %v", len(got), d.Resumed(), err)
	}
	twice := sent.Load() - int64(len(data))
	t.Logf("%d of %d bytes were asked for twice, after %d kills", twice, len(data), kills)
	if twice > kills*connections*testSegment {
		t.Errorf("%d bytes twice: more than one segment of each of %d connections for each of %d kills", twice, connections, kills)
	}
}
