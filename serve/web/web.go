package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/listen"
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

// minToken is how long a token is at least: 16 bytes that are random cannot be
// guessed through the limits on attempts.
const minToken = 16

// Check tells whether Listen, Public, TLS and Token make sense together, without
// listening. The config says the same words of the same keys.
func (o Options) Check() error {
	var errs []error
	for _, f := range o.where().Check() {
		errs = append(errs, fmt.Errorf("serve.%s: %s", f.Key, f.Text))
	}
	if o.Token != "" && len(o.Token) < minToken {
		errs = append(errs, fmt.Errorf("serve.token: has %d characters, and %d are the least: make one with: openssl rand -hex 32", len(o.Token), minToken))
	}
	return errors.Join(errs...)
}

func (o Options) where() listen.Where {
	return listen.Where{Listen: o.Listen, Public: o.Public, TLSCert: o.TLSCert, TLSKey: o.TLSKey, Hosts: o.Hosts}
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Live == nil {
		o.Live = func() error { return nil }
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	return o
}

// Serve answers until ctx ends, and for a few seconds more those whose request has
// begun. It returns an error when it cannot listen, or what Check says.
func Serve(ctx context.Context, o Options) error {
	o = o.withDefaults()
	if o.Source == nil {
		return errors.New("serve the status page: there is no source of what to show")
	}
	if err := o.Check(); err != nil {
		return fmt.Errorf("serve the status page: %w", err)
	}
	if o.Listen == listen.Off {
		<-ctx.Done()
		return nil
	}
	sockets, err := open(ctx, o)
	if err != nil {
		return fmt.Errorf("serve the status page: %w", err)
	}
	return serveOn(ctx, o, sockets)
}
