package state

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// How long something may last before somebody is told. A night that fails is tried
// again the next night; AMD's servers and forges have their bad hours.
const (
	failuresMany    = 3                   // failures in a row, of a job or of nights
	successOld      = 48 * time.Hour      // since anything succeeded: with many failures, it will not heal alone
	missedAfter     = 15 * time.Minute    // a daemon that is well begins within seconds
	blockedAfter    = 24 * time.Hour      // another job has run for so long
	unreachableLong = 24 * time.Hour      // of an index
	heldLong        = 14 * 24 * time.Hour // a hold is easily forgotten
	expiresSoon     = 14 * 24 * time.Hour // what AMD deletes cannot be installed again
	clockSlack      = 5 * time.Minute     // clocks that agree differ by less
	textMost        = 300                 // bytes of the words of others in a text
)

// What the next night needs of the disk.
const (
	guessRatio  = 5   // what AMD's tarballs become: five times their size
	maxRatio    = 100 // a record that says more is wrong
	diskReserve = 1.5 // less than this much of what it needs is told
)

// AlarmKinds lists the kinds of alarms, in the order in which those of one level
// are shown.
func AlarmKinds() []string {
	return []string{
		"new-bytes",   // a known name has other bytes: until somebody says which are right, they are not taken
		"failed",      // a run failed, and nothing is left of its window; or many in a row
		"refused",     // the audit or a check refused a night
		"missed",      // a scheduled time has passed without a run
		"disk",        // the next night does not fit, or what is there cannot be measured
		"config",      // the config on disk is not in use
		"clock",       // records are from the future: ages and schedules mean nothing
		"unreadable",  // something of a slot cannot be read
		"stale",       // the index has not moved for longer than the channel's patience
		"unreachable", // the index has not answered for a day
		"bump-failed", // nothing could be proposed to a repository
		"expires",     // AMD soon deletes the tarball of what is active
		"held",        // a hold has lasted for two weeks
	}
}

// Alarms is what somebody should know of s at now, the gravest first, and those of
// one level in the order of AlarmKinds. There are none of a State that is empty or
// well. What strangers wrote is one line of plain text, but may hold markup.
func Alarms(s *State, now time.Time) []Alarm {
	w := &watch{s: s, now: now, all: []Alarm{}}
	for _, sl := range s.Slots {
		w.slot(sl)
	}
	for _, j := range s.Jobs {
		w.job(j)
	}
	w.channels()
	for _, b := range s.Bumps {
		w.bump(b)
	}
	w.disk()
	w.config()
	w.clock()
	kinds := AlarmKinds()
	slices.SortStableFunc(w.all, func(a, b Alarm) int {
		return cmp.Or(
			cmp.Compare(gravity(a.Level), gravity(b.Level)),
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
		)
	})
	return w.all
}

func gravity(level string) int {
	if level == Critical {
		return 0
	}
	return 1
}

// watch collects the alarms of a State.
type watch struct {
	s   *State
	now time.Time
	all []Alarm
}

func (w *watch) add(a Alarm) { w.all = append(w.all, a) }

// has says whether the last run for one of the slots has its own alarm.
func (w *watch) has(slots []string) bool {
	return slices.ContainsFunc(w.all, func(a Alarm) bool {
		return slices.Contains(slots, a.Slot) && slices.Contains([]string{"new-bytes", "failed", "refused"}, a.Kind)
	})
}

// since says whether more than d has passed since t, which is known.
func (w *watch) since(t time.Time, d time.Duration) bool { return !t.IsZero() && w.now.Sub(t) > d }

// level of failures in a row: while something succeeds now and then, a warning.
func (w *watch) level(failures int, success time.Time) string {
	if failures >= failuresMany && (success.IsZero() || w.since(success, successOld)) {
		return Critical
	}
	return Warning
}

// tries says that the job will try again before its window ends, or soon.
func (w *watch) tries(j Job) bool {
	if j.Kind == "check" { // it only looks, and the next time is soon
		return j.Failures < failuresMany
	}
	return j.NextWhy == "retry" && j.Failures < failuresMany && w.now.Before(j.WindowEnds)
}

// job tells of failures that no slot tells of, and of a time that was missed.
func (w *watch) job(j Job) {
	if j.Failures > 0 && !w.tries(j) && !w.has(j.Slots) {
		a := Alarm{Kind: kindOf(j.Exit), Level: w.level(j.Failures, j.LastSuccess), Subject: j.Name, Since: cmp.Or(j.LastSuccess, j.Last),
			Text: fmt.Sprintf("%s failed %s%s", plain.Cut(j.Name, textMost), times(j.Failures), because(j.Error)), Help: "rocm-nightly status --history"}
		if a.Kind == "new-bytes" {
			a.Level = Critical
		}
		w.add(a)
	}
	patience := missedAfter
	if w.s.Running != nil || j.Waits != "" {
		patience = blockedAfter
	}
	switch {
	case w.s.Program.Stops:
	case w.since(j.Missed, patience):
		w.add(Alarm{Kind: "missed", Level: Warning, Subject: j.Name, Since: j.Missed,
			Text: fmt.Sprintf("the run of %s at %s was missed%s", plain.Cut(j.Name, textMost), j.Missed.UTC().Format(time.RFC3339), because(j.Waits)), Help: "rocm-nightly update"})
	case w.since(j.Next, patience):
		w.add(Alarm{Kind: "missed", Level: Critical, Subject: j.Name, Since: j.Next,
			Text: fmt.Sprintf("%s was to begin at %s and did not", plain.Cut(j.Name, textMost), j.Next.UTC().Format(time.RFC3339)), Help: "systemctl status rocm-nightly"})
	}
}

// Exit codes that have an alarm of their own.
const (
	exitRefused  = 4
	exitNewBytes = 5
)

// kindOf is the alarm of an exit code, of which some have a cause of their own.
func kindOf(exit int) string {
	switch exit {
	case exitRefused:
		return "refused"
	case exitNewBytes:
		return "new-bytes"
	}
	return "failed"
}

// config tells that what is on disk is not what is in use.
func (w *watch) config() {
	if p := w.s.Program; p.Config != "" {
		w.add(Alarm{Kind: "config", Level: Warning, Since: p.Loaded,
			Text: "the config was changed and could not be taken, the one of before is in use" + because(p.Config), Help: "rocm-nightly config check"})
	}
}

func (w *watch) bump(b Bump) {
	if b.Error == "" && b.State != "failed" {
		return
	}
	why := b.Error
	if why == "" {
		why = b.Message
	}
	w.add(Alarm{Kind: "bump-failed", Level: Warning, Subject: b.Name, Since: b.At,
		Text: fmt.Sprintf("nothing could be proposed to %s%s", plain.Cut(b.Name, textMost), because(why)), Help: "rocm-nightly bump --dry-run"})
}

// clock tells of records from the future: the clock was wrong then, or is now.
func (w *watch) clock() {
	var latest time.Time
	for _, sl := range w.s.Slots {
		latest = later(latest, sl.LastSuccess)
		for _, r := range sl.Runs {
			latest = later(latest, r.Finished)
		}
		for _, h := range sl.History {
			latest = later(latest, h.At)
		}
	}
	for _, j := range w.s.Jobs {
		latest = later(latest, j.Last)
	}
	for _, ix := range w.s.Indexes {
		latest = later(latest, ix.Checked)
	}
	if latest.After(w.now.Add(clockSlack)) {
		w.add(Alarm{Kind: "clock", Level: Warning,
			Text: fmt.Sprintf("a record is of %s, which is still to come: the clock was wrong then, or is now", latest.UTC().Format(time.RFC3339)), Help: "timedatectl"})
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// ordinary is a word that a shell takes as it is.
var ordinary = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$`)

// word is a part of a command that people copy: nothing, if a shell might see more
// than a word in it.
func word(before, s string) string {
	if !ordinary.MatchString(s) {
		return ""
	}
	return before + s
}

// because adds a cause, in its first line.
func because(why string) string {
	why, _, _ = strings.Cut(strings.TrimSpace(why), "\n")
	if why == "" {
		return ""
	}
	return ": " + plain.Cut(why, textMost)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}
