package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// Streams of events: how many there are, how often one is told something, and how
// long a client may take to read it. Those of this machine count in all only.
const (
	maxEvents        = 128
	maxEventsAddress = 16
	eventEvery       = 500 * time.Millisecond
	eventBeat        = 15 * time.Second
	eventWrite       = 10 * time.Second
	eventRetry       = 5 * time.Second
)

// streams counts them.
type streams struct {
	mu  sync.Mutex
	all int
	by  map[netip.Prefix]int
}

func newEventStreams() *streams { return &streams{by: map[netip.Prefix]int{}} }

// enter counts one more, unless there are too many.
func (s *streams) enter(remote string) (leave func(), ok bool) {
	from := address(remote)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all >= maxEvents || from.IsValid() && s.by[from] >= maxEventsAddress {
		return nil, false
	}
	s.all++
	s.by[from]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.by[from]--; s.by[from] == 0 {
			delete(s.by, from)
		}
	}, true
}

// stream is one client that is told of changes.
type stream struct {
	w    http.ResponseWriter
	ctl  *http.ResponseController
	slow time.Duration  // how long it may take to read
	sent map[string]any // a mark of what it has of each part
	ids  string
}

// tell writes, or fails: a client that does not read is let go.
func (t *stream) tell(b []byte) error {
	// A recorder in a test has no deadline, and can always be written to.
	_ = t.ctl.SetWriteDeadline(time.Now().Add(t.slow))
	if _, err := t.w.Write(b); err != nil {
		return fmt.Errorf("tell a client: %w", err)
	}
	return t.ctl.Flush()
}

// events tells a client what make makes of each change, until it goes, the server
// does, or stay says so.
func (s *server) events(w http.ResponseWriter, r *http.Request, stay func() bool, make func(*stream) ([]byte, error)) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	leave, ok := s.streams.enter(r.RemoteAddr)
	if !ok {
		w.Header().Set("Retry-After", "30")
		s.fail(w, r, http.StatusServiceUnavailable, "too many are listening already")
		return
	}
	defer leave()
	t := &stream{w: w, ctl: http.NewResponseController(w), slow: s.slow, sent: map[string]any{}}
	_ = t.ctl.SetReadDeadline(time.Time{}) // the request is read: what ends it is its context
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would hold events back
	if t.tell(fmt.Appendf(nil, "retry: %d\n\n", eventRetry.Milliseconds())) != nil {
		return
	}
	beat := time.NewTicker(eventBeat)
	defer beat.Stop()
	for {
		changed := s.o.Source.Changed() // before the State is read, so that no change is missed
		b, err := make(t)
		if err != nil {
			s.o.Log.Error("an event could not be made", "error", err)
			return
		}
		if len(b) > 0 && t.tell(b) != nil {
			return
		}
		if !s.pause(r, eventEvery) {
			return
		}
		for waiting := true; waiting; {
			select {
			case <-changed:
				waiting = false
			case <-beat.C:
				if !stay() || t.tell([]byte(": still here\n\n")) != nil {
					return
				}
			case <-r.Context().Done():
				return
			case <-s.leaving:
				return
			}
		}
		if !stay() {
			return
		}
	}
}

// pause waits between two events; false: there is nobody to wait for.
func (s *server) pause(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
	case <-s.leaving:
	}
	return false
}

// pageEvents sends the parts of the page that have changed, as they are rendered.
func (s *server) pageEvents(w http.ResponseWriter, r *http.Request) {
	sess := s.session(r)
	stay := func() bool { return sess == nil || s.sessions.there(sess) }
	s.events(w, r, stay, func(t *stream) ([]byte, error) {
		p, err := s.cache.page(sess != nil)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		fmt.Fprintf(&out, "event: clock\ndata: %s\n\n", strconv.FormatInt(s.o.Now().UnixMilli(), 10))
		if ids := p.ids(); t.ids == "" {
			t.ids = ids
		} else if t.ids != ids {
			return append(out.Bytes(), "event: layout\ndata: {}\n\n"...), nil
		}
		if t.sent["title"] != p.title { // plain text of one line
			t.sent["title"] = p.title
			fmt.Fprintf(&out, "event: title\ndata: %s\n\n", p.title)
		}
		for _, part := range p.sections {
			if t.sent[part.id] == part.sum {
				continue
			}
			t.sent[part.id] = part.sum
			html := string(part.html)
			if sess != nil {
				html = string(s.forSession(part.html, sess))
			}
			b, err := json.Marshal(struct {
				ID   string `json:"id"`
				HTML string `json:"html"`
			}{part.id, html})
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "event: part\ndata: %s\n\n", b)
		}
		return out.Bytes(), nil
	})
}

// ids is which parts there are.
func (p *page) ids() string {
	var b bytes.Buffer
	for _, part := range p.sections {
		b.WriteString(part.id + " ")
	}
	return b.String()
}

// apiEvents sends the State each time that it has changed.
func (s *server) apiEvents(w http.ResponseWriter, r *http.Request) {
	s.events(w, r, func() bool { return true }, func(t *stream) ([]byte, error) {
		b, err := s.cache.api("/api/v1/state", func(st *state.State) ([]byte, error) {
			b, err := json.Marshal(st)
			return append(b, '\n'), err
		})
		if err != nil || t.sent[""] == b.tag {
			return nil, err
		}
		t.sent[""] = b.tag
		return fmt.Appendf(nil, "event: state\ndata: %s\n\n", bytes.TrimSuffix(b.plain, []byte("\n"))), nil
	})
}
