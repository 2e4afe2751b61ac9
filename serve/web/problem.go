package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// problem is an error as RFC 9457 has it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

// maxDetail bounds what is said of an error.
const maxDetail = 2000

// fail answers with an error: to browsers as a page, to everybody else as a problem.
func (s *server) fail(w http.ResponseWriter, r *http.Request, status int, format string, args ...any) {
	detail := plain.Cut(fmt.Sprintf(format, args...), maxDetail)
	if browser(r) {
		f := s.frame(s.o.Source.State(), s.o.Now())
		f.Title, f.Heading, f.Text = http.StatusText(status)+" · rocm-nightly", http.StatusText(status), detail
		s.show(w, r, status, "message", f)
		return
	}
	b, err := json.Marshal(problem{"about:blank", http.StatusText(status), status, detail})
	if err != nil { // of strings and a number: never
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(append(b, '\n'))
	}
}

// browser reports whether a person sees the answer.
func browser(r *http.Request) bool {
	return !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// broken is for what cannot happen with a State that was made by the program.
func (s *server) broken(w http.ResponseWriter, r *http.Request, err error) {
	s.o.Log.Error("an answer could not be made", "path", text(r.URL.Path), "error", err)
	s.fail(w, r, http.StatusInternalServerError, "this could not be made; the log says why")
}
