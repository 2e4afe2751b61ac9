package fetch

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Defaults of Options.
const (
	DefaultConnections = 4
	DefaultRetries     = 10
	DefaultIdleTimeout = 60 * time.Second
	DefaultSegmentSize = 32 << 20 // bytes
	DefaultUserAgent   = "rocm-nightly/dev"
)

// Options are the settings of a Client. The zero Options are good ones.
type Options struct {
	// HTTP is the client to use; nil is a guarded default: HTTP/1.1, so that
	// parallel segments are parallel connections, proxy from the environment,
	// no transparent compression, time limits on everything but the whole
	// transfer. The rules for redirects hold for any client.
	HTTP *http.Client
	// UserAgent is sent with every request; "" is DefaultUserAgent.
	UserAgent string
	// Insecure allows http:// to hosts other than loopback.
	Insecure bool
	// Connections is how many segments are fetched at once; 0 is DefaultConnections.
	Connections int
	// Retries is how often one segment or page is tried again; 0 is
	// DefaultRetries, negative is never.
	Retries int
	// IdleTimeout is how long a server may send nothing; 0 is DefaultIdleTimeout.
	IdleTimeout time.Duration
	// RateLimit is in bytes per second over all connections; 0 is none.
	RateLimit int64
	// SegmentSize is in bytes; 0 is DefaultSegmentSize. A spool that is
	// resumed keeps the size that it was started with.
	SegmentSize int64
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Event, if not nil, is told what happens. It is called from several
	// goroutines, one call at a time, must return soon (the download waits for
	// it), and must not call back into the package.
	Event func(Event)
}

// The kinds of Event.
const (
	EventStart    = "start"    // a download begins; Done is what an earlier run left
	EventProgress = "progress" // bytes arrived; at most ten a second, and once at the end
	EventRetry    = "retry"    // something failed and is tried again; Message says what and when
	EventNote     = "note"     // something is worth knowing; Message says what
	EventDone     = "done"     // every byte is on disk
)

// Event is one thing that happened.
type Event struct {
	Kind    string // one of the constants above
	Release string // file name of the release; "" for an index
	Done    int64  // bytes on disk
	Total   int64  // bytes of the tarball; 0 if not known
	Message string // for people; "" for progress
}

// Client reads indexes and downloads releases. It is safe for concurrent use.
type Client struct {
	opts    Options
	http    *http.Client
	limiter *limiter
	pause   time.Duration // before the first retry

	eventMu sync.Mutex

	authMu sync.Mutex
	auth   map[string]*url.Userinfo // by scheme and host, as List found them in the URLs of indexes

	readMu sync.Mutex
	read   map[string]remembered // by URL: what List read last
}

// New returns a Client. It fails on options that have no meaning.
func New(o Options) (*Client, error) {
	if o.Connections < 0 || o.IdleTimeout < 0 || o.RateLimit < 0 || o.SegmentSize < 0 {
		return nil, fmt.Errorf("new client: connections, idle timeout, rate limit and segment size must not be negative")
	}
	setDefault(&o.Connections, DefaultConnections)
	setDefault(&o.Retries, DefaultRetries)
	setDefault(&o.IdleTimeout, DefaultIdleTimeout)
	setDefault(&o.SegmentSize, DefaultSegmentSize)
	setDefault(&o.UserAgent, DefaultUserAgent)
	o.Retries = max(o.Retries, 0)
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{opts: o, pause: time.Second, auth: map[string]*url.Userinfo{}, read: map[string]remembered{}}
	c.http = guardClient(o)
	if o.RateLimit > 0 {
		c.limiter = &limiter{perSecond: float64(o.RateLimit)}
	}
	return c, nil
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

func (c *Client) event(e Event) {
	if c.opts.Event == nil {
		return
	}
	c.eventMu.Lock()
	defer c.eventMu.Unlock()
	c.opts.Event(e)
}
