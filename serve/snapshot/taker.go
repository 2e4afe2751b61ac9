package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/manifest"
	"github.com/rocm-nightly/rocm-nightly/internal/release"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
	"github.com/rocm-nightly/rocm-nightly/store"
	"github.com/rocm-nightly/rocm-nightly/update"
)

// maxRuns is how many attempts of a slot are shown, and how many bytes of an error.
const (
	maxRuns  = 30
	maxError = 2000
)

// Taker takes snapshots one after the other. A run record holds an audit, and may
// have megabytes: it is read once, and again when it was written again. The zero
// Taker is ready, and may be used by several goroutines.
type Taker struct {
	mu        sync.Mutex
	runs      map[string]record // by slot and name
	manifests map[string]facts  // by the directory of the generation
}

// record is what is shown of one run record.
type record struct {
	written time.Time // of the file
	run     state.Run
	before  []update.Attempt // earlier attempts, the newest last
	seen    bool             // in this Take
}

// facts are what is shown of one manifest.
type facts struct {
	written   time.Time
	size      int64  // of the file
	name      string // of the tarball
	channel   string
	digest    string
	bytes     int64
	published time.Time // the night, or else the upload
	err       error
	seen      bool
}

// forget drops what is not there any more.
func (t *Taker) forget() {
	for key, r := range t.runs {
		if !r.seen {
			delete(t.runs, key)
			continue
		}
		r.seen = false
		t.runs[key] = r
	}
	for key, m := range t.manifests {
		if !m.seen {
			delete(t.manifests, key)
			continue
		}
		m.seen = false
		t.manifests[key] = m
	}
}

// records reads the run records of a slot, the newest first; before them is a run
// that was killed since.
func (t *Taker) records(st *store.Store, sl *store.Slot) ([]record, error) {
	runs, err := sl.Runs()
	if err != nil {
		return nil, err
	}
	out := make([]record, 0, len(runs)+1)
	killed, kerr := update.Interrupted(st, sl)
	if killed != nil {
		end := update.Attempt{Started: killed.Started, Finished: killed.Finished, Exit: killed.Exit, Error: killed.Error}
		out = append(out, record{run: withAttempt(state.Run{Name: killed.Version, Version: killed.Version, Stages: []state.Stage{}}, end)})
	}
	for _, r := range runs {
		key := sl.Name() + "/" + r.Name
		rec, ok := t.runs[key]
		if !ok || !rec.written.Equal(r.Written) {
			rec = readRecord(sl, r)
		}
		rec.seen = true
		if t.runs == nil {
			t.runs = map[string]record{}
		}
		t.runs[key] = rec
		out = append(out, rec)
	}
	return out, kerr
}

// recordForm is what is read of a record: the rest of it is passed over.
type recordForm struct {
	update.Attempt
	Version  string `json:"version"`
	Verified *struct {
		Size int64 `json:"size"`
	} `json:"verified"`
	Repack *struct {
		Audit state.Audit `json:"audit"`
	} `json:"repack"`
	Stages   []update.StageTime `json:"stages"`
	Attempts []update.Attempt   `json:"attempts"`
}

func readRecord(sl *store.Slot, r store.Run) record {
	rec := record{written: r.Written, run: state.Run{Name: r.Name, Stages: []state.Stage{}}}
	var f recordForm
	if err := sl.ReadRunPart(r.Name, &f, "audit", "smoke", "reused"); err != nil {
		rec.run.Finished, rec.run.Error = r.Written, cut(told(r.Name, err))
		if _, verr := release.ParseVersion(r.Name); verr == nil {
			rec.run.Version = r.Name
		}
		return rec
	}
	rec.run.Version = f.Version
	rec.run = withAttempt(rec.run, f.Attempt)
	if f.Verified != nil {
		rec.run.Bytes = f.Verified.Size
	}
	if f.Repack != nil {
		audit := f.Repack.Audit
		rec.run.Audit = &audit
	}
	for _, st := range f.Stages {
		rec.run.Stages = append(rec.run.Stages, state.Stage{Stage: cut(st.Stage), Seconds: st.Seconds})
	}
	rec.before = f.Attempts[max(0, len(f.Attempts)-maxRuns):]
	return rec
}

// withAttempt adds the times and the end of an attempt to a run.
func withAttempt(r state.Run, a update.Attempt) state.Run {
	r.Started, r.Finished, r.Exit, r.Error, r.Generation = a.Started, a.Finished, a.Exit, cut(a.Error), a.Generation
	if !a.Started.IsZero() && a.Finished.After(a.Started) {
		r.Seconds = a.Finished.Sub(a.Started).Seconds()
	}
	return r
}

// runsOf lists the attempts of all records, the newest first: of a version that was
// tried several times each of them.
func runsOf(recs []record) []state.Run {
	out := []state.Run{}
	for _, rec := range recs {
		out = append(out, rec.run)
		for _, a := range rec.before {
			out = append(out, withAttempt(state.Run{Name: rec.run.Name, Version: rec.run.Version, Stages: []state.Stage{}}, a))
		}
	}
	slices.SortStableFunc(out, func(a, b state.Run) int { return b.Finished.Compare(a.Finished) })
	return out[:min(len(out), maxRuns)]
}

// manifest reads what a generation was made of.
func (t *Taker) manifest(st *store.Store, g store.Generation) (facts, error) {
	fi, err := os.Lstat(filepath.Join(g.Dir, manifest.Name))
	if err != nil {
		return nightOf(facts{}, g.Version), fmt.Errorf("read what %s was made of: %w", g.Name, err)
	}
	m, ok := t.manifests[g.Dir]
	if !ok || !m.written.Equal(fi.ModTime()) || m.size != fi.Size() {
		m = nightOf(readFacts(st, g), g.Version)
		m.written, m.size = fi.ModTime(), fi.Size()
	}
	m.seen = true
	if t.manifests == nil {
		t.manifests = map[string]facts{}
	}
	t.manifests[g.Dir] = m
	return m, m.err
}

func readFacts(st *store.Store, g store.Generation) facts {
	m, err := g.Manifest()
	if err != nil {
		return facts{err: fmt.Errorf("read what %s was made of: %w", g.Name, err)}
	}
	out := facts{name: m.Name, channel: m.Channel, digest: m.Digest, bytes: m.Counts.Bytes}
	if v, err := release.ParseVersion(g.Version); err == nil {
		if _, ok := v.Date(); !ok { // else the ledger, which may be long, need not be asked
			out.published = uploaded(st, out)
		}
	}
	return out
}

// uploaded is when a tarball was, as the ledger has it; zero: unknown.
func uploaded(st *store.Store, m facts) (at time.Time) {
	pins, err := st.FindPins(m.name)
	if err != nil {
		return at
	}
	for _, p := range pins {
		if p.Channel == m.channel && !p.MTime.IsZero() {
			at = p.MTime.UTC()
		}
	}
	return at
}

// nightOf says when a version was published: the night that it names, if it does.
func nightOf(m facts, version string) facts {
	if v, err := release.ParseVersion(version); err == nil {
		if day, ok := v.Date(); ok {
			m.published = day
		}
	}
	return m
}

func cut(s string) string {
	if len(s) <= maxError {
		return s
	}
	return strings.ToValidUTF8(s[:maxError], "") + "…"
}
