package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// apiRoutes is the API. Each answer holds the schema and the time of its State.
func (s *server) apiRoutes() []route {
	get := func(path string, part func(*state.State) any) route {
		return route{path, map[string]http.HandlerFunc{"GET": func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, path, part) }}}
	}
	type head struct {
		Schema int       `json:"schema"`
		Time   time.Time `json:"time"`
	}
	of := func(st *state.State) head { return head{st.Schema, st.Time} }
	return []route{
		get("/api/v1/state", func(st *state.State) any { return st }),
		get("/api/v1/slots", func(st *state.State) any {
			return struct {
				head
				Slots []state.Slot `json:"slots"`
			}{of(st), some(st.Slots)}
		}),
		get("/api/v1/jobs", func(st *state.State) any {
			return struct {
				head
				Jobs []state.Job `json:"jobs"`
			}{of(st), some(st.Jobs)}
		}),
		get("/api/v1/alarms", func(st *state.State) any {
			return struct {
				head
				Alarms []state.Alarm `json:"alarms"`
			}{of(st), some(st.Alarms)}
		}),
		get("/api/v1/bumps", func(st *state.State) any {
			return struct {
				head
				Bumps []state.Bump `json:"bumps"`
			}{of(st), some(st.Bumps)}
		}),
		get("/api/v1/indexes", func(st *state.State) any {
			return struct {
				head
				Indexes []state.Index `json:"indexes"`
			}{of(st), some(st.Indexes)}
		}),
		s.slotRoute("/api/v1/slots/{slot}", func(st *state.State, sl state.Slot) any {
			return struct {
				head
				Slot state.Slot `json:"slot"`
			}{of(st), sl}
		}),
		s.slotRoute("/api/v1/slots/{slot}/runs", func(st *state.State, sl state.Slot) any {
			return struct {
				head
				Slot string      `json:"slot"`
				Runs []state.Run `json:"runs"`
			}{of(st), sl.Slot, some(sl.Runs)}
		}),
		{"/api/v1/events", map[string]http.HandlerFunc{"GET": s.apiEvents}},
		{"/api/v1/openapi.yaml", map[string]http.HandlerFunc{"GET": s.openapi}},
		s.actionRoute("/api/v1/jobs/{job}/run", "run", http.StatusAccepted),
		s.actionRoute("/api/v1/slots/{slot}/rollback", "rollback", http.StatusOK),
		s.actionRoute("/api/v1/slots/{slot}/use", "use", http.StatusOK),
		s.actionRoute("/api/v1/slots/{slot}/unhold", "unhold", http.StatusOK),
	}
}

// some is list, or an empty one where there is none: lists are never null.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// answer sends a part of the State, which is made once.
func (s *server) answer(w http.ResponseWriter, r *http.Request, name string, part func(*state.State) any) {
	b, err := s.cache.api(name, func(st *state.State) ([]byte, error) {
		v := part(st)
		if v == nil {
			return nil, &refusal{http.StatusNotFound, fmt.Sprintf("there is no slot %q", text(r.PathValue("slot")))}
		}
		b, err := json.Marshal(v)
		return append(b, '\n'), err
	})
	if ref := new(refusal); errors.As(err, &ref) {
		s.refuse(w, r, err)
		return
	}
	if err != nil {
		s.broken(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "private, no-cache")
	b.send(w, r)
}

// slotRoute answers with something of one slot; only slots that are there are kept.
func (s *server) slotRoute(path string, part func(*state.State, state.Slot) any) route {
	return route{path, map[string]http.HandlerFunc{"GET": func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("slot")
		s.answer(w, r, path+"\x00"+name, func(st *state.State) any {
			for _, sl := range st.Slots {
				if sl.Slot == name {
					return part(st, sl)
				}
			}
			return nil
		})
	}}}
}

// openapi is the description of all this.
func (s *server) openapi(w http.ResponseWriter, r *http.Request) {
	b, err := s.cache.static("openapi.yaml")
	if err != nil {
		s.broken(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-cache")
	b.send(w, r)
}

// actionRoute does something for who shows the token. Cookies count for nothing
// here, so that no page of somebody else's can make a browser ask.
func (s *server) actionRoute(path, action string, status int) route {
	return route{path, map[string]http.HandlerFunc{"POST": func(w http.ResponseWriter, r *http.Request) {
		if !s.bearer(w, r) {
			return
		}
		o := order{action: action, job: r.PathValue("job"), slot: r.PathValue("slot")}
		if action == "use" {
			var err error
			if o.version, err = readVersion(r); err != nil {
				s.refuse(w, r, err)
				return
			}
		}
		done, err := s.act(w, r, o, "api")
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		b, err := json.Marshal(struct {
			Schema  int    `json:"schema"`
			Message string `json:"message"`
		}{state.Schema, done})
		if err != nil {
			s.broken(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(append(b, '\n'))
	}}}
}

// bearer lets those in who show the token, and says to others how to.
func (s *server) bearer(w http.ResponseWriter, r *http.Request) bool {
	if !s.canAct() {
		s.fail(w, r, http.StatusForbidden, howToAct)
		return false
	}
	if err := s.cross.Check(r); err != nil {
		s.fail(w, r, http.StatusForbidden, "a page of somebody else's has sent this")
		return false
	}
	if d := s.wrong.wait(r.RemoteAddr); d > 0 {
		w.Header().Set("Retry-After", retryAfter(d))
		s.fail(w, r, http.StatusTooManyRequests, "too many wrong tokens: wait %s", seconds(d.Seconds()))
		return false
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && s.right(strings.TrimSpace(token)) {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="rocm-nightly"`)
	if token != "" {
		s.wrong.take(r.RemoteAddr)
		s.o.Log.Warn("somebody showed the API a wrong token", "remote", r.RemoteAddr)
	}
	s.fail(w, r, http.StatusUnauthorized, "show the token that the config names: Authorization: Bearer TOKEN")
	return false
}

// readVersion reads {"version": "…"}.
func readVersion(r *http.Request) (string, error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return "", &refusal{http.StatusUnsupportedMediaType, `send application/json: {"version": "…"}`}
	}
	var body struct {
		Version string `json:"version"`
	}
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	err := dec.Decode(&body)
	if big := new(http.MaxBytesError); errors.As(err, &big) {
		return "", &refusal{http.StatusRequestEntityTooLarge, "that is too long"}
	}
	if err == nil && dec.More() {
		err = errors.New("there is more than one value")
	}
	if err != nil && !errors.Is(err, io.EOF) || body.Version == "" {
		return "", &refusal{http.StatusBadRequest, `send {"version": "…"} with the generation to use`}
	}
	return body.Version, nil
}
