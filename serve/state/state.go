package state

import "time"

// Schema is the version of the JSON form of State.
const Schema = 1

// State is everything that is shown. Lists are never null.
type State struct {
	Schema  int       `json:"schema"`
	Time    time.Time `json:"time"` // UTC: when it was made
	Host    string    `json:"host,omitempty"`
	Root    string    `json:"root"`
	Program Program   `json:"program"`
	Running *Running  `json:"running,omitempty"` // what is being done; absent: nothing
	Alarms  []Alarm   `json:"alarms"`            // the gravest first
	Jobs    []Job     `json:"jobs"`              // of the daemon; empty for one run of a timer
	Slots   []Slot    `json:"slots"`             // installed ones and configured ones, in the order of the config
	Indexes []Index   `json:"indexes"`
	Bumps   []Bump    `json:"bumps"`
	Disk    Disk      `json:"disk"`
}

// Program is the process that made the State.
type Program struct {
	Version string    `json:"version"`
	Commit  string    `json:"commit,omitempty"`
	Go      string    `json:"go,omitempty"`
	Started time.Time `json:"started"`           // UTC
	Config  string    `json:"config,omitempty"`  // why the config that was last read was not taken; "": it was
	Loaded  time.Time `json:"loaded,omitzero"`   // UTC: when the config was last taken
	Stops   bool      `json:"stops,omitempty"`   // it was told to stop
	Actions bool      `json:"actions,omitempty"` // the page may start runs and switch, with a token
}

// Running is the job under way and how far it has come.
type Running struct {
	Job     string    `json:"job"`
	Why     string    `json:"why"` // scheduled, catch-up, retry, settled, asked
	Started time.Time `json:"started"`
	Slot    string    `json:"slot,omitempty"`
	Stage   string    `json:"stage,omitempty"` // as update.Event
	Done    int64     `json:"done,omitempty"`  // bytes, files or objects of the stage
	Total   int64     `json:"total,omitempty"` // 0: not known
	Message string    `json:"message,omitempty"`
}

// The gravity of an alarm.
const (
	Critical = "critical" // nothing new is installed, or what is there may be wrong, until somebody acts
	Warning  = "warning"  // it should be looked at
)

// Alarm is something that somebody should know. Kind and Slot (or Subject) name
// it for as long as it lasts.
type Alarm struct {
	Kind    string    `json:"kind"` // one of AlarmKinds
	Level   string    `json:"level"`
	Slot    string    `json:"slot,omitempty"`
	Subject string    `json:"subject,omitempty"` // an index, a repository, a job
	Since   time.Time `json:"since,omitzero"`
	Text    string    `json:"text"`           // one line for people
	Help    string    `json:"help,omitempty"` // what to try: a command
}

// Job is an entry of the schedule, with its past.
type Job struct {
	Name        string    `json:"name"`
	Kind        string    `json:"kind"` // update or check
	Schedule    string    `json:"schedule"`
	Slots       []string  `json:"slots"`
	Next        time.Time `json:"next,omitzero"`
	NextWhy     string    `json:"next_why,omitempty"` // scheduled, catch-up, retry, settled
	WindowEnds  time.Time `json:"window_ends,omitzero"`
	Last        time.Time `json:"last,omitzero"` // when the last run began
	LastSeconds float64   `json:"last_seconds,omitempty"`
	LastSuccess time.Time `json:"last_success,omitzero"` // when the last run that did not fail ended
	Failures    int       `json:"failures"`              // in a row
	Error       string    `json:"error,omitempty"`       // of the last run
	Exit        int       `json:"exit"`                  // of the last run
	Runs        uint64    `json:"runs"`                  // since the program began
	Failed      uint64    `json:"failed"`                // of them
	Retries     uint64    `json:"retries"`               // of them: runs that were a retry
	Missed      time.Time `json:"missed,omitzero"`       // the last time of the schedule that passed without a run; absent: a run began since
	Waits       string    `json:"waits,omitempty"`       // why what is due does not begin: no mains power
}

// Slot is one channel and target on this machine.
type Slot struct {
	Slot        string       `json:"slot"`
	Channel     string       `json:"channel"`
	Target      string       `json:"target"`
	Configured  bool         `json:"configured"`
	Active      *Generation  `json:"active,omitempty"`
	Prefix      string       `json:"prefix,omitempty"` // …/current
	Newest      *Newest      `json:"newest,omitempty"` // as of the last look; absent: never looked
	Waits       string       `json:"waits,omitempty"`  // why the newest, or a staged one, is not active
	Hold        *Hold        `json:"hold,omitempty"`
	Expires     string       `json:"expires,omitempty"` // the day on which AMD deletes what is active
	LastSuccess time.Time    `json:"last_success,omitzero"`
	Generations []Generation `json:"generations"` // the newest first
	Runs        []Run        `json:"runs"`        // the newest first
	History     []Activation `json:"history"`     // the newest first
	Error       string       `json:"error,omitempty"`
	Stale       string       `json:"stale,omitempty"` // why nothing new was published for it for too long, as of the last look: an index may go on without it
	Back        string       `json:"back,omitempty"`  // the generation that a roll back goes to; absent: there is none
	Left        string       `json:"left,omitempty"`  // the version that somebody went back from: runs pass over it until the slot is let go on

	Failed Failure `json:"-"` // how the last run or look failed, where no run record says it; its Error is part of Error
}

// Failure is a run that failed before there was anything to record. The zero Failure is
// none.
type Failure struct {
	Exit  int
	At    time.Time
	Error string
}

// Readable reports whether all that is on disk of the slot could be read.
func (s Slot) Readable() bool { return s.Error == s.Failed.Error }

// Generation is one prefix.
type Generation struct {
	Name      string    `json:"name"`
	Version   string    `json:"version"`
	Active    bool      `json:"active"`
	Published time.Time `json:"published,omitzero"` // the night, by its version or the index
	Installed time.Time `json:"installed,omitzero"`
	Digest    string    `json:"digest,omitempty"`
	Bytes     int64     `json:"bytes"` // of its files
	Disk      int64     `json:"disk"`  // what it occupies, shared or not; -1: not measured
	Alone     int64     `json:"alone"` // what would be free without it; -1: not measured
	Audit     *Audit    `json:"audit,omitempty"`
}

// Audit counts findings.
type Audit struct {
	Fatal    int `json:"fatal"`
	Required int `json:"required"`
	Warnings int `json:"warnings"`
}

// Newest is what the index has for a slot.
type Newest struct {
	Version   string    `json:"version"`
	Published time.Time `json:"published,omitzero"`
	Size      int64     `json:"size,omitempty"`
	State     string    `json:"state"`          // installed, newer, settling, uploading, young, held, refused, older
	Until     time.Time `json:"until,omitzero"` // settling and young: when it is looked at again
}

// Hold stops switches.
type Hold struct {
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"` // zero: until unhold
	Reason string    `json:"reason,omitempty"`
}

// Run is one record of an installation or of an attempt.
type Run struct {
	Name       string    `json:"name"`
	Version    string    `json:"version"`
	Started    time.Time `json:"started,omitzero"`
	Finished   time.Time `json:"finished,omitzero"`
	Seconds    float64   `json:"seconds"`
	Stages     []Stage   `json:"stages"`
	Bytes      int64     `json:"bytes"` // of the tarball
	Generation string    `json:"generation,omitempty"`
	Audit      *Audit    `json:"audit,omitempty"`
	Exit       int       `json:"exit"`
	Error      string    `json:"error,omitempty"`
}

// Stage is how long one stage of a run took.
type Stage struct {
	Stage   string  `json:"stage"`
	Seconds float64 `json:"seconds"`
}

// Activation is one switch.
type Activation struct {
	At         time.Time `json:"at"`
	Generation string    `json:"generation"`
	Why        string    `json:"why"`
}

// Index is one index page, as it was last read.
type Index struct {
	Channel string    `json:"channel"`
	URL     string    `json:"url"`              // without who is let in
	Checked time.Time `json:"checked,omitzero"` // when it last answered
	Newest  time.Time `json:"newest,omitzero"`  // when the newest release that it lists was published
	Stale   bool      `json:"stale"`            // the newest is older than the channel's patience
	Detail  string    `json:"detail,omitempty"` // why it is stale
	Error   string    `json:"error,omitempty"`  // of the last try
}

// Bump is one request, or a repository without one.
type Bump struct {
	Name    string    `json:"name"`
	State   string    `json:"state"` // open, pending, merged, closed, limited, failed, up-to-date, pushed
	Version string    `json:"version,omitempty"`
	Number  int64     `json:"number,omitempty"`
	URL     string    `json:"url,omitempty"`
	Title   string    `json:"title,omitempty"`
	Message string    `json:"message,omitempty"`
	Error   string    `json:"error,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// Disk is what the whole root occupies.
type Disk struct {
	Used     int64     `json:"used"`     // by generations, shared bytes once; -1: not measured
	Tarballs int64     `json:"tarballs"` // kept ones
	Spool    int64     `json:"spool"`    // downloads under way
	Free     int64     `json:"free"`     // of the file system
	Total    int64     `json:"total"`
	Measured time.Time `json:"measured,omitzero"` // sharing takes a walk: it is measured after a run
}
