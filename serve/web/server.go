package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// What a client may take: of time, and of memory. Streams of events set their own
// deadlines, and actions have longer.
const (
	headerTime = 5 * time.Second
	readTime   = 15 * time.Second
	writeTime  = 30 * time.Second
	idleTime   = 60 * time.Second
	actionTime = 2 * time.Minute
	leaveTime  = 5 * time.Second
	maxHeader  = 16 << 10
	maxBody    = 64 << 10
	maxStreams = 32 // of HTTP/2, of one connection
)

// server answers requests.
type server struct {
	o        Options
	mux      *http.ServeMux
	cross    *http.CrossOriginProtection
	tmpl     *templates
	cache    *cache
	assets   map[string]asset
	sessions *sessions
	wrong    *limiter // wrong tokens
	acts     *limiter
	streams  *streams
	slow     time.Duration // eventWrite, but in tests
	leaving  chan struct{} // closed when the server ends
}

func newServer(o Options) (*server, error) {
	o = o.withDefaults()
	assets, err := loadAssets()
	if err != nil {
		return nil, err
	}
	tmpl, err := loadTemplates(assets)
	if err != nil {
		return nil, err
	}
	s := &server{
		o: o, mux: http.NewServeMux(), cross: http.NewCrossOriginProtection(), tmpl: tmpl, assets: assets,
		sessions: newSessions(o.Now), wrong: newLimiter(wrongTokens, o.Now), acts: newLimiter(actionRate, o.Now),
		streams: newEventStreams(), slow: eventWrite, leaving: make(chan struct{}),
	}
	s.cache = newCache(o, s.makePage)
	s.register()
	return s, nil
}

// canAct reports whether somebody with the token can do something here.
func (s *server) canAct() bool { return s.o.Actions != nil && s.o.Token != "" }

// route is one path and what its methods do.
type route struct {
	path    string
	methods map[string]http.HandlerFunc
}

// routes is everything that is answered. The API's are described in openapi.yaml;
// a test compares the two.
func (s *server) routes() []route {
	get := func(path string, h http.HandlerFunc) route { return route{path, map[string]http.HandlerFunc{"GET": h}} }
	post := func(path string, h http.HandlerFunc) route {
		return route{path, map[string]http.HandlerFunc{"POST": h}}
	}
	all := []route{
		get("/{$}", s.home),
		get("/events", s.pageEvents),
		get("/assets/{name}", s.asset),
		{"/login", map[string]http.HandlerFunc{"GET": s.loginPage, "POST": s.login}},
		post("/logout", s.logout),
		get("/confirm/{action}", s.confirm),
		post("/actions/{action}", s.formAction),
		get("/healthz", s.health(s.o.Live)),
		get("/readyz", s.health(s.o.Ready)),
	}
	if s.o.Metrics != nil {
		all = append(all, get("/metrics", s.o.Metrics.ServeHTTP))
	}
	return append(all, s.apiRoutes()...)
}

func (s *server) register() {
	for _, r := range s.routes() {
		s.mux.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) {
			method := req.Method
			if method == http.MethodHead {
				method = http.MethodGet
			}
			if h := r.methods[method]; h != nil {
				h(w, req)
				return
			}
			s.wrongMethod(w, req, r)
		})
	}
	s.mux.HandleFunc("/", s.notFound)
}

// wrongMethod says which methods there are.
func (s *server) wrongMethod(w http.ResponseWriter, r *http.Request, rt route) {
	allowed := []string{"OPTIONS"}
	for m := range rt.methods {
		if allowed = append(allowed, m); m == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	slices.Sort(allowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s.fail(w, r, http.StatusMethodNotAllowed, "%s is not done here: only %s", text(r.Method), strings.Join(allowed, ", "))
}

// notFound sends who wrote a slash too many to the page that is there.
func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	if short := strings.TrimRight(r.URL.Path, "/"); short != r.URL.Path && len(short) > 1 && short[0] == '/' && short[1] != '/' && short[1] != '\\' {
		there := &http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{Path: short}}
		if _, pattern := s.mux.Handler(there); pattern != "" && pattern != "/" {
			to := url.URL{Path: short, RawQuery: r.URL.RawQuery}
			w.Header().Set("Location", to.String())
			w.WriteHeader(http.StatusPermanentRedirect)
			return
		}
	}
	s.fail(w, r, http.StatusNotFound, "there is no %s here", text(r.URL.Path))
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer working(r)()
	defer s.survive(w, r)
	secure(w.Header(), r.TLS != nil)
	if !s.known(r.Host) {
		s.fail(w, r, http.StatusMisdirectedRequest, "%s is not a name of this page: add it to serve.hosts in the config if it is meant", text(r.Host))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	s.mux.ServeHTTP(w, r)
}

// survive makes a panic a failed answer.
func (s *server) survive(w http.ResponseWriter, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		// As net/http wants it, of a handler that is not ours.
		w.Header().Set("Connection", "close")
		return
	}
	s.o.Log.Error("a request has met a bug", "path", text(r.URL.Path), "panic", text(fmt.Sprint(p)), "stack", string(debug.Stack()))
	s.fail(w, r, http.StatusInternalServerError, "this is a bug, and the log says more")
}

// known reports whether host, a Host header, is a name of this page. A page of
// somebody else's whose name leads to this address is not let in: that is how
// browsers are made to read what only their machine reaches.
func (s *server) known(host string) bool {
	if host == "" { // HTTP/1.0, which no browser speaks
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")), ".")
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(s.o.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// secure sets what every answer has.
func secure(h http.Header, tls bool) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "accelerometer=(), camera=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
	if tls {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
}

// health answers ok, or what is wrong.
func (s *server) health(check func() error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err := check(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, plain.Cut(err.Error(), maxText))
			return
		}
		fmt.Fprintln(w, "ok")
	}
}

// serveOn answers on sockets until ctx ends.
func serveOn(ctx context.Context, o Options, sockets []net.Listener) error {
	s, err := newServer(o)
	if err != nil {
		return fmt.Errorf("serve the status page: %w", err)
	}
	hs := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeader, ConnContext: connContext, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), // what it says is about clients,
	}
	if o.TLSCert != "" {
		cert, err := newCertificate(o)
		if err != nil {
			for _, l := range sockets {
				l.Close()
			}
			return fmt.Errorf("serve the status page: %w", err)
		}
		hs.TLSConfig = cert.tlsConfig()
	}
	return s.run(ctx, hs, sockets)
}

func (s *server) run(ctx context.Context, hs *http.Server, sockets []net.Listener) error {
	all, failed := newConns(), make(chan error, len(sockets))
	var running sync.WaitGroup
	for _, l := range sockets {
		s.o.Log.Info("the status page is served", "address", l.Addr().String(), "tls", hs.TLSConfig != nil, "actions", s.canAct())
		running.Go(func() {
			failed <- accept(hs, limited{l, all})
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	close(s.leaving)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	if hs.Shutdown(stop) != nil {
		hs.Close()
	}
	running.Wait()
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the status page: %w", err)
	}
	return nil
}

func accept(hs *http.Server, l net.Listener) error {
	if hs.TLSConfig != nil {
		return hs.ServeTLS(l, "", "")
	}
	return hs.Serve(l)
}
