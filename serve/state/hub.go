package state

import (
	"sync"
	"sync/atomic"
)

// Hub holds the State that is current. The zero Hub holds an empty one.
type Hub struct {
	now     atomic.Pointer[State]
	mu      sync.Mutex
	changed chan struct{}
}

// State returns the current State, which nobody changes any more; never nil.
func (h *Hub) State() *State {
	if s := h.now.Load(); s != nil {
		return s
	}
	return &State{Schema: Schema, Alarms: []Alarm{}, Jobs: []Job{}, Slots: []Slot{}, Indexes: []Index{}, Bumps: []Bump{}}
}

// Changed returns a channel that is closed when another State is published.
func (h *Hub) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	return h.changed
}

// Update publishes what change makes of a copy of the current State. change
// replaces lists; it does not write into those that are there.
func (h *Hub) Update(change func(*State)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := *h.State()
	change(&next)
	h.now.Store(&next)
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}
