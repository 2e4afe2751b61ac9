package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// Source is what is shown: state.Hub is one.
type Source interface {
	State() *state.State
	Changed() <-chan struct{}
}

// Actions is what the page may do when there is a token. An error is shown.
type Actions interface {
	Run(ctx context.Context, job string) error           // begin a job of the schedule now
	Rollback(ctx context.Context, slot string) error     // back to the generation before
	Use(ctx context.Context, slot, version string) error // pin: this generation, and hold
	Unhold(ctx context.Context, slot string) error       // let it go on
}

// Options says what is served and where. Source is needed.
type Options struct {
	Listen  string // host:port, unix:/path, or systemd's socket: "systemd"
	Public  bool   // an address that others reach is meant, also without TLS
	TLSCert string
	TLSKey  string
	Hosts   []string // names under which browsers may ask, beside localhost and addresses

	Source  Source
	Actions Actions      // nil: read only
	Token   string       // what Actions ask for; "" : read only
	Metrics http.Handler // /metrics; nil: none
	// Live tells whether the daemon still goes round (/healthz), Ready whether it has
	// begun and can work (/readyz); nil: always.
	Live, Ready func() error

	Now func() time.Time
	Log *slog.Logger
}

// Check tells whether Listen, Public and TLS make sense together, without listening.
func (o Options) Check() error { return nil }

// Serve answers until ctx ends. It returns an error when it cannot listen.
func Serve(ctx context.Context, o Options) error {
	<-ctx.Done()
	return nil
}
