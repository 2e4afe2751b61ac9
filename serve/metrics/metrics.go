package metrics

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// Source is whose numbers are told: state.Hub is one.
type Source interface{ State() *state.State }

const (
	maxScrapes    = 4                // at the same time; one more is told to come again
	scrapeTimeout = 10 * time.Second // Prometheus' own
)

// Handler answers a scrape with the numbers of src's State and those of this
// process, in the text form of Prometheus 0.0.4. It says nothing about who may ask:
// that is the business of whoever serves it.
func Handler(src Source) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(
		newCollector(src.State, false),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		// One number that cannot be told does not hide the others, and what is
		// wrong with it is told to nobody who asks.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
	})
}

// WriteTextfile replaces the file path, for node_exporter's textfile collector,
// with the numbers of s that are right also when no process runs: nothing about
// jobs, the process, or what is free now. The file appears whole or not at all, and
// everybody may read it (mode 0644): node_exporter has a user of its own. Its
// directory must exist.
func WriteTextfile(path string, s *state.State) error {
	text, err := render(s)
	if err != nil {
		return fmt.Errorf("write the numbers to %s: %w", path, err)
	}
	if err := replace(path, text); err != nil {
		return fmt.Errorf("write the numbers: %w", err)
	}
	return nil
}

// render is what a scrape would have of s, and of no process.
func render(s *state.State) ([]byte, error) {
	reg := prometheus.NewRegistry()
	if err := reg.Register(newCollector(func() *state.State { return s }, true)); err != nil {
		return nil, err
	}
	// A scrape of one's own: the form is that of promhttp to the byte.
	req, err := http.NewRequest(http.MethodGet, "/", http.NoBody)
	if err != nil {
		return nil, err
	}
	p := &page{header: http.Header{}}
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{DisableCompression: true}).ServeHTTP(p, req)
	if p.code != 0 && p.code != http.StatusOK {
		return nil, fmt.Errorf("they could not be told: %s", bytes.TrimSpace(p.body.Bytes()))
	}
	return p.body.Bytes(), nil
}

// page is an answer that is kept.
type page struct {
	header http.Header
	body   bytes.Buffer
	code   int
}

// Header is part of http.ResponseWriter.
func (p *page) Header() http.Header { return p.header }

// WriteHeader is part of http.ResponseWriter.
func (p *page) WriteHeader(code int) { p.code = code }

// Write is part of http.ResponseWriter.
func (p *page) Write(b []byte) (int, error) { return p.body.Write(b) }

// replace puts data in the place of path, durably. The half of a file has a name
// that does not end in .prom: node_exporter does not read it.
func replace(path string, data []byte) error {
	dir := filepath.Dir(path)
	f, err := renameio.NewPendingFile(path, renameio.WithTempDir(dir), renameio.WithStaticPermissions(0o644))
	if err != nil {
		return err
	}
	defer func() { _ = f.Cleanup() }() // after the rename it does nothing
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a rename last: renameio syncs the file, not its directory.
func syncDir(dir string) (err error) {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := d.Close(); err == nil {
			err = cerr
		}
	}()
	return d.Sync()
}
