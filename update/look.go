package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// The values of LookedAt.State: how the newest release that the policy admits, its
// times aside, stands to what is active.
const (
	StateInstalled = "installed" // it is active
	StateNewer     = "newer"     // it is not, and may be
	StateSettling  = "settling"  // the rest of its night is still being uploaded
	StateUploading = "uploading" // other families of it are listed, this one is not yet
	StateYoung     = "young"     // policy.min_age keeps it back
	StateHeld      = "held"      // a hold, activate or trust keeps it back, or the user went back from it
	StateRefused   = "refused"   // it failed before
	StateOlder     = "older"     // what is active is newer
)

// Looked is what a look at the indexes found. Nothing was installed.
type Looked struct {
	Schema   int           `json:"schema"`
	At       time.Time     `json:"at"`
	Installs []LookedAt    `json:"installs"`
	Indexes  []LookedIndex `json:"indexes"`
	Exit     int           `json:"exit"` // 0, 1 or 3
}

// LookedAt is what the indexes have for one install.
type LookedAt struct {
	Install   string    `json:"install"`
	Active    string    `json:"active,omitempty"` // generation
	Newest    string    `json:"newest,omitempty"` // version; "": nothing is admissible, or nobody knows
	URL       string    `json:"url,omitempty"`    // without who is let in
	Published time.Time `json:"published,omitzero"`
	Size      int64     `json:"size,omitempty"`  // bytes; 0: the index does not say
	State     string    `json:"state"`           // one of the State constants; "" with an error
	Until     time.Time `json:"until,omitzero"`  // settling, uploading, young: when that is over at the latest
	Admits    bool      `json:"admits"`          // an update would install or activate something now
	Stale     *Stale    `json:"stale,omitempty"` // nothing was published for too long
	Message   string    `json:"message"`         // one line for people
	Error     string    `json:"error,omitempty"` // why nothing is known, or why it was refused

	At      time.Time `json:"at"`               // when this was found out, or tried last
	Success time.Time `json:"success,omitzero"` // when an update last did what there was to do, or a look found nothing to do
	Exit    int       `json:"exit"`             // of this install

	Err   error `json:"-"`
	Moves bool  `json:"-"` // as Outcome.Moves
}

// LookedIndex is one index page.
type LookedIndex struct {
	Channel   string    `json:"channel"`
	URL       string    `json:"url"`             // without who is let in
	At        time.Time `json:"at"`              // when it last answered; zero: never
	Unchanged bool      `json:"unchanged"`       // it said that nothing has changed since
	Newest    time.Time `json:"newest,omitzero"` // when the newest release that it lists was published
	Error     string    `json:"error,omitempty"` // of the last try; then the rest is of the one before

	Tried  time.Time `json:"tried"`  // when it was asked last
	Frozen bool      `json:"frozen"` // it is known to publish nothing more: that it is old is no news
}

// Look asks the indexes of every install, changed or not, and says what an
// update would do. It takes no lock and installs nothing; what it has found is
// kept in the store's looks.json, where this user may write that. An error means
// that it could not begin; what is wrong with one install is beside it.
func Look(ctx context.Context, o Options) (*Looked, error) {
	o = o.withDefaults()
	o.DryRun = true
	installs, err := o.expand()
	if err != nil {
		return nil, err
	}
	r := newRun(o)
	defer r.hangUp()
	l := &Looked{Schema: Schema, At: o.Now().UTC(), Installs: []LookedAt{}}
	for _, in := range installs {
		at := r.look(ctx, in)
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx) // half a look says nothing
		}
		l.Installs = append(l.Installs, at)
		l.Exit = gravest(l.Exit, at.Exit)
	}
	l.Indexes = r.indexes()
	r.keepLook(l)
	return l, nil
}

// look says what the indexes have for one install.
func (r *run) look(ctx context.Context, in Install) LookedAt {
	name, _ := r.o.GFX.Canonical(in.Target)
	out := &Outcome{Install: in.Channel + "-" + name, channel: in.Channel, target: name}
	t := &task{r: r, in: in, out: out}
	err := t.find(ctx)
	if t.slot == nil { // the index did not answer; what is active is known all the same
		t.slot = r.o.Store.Slot(in.Channel, name)
		err = errors.Join(err, t.current())
	}
	v := verdict{err: err}
	if err == nil {
		v = t.would(ctx)
	}
	at := t.lookedAt(v)
	if at.Error == "" && !at.Admits {
		at.Success = at.At // there is nothing to do
	}
	return at
}

// verdict is what an update would do, or has found that it cannot.
type verdict struct {
	gen  *store.Generation // that is here and would do
	why  string            // nothing is to be done, because
	wait *Wait             // what would be, or is, here and does not become active
	err  error
}

// would decides as an update does, and does nothing.
func (t *task) would(ctx context.Context) (v verdict) {
	if v.gen, v.why, v.err = t.decide(); v.err != nil || v.why != "" {
		return v
	}
	next := t.slot.NextName(t.rel.Version.String())
	if v.gen != nil {
		next = v.gen.Name
	}
	v.wait, v.err = t.heldBack(ctx, next)
	return v
}

// refused reports whether a night is not taken because of its content.
func (v verdict) refused() bool {
	code := exitOf(v.err)
	return v.err != nil && (code == ExitRefused || code == ExitNewBytes)
}

// lookedAt tells how what the index has stands to what is active.
func (t *task) lookedAt(v verdict) LookedAt {
	at := LookedAt{Install: t.out.Install, Stale: t.out.Stale, Moves: t.out.Moves, At: t.r.o.Now().UTC(), Exit: t.out.Exit}
	if t.from != nil {
		at.Active = t.from.Name
	}
	newest := t.early.newest
	switch {
	case t.early.coming != nil:
		newest = t.early.coming
	case newest == nil && t.rel.Name != "":
		newest = &t.rel // the lock's
	}
	if newest != nil {
		at.Newest, at.URL, at.Published, at.Size = newest.Version.String(), redacted(newest.URL), newest.MTime.UTC(), newest.Size
		if day, ok := newest.Version.Date(); ok && newest.MTime.IsZero() {
			at.Published = day
		}
		if t.early.coming != nil { // the URL and the size are another family's
			at.URL, at.Size = "", 0
		}
	}
	at.Admits = v.err == nil && v.why == "" && (v.gen == nil || v.wait == nil)
	at.State, at.Until = t.stateOf(newest, v), t.early.until.UTC()
	if t.early.until.IsZero() {
		at.Until = time.Time{}
	}
	at.Message = t.lookedText(at, v)
	switch {
	case v.err == nil || t.early.waits != nil && noneYet(v.err):
	case v.refused():
		at.Error = v.err.Error()
	default:
		at.Err, at.Error, at.State = v.err, v.err.Error(), ""
		at.Exit = gravest(at.Exit, exitOf(v.err))
	}
	return at
}

// noneYet reports whether an error says no more than that nothing is admissible.
func noneYet(err error) bool { return errorsAs[*fetch.NoReleaseError](err) }

// stateOf is one of the State constants.
func (t *task) stateOf(newest *release.Release, v verdict) string {
	switch {
	case newest == nil:
		return ""
	case t.early.coming != nil:
		return StateUploading
	case t.early.waits != nil && t.early.waits.Settles:
		return StateSettling
	case t.early.waits != nil:
		return StateYoung
	case t.from != nil && t.from.Version == newest.Version.String():
		return StateInstalled
	case v.refused() || t.passedOver(newest.Version.String()):
		return StateRefused
	case v.wait != nil, v.why != "" && t.slot.Skip(newest.Version.String()):
		return StateHeld
	case v.why != "":
		return StateOlder
	}
	return StateNewer
}

func (t *task) passedOver(version string) bool {
	for _, p := range t.out.PassedOver {
		if p.Version == version {
			return true
		}
	}
	return false
}

// lookedText is the line for people.
func (t *task) lookedText(at LookedAt, v verdict) string {
	text := ""
	switch {
	case v.err != nil && t.early.waits == nil:
		return "what is newest is not known"
	case v.err != nil:
	case v.why != "":
		text = v.why
	case v.gen != nil && v.wait != nil:
		text = fmt.Sprintf("%s is here and not active: %s", v.gen.Name, v.wait.Reason)
	case v.gen != nil:
		text = fmt.Sprintf("an update would activate %s, which is here already", v.gen.Name)
	default:
		text = "an update " + t.planMake()
		if v.wait != nil {
			text += ", and not activate it: " + v.wait.Reason
		}
	}
	if v.refused() {
		text = at.Newest + " failed before and is not taken"
	}
	return joined(text, t.earlyText())
}

// earlyText says what has to wait, "" if nothing does.
func (t *task) earlyText() string {
	until := ""
	if !t.early.until.IsZero() {
		until = ", until " + t.early.until.UTC().Format("2006-01-02 15:04 MST") + " at the latest"
	}
	switch {
	case t.early.coming != nil:
		return fmt.Sprintf("%s is being uploaded, and this target of it is not listed yet%s", t.early.coming.Version, until)
	case t.early.waits == nil:
		return ""
	case t.early.until.IsZero():
		return fmt.Sprintf("%s waits, for nobody says when it was uploaded", t.early.newest.Version)
	case t.early.waits.Settles:
		return fmt.Sprintf("%s may still be uploading%s", t.early.newest.Version, until)
	}
	return fmt.Sprintf("%s is too young%s", t.early.newest.Version, until)
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
