package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The kinds of events.
const (
	NewNight  = "new-night" // a newer one is published, or is here and waits
	Installed = "installed" // a night became active
	Stale     = "stale"     // the index does not move
	NewBytes  = "new-bytes" // the same name, other bytes
	Failed    = "failed"    // after the retries of its window
	Recovered = "recovered" // what was wrong is right again
	Refused   = "refused"   // audit, smoke or health check
	Opened    = "opened"    // a pull request
	Test      = "test"      // of notify-test
)

// Kinds lists the kinds of events, the gravest first. That is also the order in
// which they are sent.
func Kinds() []string {
	return []string{NewBytes, Refused, Failed, Stale, Recovered, Installed, NewNight, Opened, Test}
}

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

// The kinds of sinks.
const (
	Webhook  = "webhook"  // JSON to an https:// address
	Shoutrrr = "shoutrrr" // a service of shoutrrr
)

// Sink is one receiver.
type Sink struct {
	Name     string
	Kind     string   // webhook or shoutrrr
	URL      string   // holds secrets: it is never printed
	Secret   string   // what webhooks are signed with; "": not signed
	Events   []string // kinds; empty: all
	Title    string   // templates over Event; "": its Title and Text
	Template string
	Timeout  time.Duration // of one event; 0: 30 seconds
	Insecure bool          // take a connection that others can read, to other machines
}

// wants reports whether events of a kind are for this sink. Everybody may be
// tested.
func (s Sink) wants(kind string) bool {
	return len(s.Events) == 0 || kind == Test || slices.Contains(s.Events, kind)
}

// Options says who is told. Memory is the file that remembers what was told; ""
// keeps that in Desk alone.
type Options struct {
	Sinks  []Sink
	Memory string
	Now    func() time.Time
	Log    *slog.Logger

	Desk      *Desk             // what the Notifiers of one process share; nil: nothing
	Agent     string            // the User-Agent of webhooks; "": rocm-nightly
	Transport http.RoundTripper // of webhooks; nil: one that honours the proxies of the environment
}

// Notifier tells events.
type Notifier struct {
	o         Options
	receivers []receiver
}

// receiver is a sink that is ready.
type receiver struct {
	Sink
	text *texts
	send func(ctx context.Context, id string, e Event) error
}

// New checks the sinks: their addresses, secrets and templates. It sends nothing.
// Its errors name the sink and never its address.
func New(o Options) (*Notifier, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Desk == nil {
		o.Desk = &Desk{}
	}
	n := &Notifier{o: o}
	var errs []error
	for _, s := range o.Sinks {
		r, err := n.receiver(s)
		if err != nil {
			errs = append(errs, fmt.Errorf("notify %s: %w", s.Name, err))
			continue
		}
		n.receivers = append(n.receivers, r)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return n, nil
}

// receiver makes a sink ready.
func (n *Notifier) receiver(s Sink) (receiver, error) {
	if s.Timeout <= 0 {
		s.Timeout = sinkTimeout
	}
	r := receiver{Sink: s}
	for _, kind := range s.Events {
		if !slices.Contains(Kinds(), kind) {
			return r, fmt.Errorf("%.40q is no kind of event: there is %s", kind, strings.Join(Kinds(), ", "))
		}
	}
	var err error
	if r.text, err = parseTexts(s.Title, s.Template); err != nil {
		return r, err
	}
	if err := CheckAddress(s.Kind, s.URL, s.Insecure); err != nil {
		return r, err
	}
	if s.Kind == Webhook {
		r.send, err = n.webhook(s)
		return r, err
	}
	if s.Secret != "" {
		return r, errors.New("has a secret, and only webhooks are signed: remove it")
	}
	r.send = n.shoutrrr(s)
	return r, nil
}

// Tell sends those events that are news, each to those who want it, and
// remembers that. What could not be sent is tried again with the next call. It
// takes no longer than a minute. An error tells who could not be told now and
// why; it is no reason to fail anything.
func (n *Notifier) Tell(ctx context.Context, events []Event) error {
	if len(n.receivers) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	var due []pending
	memErr := n.remember(ctx, func(m *memory) {
		for _, r := range n.receivers {
			for _, e := range events {
				m.add(r.Sink, e, n.o.Now())
			}
		}
		n.dropped(m.expire(n.o.Now()))
		due = m.claim(n.names(), n.o.Now())
	})
	if len(due) == 0 {
		return memErr
	}
	results := n.deliver(ctx, due)
	// What was sent was sent, also where ctx has ended meanwhile.
	afterErr := n.remember(context.WithoutCancel(ctx), func(m *memory) {
		m.settle(results, n.o.Now())
		n.dropped(m.expire(n.o.Now()))
	})
	return errors.Join(failures(results), errors.Join(memErr, afterErr))
}

// names lists the sinks.
func (n *Notifier) names() []string {
	var all []string
	for _, r := range n.receivers {
		all = append(all, r.Name)
	}
	return all
}

// dropped says what nobody will be told any more.
func (n *Notifier) dropped(all []pending) {
	for _, p := range all {
		n.o.Log.Warn("an event could not be sent for too long and is dropped", "sink", p.Sink, "kind", p.Event.Kind, "about", p.Event.Key, "tries", p.Tries, "since", p.Since)
	}
}

// Result is what became of a test of one sink.
type Result struct {
	Sink    string
	Kind    string
	Seconds float64
	Err     error // nil: it was taken
}

// Try sends an example of an event to every sink, or to the one of that name,
// whatever was told before, and says for each what became of it. kind is what it
// looks like; "" is an event of kind test.
func (n *Notifier) Try(ctx context.Context, sink, kind, host string) ([]Result, error) {
	if kind == "" {
		kind = Test
	}
	e, ok := Sample(kind, host, n.o.Now())
	if !ok {
		return nil, fmt.Errorf("%.40q is no kind of event: there is %s", kind, strings.Join(Kinds(), ", "))
	}
	var due []pending
	for _, r := range n.receivers {
		if sink == "" || r.Name == sink {
			due = append(due, pending{Sink: r.Name, ID: eventID(e), Event: e})
		}
	}
	if len(due) == 0 {
		return nil, fmt.Errorf("there is no sink %.64q: there is %s", sink, strings.Join(n.names(), ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	var results []Result
	for _, r := range n.deliver(ctx, due) {
		results = append(results, Result{Sink: r.Sink, Kind: r.kind, Seconds: r.took.Seconds(), Err: r.err})
	}
	return results, nil
}

// Test sends one event to every sink, or to the one of that name, whatever was
// told before.
func (n *Notifier) Test(ctx context.Context, sink string) error {
	results, err := n.Try(ctx, sink, Test, "")
	for _, r := range results {
		if r.Err != nil {
			err = errors.Join(err, fmt.Errorf("notify %s: %w", r.Sink, r.Err))
		}
	}
	return err
}
