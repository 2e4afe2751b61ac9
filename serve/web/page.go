package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"path"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

//go:embed assets templates openapi.yaml
var files embed.FS

// asset is one file that is served as it is.
type asset struct {
	body *body
	kind string
	mark string // changes with its bytes
}

// assetKinds are the files there are.
var assetKinds = map[string]string{
	"style.css": "text/css; charset=utf-8",
	"live.js":   "text/javascript; charset=utf-8",
	"icon.svg":  "image/svg+xml",
}

func loadAssets() (map[string]asset, error) {
	all := map[string]asset{}
	for name, kind := range assetKinds {
		b, err := files.ReadFile("assets/" + name)
		if err != nil {
			return nil, fmt.Errorf("read what the page is made of: %w", err)
		}
		sum := sha256.Sum256(b)
		all[name] = asset{newBody(b), kind, hex.EncodeToString(sum[:8])}
	}
	return all, nil
}

// asset answers with a file. Who asks for it by its mark never needs to ask again.
func (s *server) asset(w http.ResponseWriter, r *http.Request) {
	a, ok := s.assets[r.PathValue("name")]
	if !ok {
		s.notFound(w, r)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == a.mark {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	a.body.send(w, r)
}

// templates makes HTML.
type templates struct{ t *template.Template }

func loadTemplates(assets map[string]asset) (*templates, error) {
	t := template.New("page").Funcs(template.FuncMap{
		"text": text, "word": word, "lines": lines, "link": link, "place": place, "size": size, "seconds": seconds, "plural": plural, "tone": tone,
		"asset": func(name string) string { return path.Join("/assets", name) + "?v=" + assets[name].mark },
	})
	if _, err := t.ParseFS(files, "templates/*.html"); err != nil {
		return nil, fmt.Errorf("read the templates of the page: %w", err)
	}
	return &templates{t}, nil
}

func (t *templates) make(name string, data any) ([]byte, error) {
	var buf bytes.Buffer
	if err := t.t.ExecuteTemplate(&buf, name, data); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	return buf.Bytes(), nil
}

// frame is what the head and the foot of every page know.
type frame struct {
	Title, Heading, Text  string
	Host                  string
	Home, Live            bool
	In, Can, Metrics      bool
	CSRF                  string
	Made                  *when
	Action, Slot, Version string
}

func (s *server) frame(st *state.State, now time.Time) frame {
	return frame{Host: st.Host, Can: s.canAct(), Metrics: s.o.Metrics != nil, Made: at(now, now)}
}

// slotPart is what the template of a slot is given.
type slotPart struct {
	View view
	Slot slotView
}

// makePage makes the page of st, in its sections. mark stands where the token of a
// session goes.
func (s *server) makePage(st *state.State, now time.Time, in bool, mark string) (*page, error) {
	v := newView(st, now, in, s.canAct(), mark)
	p := &page{of: st, made: now, title: title(st)}
	add := func(name, id string, data any) error {
		b, err := s.tmpl.make(name, data)
		b = bytes.TrimSpace(b)
		p.sections = append(p.sections, section{id, b, sha256.Sum256(b)})
		return err
	}
	for _, name := range []string{"alarms", "running", "overview"} {
		if err := add(name, name, v); err != nil {
			return nil, err
		}
	}
	for _, sl := range v.Slots {
		if err := add("slot", sl.ID, slotPart{v, sl}); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"jobs", "bumps", "indexes", "disk", "program"} {
		if err := add(name, name, v); err != nil {
			return nil, err
		}
	}
	if in {
		return p, nil
	}
	whole, err := s.whole(p, st, now, in, nil)
	if err != nil {
		return nil, err
	}
	p.whole = newBody(whole)
	return p, nil
}

// whole puts the page together.
func (s *server) whole(p *page, st *state.State, now time.Time, in bool, flash *flash) ([]byte, error) {
	f := s.frame(st, now)
	f.Title, f.Home, f.Live, f.In, f.CSRF = p.title, true, true, in, s.cache.mark
	var out bytes.Buffer
	for _, name := range []string{"head", "flash", "nav"} {
		data := any(f)
		if name == "flash" {
			data = flash
		}
		b, err := s.tmpl.make(name, data)
		if err != nil {
			return nil, err
		}
		out.Write(b)
	}
	for _, part := range p.sections {
		out.Write(part.html)
		out.WriteByte('\n')
	}
	b, err := s.tmpl.make("foot", f)
	out.Write(b)
	return out.Bytes(), err
}

// title says in the tab of the browser how things are.
func title(st *state.State) string {
	name := "rocm-nightly"
	if st.Host != "" {
		name += " on " + text(st.Host)
	}
	switch n := len(st.Alarms); {
	case n > 0:
		return fmt.Sprintf("(%d) %s", n, name)
	case st.Running != nil:
		return "▶ " + name
	}
	return name
}

// home is the page.
func (s *server) home(w http.ResponseWriter, r *http.Request) {
	sess := s.session(r)
	p, err := s.cache.page(sess != nil)
	if err != nil {
		s.broken(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "Cookie")
	if sess == nil {
		p.whole.send(w, r)
		return
	}
	b, err := s.whole(p, p.of, p.made, true, s.sessions.flash(sess, r.Method != http.MethodHead))
	if err != nil {
		s.broken(w, r, err)
		return
	}
	// Not compressed: beside text that others choose, the length of what is
	// compressed would tell of the token.
	if r.Method != http.MethodHead {
		_, _ = w.Write(s.forSession(b, sess))
	}
}

// forSession puts the token of a session where the mark is.
func (s *server) forSession(b []byte, sess *session) []byte {
	return bytes.ReplaceAll(b, []byte(s.cache.mark), []byte(sess.csrf))
}

// show answers with one of the small pages.
func (s *server) show(w http.ResponseWriter, r *http.Request, status int, name string, f frame) {
	b, err := s.tmpl.make(name, f)
	if err != nil {
		s.o.Log.Error("a page could not be made", "error", err)
		http.Error(w, "this page could not be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b)
	}
}
