package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// slot tells of everything about one slot.
func (w *watch) slot(s Slot) {
	w.failures(s)
	name := plain.Cut(s.Slot, textMost)
	if !s.Readable() {
		w.add(Alarm{Kind: "unreadable", Level: Warning, Slot: s.Slot,
			Text: fmt.Sprintf("something of %s cannot be read%s", name, because(s.Error)), Help: "rocm-nightly verify" + word(" ", s.Slot)})
	}
	if s.Stale != "" && !w.channelStale(s.Channel) {
		w.add(Alarm{Kind: "stale", Level: Warning, Slot: s.Slot,
			Text: fmt.Sprintf("nothing new is published for %s%s", name, because(s.Stale)), Help: "rocm-nightly list" + word(" --arch ", s.Target)})
	}
	w.expires(s, name)
	if h := s.Hold; h != nil && w.since(h.Since, heldLong) {
		w.add(Alarm{Kind: "held", Level: Warning, Slot: s.Slot, Since: h.Since,
			Text: fmt.Sprintf("%s is held since %s%s", name, h.Since.UTC().Format(time.DateOnly), because(h.Reason)), Help: "rocm-nightly unhold" + word(" ", s.Slot)})
	}
}

// expires tells that AMD soon deletes what is active, and for as long after that it
// has: later nobody can do anything about it, and who keeps tarballs knows.
func (w *watch) expires(s Slot, name string) {
	day, err := time.Parse(time.DateOnly, s.Expires)
	if err != nil || s.Active == nil || day.Sub(w.now).Abs() >= expiresSoon {
		return
	}
	does := "deletes"
	if !day.After(w.now) {
		does = "has deleted"
	}
	w.add(Alarm{Kind: "expires", Level: Warning, Slot: s.Slot, Since: day.Add(-expiresSoon),
		Text: fmt.Sprintf("AMD %s %s, which is active in %s, on %s: unless its tarball is kept, it cannot be installed again after that", does, plain.Cut(s.Active.Version, textMost), name, day.Format(time.DateOnly)),
		Help: "rocm-nightly update" + word(" --arch ", s.Target)})
}

// failures tells of the last night on record, if it failed and nothing has
// succeeded since; or of what failed before there was a record of it.
func (w *watch) failures(s Slot) {
	n, runs := FailedNights(s), failedRuns(s)
	if n == 0 || s.Failed.Exit == exitNewBytes {
		if s.Failed.Exit == 0 {
			w.passedOver(s)
			return
		}
		last := Run{Finished: s.Failed.At, Exit: s.Failed.Exit, Error: s.Failed.Error}
		if s.Newest != nil {
			last.Version = s.Newest.Version
		}
		n, runs = 1, []Run{last}
	}
	for _, j := range w.s.Jobs {
		looks := j.Kind == "check" && len(s.Runs) > 0 // that it cannot look does not mend what has failed
		if slices.Contains(j.Slots, s.Slot) && j.Failures > 0 && w.tries(j) && !looks {
			return
		}
	}
	last, name := runs[0], plain.Cut(s.Slot, textMost)
	version := plain.Cut(cmp.Or(last.Version, "a night"), textMost)
	a := Alarm{Kind: kindOf(last.Exit), Level: w.level(n, s.LastSuccess), Slot: s.Slot, Since: runs[len(runs)-1].Finished, Help: "rocm-nightly status --history"}
	switch a.Kind {
	case "new-bytes":
		a.Level = Critical
		a.Text = fmt.Sprintf("%s: %s has other bytes than before under its name; they are not taken%s", name, version, because(last.Error))
		a.Help = "rocm-nightly update" + word(" --arch ", s.Target) + " --accept-new-bytes"
	case "refused":
		a.Text = fmt.Sprintf("%s: %s was refused%s", name, version, because(last.Error))
	default:
		a.Text = fmt.Sprintf("%s: %s could not be installed%s", name, version, because(last.Error))
	}
	w.add(a)
}

// passedOver tells of a newer night that runs no longer try, because it failed before:
// they succeed, and what is active grows older.
func (w *watch) passedOver(s Slot) {
	if s.Newest == nil || s.Newest.State != "refused" {
		return
	}
	a := Alarm{Kind: "refused", Level: Warning, Slot: s.Slot, Help: "rocm-nightly status --history"}
	version := s.Newest.Version
	a.Text = fmt.Sprintf("%s: %s is published and is passed over, since it failed before", plain.Cut(s.Slot, textMost), plain.Cut(version, textMost))
	for _, r := range s.Runs {
		if r.Version == version && r.Exit != 0 {
			a.Since, a.Text = r.Finished, a.Text+because(r.Error)
			break
		}
	}
	w.add(a)
}

// FailedNights counts the nights on record that failed, from the newest back to
// the first that did not. What failed before the slot's last success counts no more:
// a night may have been withdrawn since. A stale index (exit 3) is no failure.
func FailedNights(s Slot) int {
	nights := map[string]bool{}
	for _, r := range failedRuns(s) {
		nights[cmp.Or(r.Version, r.Name)] = true
	}
	return len(nights)
}

// failedRuns are the runs that FailedNights counts: of a night there may be several.
func failedRuns(s Slot) []Run {
	for i, r := range s.Runs {
		if r.Exit == 0 || r.Exit == 3 || !s.LastSuccess.IsZero() && !r.Finished.After(s.LastSuccess) {
			return s.Runs[:i]
		}
	}
	return s.Runs
}

// disk tells that the next night, of the slot with the largest, would not fit.
func (w *watch) disk() {
	d := w.s.Disk
	if d.Used < 0 && !d.Measured.IsZero() {
		w.add(Alarm{Kind: "disk", Level: Warning, Since: d.Measured, Text: "what the generations occupy could not be measured", Help: "rocm-nightly status -v"})
		return
	}
	if d.Total <= 0 || d.Free < 0 {
		return // not known
	}
	var most float64
	for _, s := range w.s.Slots {
		if s.Configured {
			most = max(most, nextNight(s))
		}
	}
	if most == 0 || float64(d.Free) >= diskReserve*most {
		return
	}
	a := Alarm{Kind: "disk", Level: Warning,
		Text: fmt.Sprintf("%s is free, and the next night takes about %s", gigabytes(float64(d.Free)), gigabytes(most)), Help: "rocm-nightly prune --dry-run"}
	if float64(d.Free) < most {
		a.Level = Critical
	}
	w.add(a)
}

// nextNight is about what the next night of s becomes on disk, as the last one did;
// 0 if nothing is known of either.
func nextNight(s Slot) float64 {
	var tarball, last int64
	for _, r := range s.Runs {
		if r.Bytes > 0 {
			last = r.Bytes
			break
		}
	}
	tarball = last
	if s.Newest != nil && s.Newest.Size > 0 {
		tarball = s.Newest.Size
	}
	ratio := float64(guessRatio)
	if s.Active != nil && s.Active.Bytes > 0 && last > 0 {
		if r := float64(s.Active.Bytes) / float64(last); r >= 1 && r <= maxRatio {
			ratio = r
		}
	}
	return float64(max(tarball, 0)) * ratio
}

func gigabytes(n float64) string { return fmt.Sprintf("%.1f GB", n/1e9) }
