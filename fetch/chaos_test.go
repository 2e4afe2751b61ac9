package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

const (
	chaosSegment = 256 << 10
	chaosSize    = 8*chaosSegment + 777
	headers      = 1 << 10 // bytes that one answer has at most beside its body
)

// first does w to the first n connections.
func first(n int, w wire) func(int) wire {
	return func(i int) wire {
		if i <= n {
			return w
		}
		return wire{}
	}
}

// every does w to all connections.
func every(w wire) func(int) wire { return first(1<<30, w) }

// midway calls f when part of the tarball is there, and every wire is busy.
func midway(f func()) func(n int) wire {
	return func(n int) wire {
		if n == 1 { // the fastest: the others have something left to do then
			return wire{rate: 8 << 20, then: thenCall, at: 3 * chaosSegment / 2, call: f}
		}
		return wire{rate: 3 << 20}
	}
}

// scene is one fault between the client and a real nginx.
type scene struct {
	conf   serverConf
	plan   func(s *server) func(n int) wire
	change func(*Options)
	is     func(error) bool // of the first download; nil if it has to succeed

	// What may arrive twice, in segments: a reset throws away what the client
	// had received and not read, everything else nothing.
	again   int
	quietly bool // without an event of a retry
	keeps   bool // what is whole is used by the next download, which succeeds
}

func calm(w func(int) wire) func(*server) func(int) wire {
	return func(*server) func(int) wire { return w }
}

// TestChaos holds the outcome of each fault that happens below HTTP, or to
// the server as a whole. Faults within HTTP are in TestFaultsThatPass and
// TestFaultsThatAreRefused.
func TestChaos(t *testing.T) {
	data, other := random(1, chaosSize), random(2, chaosSize)
	later := time.Date(2026, 9, 30, 9, 0, 0, 0, time.UTC)
	replace := func(s *server) func(int) wire { return midway(func() { s.put(other, later) }) }
	for name, c := range map[string]scene{
		"latency and jitter": {plan: calm(every(wire{latency: 10 * time.Millisecond, jitter: 10 * time.Millisecond})), quietly: true},
		"little bandwidth":   {plan: calm(every(wire{rate: 3 << 20})), quietly: true},
		"one slow wire":      {plan: calm(first(1, wire{rate: 512 << 10})), quietly: true},
		"reset midway":       {plan: calm(first(4, wire{then: thenReset, at: 100 << 10})), again: 4},
		"early close":        {plan: calm(first(4, wire{then: thenClose, at: 100 << 10}))},
		"closed before the headers": {plan: calm(first(4, wire{then: thenClose})),
			change: func(o *Options) { o.Retries = 6 }},
		"closed at the last byte": {plan: calm(first(1, wire{then: thenClose, at: chaosSegment}))},
		"stall":                   {plan: calm(first(3, wire{then: thenStall, at: 100 << 10}))},
		"stall before the headers": {plan: calm(first(2, wire{then: thenStall})),
			change: func(o *Options) { o.Retries = 6 }},
		"slow, but not silent": {plan: calm(every(wire{then: thenTrickle, at: 90 << 10, slow: 3, pace: 180 * time.Millisecond})), quietly: true},
		"all at once": {plan: calm(func(n int) wire {
			kinds := []string{thenReset, thenClose, thenStall, ""}
			return wire{then: kinds[n%4], at: int64(n*37%200) << 10, latency: time.Millisecond, jitter: 3 * time.Millisecond, rate: 20 << 20}
		}), again: 30, change: func(o *Options) { o.Retries = 30 }},
		"replaced between segments":           {plan: replace, is: isA[*ChangedError]},
		"replaced, and only its date says so": {conf: serverConf{Server: "etag off;"}, plan: replace, is: isA[*ChangedError]},
		"server stopped and started": {plan: func(s *server) func(int) wire {
			return midway(func() {
				s.stop()
				if err := s.start(); err != nil {
					s.t.Error(err)
				}
			})
		}, again: 3, change: func(o *Options) { o.Retries = 1000 }},
		"server gone for good": {plan: func(s *server) func(int) wire { return midway(s.stop) },
			is: func(err error) bool { return isA[*DownloadError](err) && !isA[*ChangedError](err) }, again: 3, keeps: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.play(t, data)
		})
	}
}

func (c scene) play(t *testing.T, data []byte) {
	s := startServer(t, data, c.conf)
	p := newChaosProxy(t, s.addr, c.plan(s))
	rel, dir := s.release("http", p.addr), t.TempDir()
	var retries atomic.Int64
	client := testClient(t, func(o *Options) {
		o.SegmentSize, o.IdleTimeout = chaosSegment, 300*time.Millisecond
		o.Event = func(e Event) {
			if e.Kind == EventRetry {
				retries.Add(1)
			}
		}
		if c.change != nil {
			c.change(o)
		}
	})
	got, _, err := receive(t, client, rel.URL, dir)
	if c.is == nil && err != nil || c.is != nil && !c.is(err) {
		t.Fatalf("error %v (%T)", err, err)
	}
	if c.is == nil && !bytes.Equal(got, data) || !bytes.HasPrefix(data, got) {
		t.Errorf("%d bytes, and not those of the tarball", len(got))
	}
	whole := checkSpool(t, dir, data, chaosSegment)
	connections, broken, delivered := p.counts()
	spare := int64(c.again)*chaosSegment + int64(retries.Load()+int64(connections)+20)*headers
	// A server that ignores a range begins to send everything.
	if delivered > int64(len(data))+spare && c.is == nil {
		t.Errorf("%d bytes came for a tarball of %d", delivered, len(data))
	}
	if c.quietly && (retries.Load() != 0 || broken != 0 || connections > 3) {
		t.Errorf("%d retries, %d connections", retries.Load(), connections)
	}
	if c.is == nil {
		return
	}
	p.heal()
	c.playOn(t, s, client, p, dir, whole)
}

// playOn downloads once more, after the fault.
func (c scene) playOn(t *testing.T, s *server, client *Client, p *chaosProxy, dir string, whole int) {
	s.stop()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(filepath.Join(s.dir, testName))
	if err != nil {
		t.Fatal(err)
	}
	got, resumed, err := receive(t, client, s.release("http", p.addr).URL, dir)
	if err != nil || !bytes.Equal(got, now) {
		t.Errorf("after the fault: %d bytes, %v", len(got), err)
	}
	want := int64(0)
	if c.keeps {
		want = int64(whole) * chaosSegment
	}
	if resumed != want || c.keeps && want == 0 {
		t.Errorf("after the fault: resumed %d bytes, want %d", resumed, want)
	}
	checkSpool(t, dir, now, chaosSegment)
}

// receive downloads a URL to the end.
func receive(t *testing.T, client *Client, url, dir string) (got []byte, resumed int64, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	o := &origin{url: url}
	d, err := client.Download(ctx, o.release(), dir)
	if err != nil {
		return nil, 0, err
	}
	got, err = io.ReadAll(d)
	if cerr := d.Close(); cerr != nil {
		t.Errorf("close: %v", cerr)
	}
	return got, d.Resumed(), err
}

// TestChaosFlippedBit: without TLS nothing below the digest notices one wrong
// bit. The stream has the right length then, and Discard leaves nothing that
// the next download could take for good.
func TestChaosFlippedBit(t *testing.T) {
	data := random(1, chaosSize)
	s := startServer(t, data, serverConf{})
	p := newChaosProxy(t, s.addr, first(1, wire{then: thenFlip, at: 50 << 10}))
	client := testClient(t, func(o *Options) { o.SegmentSize = chaosSegment })
	dir := t.TempDir()
	d, err := client.Download(t.Context(), s.release("http", p.addr), dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(d)
	if err != nil || len(got) != len(data) || sha256.Sum256(got) == sha256.Sum256(data) {
		t.Fatalf("%d bytes, %v: the proxy has flipped no bit", len(got), err)
	}
	if err := d.Discard(); err != nil {
		t.Fatal(err)
	}
	got, resumed, err := receive(t, client, s.release("http", p.addr).URL, dir)
	if err != nil || resumed != 0 || !bytes.Equal(got, data) {
		t.Errorf("after Discard: %d bytes, %d of them resumed, %v", len(got), resumed, err)
	}
}

// TestChaosNameThatFlaps: a resolver that fails now and then is a network
// that fails, whichever way it says so.
func TestChaosNameThatFlaps(t *testing.T) {
	data := random(1, chaosSize)
	s := startServer(t, data, serverConf{})
	for name, fault := range map[string]net.DNSError{
		"no such host": {Err: "no such host", Name: "mirror.test", IsNotFound: true},
		"timeout":      {Err: "i/o timeout", Name: "mirror.test", IsTimeout: true},
		"server":       {Err: "server misbehaving", Name: "mirror.test", IsTemporary: true},
	} {
		t.Run(name, func(t *testing.T) {
			var dials atomic.Int64
			transport := &http.Transport{DisableKeepAlives: true}
			transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
				if n := dials.Add(1); n%3 != 0 {
					return nil, &net.OpError{Op: "dial", Net: network, Err: &fault}
				}
				return new(net.Dialer).DialContext(ctx, network, s.addr)
			}
			client := testClient(t, func(o *Options) {
				o.HTTP, o.Insecure, o.SegmentSize, o.Retries = &http.Client{Transport: transport}, true, chaosSegment, 40
			})
			got, _, err := receive(t, client, "http://mirror.test/"+testName, t.TempDir())
			if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	client := testClient(t, func(o *Options) {
		o.Insecure = true
		o.HTTP = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "mirror.test", IsNotFound: true}
		}}}
	})
	_, _, err := receive(t, client, "http://mirror.test/"+testName, t.TempDir())
	if e, ok := errors.AsType[*net.DNSError](err); !ok || e.Name != "mirror.test" {
		t.Errorf("a name that never resolves: %v", err)
	}
}

// TestChaosKilled: SIGKILL while every connection is busy costs each of them
// the segment that it was at, though the server has restarted meanwhile.
func TestChaosKilled(t *testing.T) {
	if u := os.Getenv(killedURL); u != "" {
		client := testClient(t, func(o *Options) { o.SegmentSize = chaosSegment })
		got, _, err := receive(t, client, u, os.Getenv(killedSpool))
		t.Fatalf("%d bytes, %v: nobody killed this process", len(got), err)
	}
	data := random(1, chaosSize)
	s := startServer(t, data, serverConf{})
	now := make(chan struct{})
	p := newChaosProxy(t, s.addr, midway(func() { close(now) }))
	rel, dir := s.release("http", p.addr), t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChaosKilled$")
	cmd.Env = append(os.Environ(), killedURL+"="+rel.URL, killedSpool+"="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-now
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the process was not killed")
	}
	s.stop()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	got, resumed, err := receive(t, testClient(t, nil), rel.URL, dir)
	if err != nil || !bytes.Equal(got, data) || resumed == 0 {
		t.Errorf("%d bytes, %d of them resumed, %v", len(got), resumed, err)
	}
	if _, _, delivered := p.counts(); delivered > int64(len(data))+3*chaosSegment+30*headers {
		t.Errorf("%d bytes came for a tarball of %d", delivered, len(data))
	}
}

// TestLimitIsNotSilence: who waits for the rate limit of its own does not
// call the server silent, however short the idle timeout is.
func TestLimitIsNotSilence(t *testing.T) {
	data := random(1, 384<<10)
	o := newOrigin(t, data)
	got, err := drain(t, testClient(t, func(o *Options) {
		o.RateLimit, o.IdleTimeout, o.Retries, o.SegmentSize = 512<<10, 100*time.Millisecond, -1, 1<<20
	}), o, t.TempDir())
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
