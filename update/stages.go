package update

import (
	"sync"
	"time"
)

// StageTime is how long one stage of a run took.
type StageTime struct {
	Stage   string  `json:"stage"`
	Seconds float64 `json:"seconds"`
}

// maxStages bounds what one run keeps: it has a dozen.
const maxStages = 100

// stages measures the stages of a run, each until the next begins. The download
// goes on while what has come is unpacked, so that its own time is that until the
// first byte. The zero value measures nothing.
type stages struct {
	mu    sync.Mutex
	now   func() time.Time
	began time.Time
	list  []StageTime
}

// start begins the measurement.
func (s *stages) start(now func() time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.began, s.list = now, now(), nil
}

// enter says that a stage has begun, or that it goes on.
func (s *stages) enter(stage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.list)
	if s.now == nil || n == maxStages || n > 0 && s.list[n-1].Stage == stage {
		return
	}
	s.lap()
	s.list = append(s.list, StageTime{Stage: stage})
}

// all ends the last stage and returns them in their order.
func (s *stages) all() []StageTime {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return nil
	}
	s.lap()
	return append([]StageTime(nil), s.list...)
}

// lap gives the time since the last look to the stage that is on.
func (s *stages) lap() {
	now := s.now()
	if n := len(s.list); n > 0 {
		s.list[n-1].Seconds += max(0, now.Sub(s.began).Seconds()) // a clock may be set back
	}
	s.began = now
}
