package update

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit/smoke"
	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/amd"
	"github.com/rocm-nightly/rocm-nightly/internal/diskspace"
	"github.com/rocm-nightly/rocm-nightly/internal/gfx"
	"github.com/rocm-nightly/rocm-nightly/internal/provenance"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// The exit codes of a run, in order of gravity: 5, 4, 2, 1, 3, 0. Most usage
// errors (2) come before a run begins.
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
	order := []int{ExitOK, ExitStale, ExitFailed, ExitUsage, ExitRefused, ExitNewBytes}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// Install is one slot to bring up to date.
type Install struct {
	Target  string // as asked for: auto, a gfx name, a slug, a product, multiarch
	Channel string
	Link    string // a symlink to keep at what is active; "" for none
	Keep    int    // generations that stay
	// KeepTarballs is how many tarballs stay: those that were installed last.
	KeepTarballs int
	// KeepDays and KeepBytes are the other bounds of what stays (store.Keep).
	KeepDays  int
	KeepBytes int64
	Repack    repack.Options
	// Activate is when a staged generation becomes active: ActivateAuto (""
	// too), ActivateIdle or ActivateManual.
	Activate string
	// Env are the install's own variables; those built in for the target are under
	// them. Repack.Env is not looked at.
	Env map[string]string
}

// keep is what prune is told.
func (in Install) keep() store.Keep {
	return store.Keep{Last: in.Keep, Days: in.KeepDays, Bytes: in.KeepBytes}
}

// Channel is where the releases of a channel are listed.
type Channel struct {
	Indexes    []fetch.Source
	StaleAfter time.Duration // the age from which its newest release is stale; 0: never
	Retention  time.Duration // how long AMD keeps a release; 0: for ever
}

// Options says what a run does. Store, Client and Channels are needed.
type Options struct {
	Store    *store.Store
	Client   func(event func(fetch.Event)) (*fetch.Client, error)
	Channels map[string]Channel
	Installs []Install
	Bumps    []Bump
	Policy   Policy

	Ledger   *store.Ledger // nil: the store's
	Tarballs *store.Store  // where Find looks for kept tarballs; nil: Store
	Lock     Place         // install exactly what this lock names; its zero value: none
	Verify   string        // what activation needs: VerifyObserved (default), VerifyAgreed or VerifySigned
	Quorum   int           // for VerifyAgreed
	Trust    []Place       // ledgers and locks of others

	Version        string // this version and no other
	DryRun         bool   // say what would be done
	NoInstall      bool   // repack and audit, but keep no generation
	NoBump         bool
	AcceptNewBytes bool // take new bytes under a known name

	Depth   string // how far a dry run of a bump goes, as bump.Options.Depth; "": to the end
	Migrate bool   // bumps may edit host and directory of addresses too
	Force   bool   // bumps make their branch anew, and offer again what was closed

	Host  Host                                          // what is linked to where shells and loaders look
	Owner func(ctx context.Context, path string) string // whose package a path is; nil: not known

	Smoke        string        // the health check before activation: SmokeAuto, SmokeOff ("" too), smoke.CPU or smoke.GPU
	SmokeTimeout time.Duration // of each program of it; 0: smoke's own
	SmokeRunner  smoke.Runner  // nil: a cage

	Health  Health // the user's own check, before the switch and after it
	Retry   bool   // try what failed before
	Program string // version of this program: another may judge otherwise
	// InUse tells who uses generations; nil: Store.InUse.
	InUse func(ctx context.Context, gens []store.Generation) (map[string]store.Uses, error)

	GFX    *gfx.Table                                // what is known of targets; nil: what is built in
	Sys    fs.FS                                     // /sys, for auto; nil: the machine's
	Kernel string                                    // the release of the running kernel; "": unknown
	Space  func(dir string) (diskspace.Space, error) // what is free where dir is, or would be; nil: diskspace.Statfs
	Tool   provenance.Tool                           // this program, for the records
	Now    func() time.Time
	Log    *slog.Logger
	Event  func(Event)
}

// Policy says which release is the one to take.
type Policy struct {
	Prefer         string
	Series         string
	MinAge         time.Duration
	Settle         time.Duration
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
	Stage   string // list, download, unpack, patch, wrap, audit, smoke, health, reuse, activate, bump
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
	r := newRun(o)
	defer r.hangUp()
	defer r.dropSpools()
	r.finish()
	r.rebuildTarballs(ctx)
	rep := &Report{Schema: Schema, DryRun: o.DryRun, Installs: []*Outcome{}}
	for _, in := range installs {
		out := r.install(ctx, in)
		rep.Installs = append(rep.Installs, out)
	}
	if !o.DryRun && !o.NoInstall {
		rep.Links = append(r.keepLinks(ctx), r.host(ctx, rep)...)
	}
	if !o.NoBump {
		r.bumps(ctx, rep)
	}
	r.pruneTarballs(ctx)
	rep.Indexes = r.unread
	for _, out := range rep.Installs {
		rep.Exit = gravest(rep.Exit, out.Exit)
	}
	r.keepRun(rep)
	r.keepBumps(rep.Bumps)
	return rep, nil
}

func (o Options) withDefaults() Options {
	if o.Sys == nil {
		o.Sys = os.DirFS("/sys")
	}
	if o.GFX == nil {
		o.GFX = gfx.New(amd.Builtin())
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
		name, _ := o.GFX.Canonical(in.Target)
		if key := in.Channel + " " + name; !seen[key] {
			seen[key] = true
			out = append(out, in)
		}
	}
	for _, in := range o.Installs {
		if in.Target != gfx.Auto {
			if _, ok := o.GFX.Canonical(in.Target); !ok {
				return nil, &UsageError{fmt.Errorf("%q is no GPU target: use a gfx name (gfx1151), a family (gfx110X-all), a product name (\"RX 7900 XTX\"), multiarch or auto", in.Target)}
			}
			add(in)
			continue
		}
		m, err := o.GFX.Detect(o.Sys)
		if err != nil {
			return nil, &UsageError{fmt.Errorf("find the GPUs of this machine: %w (for example --arch gfx1151)", err)}
		}
		o.describe(m)
		for i, t := range m.Taken {
			in.Target = t
			if i > 0 && in.Link != "" {
				o.Log.Warn("one link cannot lead to two targets", "link", in.Link, "leads to", m.Taken[0], "not to", t)
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

// describe says which GPUs were found, which are left out, and what the kernel
// may be too old for.
func (o Options) describe(m *gfx.Machine) {
	for _, g := range m.LeftOut {
		o.Log.Warn("a GPU is left out", "gpu", g.Target, "node", g.Node, "because", g.Reason)
	}
	for _, t := range m.Taken {
		o.Log.Info("found a GPU", "target", t, "name", o.GFX.Name(t))
		if least := o.GFX.Kernel(t); gfx.OlderKernel(o.Kernel, least) {
			o.Log.Warn("the kernel is older than the first that drives this GPU: programs may not find it", "target", t, "kernel", o.Kernel, "needs", least)
		}
	}
}

func newRun(o Options) *run {
	return &run{o: o, listings: map[string]*listed{}, slots: map[string]bool{}, made: map[string]bool{}, pending: map[string]bool{}, planned: map[string]string{}, kept: map[string]bool{}, keeps: map[string]int{}}
}

// run is the state of one Run.
type run struct {
	o        Options
	listings map[string]*listed
	fetcher  *fetch.Client
	locked   *word // what Lock says, once it was read
	lockErr  error
	trusted  []*word         // what Trust says, once it was read
	spools   []string        // whole downloads that another install of this run may want
	pending  map[string]bool // those that an install was to be made of, and was not
	made     map[string]bool // directories of the generations that this run has made
	slots    map[string]bool // those that an install of this run has taken
	kept     map[string]bool // directories of the tarballs that this run has downloaded and kept
	keeps    map[string]int  // how many tarballs stay, by slot

	command []string          // what commandFiles has found; nil: it was not asked yet
	planned map[string]string // of a dry run: the install that would download a URL
	unread  []IndexError

	at atomic.Pointer[string] // the slot that is worked on; nil: none
}

// errorsAs is errors.As for a type that is not needed afterwards.
func errorsAs[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}
