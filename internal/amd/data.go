package amd

import (
	"net/url"
	"slices"
	"time"
)

// Schema is the version of the file format that this program reads.
const Schema = 1

// Where Load's callers look. Tests and relocated installs name other files.
const (
	DistroFile = "/usr/share/rocm-nightly/amd.yaml"
	AdminFile  = "/etc/rocm-nightly/amd.yaml"
)

// Data is everything that is known about what AMD publishes.
type Data struct {
	Schema   int                 `yaml:"schema"`
	Version  string              `yaml:"version"`  // the day of the facts: 2026.10.1, ordered part by part as numbers
	Channels map[string]Channel  `yaml:"channels"` // by name; see ChannelNames
	Families map[string][]string `yaml:"families"` // slug to targets, of every era
	Products map[string]string   `yaml:"products"` // as people write it, to target
	Targets  map[string]Target   `yaml:"targets"`  // by gfx name
	Deny     []Deny              `yaml:"deny"`     // builds that nobody should get
	Allow    []string            `yaml:"allow"`    // patterns of Deny that a file drops; empty once loaded
}

// Channel is one stream of builds.
type Channel struct {
	Indexes    []Index       `yaml:"indexes"`     // past and present, the preferred first
	Retention  int           `yaml:"retention"`   // days after which AMD deletes a build; 0: never
	StaleAfter time.Duration `yaml:"stale_after"` // older than this, the newest build says that the index has moved; 0: no such limit
}

// Index is one page that lists, or has listed, the tarballs of a channel.
type Index struct {
	URL        string   `yaml:"url"`
	From       string   `yaml:"from"`        // the first version that it serves; "" is open. Use Bounds or Holds
	Until      string   `yaml:"until"`       // the first version that it serves no more; "" is open
	Frozen     bool     `yaml:"frozen"`      // known to publish no more
	Ended      string   `yaml:"ended"`       // the last day on which it published, YYYY-MM-DD; "" if unknown or not ended
	Archive    bool     `yaml:"archive"`     // asked only for versions of its route: see Channel.Ask
	AllowHosts []string `yaml:"allow_hosts"` // other hosts that redirects may lead to: a name or *.suffix, and a port if it is not the usual one
}

// Target is what is known of one gfx target.
type Target struct {
	Name        string   `yaml:"name"`         // what people call it
	Kernel      string   `yaml:"kernel"`       // the first Linux that drives it: "6.10"; "" if unknown
	Integrated  bool     `yaml:"integrated"`   // shares the memory of the CPU
	DisplayOnly bool     `yaml:"display_only"` // too small to compute on, as the GPU in most desktop Ryzens
	Nearest     []string `yaml:"nearest"`      // targets of the same generation whose code it runs when overridden, best first

	Env map[string]EnvValue `yaml:"env"` // variables that programs need on it, by name
}

// EnvValue is a variable that programs need on a target.
type EnvValue struct {
	Value  string `yaml:"value"`  // "" takes away, in a file that is laid over another
	Source string `yaml:"source"` // who says so, for people: an address, or what it is said in
}

// Deny is a build that nobody should get.
type Deny struct {
	Pattern string `yaml:"pattern"` // path.Match over file names
	Reason  string `yaml:"reason"`  // what is wrong with it, for people
	URL     string `yaml:"url"`     // where that is known from; "" if nowhere
}

// ChannelNames lists the channels that AMD publishes.
func ChannelNames() []string { return []string{"nightly", "dev", "rc", "bkc", "stable", "asan"} }

// Patterns returns the patterns of Deny.
func (d *Data) Patterns() []string {
	var all []string
	for _, e := range d.Deny {
		all = append(all, e.Pattern)
	}
	return all
}

// Hosts lists every host that the indexes name, each once and sorted: those
// that are asked, and those that they may redirect to.
func (d *Data) Hosts() []string {
	var all []string
	for _, ch := range d.Channels {
		for _, ix := range ch.Indexes {
			if u, err := url.Parse(ix.URL); err == nil && u.Hostname() != "" {
				all = append(all, u.Hostname())
			}
			all = append(all, ix.AllowHosts...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
