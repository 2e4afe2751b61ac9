package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// desk is a place with receivers that write down what they are sent, and may be away.
type place struct {
	t      *testing.T
	memory string
	now    time.Time
	away   map[string]bool // by the host of the sink
	got    []string        // HOST KIND KEY MARK
	ids    map[string]int
	log    bytes.Buffer
	sinks  []Sink
	mu     sync.Mutex
}

func newPlace(t *testing.T, sinks ...Sink) *place {
	p := &place{t: t, memory: filepath.Join(t.TempDir(), "notified.json"), now: time.Unix(1790000000, 0).UTC(), away: map[string]bool{}, ids: map[string]int{}}
	if len(sinks) == 0 {
		sinks = []Sink{{Name: "a"}}
	}
	for _, s := range sinks {
		s.Kind, s.URL = Webhook, "https://"+s.Name+".example/"
		p.sinks = append(p.sinks, s)
	}
	return p
}

func (p *place) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	host, _, _ := strings.Cut(r.URL.Host, ".")
	p.ids[r.Header.Get("webhook-id")]++
	if p.away[host] {
		return answer(403, nil, "away"), nil // not to be tried again in this call
	}
	var body Payload
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	p.got = append(p.got, strings.TrimSpace(strings.Join([]string{host, body.Type, body.Data.Key, body.Data.Mark}, " ")))
	return answer(200, nil, ""), nil
}

// tell tells as another process would: nothing is shared but the file.
func (p *place) tell(events ...Event) error {
	p.t.Helper()
	n, err := New(Options{Sinks: p.sinks, Memory: p.memory, Now: func() time.Time { return p.now }, Transport: p, Log: slog.New(slog.NewTextHandler(&p.log, nil))})
	if err != nil {
		p.t.Fatal(err)
	}
	for i := range events {
		events[i].Time = p.now
	}
	return n.Tell(context.Background(), events)
}

// took checks what has arrived since it was last asked.
func (p *place) took(want ...string) {
	p.t.Helper()
	slices.Sort(p.got)
	slices.Sort(want)
	if !slices.Equal(p.got, want) {
		p.t.Errorf("arrived: %q, want %q", p.got, want)
	}
	p.got = nil
}

func ev(kind, key, mark string) Event { return Event{Kind: kind, Key: key, Mark: mark, Title: kind} }

func TestNothingIsRepeated(t *testing.T) {
	p := newPlace(t)
	for range 5 {
		p.tell(ev(Installed, "s", "1"), ev(Installed, "s", "1"), ev(Stale, "s", ""), ev(Installed, "other", "1"))
		p.now = p.now.Add(30 * 24 * time.Hour) // what lasts is not forgotten while it lasts
	}
	p.took("a installed s 1", "a installed other 1", "a stale s")
	p.tell(ev(Installed, "s", "2"))
	p.took("a installed s 2")
	if info, err := os.Stat(p.memory); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v %v", info, err)
	}
}

// Who was told of a trouble is told when it is over, and only they.
func TestRecovery(t *testing.T) {
	p := newPlace(t, Sink{Name: "a"}, Sink{Name: "b", Events: []string{Failed, Recovered}}, Sink{Name: "c", Events: []string{Failed}})
	p.tell(ev(Recovered, "s", Failed), ev(Recovered, "s", Stale))
	p.took()
	p.tell(ev(Failed, "s", ""), ev(Stale, "s", "stopped"))
	p.took("a failed s", "b failed s", "c failed s", "a stale s stopped")
	p.tell(ev(Recovered, "s", Failed), ev(Recovered, "other", Stale))
	p.took("a recovered s failed", "b recovered s failed")
	p.tell(ev(Recovered, "s", Failed))
	p.took()
	p.tell(ev(Recovered, "s", Stale))
	p.took("a recovered s stale")
	p.tell(ev(Failed, "s", "")) // is news again, also for who wants no recovery
	p.took("a failed s", "b failed s", "c failed s")
}

// What could not be sent is sent later, what is newer in place of what is older, and
// nobody else waits for who is away.
func TestOutbox(t *testing.T) {
	p := newPlace(t, Sink{Name: "a"}, Sink{Name: "b"})
	p.away["b"] = true
	if err := p.tell(ev(Installed, "s", "1"), ev(NewBytes, "s", "x"), ev(Failed, "bump b", "")); err == nil || strings.Count(err.Error(), "notify b of ") != 1 || strings.Contains(err.Error(), "notify a") {
		t.Error(err)
	}
	p.took("a new-bytes s x", "a failed bump b", "a installed s 1")
	p.now = p.now.Add(time.Hour)
	p.tell(ev(Installed, "s", "2"), ev(NewBytes, "s", "y"), ev(Recovered, "bump b", Failed))
	p.took("a new-bytes s y", "a recovered bump b failed", "a installed s 2")
	p.away["b"] = false
	p.now = p.now.Add(time.Hour)
	if err := p.tell(); err != nil {
		t.Error(err)
	}
	p.took("b new-bytes s x", "b new-bytes s y", "b installed s 2")
	p.tell()
	p.took()
}

// The id stays, however often it is tried.
func TestIDIsStable(t *testing.T) {
	p := newPlace(t)
	p.away["a"] = true
	for range 3 {
		p.tell(ev(Refused, "s", "1"))
		p.now = p.now.Add(time.Hour)
	}
	p.away["a"] = false
	p.tell()
	p.took("a refused s 1")
	if len(p.ids) != 1 {
		t.Error(p.ids)
	}
}

// A receiver that is gone for good ends neither the disk nor the log.
func TestOutboxIsBounded(t *testing.T) {
	p := newPlace(t)
	p.away["a"] = true
	for range 80 {
		p.tell(ev(Refused, "s", "1"))
		p.now = p.now.Add(time.Hour)
	}
	if got := strings.Count(p.log.String(), "is dropped"); got != 1 {
		t.Errorf("dropped %d times\n%s", got, p.log.String())
	}
	var many []Event
	for i := range 3 * maxOutbox {
		many = append(many, ev(NewBytes, "s", fmt.Sprint(i)))
	}
	p.tell(many...)
	var m memory
	if err := json.Unmarshal(read(t, p.memory), &m); err != nil || len(m.Outbox) != maxOutbox || m.Outbox[maxOutbox-1].Event.Mark != fmt.Sprint(3*maxOutbox-1) {
		t.Errorf("%v, %d", err, len(m.Outbox))
	}
}

// An event that a receiver never takes does not keep the others from it.
func TestPoison(t *testing.T) {
	p := newPlace(t, Sink{Name: "a", Template: `{{if eq .Mark "bad"}}{{.Text.X}}{{end}}`})
	var err error
	if err = CheckTemplates("", p.sinks[0].Template); err == nil {
		err = p.tell(ev(NewBytes, "s", "bad"), ev(Installed, "s", "1"))
	}
	if err == nil {
		t.Error("nothing failed")
	}
}

func TestDamagedMemory(t *testing.T) {
	for name, content := range map[string]string{"cut": `{"schema": 1, "told": [{`, "other": "[]", "future": `{"schema": 99}`, "zero": "\x00\x00", "large": strings.Repeat(" ", memoryBytes+1)} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			if err := os.WriteFile(p.memory, []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := p.tell(ev(Installed, "s", "1")); err != nil {
					t.Error(err)
				}
			}
			p.took("a installed s 1")
			if strings.Count(p.log.String(), "started anew") != 1 {
				t.Error(p.log.String())
			}
		})
	}
	p := newPlace(t)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, p.memory); err != nil {
		t.Fatal(err)
	}
	if err := p.tell(ev(Installed, "s", "1")); err == nil {
		t.Error("a link was followed")
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("a link was written through")
	}
	p.took("a installed s 1") // it is told all the same
}

// Where no file can be had, the process remembers.
func TestMemoryOfTheProcess(t *testing.T) {
	p := newPlace(t)
	p.memory = filepath.Join(t.TempDir(), "absent", "notified.json")
	desk := &Desk{}
	for range 3 {
		n, err := New(Options{Sinks: p.sinks, Memory: p.memory, Transport: p, Desk: desk})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Tell(t.Context(), []Event{ev(Stale, "s", "")}); err == nil || !strings.Contains(err.Error(), "remember") {
			t.Error(err)
		}
	}
	p.took("a stale s")
}

// Many processes tell the same at once: it arrives once.
func TestManyProcesses(t *testing.T) {
	p := newPlace(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			n, err := New(Options{Sinks: p.sinks, Memory: p.memory, Now: func() time.Time { return p.now }, Transport: p})
			if err == nil {
				err = n.Tell(context.Background(), []Event{ev(Installed, "s", "1")})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	p.took("a installed s 1")
}

// A process that died while it was sending is overtaken, and the event then has the
// id that it had.
func TestClaimOfTheDead(t *testing.T) {
	p := newPlace(t)
	n, err := New(Options{Sinks: p.sinks, Memory: p.memory, Now: func() time.Time { return p.now }, Transport: p})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.remember(t.Context(), func(m *memory) { // and no more
		m.add(p.sinks[0], ev(Installed, "s", "1"), p.now)
		m.claim([]string{"a"}, p.now)
	}); err != nil {
		t.Fatal(err)
	}
	p.tell()
	p.took()
	p.now = p.now.Add(claimTime + time.Second)
	p.tell()
	p.took("a installed s 1")
}

// Receivers that never answer hold nobody back, and not for longer than a minute.
func TestDeadReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sinks []Sink
		for i := range 6 {
			sinks = append(sinks, Sink{Name: fmt.Sprintf("dead%d", i), Kind: Webhook, URL: fmt.Sprintf("https://dead%d.example/", i)})
		}
		sinks = append(sinks, Sink{Name: "alive", Kind: Webhook, URL: "https://alive.example/"})
		began := time.Now()
		var after time.Duration
		n, err := New(Options{Sinks: sinks, Transport: wire(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "alive.example" {
				after = time.Since(began)
				return answer(200, nil, ""), nil
			}
			<-r.Context().Done()
			return nil, r.Context().Err()
		})})
		if err != nil {
			t.Fatal(err)
		}
		err = n.Tell(t.Context(), []Event{ev(Installed, "s", "1"), ev(Failed, "s", "")})
		if err == nil || strings.Contains(err.Error(), "alive") || after > time.Second || time.Since(began) > tellTimeout {
			t.Errorf("%v, alive after %s, all after %s", err, after, time.Since(began))
		}
	})
}

// A panic in the code of a service is an error of its sink.
func TestPanicOfAService(t *testing.T) {
	err := (&Desk{}).run(t.Context(), "x", func() error { panic("at the disco") })
	if err == nil || !strings.Contains(err.Error(), "at the disco") {
		t.Error(err)
	}
}

// What it writes it can read again, whatever others have written into events.
func TestMemoryStaysReadable(t *testing.T) {
	m := &memory{Schema: 1}
	now := time.Unix(1790000000, 0)
	bad := strings.Repeat("<\u2028", 5000)
	for i := range maxTold + 2*maxOutbox {
		e := Event{Kind: NewBytes, Key: bad + fmt.Sprint(i), Mark: bad + fmt.Sprint(i), Host: bad, Slot: bad, Version: bad, From: bad, Title: bad, Text: bad, URL: "https://h/" + bad}
		m.add(Sink{Name: strings.Repeat("n", 64)}, e, now)
		if i < maxTold+1 {
			m.settle([]outcome{{pending: m.Outbox[len(m.Outbox)-1], tried: true}}, now)
		}
	}
	m.expire(now)
	raw, err := json.Marshal(m)
	if err != nil || len(raw) > memoryBytes || len(m.Told) != maxTold || len(m.Outbox) != maxOutbox {
		t.Errorf("%v: %d bytes of %d, %d, %d", err, len(raw), memoryBytes, len(m.Told), len(m.Outbox))
	}
	if m.Outbox[0].Event.Mark == m.Outbox[1].Event.Mark {
		t.Error("what differs is the same when it is cut")
	}
}

// FuzzMemory: a file that others have written breaks nothing, and what is told goes on.
func FuzzMemory(f *testing.F) {
	f.Add([]byte(`{"schema": 1, "told": [{"sink": "a", "kind": "failed", "key": "s"}], "outbox": [{"sink": "a", "id": "x", "event": {"kind": "installed"}, "claimed": "9999-01-01T00:00:00Z"}]}`))
	f.Add([]byte(`{"schema": 1, "outbox": [{}, {"tries": -1}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := &memory{}
		if json.Unmarshal(raw, m) != nil {
			return
		}
		now := time.Unix(1790000000, 0)
		e := ev(NewBytes, "fuzz", "mark that nobody has")
		e.Time = now
		m.add(Sink{Name: "a"}, e, now)
		m.add(Sink{Name: "a"}, ev(Recovered, "s", Failed), now)
		m.expire(now)
		due := m.claim([]string{"a"}, now)
		if !slices.ContainsFunc(due, func(p pending) bool { return p.Event.Mark == e.Mark }) && !bytes.Contains(raw, []byte("mark")) {
			t.Fatalf("it is not told: %+v", m)
		}
		var results []outcome
		for _, p := range due {
			results = append(results, outcome{pending: p, tried: true})
		}
		m.settle(results, now)
		if len(m.Told) > maxTold+len(due) || len(m.Outbox) > maxOutbox {
			t.Fatal("it grows")
		}
	})
}

// Whatever happens in whatever order: nobody is told the same twice in a row, and who
// is there in the end has been told how things are.
func TestToldOnceModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &memory{Schema: 1}
		s, now := Sink{Name: "a"}, time.Unix(1790000000, 0)
		last, truth := "", ""
		step := func(away bool) {
			m.expire(now)
			var results []outcome
			for _, p := range m.claim([]string{"a"}, now) {
				var err error
				if away {
					err = errors.New("away")
				} else {
					if p.Event.Mark == last {
						rt.Fatalf("told %q twice", last)
					}
					last = p.Event.Mark
				}
				results = append(results, outcome{pending: p, tried: true, err: err})
			}
			m.settle(results, now)
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			now = now.Add(time.Hour)
			truth = rapid.SampledFrom([]string{"1", "2", "3"}).Draw(rt, "mark")
			e := ev(Installed, "s", truth)
			e.Time = now
			m.add(s, e, now)
			step(rapid.Bool().Draw(rt, "away"))
		}
		step(false)
		if last != truth {
			rt.Fatalf("%q was told last, and it is %q", last, truth)
		}
	})
}
