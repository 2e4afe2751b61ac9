package metrics

import (
	"net/http"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// Source is whose numbers are told: state.Hub is one.
type Source interface{ State() *state.State }

// Handler answers a scrape.
func Handler(src Source) http.Handler { return http.NotFoundHandler() }

// WriteTextfile replaces the file path, for node_exporter's textfile collector,
// with the numbers of s that are right also when no process runs.
func WriteTextfile(path string, s *state.State) error { return nil }
