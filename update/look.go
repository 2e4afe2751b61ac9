package update

import (
	"context"
	"time"
)

// Looked is what a look at the indexes found. Nothing was installed.
type Looked struct {
	Schema   int           `json:"schema"`
	At       time.Time     `json:"at"`
	Installs []LookedAt    `json:"installs"`
	Indexes  []LookedIndex `json:"indexes"`
	Exit     int           `json:"exit"`
}

// LookedAt is what the indexes have for one install.
type LookedAt struct {
	Install   string    `json:"install"`
	Active    string    `json:"active,omitempty"`
	Newest    string    `json:"newest,omitempty"`
	URL       string    `json:"url,omitempty"`
	Published time.Time `json:"published,omitzero"`
	Size      int64     `json:"size,omitempty"`
	State     string    `json:"state"` // as state.Newest's
	Until     time.Time `json:"until,omitzero"`
	Admits    bool      `json:"admits"` // an update would install it now
	Stale     *Stale    `json:"stale,omitempty"`
	Message   string    `json:"message"`
	Error     string    `json:"error,omitempty"`
}

// LookedIndex is one index page.
type LookedIndex struct {
	Channel   string    `json:"channel"`
	URL       string    `json:"url"`
	At        time.Time `json:"at"`        // when it last answered
	Unchanged bool      `json:"unchanged"` // it said that nothing has changed since
	Newest    time.Time `json:"newest,omitzero"`
	Error     string    `json:"error,omitempty"`
}

// Look asks the indexes of every install, changed or not, and says what an
// update would do. It takes no lock and installs nothing.
func Look(ctx context.Context, o Options) (*Looked, error) { return &Looked{Schema: Schema}, nil }
