package update

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/bump"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/internal/schema"
	"github.com/rocm-nightly/rocm-nightly/store"
)

// maxKeptBumps bounds bumps.json.
const maxKeptBumps = 200

// The values of KeptBump.State.
const (
	BumpOpen     = "open"
	BumpPending  = "pending"    // it waits for a target
	BumpLimited  = "limited"    // it waits for a window, a limit or an age
	BumpMerged   = "merged"     // by us
	BumpClosed   = "closed"     // by us as obsolete, or by a person for this version
	BumpPushed   = "pushed"     // where there are no requests
	BumpUpToDate = "up-to-date" // nothing to do
	BumpFailed   = "failed"
)

// bumpsFormat is that of bumps.json.
var bumpsFormat = schema.Format{Name: store.BumpsFile, Else: "remove it: it is made anew"}

// KeptBumps is bumps.json: what became of each request when it was last looked
// after.
type KeptBumps struct {
	Schema int        `json:"schema"`
	Bumps  []KeptBump `json:"bumps"`
}

// KeptBump is one request, or a repository without one.
type KeptBump struct {
	Name    string    `json:"name"`
	State   string    `json:"state"`             // one of the Bump constants
	Version string    `json:"version,omitempty"` // the newest that was to be proposed
	Number  int64     `json:"number,omitempty"`
	URL     string    `json:"url,omitempty"`
	Title   string    `json:"title,omitempty"`
	Message string    `json:"message,omitempty"`
	Error   string    `json:"error,omitempty"`
	At      time.Time `json:"at"`
}

// ReadBumps returns what is known of requests from earlier runs. The error matches
// fs.ErrNotExist where there is nothing.
func ReadBumps(st *store.Store) ([]KeptBump, error) {
	var k KeptBumps
	if err := readService(st, store.BumpsFile, bumpsFormat, &k); err != nil {
		return nil, err
	}
	return k.Bumps, nil
}

// keepBumps writes down what became of repositories; the others keep what was said
// of them.
func (r *run) keepBumps(done []*Bumped) {
	if r.o.DryRun || len(done) == 0 || r.o.Store == nil {
		return
	}
	before, err := ReadBumps(r.o.Store)
	switch {
	case errors.Is(err, schema.ErrNewer):
		r.o.Log.Debug("what became of the repositories is not kept", "error", err)
		return
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		r.o.Log.Warn("what was known of requests is lost, and begun anew", "error", err)
	}
	k := KeptBumps{Schema: bumpsFormat.Now(), Bumps: []KeptBump{}}
	for _, b := range done {
		k.Bumps = append(k.Bumps, b.kept(r.o.Now().UTC()))
	}
	for _, b := range before {
		if !slices.ContainsFunc(done, func(d *Bumped) bool { return d.Name == b.Name }) {
			k.Bumps = append(k.Bumps, b)
		}
	}
	k.Bumps = k.Bumps[:min(len(k.Bumps), maxKeptBumps)]
	if err := writeService(r.o.Store, store.BumpsFile, k); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.o.Log.Warn("what became of the repositories could not be kept", "error", err)
	}
}

// kept is what stays of a result.
func (b *Bumped) kept(now time.Time) KeptBump {
	return KeptBump{
		Name: b.Name, State: b.state(), Version: b.version, Number: b.Number, URL: redactedOrNone(b.URL), Title: cut(b.Title), Message: cut(b.Message),
		Error: cut(b.Error), At: now,
	}
}

func redactedOrNone(url string) string {
	if url == "" {
		return ""
	}
	return redacted(url)
}

// state is how a request stands now, in one word.
func (b *Bumped) state() string {
	switch {
	case b.Error != "" || b.Err != nil:
		return BumpFailed
	case b.Action == bump.ActionMerged:
		return BumpMerged
	case b.Action == bump.ActionClosed, b.Action == bump.ActionIgnored && b.Number == 0:
		return BumpClosed
	case b.Action == bump.ActionWaits && len(b.Waiting) == 0:
		return BumpLimited
	case len(b.Waiting) > 0:
		return BumpPending
	case b.Number > 0:
		return BumpOpen
	case b.Pushed, b.Action == bump.ActionPushed, b.Action == bump.ActionUpdated:
		return BumpPushed
	}
	return BumpUpToDate
}

// newest is the newest version of a job's pins, "" without any.
func (j *job) newest() string {
	var all []release.Version
	for _, p := range j.pins {
		all = append(all, p.pin.Version)
	}
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprint(slices.MaxFunc(all, release.Version.Compare))
}
