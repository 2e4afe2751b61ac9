package state

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/rocm-nightly/rocm-nightly/internal/plain"
)

// channels tells of indexes that do not move or do not answer. A channel has
// several: the host of today and the frozen ones of before, which are asked so that
// a move is noticed. Only if none of them moves the channel is stale.
func (w *watch) channels() {
	var order []string
	of := map[string][]Index{}
	for _, ix := range w.s.Indexes {
		if _, known := of[ix.Channel]; !known {
			order = append(order, ix.Channel)
		}
		of[ix.Channel] = append(of[ix.Channel], ix)
	}
	for _, channel := range order {
		w.stale(channel, of[channel])
		w.unreachable(channel, of[channel])
	}
}

// channelStale says that a whole channel stands still, which is told once.
func (w *watch) channelStale(channel string) bool {
	some := false
	for _, ix := range w.s.Indexes {
		if ix.Channel != channel {
			continue
		}
		if !ix.Stale {
			return false
		}
		some = true
	}
	return some
}

func (w *watch) stale(channel string, all []Index) {
	freshest := slices.MaxFunc(all, func(a, b Index) int {
		return cmp.Or(cmp.Compare(gravity(staleLevel(a)), gravity(staleLevel(b))), a.Newest.Compare(b.Newest))
	})
	if !freshest.Stale {
		return
	}
	text := fmt.Sprintf("nothing new is published in %s", plain.Cut(channel, textMost))
	if !freshest.Newest.IsZero() {
		text += " since " + freshest.Newest.UTC().Format(time.DateOnly)
	}
	w.add(Alarm{Kind: "stale", Level: Warning, Subject: host(freshest.URL), Since: freshest.Newest, Text: text + because(freshest.Detail), Help: "rocm-nightly list" + word(" --channel ", channel)})
}

// staleLevel lets an index that is not stale be greater than one that is.
func staleLevel(ix Index) string {
	if ix.Stale {
		return Critical
	}
	return Warning
}

// unreachable tells of each index that has not answered for a day; if none of its
// channel does, nothing new can be seen.
func (w *watch) unreachable(channel string, all []Index) {
	var dead []Index
	for _, ix := range all {
		// One that never answered is silent since the program looks.
		if ix.Error != "" && w.since(cmp.Or(ix.Checked, w.s.Program.Started), unreachableLong) {
			dead = append(dead, ix)
		}
	}
	level := Warning
	if len(dead) == len(all) {
		level = Critical
	}
	for _, ix := range dead {
		w.add(Alarm{Kind: "unreachable", Level: level, Subject: host(ix.URL), Since: ix.Checked,
			Text: fmt.Sprintf("an index of %s, %s, does not answer%s", plain.Cut(channel, textMost), host(ix.URL), because(ix.Error)), Help: "rocm-nightly list" + word(" --channel ", channel)})
	}
}

// host is what of an address is shown: two of one host differ in their path.
func host(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "an index"
	}
	return plain.Cut(u.Host+u.EscapedPath(), textMost)
}
