package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/rocm-nightly/rocm-nightly/update"
)

// indexKey begins the key of events about all indexes of a channel.
const indexKey = "index "

// maxActives is of how many slots a stale index says what is active in them.
const maxActives = 4

// standstill gathers what was found of the indexes: one that stands still does so for
// every slot of its channel, which is one event, and not one for each slot.
type standstill struct {
	scene
	order    []string // channels
	channels map[string]*channel
	slots    []Event // of indexes that go on without a target
}

// channel is what was found of one.
type channel struct {
	stale   *update.Stale // nil: it moves
	actives []string      // of its slots
}

// found takes what a run or a look has found of the index for a slot. One that neither
// stands still nor moves was not asked: a lock or a version was.
func (st *standstill) found(slot, from string, stale *update.Stale, moves bool) {
	if stale == nil && !moves {
		return
	}
	name, _, _ := strings.Cut(slot, "-")
	ch := st.channels[name]
	if ch == nil {
		if st.channels == nil {
			st.channels = map[string]*channel{}
		}
		ch = &channel{}
		st.channels[name] = ch
		st.order = append(st.order, name)
	}
	switch {
	case stale == nil:
		st.slots = append(st.slots, st.moves(slot, slot))
	case stale.OneTarget():
		st.slots = append(st.slots, st.stale(slot, from, stale))
	default: // of the slot nothing is known
		if ch.stale == nil {
			ch.stale = stale
		}
		if from != "" {
			ch.actives = append(ch.actives, slot+" "+from)
		}
	}
}

// events are those of the channels, and then those of single slots.
func (st *standstill) events() []Event {
	var all []Event
	for _, name := range st.order {
		ch := st.channels[name]
		if ch.stale == nil {
			all = append(all, st.moves(indexKey+name, name))
			continue
		}
		e := st.event(Stale, indexKey+name, ch.stale.Cause, name+": the index does not move",
			lines("Nothing new was published for "+span(ch.stale.Age)+".", sentence(ch.stale.Detail), actives(ch.actives), "To look: rocm-nightly list --channel "+name))
		e.Exit = update.ExitStale
		all = append(all, e)
	}
	return append(all, st.slots...)
}

// stale is the event of a slot without which its index goes on.
func (s scene) stale(slot, from string, st *update.Stale) Event {
	name, target, _ := strings.Cut(slot, "-")
	e := s.event(Stale, slot, st.Cause, slot+": the index goes on without it",
		lines("Nothing new was published for "+span(st.Age)+".", sentence(st.Detail), active(from), "To look: rocm-nightly list --channel "+name+" --arch "+target))
	e.Slot, e.From, e.Exit = slot, from, update.ExitStale
	return e
}

func (s scene) moves(key, what string) Event {
	return s.recovered(key, Stale, what+": the index moves again", "Something new was published.")
}

// span is an age for people.
func span(age string) string {
	d, err := time.ParseDuration(age)
	if err != nil {
		return age
	}
	return update.Span(d)
}

// actives says what stays in use in several slots.
func actives(all []string) string {
	if len(all) == 0 {
		return "Nothing is installed."
	}
	text := strings.Join(all[:min(len(all), maxActives)], ", ")
	if more := len(all) - maxActives; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "Active: " + text + "."
}
