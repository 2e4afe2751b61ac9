package fetch

import (
	"fmt"
	"net/http"
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
	// HTTP is the client to use; nil is a guarded default: HTTP/2 for small
	// requests where it is offered, HTTP/1.1 for segments, so that parallel
	// segments are parallel connections, proxy from the environment, no
	// transparent compression, time limits on everything but the whole
	// transfer. The rules for redirects hold for any client. A Source with a
	// CAFile or a ClientCert needs a Transport that is an *http.Transport, or nil.
	HTTP *http.Client
	// UserAgent is sent with every request, unless a HeadersFile has another;
	// "" is DefaultUserAgent.
	UserAgent string
	// Insecure allows http:// to hosts other than loopback, whatever the
	// Source says.
	Insecure bool
	// Sources have settings that hold for their origins, for who downloads
	// from them without List, which knows those that it is given. They are
	// not listed.
	Sources []Source
	// CacheDir is a directory for what List read last, so that another
	// process asks only for what is new; it is created when something is kept.
	// "" keeps it in memory alone. It must be this user's own: files that
	// others could write are not read. What goes wrong there is an event at
	// most, and the index is asked for in full.
	CacheDir string
	// Connections is how many segments are fetched at once; 0 is DefaultConnections.
	Connections int
	// Retries is how often one segment or page is tried again; 0 is
	// DefaultRetries, negative is never.
	Retries int
	// IdleTimeout is how long a server may send nothing; 0 is DefaultIdleTimeout.
	IdleTimeout time.Duration
	// RateLimit is in bytes per second over all connections; 0 is none.
	RateLimit int64
	// SegmentSize is in bytes; 0 is DefaultSegmentSize or somewhat less, such
	// that all connections have as much to do. A spool that is resumed keeps
	// the size that it was started with.
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
	opts     Options
	doors    doors // for hosts that need no TLS settings of their own
	limiter  *limiter
	pause    time.Duration // before the first retry
	patience time.Duration // with a page, or another small file, as a whole
	even     bool          // segments are of a size that suits the tarball

	eventMu sync.Mutex

	sitesMu sync.Mutex
	sites   []*site // what the hosts of indexes need

	readMu sync.Mutex
	read   map[string]remembered // by pageKey: what List read last
	cache  pageCache
}

// New returns a Client. It fails on options that have no meaning.
func New(o Options) (*Client, error) {
	if o.Connections < 0 || o.IdleTimeout < 0 || o.RateLimit < 0 || o.SegmentSize < 0 {
		return nil, fmt.Errorf("new client: connections, idle timeout, rate limit and segment size must not be negative")
	}
	even := o.SegmentSize == 0
	setDefault(&o.Connections, DefaultConnections)
	setDefault(&o.Retries, DefaultRetries)
	setDefault(&o.IdleTimeout, DefaultIdleTimeout)
	setDefault(&o.SegmentSize, DefaultSegmentSize)
	setDefault(&o.UserAgent, DefaultUserAgent)
	o.Retries = max(o.Retries, 0)
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Client{opts: o, pause: time.Second, patience: (maxIndexRetries+1)*o.IdleTimeout + time.Minute, even: even, read: map[string]remembered{}, cache: pageCache{dir: o.CacheDir}}
	own, err := c.newDoors(nil)
	if err != nil {
		return nil, fmt.Errorf("new client: %w", err)
	}
	c.doors = *own
	c.register(o.Sources...)
	if o.RateLimit > 0 {
		c.limiter = &limiter{perSecond: float64(o.RateLimit)}
	}
	return c, nil
}

// minSegment is the smallest segment that is worth a request, in bytes.
const minSegment = 1 << 20

// segmentSize returns the size of the segments for a new spool. Unless the
// caller has set it, it is the largest for which the last round of segments
// keeps every connection busy too.
func (c *Client) segmentSize(size int64) int64 {
	if !c.even {
		return c.opts.SegmentSize
	}
	connections := int64(c.opts.Connections)
	rounds := segmentCount(size, connections*DefaultSegmentSize)
	return segmentCount(segmentCount(size, rounds*connections), minSegment) * minSegment
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
