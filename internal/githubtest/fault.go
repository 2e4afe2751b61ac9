package githubtest

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// Fault is how the next requests of a kind fail.
type Fault struct {
	Method string // "" is any
	Path   string // what the request's path ends in; "" is any
	Times  int    // how often; 0 is once
	// Done says that what was asked for is done first, so that only the answer
	// is wrong.
	Done   bool
	Status int               // of the answer; 0 breaks the connection off
	Header map[string]string // of the answer
	Body   string            // of the answer; "" is a JSON of GitHub's shape
	Delay  time.Duration     // before the answer
}

// Fail makes requests fail. Several faults take their turns in order.
func (s *Server) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.Times = max(f.Times, 1)
	s.faults = append(s.faults, &f)
}

// fault returns the fault that r meets, nil if none.
func (s *Server) fault(r *http.Request) *Fault {
	for _, f := range s.faults {
		if f.Times > 0 && (f.Method == "" || f.Method == r.Method) && strings.HasSuffix(r.URL.Path, f.Path) {
			f.Times--
			return f
		}
	}
	return nil
}

func (f *Fault) answer(w http.ResponseWriter, r *http.Request) {
	if f.Delay > 0 {
		// Whether the caller has gone away shows only once it was read to its end.
		_, _ = io.Copy(io.Discard, r.Body)
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		}
	}
	if f.Status == 0 {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	for key, value := range f.Header {
		w.Header().Set(key, value)
	}
	if f.Body != "" {
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
		}
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body))
		return
	}
	write(w, f.Status, map[string]any{"message": http.StatusText(f.Status), "documentation_url": "https://docs.github.com/rest"})
}
