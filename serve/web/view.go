package web

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// How much the page shows; the API has all of it.
const (
	maxSlots       = 200
	maxAlarms      = 100
	maxRows        = 100
	maxRuns        = 30
	maxGenerations = 30
	maxHistory     = 20
	openSlots      = 3 // with more of them, only those that need somebody are open
)

// view is what the templates show: a State at a moment, with its words chosen.
type view struct {
	S      *state.State
	Now    time.Time
	In     bool   // for somebody who is signed in
	Can    bool   // somebody can sign in
	CSRF   string // what is replaced by the token of the session
	Slots  []slotView
	Alarms []state.Alarm
	More   int  // alarms that are not shown
	Empty  bool // nothing is installed and nothing runs
}

func newView(s *state.State, now time.Time, in, can bool, mark string) view {
	v := view{S: s, Now: now, In: in, Can: can, CSRF: mark, Alarms: first(s.Alarms, maxAlarms)}
	v.More = len(s.Alarms) - len(v.Alarms)
	v.Empty = s.Running == nil
	for _, sl := range s.Slots {
		v.Empty = v.Empty && sl.Active == nil && len(sl.Runs) == 0
	}
	for _, sl := range first(s.Slots, maxSlots) {
		v.Slots = append(v.Slots, v.slot(sl))
	}
	return v
}

func first[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// when is t for a template.
func (v view) When(t time.Time) *when { return at(t, v.Now) }

// Jobs, Bumps and Indexes are what is shown of each.
func (v view) Jobs() []state.Job { return first(v.S.Jobs, maxRows) }

// Next is the job that is due first; nil: none is.
func (v view) Next() *state.Job {
	var next *state.Job
	for i := range v.S.Jobs {
		if j := &v.S.Jobs[i]; !j.Next.IsZero() && (next == nil || j.Next.Before(next.Next)) {
			next = j
		}
	}
	return next
}

// Bumps are the requests, those that are open first.
func (v view) Bumps() []state.Bump {
	list := slices.Clone(first(v.S.Bumps, maxRows))
	rank := map[string]int{"failed": 0, "open": 1, "pending": 2, "limited": 3}
	slices.SortStableFunc(list, func(a, b state.Bump) int {
		of := func(s string) int {
			if n, ok := rank[s]; ok {
				return n
			}
			return len(rank)
		}
		return cmp.Compare(of(a.State), of(b.State))
	})
	return list
}

// Indexes are the pages of AMD's.
func (v view) Indexes() []state.Index { return first(v.S.Indexes, maxRows) }

// Tone is how a word is shown: ok, info, warn or bad.
func (v view) Tone(word string) string { return tone(word) }

func tone(word string) string {
	switch word {
	case "installed", "up to date", "merged", "pushed", "up-to-date", "done", "in step":
		return "ok"
	case "newer", "update available", "open", "running", "pending", "settling", "uploading", "young", "checking":
		return "info"
	case "held", "older", "limited", "closed", "stale", state.Warning, "not installed", "interrupted", "never looked":
		return "warn"
	case "refused", "failed", "error", state.Critical:
		return "bad"
	}
	return "plain"
}

// gauge is a progress bar: Max 0 means that how much there is, is not known.
type gauge struct {
	Done, Max int64
	Percent   int
	Text      string
}

// Progress is how far the stage under way has come.
func (v view) Progress() gauge {
	r := v.S.Running
	if r == nil {
		return gauge{}
	}
	g := gauge{Done: max(0, r.Done), Max: max(0, r.Total)}
	amount := func(n int64) string {
		if counted(r.Stage) {
			return group(n)
		}
		return size(n)
	}
	switch {
	case g.Max > 0:
		g.Done = min(g.Done, g.Max)
		g.Percent = int(float64(g.Done) / float64(g.Max) * 100)
		g.Text = amount(g.Done) + " of " + amount(g.Max)
	case g.Done > 0:
		g.Text = amount(g.Done)
	}
	return g
}

// counted reports whether a stage counts objects and not bytes.
func counted(stage string) bool {
	switch stage {
	case "patch", "audit", "smoke", "health", "wrap", "verify":
		return true
	}
	return false
}

// group writes n with thin gaps between thousands.
func group(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// meter is a share of the disk.
type meter struct {
	Name, Class string
	Bytes       int64
	X, Width    int // of 1000
}

// maxDisk is an exbibyte: what is said to be larger is a mistake.
const maxDisk = 1 << 60

// Disk is how the file system is filled, in the order of the bar.
func (v view) Disk() []meter {
	d := v.S.Disk
	if d.Total <= 0 || d.Total > maxDisk {
		return nil
	}
	part := func(n int64) int64 { return min(d.Total, max(0, n)) }
	known := part(d.Used) + part(d.Tarballs) + part(d.Spool)
	parts := []meter{
		{Name: "generations", Class: "d-used", Bytes: part(d.Used)},
		{Name: "kept tarballs", Class: "d-tarballs", Bytes: part(d.Tarballs)},
		{Name: "downloads under way", Class: "d-spool", Bytes: part(d.Spool)},
		{Name: "everything else", Class: "d-other", Bytes: part(d.Total - part(d.Free) - known)},
		{Name: "free", Class: "d-free", Bytes: part(d.Free)},
	}
	x := 0
	for i := range parts {
		w := min(float64(parts[i].Bytes)/float64(d.Total)*1000, float64(1000-x))
		parts[i].X, parts[i].Width = x, int(w)
		x += parts[i].Width
	}
	return parts
}
