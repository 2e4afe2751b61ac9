package update

import (
	"os"
	"time"

	"github.com/rocm-nightly/rocm-nightly/audit"
	"github.com/rocm-nightly/rocm-nightly/audit/smoke"
	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/fetch"
	"github.com/rocm-nightly/rocm-nightly/internal/provenance"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/repack"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// Schema is the version of the report's JSON form.
const Schema = 1

// Report is what a run did.
type Report struct {
	Schema   int        `json:"schema"`
	DryRun   bool       `json:"dry_run,omitempty"`
	Installs []*Outcome `json:"installs"`
	Bumps    []*Bumped  `json:"bumps,omitempty"` // every repository once
	Exit     int        `json:"exit"`

	Links []Linked `json:"links,omitempty"` // of `link` and of the host: those that changed, or are not as they were wanted

	Indexes []IndexError `json:"indexes,omitempty"` // those that could not be read, or are empty
}

// IndexError is an index that could not be read, or that lists nothing. It does
// not hide what the others of its channel list.
type IndexError struct {
	Channel string `json:"channel"`
	URL     string `json:"url"`
	Error   string `json:"error"`
}

// Outcome is what became of one install.
type Outcome struct {
	Install  string          `json:"install"`           // slot, such as nightly-gfx1151
	From     string          `json:"from"`              // active generation before; "" if none
	To       string          `json:"to"`                // active generation after, or the one that would be
	Changed  bool            `json:"changed"`           // something was, or would be, installed or activated
	Verified *Verified       `json:"verified"`          // null if nothing was downloaded
	Audit    *repack.Verdict `json:"audit"`             // null if nothing was audited
	Smoke    *smoke.Counts   `json:"smoke,omitempty"`   // what the health check came to, if there was one
	Reused   *store.Reused   `json:"reused,omitempty"`  // what it shares with the generations before it
	Bump     []*Bumped       `json:"bump"`              // repositories with a pin of this install
	Exit     int             `json:"exit"`              // see the package's exit codes
	Message  string          `json:"message"`           // one line for people
	Error    string          `json:"error,omitempty"`   // why Exit is not 0
	Prefix   string          `json:"prefix,omitempty"`  // where the active generation is
	Release  string          `json:"release,omitempty"` // URL of the tarball
	Link     string          `json:"link,omitempty"`    // why the link could not be made
	Linked   string          `json:"linked,omitempty"`  // the link that leads to it: the one that was asked for, or one beside it
	Stale    *Stale          `json:"stale,omitempty"`   // the index has not moved for too long
	Expires  string          `json:"expires,omitempty"` // the day (UTC) on which AMD deletes what is active, if it is near
	Locked   string          `json:"locked,omitempty"`  // the lock that named the release
	Health   []*Checkup      `json:"health,omitempty"`  // what the health command came to, each time
	Hold     *store.Hold     `json:"hold,omitempty"`    // the slot is held
	Waits    *Wait           `json:"waits,omitempty"`   // a generation that is here, and why it is not active
	Space    *Room           `json:"space,omitempty"`   // what it takes, or would take, of the disk, if it was looked at

	Kept       string       `json:"kept,omitempty"`        // the directory in which its tarball is kept, if this run kept or used it
	PassedOver []PassedOver `json:"passed_over,omitempty"` // newer ones that failed before, the newest first
	Again      time.Time    `json:"again,omitzero"`        // a newer night was left alone, for it is still being uploaded or too young: when to try again at the latest

	Err   error `json:"-"`
	Moves bool  `json:"-"` // the index was asked when it last moved, and that is not too long ago

	channel, target string
	pin             *release.Pin     // what a pin can be bumped to
	rel             *release.Release // what was chosen
	planned         bool             // it would be made by a run that is not dry
	looked          *LookedAt        // what is known of the index now
}

// Stale says for how long an index has not moved, and why, as far as
// comparing the indexes of the channel tells.
type Stale struct {
	Age    string `json:"age"`
	Cause  string `json:"cause"` // one of fetch's causes
	Detail string `json:"detail"`
}

// OneTarget reports whether the indexes go on, and only without this target.
func (s *Stale) OneTarget() bool { return s.Cause == fetch.CauseFamily }

// Verified says what the bytes of a tarball were and what vouched for them.
type Verified struct {
	Digest  release.Digest `json:"digest"`
	SRI     string         `json:"sri"`
	Size    int64          `json:"size"`
	Against []string       `json:"against"` // never empty; "trust on first use" when nothing was known
}

// The values of Bumped.Event.
const (
	EventUpdated  = "updated"    // something was changed there, or would be
	EventUpToDate = "up-to-date" // nothing was to be changed
	EventNoResult = "no-result"  // it failed, or it waits
)

// Bumped is what became of one request: of a repository, or of one target of it.
type Bumped struct {
	Name    string   `json:"name"`
	Event   string   `json:"event"`             // updated, up-to-date or no-result
	Action  string   `json:"action,omitempty"`  // what was done, one of bump's actions
	Actions []string `json:"actions,omitempty"` // each thing that was done to the forge, or would be
	Changed bool     `json:"changed"`
	Pushed  bool     `json:"pushed"`
	Base    string   `json:"base,omitempty"`
	Branch  string   `json:"branch,omitempty"`
	Commit  string   `json:"commit,omitempty"`
	Signed  bool     `json:"signed,omitempty"` // the forge vouches for the commit
	Number  int64    `json:"number,omitempty"` // of the request
	URL     string   `json:"url,omitempty"`
	Title   string   `json:"title,omitempty"`
	Body    string   `json:"body,omitempty"` // of a dry run
	Diff    string   `json:"diff,omitempty"` // of a dry run
	Edits   []Edited `json:"edits,omitempty"`
	Waiting []string `json:"waiting,omitempty"` // targets that hold it back
	Skipped []string `json:"skipped,omitempty"` // targets that were left out
	Message string   `json:"message"`
	Error   string   `json:"error,omitempty"`

	Summary string `json:"-"` // the text of the request
	Err     error  `json:"-"`

	version string // the newest of the pins
}

// Edited is one value that a bump changes.
type Edited struct {
	Path   string `json:"path"`
	Key    string `json:"key"`
	Target string `json:"target"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// Record is what runs/NAME.json keeps of one installation, or of an attempt.
type Record struct {
	Schema     int            `json:"schema"`
	Install    string         `json:"install"`
	Version    string         `json:"version"`
	URL        string         `json:"url"`
	Started    time.Time      `json:"started"`
	Finished   time.Time      `json:"finished"`
	From       string         `json:"from,omitempty"`
	Generation string         `json:"generation,omitempty"`
	Verified   *Verified      `json:"verified,omitempty"`
	Repack     *repack.Result `json:"repack,omitempty"`
	Reused     *store.Reused  `json:"reused,omitempty"`
	Audit      *audit.Report  `json:"audit,omitempty"`
	Smoke      *smoke.Report  `json:"smoke,omitempty"`
	Health     []*Checkup     `json:"health,omitempty"`
	Recipe     string         `json:"recipe,omitempty"`
	ETag       string         `json:"etag,omitempty"`
	Exit       int            `json:"exit"`
	Error      string         `json:"error,omitempty"`

	Tool    provenance.Tool    `json:"tool"`             // what made it
	Host    string             `json:"host,omitempty"`   // and where
	Stages  []StageTime        `json:"stages,omitempty"` // in their order
	Pin     *store.LedgerEntry `json:"pin,omitempty"`    // the tarball, as the ledger has it
	Ruleset int                `json:"ruleset,omitempty"`
	// Attempts are those on the same version before this one, the newest last.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Digests are those of manifest.json, files.jsonl and omitted.jsonl of the
	// generation, by name.
	Digests map[string]release.Digest `json:"digests,omitempty"`
}

// pin records the tarball that the generation was made of.
func (rec *Record) pin(pin release.Pin, modified time.Time) {
	entry := store.NewLedgerEntry(pin, modified)
	entry.FirstSeen = rec.Started.UTC()
	rec.Pin = &entry
}

// hostname is the name of this machine, "" if it has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// bumped is what became of a repository: one entry, or one for each request.
func (o Options) bumped(name string, res *bump.Result, err error) []*Bumped {
	var all []*Bumped
	if res != nil { // of the other targets, where one has failed
		all = append(all, o.bumpedOf(name, res))
		for i := range res.Others {
			all = append(all, o.bumpedOf(name, &res.Others[i]))
		}
	}
	if err != nil || res == nil {
		b := &Bumped{Name: name, Event: EventNoResult, Err: err, Message: "failed"}
		if err != nil {
			b.Error = err.Error()
		}
		all = append(all, b)
	}
	return all
}

// bumpedOf is one request. Its texts are for those who look before it is made.
func (o Options) bumpedOf(name string, res *bump.Result) *Bumped {
	b := &Bumped{
		Name: name, Event: o.event(res), Action: res.Action, Actions: res.Actions, Changed: res.Changed, Pushed: res.Pushed, Base: res.Base,
		Branch: res.Branch, Commit: res.Commit, Signed: res.Verified, Number: res.Number, URL: res.URL, Title: res.Title,
		Waiting: res.Waiting, Skipped: res.Skipped, Message: res.Message, Summary: res.Body,
	}
	for _, e := range res.Edits {
		b.Edits = append(b.Edits, Edited{e.Path, e.Attr, e.Target, e.From, e.To})
	}
	if o.DryRun && o.Depth != bump.DepthLookup {
		b.Diff, b.Body = res.Diff, res.Body
	}
	return b
}

// event says in one word what became of a request, or would become.
func (o Options) event(res *bump.Result) string {
	switch res.Action {
	case bump.ActionWaits:
		return EventNoResult
	case bump.ActionOpened, bump.ActionUpdated, bump.ActionClosed, bump.ActionMerged, bump.ActionPushed:
		return EventUpdated
	}
	switch {
	case res.Pushed, o.DryRun && (o.Depth == bump.DepthLookup || o.Depth == bump.DepthDiff) && res.Changed && res.Action == bump.ActionNone:
		return EventUpdated
	case len(res.Waiting) > 0:
		return EventNoResult
	}
	return EventUpToDate
}

// exit is the exit code that a bump asks for.
func (b *Bumped) exit() int {
	if b.Err == nil {
		return ExitOK
	}
	return exitOf(b.Err)
}
