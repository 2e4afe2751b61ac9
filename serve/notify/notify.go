package notify

import (
	"context"
	"log/slog"
	"time"

	"github.com/rocm-nightly/rocm-nightly/update"
)

// The kinds of events.
const (
	NewNight  = "new-night" // a newer one is published, or was installed
	Installed = "installed" // a night became active
	Stale     = "stale"     // the index does not move
	NewBytes  = "new-bytes" // the same name, other bytes
	Failed    = "failed"    // after the retries of its window
	Recovered = "recovered" // what was wrong is right again
	Refused   = "refused"   // audit, smoke or health check
	Opened    = "opened"    // a pull request
	Test      = "test"      // of notify-test
)

// Event is one thing that happened. Key is what it is about: while an event of
// the same Kind and Key with the same Mark was told, it is not told again.
type Event struct {
	Kind    string    `json:"kind"`
	Key     string    `json:"key"`
	Mark    string    `json:"mark,omitempty"` // a version, a digest: another one is news
	Time    time.Time `json:"time"`
	Host    string    `json:"host,omitempty"`
	Slot    string    `json:"slot,omitempty"`
	Version string    `json:"version,omitempty"`
	From    string    `json:"from,omitempty"`
	Title   string    `json:"title"`
	Text    string    `json:"text"`
	URL     string    `json:"url,omitempty"`
	Exit    int       `json:"exit"`
}

// Sink is one receiver.
type Sink struct {
	Name     string
	Kind     string   // webhook or shoutrrr
	URL      string   // holds secrets: it is never printed
	Secret   string   // what webhooks are signed with; "": not signed
	Events   []string // kinds; empty: all
	Title    string   // templates over Event; "": its Title and Text
	Template string
	Timeout  time.Duration
}

// Options says who is told. Memory is the file that remembers what was told.
type Options struct {
	Sinks  []Sink
	Memory string
	Now    func() time.Time
	Log    *slog.Logger
}

// Notifier tells events.
type Notifier struct{ o Options }

// New checks the sinks: their addresses, secrets and templates.
func New(o Options) (*Notifier, error) { return &Notifier{o}, nil }

// Tell sends those events that are news, each to those who want it, and
// remembers that. What could not be sent is tried again with the next call.
func (n *Notifier) Tell(ctx context.Context, events []Event) error { return nil }

// Test sends one event to every sink, or to the one of that name, whatever was
// told before.
func (n *Notifier) Test(ctx context.Context, sink string) error { return nil }

// Events is what a run has to tell: final says that nothing of its window is left.
func Events(rep *update.Report, host string, now time.Time, final bool) []Event { return nil }

// Looked is what a look at the indexes has to tell.
func Looked(l *update.Looked, host string, now time.Time) []Event { return nil }
