package web

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
	"github.com/rocm-nightly/rocm-nightly/serve/state"
)

// slotView is one slot with its words.
type slotView struct {
	state.Slot
	ID      string // of its element
	Status  string
	Tone    string
	Running bool
	Open    bool
	Index   *state.Index // the one that was read last
	Runs    []runView
	Recent  runTable
	Earlier runTable
	MoreRun int
	Strip   []bar
	StripW  int
	Summary string // of the strip, for those who do not see it
	Legend  []string
	Gens    []state.Generation
	Hist    []state.Activation
	Stays   bool // until it is let go on: it is held, or a version was left by a roll back
}

// runTable is some of a slot's runs.
type runTable struct {
	View      view
	ID, Title string
	Runs      []runView
}

// bar is one run in the strip, the oldest first.
type bar struct {
	X, Y, H int
	Class   string
	Title   string
}

// runView is one run with its bar of stages.
type runView struct {
	state.Run
	Result, Tone string
	Parts        []part
	Stages       string // in words
}

// part is one stage in the bar of a run: of 1000.
type part struct {
	X, Width     int
	Class, Title string
}

func (v view) slot(s state.Slot) slotView {
	sv := slotView{Slot: s, ID: "slot-" + id(s.Slot), Gens: first(s.Generations, maxGenerations), Hist: first(s.History, maxHistory)}
	sv.Running = v.S.Running != nil && v.S.Running.Slot == s.Slot
	sv.Status = status(s, sv.Running)
	sv.Tone = tone(sv.Status)
	sv.Open = len(v.S.Slots) <= openSlots || sv.Tone == "bad" || sv.Running
	for i := range v.S.Indexes {
		ix := &v.S.Indexes[i]
		if ix.Channel == s.Channel && (sv.Index == nil || ix.Newest.After(sv.Index.Newest)) {
			sv.Index = ix
		}
	}
	sv.runs(s.Runs)
	n := min(len(sv.Runs), recentRuns)
	sv.Recent = runTable{v, sv.ID, "Runs of " + text(s.Slot), sv.Runs[:n]}
	sv.Earlier = runTable{v, sv.ID, "Earlier runs of " + text(s.Slot), sv.Runs[n:]}
	sv.Stays = s.Hold != nil || s.Left != ""
	return sv
}

// status is the one word for how a slot is.
func status(s state.Slot, running bool) string {
	switch {
	case running:
		return "running"
	case s.Error != "":
		return "error"
	case len(s.Runs) > 0 && s.Runs[0].Exit != 0 && s.Runs[0].Exit != exitStale:
		return "failed"
	case s.Active == nil:
		return "not installed"
	case s.Hold != nil:
		return "held"
	case s.Newest == nil:
		return "never looked"
	case s.Stale != "" && s.Newest.State == "installed":
		return "stale"
	case s.Newest.State == "installed":
		return "up to date"
	case s.Newest.State == "newer":
		return "update available"
	}
	return s.Newest.State
}

// The exit codes that mean more than failed: the list is README's.
const (
	exitStale    = 3
	exitRefused  = 4
	exitNewBytes = 5
)

func result(r state.Run) (word, tone string) {
	switch {
	case r.Exit != 0 && !r.Started.IsZero() && r.Finished.Equal(r.Started): // nobody knows when it was killed
		return "interrupted", "warn"
	case r.Exit == 0 && r.Error == "":
		return "done", "ok"
	case r.Exit == exitStale:
		return "stale", "warn"
	case r.Exit == exitRefused:
		return "refused", "bad"
	case r.Exit == exitNewBytes:
		return "new bytes", "bad"
	}
	return "failed", "bad"
}

// The strip of runs, in its own units.
const (
	stripStep, stripHeight = 10, 40
	recentRuns             = 6 // in the table; the others are folded away
)

func (sv *slotView) runs(all []state.Run) {
	shown := first(all, maxRuns)
	sv.MoreRun = len(all) - len(shown)
	longest, good := 0.0, 0
	for _, r := range shown {
		longest = max(longest, r.Seconds)
	}
	seen := map[string]bool{}
	for _, r := range shown {
		rv := runView{Run: r}
		rv.Result, rv.Tone = result(r)
		if rv.Tone == "ok" {
			good++
		}
		rv.bar(longest)
		for _, st := range first(r.Stages, maxStages) {
			if c := stageClass(st.Stage); !seen[c] {
				seen[c] = true
				sv.Legend = append(sv.Legend, c)
			}
		}
		sv.Runs = append(sv.Runs, rv)
	}
	slices.SortFunc(sv.Legend, func(a, b string) int {
		return cmp.Compare(slices.Index(stageClasses, a), slices.Index(stageClasses, b))
	})
	sv.StripW = len(shown) * stripStep
	for i := len(sv.Runs) - 1; i >= 0; i-- {
		r := sv.Runs[i]
		h := 4
		if longest > 0 {
			h += int(r.Seconds / longest * (stripHeight - 4))
		}
		sv.Strip = append(sv.Strip, bar{X: len(sv.Strip)*stripStep + 1, Y: stripHeight - h, H: h, Class: "t-" + r.Tone, Title: text(r.Version) + ": " + r.Result + ", " + seconds(r.Seconds)})
	}
	sv.Summary = plural(len(shown), "run", "runs") + ", " + strconv.Itoa(good) + " of them done"
}

// maxStages is how many stages of a run are shown: it has a dozen.
const maxStages = 30

// bar makes the parts, as long as the run took beside the longest that is shown.
func (r *runView) bar(longest float64) {
	if longest <= 0 {
		return
	}
	x, words := 0.0, []string{}
	for _, st := range first(r.Run.Stages, maxStages) {
		w := max(0, st.Seconds/longest*1000)
		at, end := int(x), int(min(1000, x+w))
		title := text(st.Stage) + " " + seconds(st.Seconds)
		words = append(words, title)
		if end > at {
			r.Parts = append(r.Parts, part{X: at, Width: end - at, Class: stageClass(st.Stage), Title: title})
		}
		x = min(1000, x+w)
	}
	if len(words) == 0 {
		r.Parts = []part{{0, max(1, int(r.Seconds/longest*1000)), "other", seconds(r.Seconds)}}
	}
	r.Stages = strings.Join(words, ", ")
}

// stageClasses are the colours, in the order of a run.
var stageClasses = []string{"download", "unpack", "patch", "check", "audit", "reuse", "other"}

// stageClass is the class of a stage's colour: one of a fixed few.
func stageClass(stage string) string {
	switch stage {
	case "download", "unpack", "patch", "audit", "reuse":
		return stage
	case "wrap", "smoke", "health":
		return "check"
	}
	return "other"
}

// id makes a name fit for an element's id. Names that differ stay different.
func id(name string) string {
	var b strings.Builder
	for _, r := range []byte(plain.Name(name)) {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			b.WriteByte(r)
		} else {
			b.WriteString("_" + strconv.FormatInt(int64(r), 16) + "_")
		}
	}
	if b.Len() > 200 {
		return b.String()[:200]
	}
	return b.String()
}
