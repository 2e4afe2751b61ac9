//go:build bench

package fetch

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// The tests in this file are the programs that scripts/bench-fetch.sh runs
// beside curl and aria2c. Each does nothing without its variables.

// TestVersusFetch downloads VERSUS_URL into the spool VERSUS_SPOOL, as update
// does: reading it to the end while it arrives, and with VERSUS_HASH=1 hashing it.
func TestVersusFetch(t *testing.T) {
	u := os.Getenv("VERSUS_URL")
	if u == "" {
		return
	}
	client, err := New(Options{Connections: intVariable(t, "VERSUS_CONNECTIONS"), SegmentSize: int64(intVariable(t, "VERSUS_SEGMENT"))})
	if err != nil {
		t.Fatal(err)
	}
	d, err := client.Download(t.Context(), release.Release{Name: testName, URL: u}, os.Getenv("VERSUS_SPOOL"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	hash, sink := sha256.New(), io.Discard
	if os.Getenv("VERSUS_HASH") == "1" {
		sink = hash
	}
	n, err := io.CopyBuffer(sink, readOnce{d}, make([]byte, 1<<20))
	if err != nil || n != d.Size() {
		t.Fatalf("%d of %d bytes, %v", n, d.Size(), err)
	}
	if sink == hash {
		fmt.Printf("sha256 %x\n", hash.Sum(nil))
	}
}

// TestVersusProxy is a wire to VERSUS_UPSTREAM of VERSUS_LATENCY each way and
// VERSUS_RATE bytes per second on each connection. It writes its address to
// the file VERSUS_ADDRESS and ends with its standard input.
func TestVersusProxy(t *testing.T) {
	upstream := os.Getenv("VERSUS_UPSTREAM")
	if upstream == "" {
		return
	}
	w := wire{rate: int64(intVariable(t, "VERSUS_RATE"))}
	if s := os.Getenv("VERSUS_LATENCY"); s != "" {
		var err error
		if w.latency, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	p := newChaosProxy(t, upstream, every(w))
	if err := os.WriteFile(os.Getenv("VERSUS_ADDRESS"), []byte(p.addr), 0o644); err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, os.Stdin)
}

// intVariable reads a variable; 0 if it is not set.
func intVariable(t *testing.T, name string) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
