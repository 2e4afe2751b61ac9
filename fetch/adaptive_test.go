package fetch

import (
	"bytes"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestServerWithAConnectionLimit: more connections than the server allows are
// given up, not failed on, however few retries there are.
func TestServerWithAConnectionLimit(t *testing.T) {
	data := random(1, 3*chaosSize)
	s := startServer(t, data, serverConf{
		Listen: "sndbuf=16k",
		HTTP:   "limit_conn_zone $server_port zone=z:1m; limit_conn_log_level info;",
		Server: "limit_conn z 2;",
	})
	p := newChaosProxy(t, s.addr, every(wire{rate: 6 << 20}))
	client := testClient(t, func(o *Options) { o.SegmentSize, o.Connections, o.Retries = chaosSegment, 6, 2 })
	got, _, err := receive(t, client, s.release("http", p.addr).URL, t.TempDir())
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	refused := 0
	for _, line := range s.logged() {
		if line[3] == "503" {
			refused++
		}
	}
	if refused == 0 || refused > 14 {
		t.Errorf("%d requests were refused: the limit of the server was not met, or not minded", refused)
	}
}

// TestNeverMoreThanConnections are open, whatever the server answers.
func TestNeverMoreThanConnections(t *testing.T) {
	data := random(1, 40*testSegment)
	o := newOrigin(t, data)
	var mu sync.Mutex
	n, open, most := 0, 0, 0
	o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if !isSegment(r) {
			return false
		}
		mu.Lock()
		n++
		open++
		most = max(most, open)
		bad, code := n%7 == 3, []int{503, 429, 500, 502}[n%4]
		mu.Unlock()
		<-time.After(2 * time.Millisecond)
		mu.Lock()
		open--
		mu.Unlock()
		if bad {
			status(code)(w, r)
		}
		return bad
	}
	got, err := drain(t, testClient(t, func(o *Options) { o.Connections = 5 }), o, t.TempDir())
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if most < 2 || most > 5 {
		t.Errorf("%d requests at once, want up to 5", most)
	}
}

// TestRetryAfterIsForAllConnections: the server has asked the whole client.
func TestRetryAfterIsForAllConnections(t *testing.T) {
	data := random(1, 60*testSegment)
	o := newOrigin(t, data)
	var mu sync.Mutex
	var refused time.Time
	o.fault = func(_ int, w http.ResponseWriter, r *http.Request) bool {
		if !isSegment(r) {
			return false
		}
		mu.Lock()
		since := time.Since(refused)
		now := refused.IsZero()
		if from, _ := rangeOf(r); now && from == 4*testSegment {
			refused = time.Now()
			mu.Unlock()
			status(429, "Retry-After", "1")(w, r)
			return true
		}
		mu.Unlock()
		if since > 100*time.Millisecond && since < 950*time.Millisecond {
			t.Errorf("a request %s after the server wanted a pause of 1s", since)
		}
		<-time.After(10 * time.Millisecond)
		return false
	}
	got, err := drain(t, testClient(t, nil), o, t.TempDir())
	if err != nil || !bytes.Equal(got, data) || time.Since(refused) < time.Second {
		t.Errorf("%d bytes, %v, %s after the refusal", len(got), err, time.Since(refused))
	}
}

// TestProgressIsNoFailure: a line on which every connection breaks is slow,
// and brings the tarball in the end, with as few retries as there may be.
func TestProgressIsNoFailure(t *testing.T) {
	data := random(1, chaosSize)
	s := startServer(t, data, serverConf{})
	p := newChaosProxy(t, s.addr, every(wire{then: thenClose, at: 30 << 10}))
	client := testClient(t, func(o *Options) { o.SegmentSize, o.Retries = chaosSegment, 1 })
	got, _, err := receive(t, client, s.release("http", p.addr).URL, t.TempDir())
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, _, delivered := p.counts(); delivered > int64(len(data))+200*headers {
		t.Errorf("%d bytes came for a tarball of %d", delivered, len(data))
	}
}
