package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// The exit codes of a run, in order of gravity: 5, 4, 1, 3, 0. Usage errors (2)
// come before a run begins.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitStale    = 3
	ExitRefused  = 4
	ExitNewBytes = 5
)

// gravest returns the graver of two exit codes.
func gravest(a, b int) int {
	order := []int{ExitOK, ExitStale, ExitFailed, ExitRefused, ExitNewBytes}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// Install is one slot to bring up to date.
type Install struct {
	Target  string // as asked for: auto, a gfx name, a slug, a product, multiarch
	Channel string
	Link    string // a symlink to keep at what is active; "" for none
	Keep    int    // generations that stay
	Repack  repack.Options
}

// Channel is where the releases of a channel are listed.
type Channel struct {
	Indexes  []fetch.Source
	Insecure bool // http:// from other machines is taken
}

// Options says what a run does. Store, Client and Channels are needed.
type Options struct {
	Store    *store.Store
	Client   func(insecure bool, event func(fetch.Event)) (*fetch.Client, error)
	Channels map[string]Channel
	Installs []Install
	Bumps    []Bump
	Policy   Policy

	Version        string // this version and no other
	DryRun         bool   // say what would be done
	NoInstall      bool   // repack and audit, but keep no generation
	NoBump         bool
	AcceptNewBytes bool // take new bytes under a known name

	Sys   fs.FS // /sys, for auto; nil: the machine's
	Now   func() time.Time
	Log   *slog.Logger
	Event func(Event)
}

// Policy says which release is the one to take.
type Policy struct {
	Prefer         string
	Series         string
	MinAge         time.Duration
	Settle         time.Duration
	StaleAfter     time.Duration
	Deny           []string
	Multiarch      string // never or fallback
	AllowDowngrade bool
}

// Bump is one repository to bump and the channel of its pins.
type Bump struct {
	bump.Repo
	Channel string
}

// Event is progress: of one install, or of none when Install is "".
type Event struct {
	Install string
	Stage   string // list, download, unpack, patch, wrap, audit, activate, bump
	Done    int64
	Total   int64
	Message string // for people; "" for mere progress
}

// UsageError is an error about what was asked for rather than what happened.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UsageError) Unwrap() error { return e.Err }

// Run brings every install up to date, then every repository. An error means
// that the run could not begin; what became of each install is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	installs, err := o.expand()
	if err != nil {
		return nil, err
	}
	if !o.DryRun {
		lock, err := o.Store.LockRun(ctx, "update")
		if err != nil {
			return nil, err
		}
		defer func() {
			if err := lock.Release(); err != nil {
				o.Log.Warn("the run lock could not be released", "error", err)
			}
		}()
	}
	r := &run{o: o, listings: map[string]*listed{}, slots: map[string]bool{}}
	rep := &Report{Schema: Schema, DryRun: o.DryRun, Installs: []*Outcome{}}
	for _, in := range installs {
		out := r.install(ctx, in)
		rep.Installs = append(rep.Installs, out)
	}
	if !o.NoBump {
		r.bumps(ctx, rep)
	}
	for _, out := range rep.Installs {
		rep.Exit = gravest(rep.Exit, out.Exit)
	}
	return rep, nil
}

func (o Options) withDefaults() Options {
	if o.Sys == nil {
		o.Sys = os.DirFS("/sys")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Event == nil {
		o.Event = func(Event) {}
	}
	return o
}

// expand replaces auto by the GPUs of this machine and drops what is there twice.
func (o Options) expand() ([]Install, error) {
	var out []Install
	seen := map[string]bool{}
	add := func(in Install) {
		name, _ := gfx.Canonical(in.Target)
		if key := in.Channel + " " + name; !seen[key] {
			seen[key] = true
			out = append(out, in)
		}
	}
	for _, in := range o.Installs {
		if in.Target != gfx.Auto {
			if _, ok := gfx.Canonical(in.Target); !ok {
				return nil, &UsageError{fmt.Errorf("%q is no GPU target: use a gfx name (gfx1151), a family (gfx110X-all), a product name (\"RX 7900 XTX\"), multiarch or auto", in.Target)}
			}
			add(in)
			continue
		}
		targets, err := gfx.Detect(o.Sys)
		if err != nil {
			return nil, &UsageError{fmt.Errorf("find the GPUs of this machine: %w; name the target with --arch, for example --arch gfx1151", err)}
		}
		for i, t := range targets {
			in.Target = t
			if i > 0 && in.Link != "" {
				o.Log.Warn("one link cannot lead to two targets", "link", in.Link, "leads to", targets[0], "not to", t)
				in.Link = ""
			}
			add(in)
		}
	}
	if o.Version != "" {
		if _, err := release.ParseVersion(o.Version); err != nil {
			return nil, &UsageError{err}
		}
	}
	return out, nil
}

// run is the state of one Run.
type run struct {
	o        Options
	listings map[string]*listed
	slots    map[string]bool // those that an install of this run has taken
}

// listed is what the indexes of a channel said, once for all installs of it.
type listed struct {
	client *fetch.Client
	l      *fetch.Listing
	err    error
}

// list reads the indexes of a channel, once.
func (r *run) list(ctx context.Context, channel string) *listed {
	if l := r.listings[channel]; l != nil {
		return l
	}
	l := &listed{}
	r.listings[channel] = l
	ch, ok := r.o.Channels[channel]
	if !ok {
		l.err = &UsageError{fmt.Errorf("no index is known for channel %q", channel)}
		return l
	}
	r.o.Event(Event{Stage: "list", Message: "reading the " + channel + " index"})
	l.client, l.err = r.o.Client(ch.Insecure, func(e fetch.Event) {
		switch e.Kind {
		case fetch.EventRetry, fetch.EventNote:
			log := r.o.Log
			if e.Release != "" {
				log = log.With("release", e.Release)
			}
			log.Warn(e.Message)
		default:
			r.o.Event(Event{Stage: "download", Done: e.Done, Total: e.Total})
		}
	})
	if l.err != nil {
		return l
	}
	l.l, l.err = l.client.List(ctx, channel, ch.Indexes)
	if l.err == nil {
		for _, s := range l.l.Sources {
			if s.Err != nil {
				r.o.Log.Warn("an index could not be read", "url", s.URL, "error", s.Err)
			}
		}
	}
	return l
}

// errorsAs is errors.As for a type that is not needed afterwards.
func errorsAs[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}
