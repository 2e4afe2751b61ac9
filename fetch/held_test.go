package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/release"
)

// drip sends a byte now and then, too often to be idle, until nobody listens.
func drip(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for r.Context().Err() == nil {
		io.WriteString(w, " ")
		w.(http.Flusher).Flush()
		select {
		case <-tick.C:
		case <-r.Context().Done():
		}
	}
}

// TestOneIndexDoesNotHoldUpTheOthers: what is wrong with it is said soon.
func TestOneIndexDoesNotHoldUpTheOthers(t *testing.T) {
	good := serveScript(`const files = [` + entry("linux-gfx1151-10.2.0a20260930", 1790737964) + `];`)
	later := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "300")
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		bad  http.HandlerFunc
		says string
	}{
		"one byte at a time": {drip, "was not read within 300ms"},
		"it redirects to itself and drips": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", r.URL.Path)
			w.WriteHeader(http.StatusFound)
			drip(w, r)
		}, "within 300ms"},
		"503 for five minutes": {later(503), "asks to wait 5m0s"},
		"429 for five minutes": {later(429), "asks to wait 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			client := nightClient(t)
			client.patience = 300 * time.Millisecond
			l, err := client.List(ctx, "nightly", Sources(indexServer(t, c.bad), indexServer(t, good)))
			if err != nil || len(l.Releases) != 1 {
				t.Fatalf("%+v, %v", l, err)
			}
			if err := l.Sources[0].Err; err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v, want %q", err, c.says)
			}
		})
	}
}

// TestSmallFilesAreNotWaitedForForEver: locks, ledgers, digests.
func TestSmallFilesAreNotWaitedForForEver(t *testing.T) {
	client := testClient(t, nil)
	client.patience = 200 * time.Millisecond
	at := indexServer(t, drip)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := client.Get(ctx, at+"rocm-nightly.lock", 1<<20)
	if slow, ok := errors.AsType[*SlowError](err); !ok || !slow.Timeout() {
		t.Errorf("get: %v", err)
	}
	wants, notes, err := client.SideDigests(ctx, release.Release{Name: testName, URL: at + testName})
	if err != nil || len(wants) != 0 || len(notes) != 3 || !strings.Contains(notes[0], "was not read within 200ms") {
		t.Errorf("beside: %v, %q, %v", wants, notes, err)
	}
}
